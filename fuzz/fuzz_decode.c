/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_decode.c -- any bytes as an image: its head, all of it, and crops, which must equal the same part of the whole.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "decode/decode.h"
#include "fuzz.h"

enum { MAX_PIXELS = 1 << 20, CROPS = 3 };

static int decode(struct decoder *d, const uint8_t *data, size_t size, const struct head *h, const struct want *w,
                  struct arena *a, struct image *im)
{
    int warnings;
    stk_error e;
    const size_t scratch = decode_scratch(h, w);
    require(scratch > 0 && decode_foreign(h, w) > 0 && arena_reserve(a, scratch) == 0);
    const int rc = decode_pixels(d, data, size, h, w, a, im, &warnings, &e);
    require(rc == STK_OK || rc == STK_EDATA || rc == STK_ENOMEM);
    require(rc == STK_OK ? im->w == w->crop.w && im->h == w->crop.h : e.reason[0] != 0);
    return rc;
}

static void compare(const struct image *whole, const struct rect *c, const struct image *part)
{
    for (int32_t y = 0; y < c->h; y++)
        require(memcmp(whole->px + (size_t)(c->y + y) * whole->stride + (size_t)c->x * 3,
                       part->px + (size_t)y * part->stride, (size_t)c->w * 3) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct decode_limits limits = {.max_pixels = MAX_PIXELS};
    struct arena a = {0}, b = {0};
    struct decoder *d;
    struct head h;
    struct image whole, part;
    stk_error e;
    if (decode_head(data, size, &limits, &h, &e) != STK_OK)
        return 0;
    require(decoder_new(&d, STK_CPU_DEFAULT, &e) == STK_OK);
    struct want w = {.crop = {0, 0, head_width(&h), head_height(&h)}};
    if (decode(d, data, size, &h, &w, &a, &whole) == STK_OK)
        for (uint64_t i = 0; i < CROPS; i++) {
            w = (struct want){.crop = some_crop(head_width(&h), head_height(&h), hash_bytes(data, size, i)),
                              .whole = i == 0};
            require(decode(d, data, size, &h, &w, &b, &part) == STK_OK);
            compare(&whole, &w.crop, &part);
        }
    decoder_free(d);
    arena_done(&a);
    arena_done(&b);
    return 0;
}
