/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h -- what the targets share.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdlib.h>

#include "base/hash.h"
#include "base/sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool truth)
{
    if (!truth)
        abort();
}

/* Any crop of an image of w x h pixels. */
static inline struct rect some_crop(int32_t w, int32_t h, uint64_t seed)
{
    const uint64_t r = hash_mix(seed, 1), s = hash_mix(seed, 2);
    struct rect c;
    c.w = 1 + (int32_t)(r % (uint64_t)w);
    c.h = 1 + (int32_t)(s % (uint64_t)h);
    c.x = (int32_t)(r / 65536 % (uint64_t)(w - c.w + 1));
    c.y = (int32_t)(s / 65536 % (uint64_t)(h - c.h + 1));
    return c;
}

#endif
