/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_field.c -- what was read becomes what a row has.
 */
#include "source/field.h"

#include <string.h>

#include "test.h"

static stk_error error;

static struct field tensor(stk_dtype t, int ndim, int64_t n)
{
    struct field f = {.name = "x", .kind = FIELD_TENSOR, .dtype = t, .ndim = ndim, .what = STK_TENSOR};
    f.shape[0] = n;
    f.bytes = dtype_bytes(t) * (ndim ? (size_t)n : 1);
    return f;
}

static struct cell text(const char *s)
{
    return (struct cell){.bytes = (const uint8_t *)s, .n = strlen(s)};
}

static void numbers_as_text(void)
{
    const struct field whole = tensor(STK_INT64, 0, 0), real = tensor(STK_FLOAT32, 0, 0),
                       small = tensor(STK_UINT8, 0, 0);
    int64_t i;
    float f;
    uint8_t u;
    struct cell c = text(" -42\n");
    CHECK_EQ(field_store(&whole, &c, &i, &error), STK_OK);
    CHECK_EQ(i, -42);
    c = text("3.0");
    CHECK_EQ(field_store(&whole, &c, &i, &error), STK_OK);
    CHECK_EQ(i, 3);
    c = text("-1.5e2");
    CHECK_EQ(field_store(&real, &c, &f, &error), STK_OK);
    CHECK(f == -150);
    c = text("255");
    CHECK_EQ(field_store(&small, &c, &u, &error), STK_OK);
    CHECK_EQ(u, 255);
    const char *const bad[] = {"256", "-1", "1.5", "cat", "", "1 2"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        c = text(bad[k]);
        CHECK_EQ(field_store(&small, &c, &u, &error), STK_EDATA);
    }
    CHECK(strstr(error.text, "\"1 2\", which is not a number of type uint8") != NULL);
    c = text("9223372036854775808");
    CHECK_EQ(field_store(&whole, &c, &i, &error), STK_EDATA);
}

static void casts(void)
{
    const uint8_t bytes[] = {1, 2, 255};
    const struct cell c = {.bytes = bytes, .n = 3, .dtype = STK_UINT8, .ndim = 1, .shape = {3}};
    float f[3];
    const struct field real = tensor(STK_FLOAT32, 1, 3), small = tensor(STK_INT8, 1, 3),
                       four = tensor(STK_FLOAT32, 1, 4);
    CHECK_EQ(field_store(&real, &c, f, &error), STK_OK);
    CHECK(f[0] == 1 && f[2] == 255);
    int8_t i[4];
    CHECK_EQ(field_store(&small, &c, i, &error), STK_EDATA);
    CHECK(strstr(error.text, "255, which int8 cannot hold") != NULL);
    const float reals[] = {-3, 0, 1.5f};
    struct cell r = {.bytes = (const uint8_t *)reals, .n = 12, .dtype = STK_FLOAT32, .ndim = 1, .shape = {3}};
    CHECK_EQ(field_store(&small, &r, i, &error), STK_EDATA);
    CHECK(strstr(error.text, "1.5, which int8 cannot hold") != NULL);
    r.n = 8;
    r.shape[0] = 2;
    const struct field two = tensor(STK_INT8, 1, 2);
    CHECK_EQ(field_store(&two, &r, i, &error), STK_OK);
    CHECK(i[0] == -3 && i[1] == 0);
    float more[4];
    CHECK_EQ(field_store(&four, &c, more, &error), STK_EDATA);
    CHECK(strstr(error.text, "3 numbers, but its shape needs 4") != NULL);
    const struct field half = tensor(STK_FLOAT16, 1, 3);
    CHECK_EQ(field_store(&half, &c, f, &error), STK_EDATA);
}

static void bytes_as_they_lie(void)
{
    const int16_t two[] = {-5, 300};
    const struct cell c = {.bytes = (const uint8_t *)two, .n = sizeof two};
    const struct field f = tensor(STK_INT16, 1, 2), wide = tensor(STK_INT32, 1, 2);
    int16_t out[2];
    int32_t none[2];
    CHECK_EQ(field_store(&f, &c, out, &error), STK_OK);
    CHECK(memcmp(out, two, sizeof two) == 0);
    CHECK_EQ(field_store(&wide, &c, none, &error), STK_EDATA);
}

