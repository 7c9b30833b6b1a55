/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dct.c -- any bytes as a DCT image. All sets of kernels have the same verdict and pixels. A crop equals the same
 * part of the whole image, and so does a JPEG made from it. A JPEG becomes a DCT image first, which must decode as the
 * file does.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "decode/dct_image.h"
#include "decode/decode.h"
#include "fuzz.h"

enum { MAX_PIXELS = 1 << 18, SETS = 3 };
static const struct decode_limits limits = {.max_pixels = MAX_PIXELS};

static void compare(const struct image *whole, const struct rect *c, const struct image *part)
{
    for (int32_t y = 0; y < c->h; y++)
        require(memcmp(whole->px + (size_t)(c->y + y) * whole->stride + (size_t)c->x * 3,
                       part->px + (size_t)y * part->stride, (size_t)c->w * 3) == 0);
}

static bool decode_crop(struct decoder *d, const uint8_t *dct, size_t n, const struct rect *crop, struct arena *a,
                        struct image *im)
{
    struct head h;
    const struct want w = {.crop = *crop};
    require(decode_dct_head(dct, n, &limits, &h, NULL) == STK_OK);
    require(arena_reserve(a, decode_scratch(&h, &w)) == 0);
    const int rc = decode_dct_pixels(d, dct, n, &h, &w, a, im, NULL);
    require(rc == STK_OK || rc == STK_EDATA);
    return rc == STK_OK;
}

/* Coefficients outside the range of JPEG are refused. */
static void try_back(struct decoder *d, const uint8_t *dct, size_t n, const struct image *whole)
{
    struct buf file = {0}, jpeg = {0};
    struct arena a = {0};
    struct head h;
    struct image im;
    int warnings;
    require(dct_image_begin_file(&file) == 0 && buf_add(&file, dct, n) == 0);
    dct_image_end_file(&file, 0);
    const int rc = decode_dct_file_to_jpeg(file.data, file.len, &jpeg, NULL);
    require(rc == STK_OK || rc == STK_EDATA);
    if (rc == STK_OK) {
        require(decode_head(jpeg.data, jpeg.len, &limits, &h, NULL) == STK_OK);
        const struct want w = {.crop = {0, 0, head_width(&h), head_height(&h)}};
        require(w.crop.w == whole->w && w.crop.h == whole->h && arena_reserve(&a, decode_scratch(&h, &w)) == 0);
        require(decode_pixels(d, jpeg.data, jpeg.len, &h, &w, &a, &im, &warnings, NULL) == STK_OK);
        compare(whole, &w.crop, &im);
    }
    arena_done(&a);
    buf_done(&file);
    buf_done(&jpeg);
}

static void try_dct(struct decoder *const *d, int sets, const uint8_t *dct, size_t n)
{
    struct head h;
    struct arena a = {0}, b = {0};
    struct image whole, other;
    if (decode_dct_head(dct, n, &limits, &h, NULL) != STK_OK)
        return;
    const struct rect all = {0, 0, head_width(&h), head_height(&h)};
    const bool good = decode_crop(d[0], dct, n, &all, &a, &whole);
    for (int i = 1; i < sets; i++) {
        require(decode_crop(d[i], dct, n, &all, &b, &other) == good);
        if (good)
            compare(&whole, &all, &other);
    }
    const struct rect part = {all.w / 3, all.h / 3, (all.w + 1) / 2, (all.h + 1) / 2};
    if (good) {
        require(decode_crop(d[sets - 1], dct, n, &part, &b, &other));
        compare(&whole, &part, &other);
        try_back(d[0], dct, n, &whole);
    }
    arena_done(&a);
    arena_done(&b);
}

static void try_jpeg(struct decoder *d, const uint8_t *data, size_t size)
{
    struct head h;
    struct arena a = {0}, b = {0};
    struct buf dct = {0};
    struct image of_file, of_dct;
    int warnings;
    if (decode_head(data, size, &limits, &h, NULL) != STK_OK || !decode_to_dct(d, data, size, &h, &dct)) {
        buf_done(&dct);
        return;
    }
    const struct want w = {.crop = {0, 0, head_width(&h), head_height(&h)}, .reference = true};
    require(arena_reserve(&a, decode_scratch(&h, &w)) == 0);
    require(decode_pixels(d, data, size, &h, &w, &a, &of_file, &warnings, NULL) == STK_OK);
    require(decode_crop(d, dct.data, dct.len, &w.crop, &b, &of_dct));
    compare(&of_file, &w.crop, &of_dct);
    arena_done(&a);
    arena_done(&b);
    buf_done(&dct);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const stk_cpu wanted[SETS] = {STK_CPU_C, STK_CPU_AVX2, STK_CPU_AVX512};
    struct decoder *d[SETS];
    int sets = 0;
    for (int i = 0; i < SETS; i++) {
        stk_cpu cpu;
        if (cpu_choose(wanted[i], &cpu, NULL) == STK_OK && decoder_new(&d[sets], cpu, NULL) == STK_OK)
            sets++;
    }
    require(sets > 0);
    try_dct(d, sets, data, size);
    try_jpeg(d[sets - 1], data, size);
    for (int i = 0; i < sets; i++)
        decoder_free(d[i]);
    return 0;
}
