/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_npy.c -- npy files. The array of an accepted header is inside the file and can be copied.
 */
#include <stdlib.h>

#include "format/npy.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy h;
    const char *why = NULL;
    if (npy_parse(data, size, size, &h, &why) != 0) {
        require(why != NULL);
        return 0;
    }
    require(h.ndim <= NPY_DIMS && h.at <= size && h.bytes <= size - h.at);
    uint8_t *to = malloc(h.bytes + 1);
    if (!to)
        return 0;
    npy_copy(&h, data + h.at, to);
    free(to);
    return 0;
}