static void npy_files(void)
{
    uint8_t file[80 + 12];
    memcpy(file, "\x93NUMPY\x01\x00\x46\x00", 10);
    char head[71];
    snprintf(head, sizeof head, "%-69s\n", "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }");
    memcpy(file + 10, head, 70);
    const int16_t numbers[] = {1, 4, 2, 5, 3, 6};
    memcpy(file + 80, numbers, sizeof numbers);
    const struct cell c = {.bytes = file, .n = sizeof file};
    struct field f = tensor(STK_FLOAT32, 2, 2);
    f.shape[1] = 3;
    f.bytes = 24;
    float out[6];
    CHECK_EQ(field_store(&f, &c, out, &error), STK_OK);
    for (int i = 0; i < 6; i++)
        CHECK(out[i] == (float)(i + 1));
    f.shape[0] = 3;
    f.shape[1] = 2;
    CHECK_EQ(field_store(&f, &c, out, &error), STK_EDATA);
    const struct cell cut = {.bytes = file, .n = sizeof file - 1};
    CHECK_EQ(field_store(&f, &cut, out, &error), STK_EDATA);
}

static void what_is_missing(void)
{
    struct field f = tensor(STK_INT32, 1, 2);
    const struct cell none = {0};
    int32_t out[2] = {0};
    CHECK_EQ(field_store(&f, &none, out, &error), STK_EDATA);
    CHECK(strstr(error.text, "the sample has no x") != NULL);
    f.has_fill = true;
    CHECK_EQ(field_number("-3", 2, STK_INT32, f.fill), 0);
    CHECK_EQ(field_store(&f, &none, out, &error), STK_OK);
    CHECK(out[0] == -3 && out[1] == -3);
}

/* Beyond int64 a number is still above 0. */
static void large_numbers(void)
{
    double d = 0;
    uint64_t u = 0;
    CHECK_EQ(field_number("18446744073709551615", 20, STK_FLOAT64, (uint8_t *)&d), 0);
    CHECK(d == 18446744073709551616.0);
    CHECK_EQ(field_number("9223372036854775808", 19, STK_UINT64, (uint8_t *)&u), 0);
    CHECK(u == UINT64_C(1) << 63);
}

static void nine_dimensions(void)
{
    char file[100];
    uint8_t out[1];
    memcpy(file, "\x93NUMPY\x01\x00\x50\x00", 10);
    snprintf(file + 10, 82, "%-79s\nx", "{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }");
    const struct field f = tensor(STK_UINT8, 1, 1);
    const struct cell c = {.bytes = (const uint8_t *)file, .n = 91};
    CHECK_EQ(field_store(&f, &c, out, &error), STK_EDATA);
    CHECK(strstr(error.text, "more than 8 dimensions") != NULL);
}

static void ragged(void)
{
    struct field f = {.name = "x", .kind = FIELD_RAGGED, .dtype = STK_INT32, .ndim = 2, .shape = {-1, 2}, .bytes = 8};
    f.what = STK_TENSOR;
    const int64_t numbers[] = {1, 2, 3, 4, 5, 6};
    struct cell c = {
        .bytes = (const uint8_t *)numbers, .n = sizeof numbers, .dtype = STK_INT64, .ndim = 1, .shape = {6}};
    struct ragged_row p = {0}, copy = {0};
    CHECK_EQ(field_ragged_row(&f, &c, &p, &error), STK_OK);
    CHECK_EQ(p.shape[0], 3);
    CHECK_EQ(p.n, 24);
    CHECK_EQ(((const int32_t *)(const void *)p.data)[5], 6);
    CHECK_EQ(ragged_row_copy(&copy, &p), 0);
    CHECK(copy.n == p.n && memcmp(copy.data, p.data, p.n) == 0);
    CHECK_EQ(ragged_row_copy(&copy, NULL), 0);
    CHECK_EQ(copy.n, 0);
    c.n = 5 * sizeof numbers[0];
    c.shape[0] = 5;
    CHECK_EQ(field_ragged_row(&f, &c, &p, &error), STK_EDATA);
    const struct cell none = {0};
    CHECK_EQ(field_ragged_row(&f, &none, &p, &error), STK_EDATA);
    f.has_fill = true;
    CHECK_EQ(field_ragged_row(&f, &none, &p, &error), STK_OK);
    CHECK_EQ(p.n, 0);
    ragged_row_done(&p);
    ragged_row_done(&copy);
}

int main(int argc, char **argv)
{
    TESTS(T(numbers_as_text), T(casts), T(bytes_as_they_lie), T(npy_files), T(large_numbers), T(nine_dimensions),
          T(what_is_missing), T(ragged))
}
