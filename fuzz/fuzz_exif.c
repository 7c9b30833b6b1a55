/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_exif.c -- the first byte splits the rest into a TIFF block and an XMP text.
 */
#include <stdlib.h>

#include "decode/exif.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const size_t split = (size - 1) * data[0] / 255;
    const struct exif x = {data + 1, split, data + 1 + split, size - 1 - split};
    const int orientation = exif_orientation(&x);
    if (orientation < 1 || orientation > 8)
        abort();
    return 0;
}
