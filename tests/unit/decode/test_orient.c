/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_orient.c -- compares the eight orientations with the formula of each.
 */
#include "decode/orient.h"

#include "test.h"

/* Where the upright pixel x, y is stored in an image of w x h. */
static void stored_at(int o, int w, int h, int x, int y, int *sx, int *sy)
{
    const int at[9][2] = {{0, 0}, {x, y},         {w - 1 - x, y},         {w - 1 - x, h - 1 - y}, {x, h - 1 - y},
                          {y, x}, {y, h - 1 - x}, {w - 1 - y, h - 1 - x}, {w - 1 - y, x}};
    *sx = at[o][0];
    *sy = at[o][1];
}

static struct image make(int w, int h, size_t stride)
{
    struct image im = {calloc(stride, (size_t)h), stride, w, h, 3};
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            im.px[(size_t)y * stride + (size_t)x * 3] = (uint8_t)x;
            im.px[(size_t)y * stride + (size_t)x * 3 + 1] = (uint8_t)y;
            im.px[(size_t)y * stride + (size_t)x * 3 + 2] = (uint8_t)(x / 256 + y / 256 * 16);
        }
    return im;
}

static void check_pixels(int o, int w, int h)
{
    const struct image im = make(w, h, (size_t)w * 3 + 7);
    uint8_t *out = malloc((size_t)w * (size_t)h * 3);
    orient_pixels(o, &im, out);
    const int uw = o > 4 ? h : w, uh = o > 4 ? w : h;
    int wrong = 0;
    for (int y = 0; y < uh; y++)
        for (int x = 0; x < uw; x++) {
            int sx, sy;
            stored_at(o, w, h, x, y, &sx, &sy);
            wrong += memcmp(out + ((size_t)y * (size_t)uw + (size_t)x) * 3,
                            im.px + (size_t)sy * im.stride + (size_t)sx * 3, 3) != 0;
        }
    CHECK_EQ(wrong, 0);
    free(out);
    free(im.px);
}

static void pixels(void)
{
    static const int sizes[] = {1, 2, 15, 16, 17, 33, 300};
    for (int o = 1; o <= 8; o++)
        for (size_t i = 0; i < 7; i++)
            for (size_t j = 0; j < 7; j++)
                check_pixels(o, sizes[i], sizes[j]);
}

static void rectangles(void)
{
    const int w = 9, h = 5;
    for (int o = 1; o <= 8; o++) {
        const int uw = o > 4 ? h : w, uh = o > 4 ? w : h;
        for (int n = 0; n < uw * uh * 4; n++) {
            const struct rect r = {n % uw, n / uw % uh, 1 + n % (uw - n % uw), 1 + n % (uh - n / uw % uh)};
            const struct rect s = orient_stored(o, w, h, r);
            int x0, y0, x1, y1; /* opposite corners of the upright rectangle */
            stored_at(o, w, h, r.x, r.y, &x0, &y0);
            stored_at(o, w, h, r.x + r.w - 1, r.y + r.h - 1, &x1, &y1);
            CHECK_EQ(s.x, x0 < x1 ? x0 : x1);
            CHECK_EQ(s.y, y0 < y1 ? y0 : y1);
            CHECK_EQ(s.w, abs(x1 - x0) + 1);
            CHECK_EQ(s.h, abs(y1 - y0) + 1);
        }
    }
}

int main(int argc, char **argv)
{
    TESTS(T(pixels), T(rectangles))
}
