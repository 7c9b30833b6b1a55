/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_image_ops.c -- ops on images in memory: the same rows as a loader makes of the same pixels.
 */
#include "test.h"

#include "stoker.h"

enum { WIDE = 13, HIGH = 9 };

static uint8_t pixels[HIGH * WIDE * 3];

static void make_pixels(void)
{
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37 + i / 7);
}

static void same_as_a_loader(const char *text, stk_dtype dtype, stk_layout layout)
{
    const int64_t shape[] = {1, HIGH, WIDE, 3};
    const stk_array array = {.name = "x", .data = pixels, .dtype = STK_UINT8, .ndim = 4, .shape = shape, .device = 1};
    const stk_options o = {.arrays = &array, .n_arrays = 1, .ops = text, .dtype = dtype, .layout = layout};
    stk_loader *l;
    stk_batch *b;
    stk_ops *ops;
    stk_error e;
    int64_t made[3];
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    CHECK_EQ(stk_next(l, &b, &e), STK_OK);
    const stk_array *image = stk_field(b, "image");
    CHECK_EQ(stk_ops_open(&ops, text, dtype, layout, &e), STK_OK);
    CHECK_EQ(stk_ops_shape(ops, WIDE, HIGH, 0, made, &e), STK_OK);
    for (int d = 0; d < 3; d++)
        CHECK_EQ(made[d], image->shape[d + 1]);
    const size_t n = (size_t)(made[0] * made[1] * made[2]) * (dtype == STK_UINT8 ? 1 : 4);
    uint8_t *to = malloc(n);
    CHECK_EQ(stk_ops_run(ops, pixels, WIDE, HIGH, 0, to, &e), STK_OK);
    CHECK(memcmp(to, image->data, n) == 0);
    free(to);
    stk_ops_close(ops);
    stk_release(b);
    stk_close(l);
}

static void rows(void)
{
    make_pixels();
    same_as_a_loader("ToTensor | Normalize(mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))", STK_FLOAT32, STK_NCHW);
    same_as_a_loader("Resize((7, 11)) | CenterCrop(5)", STK_UINT8, STK_NHWC);
    same_as_a_loader("CenterCrop(20)", STK_FLOAT32, STK_NHWC);
    same_as_a_loader("Grayscale", STK_UINT8, STK_NCHW);
}

static void draws(void)
{
    stk_ops *ops;
    stk_error e;
    uint8_t first[5 * 5 * 3], again[sizeof first], other[sizeof first];
    int differ = 0;
    CHECK_EQ(stk_ops_open(&ops, "RandomCrop(5) | RandomHorizontalFlip", STK_UINT8, STK_NHWC, &e), STK_OK);
    CHECK_EQ(stk_ops_run(ops, pixels, WIDE, HIGH, 1, first, &e), STK_OK);
    CHECK_EQ(stk_ops_run(ops, pixels, WIDE, HIGH, 1, again, &e), STK_OK);
    CHECK(memcmp(first, again, sizeof first) == 0);
    for (uint64_t random = 2; random < 10; random++) {
        CHECK_EQ(stk_ops_run(ops, pixels, WIDE, HIGH, random, other, &e), STK_OK);
        differ += memcmp(first, other, sizeof first) != 0;
    }
    CHECK(differ > 0);
    stk_ops_close(ops);
}

static void mistakes(void)
{
    stk_ops *ops;
    stk_error e;
    int64_t shape[3];
    CHECK_EQ(stk_ops_open(&ops, "Resize(", STK_UINT8, STK_NHWC, &e), STK_EUSAGE);
    CHECK(ops == NULL);
    stk_ops_close(ops);
    CHECK_EQ(stk_ops_open(&ops, "Resize(4)", STK_DTYPE_DEFAULT, STK_LAYOUT_DEFAULT, &e), STK_OK);
    CHECK_EQ(stk_ops_shape(ops, 0, 4, 0, shape, &e), STK_EUSAGE);
    CHECK_EQ(stk_ops_shape(ops, 8, 4, 0, shape, &e), STK_OK);
    CHECK(shape[0] == 3 && shape[1] == 4 && shape[2] == 8);
    stk_ops_close(ops);
}

int main(int argc, char **argv)
{
    TESTS(T(rows), T(draws), T(mistakes))
}
