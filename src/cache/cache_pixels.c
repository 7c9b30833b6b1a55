/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_pixels.c -- entries of a cache of pixels.
 *
 *     | w | h | channels | 0 |  pixels, 8-bit, interleaved, without gaps
 *
 * Pixels are kept as they are after the last op that does not draw. Even rows that are then complete are kept as 8-bit
 * pixels, not as floats: that takes a quarter of the room, and converting them costs no more than copying floats.
 */
#include <string.h>

#include "base/size.h"
#include "cache/cache.h"

/* In this machine's byte order. */
struct shape {
    uint32_t w, h, channels, zero;
};

size_t cache_pixels_bytes(int32_t w, int32_t h, int32_t channels)
{
    return size_add(size_mul(size_mul((size_t)w, (size_t)h), (size_t)channels), sizeof(struct shape));
}

uint8_t *cache_pixels_begin(uint8_t *entry, int32_t w, int32_t h, int32_t channels)
{
    const struct shape s = {(uint32_t)w, (uint32_t)h, (uint32_t)channels, 0};
    memcpy(entry, &s, sizeof s);
    return entry + sizeof s;
}

bool cache_pixels_image(const uint8_t *entry, size_t n, int channels, struct image *out)
{
    struct shape s;
    if (n < sizeof s)
        return false;
    memcpy(&s, entry, sizeof s);
    if (s.w < 1 || s.h < 1 || s.w > INT32_MAX / 4 || s.h > INT32_MAX || (int)s.channels != channels ||
        size_mul(size_mul(s.w, s.channels), s.h) != n - sizeof s)
        return false;
    *out = (struct image){.px = (uint8_t *)(uintptr_t)entry + sizeof s,
                          .stride = (size_t)s.w * s.channels,
                          .w = (int32_t)s.w,
                          .h = (int32_t)s.h,
                          .channels = (int32_t)s.channels};
    return true;
}
