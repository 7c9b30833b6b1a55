/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orient.c -- the eight EXIF orientations.
 *
 * 5 to 8 transpose. Stored columns, stored rows, both or neither run backwards:
 *
 *     upright(x, y) = stored(column(x), row(y))       1 to 4
 *     upright(x, y) = stored(column(y), row(x))       5 to 8
 */
#include "decode/orient.h"

#include <string.h>

enum { TILE = 16 }; /* pixels: the rows of a tile stay in the L1 cache while columns are read */

static bool columns_backwards(int o)
{
    return o == 2 || o == 3 || o == 7 || o == 8;
}

static bool rows_backwards(int o)
{
    return o == 3 || o == 4 || o == 6 || o == 7;
}

struct rect orient_stored(int o, int32_t w, int32_t h, struct rect r)
{
    struct rect s = r;
    if (o > 4)
        s = (struct rect){r.y, r.x, r.h, r.w};
    if (columns_backwards(o))
        s.x = w - s.x - s.w;
    if (rows_backwards(o))
        s.y = h - s.y - s.h;
    return s;
}

/* Copies one tile. `first` is its first stored pixel. A step right or down in the upright image is a step of `right`
 * or `down` bytes in the stored one. */
static void copy_tile(const uint8_t *first, ptrdiff_t right, ptrdiff_t down, uint8_t *dst, size_t stride, int32_t w,
                      int32_t h)
{
    for (int32_t y = 0; y < h; y++, first += down, dst += stride)
        for (int32_t x = 0; x < w; x++)
            memcpy(dst + 3 * x, first + x * right, 3);
}

void orient_pixels(int o, const struct image *src, uint8_t *dst)
{
    const ptrdiff_t stride = (ptrdiff_t)src->stride;
    const ptrdiff_t column = columns_backwards(o) ? -3 : 3, row = rows_backwards(o) ? -stride : stride;
    const uint8_t *first = src->px + (columns_backwards(o) ? 3 * (ptrdiff_t)(src->w - 1) : 0) +
                           (rows_backwards(o) ? stride * (src->h - 1) : 0);
    const bool swap = o > 4;
    const int32_t w = swap ? src->h : src->w, h = swap ? src->w : src->h;
    const ptrdiff_t right = swap ? row : column, down = swap ? column : row;
    const size_t out = (size_t)w * 3;
    for (int32_t y = 0; y < h; y += TILE)
        for (int32_t x = 0; x < w; x += TILE)
            copy_tile(first + x * right + y * down, right, down, dst + (size_t)y * out + (size_t)x * 3, out,
                      w - x < TILE ? w - x : TILE, h - y < TILE ? h - y : TILE);
}
