/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_number.c -- numbers are read and written in the same way in every locale, as exactly as by strtod.
 */
#include "base/number.h"

#include <math.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/sample.h"
#include "source/field.h"
#include "support/comma_locale.h"

static bool reads(const char *text, double d)
{
    struct number v;
    const size_t n = strlen(text);
    return number_read(text, n, &v) == n && (v.d == d || (isnan(v.d) && isnan(d)));
}

static void forms(void)
{
    CHECK(reads("0", 0) && reads("-0.5", -0.5) && reads("+3", 3) && reads(".5", 0.5) && reads("5.", 5));
    CHECK(reads("1e3", 1000) && reads("1E-3", 0.001) && reads("1.5e+2", 150) && reads("0.000", 0));
    CHECK(reads("inf", (double)INFINITY) && reads("-Infinity", -(double)INFINITY) && reads("NaN", (double)NAN));
    CHECK(reads("1e400", (double)INFINITY) && reads("1e-400", 0) && reads("1e99999999999", (double)INFINITY));
    static const char *const none[] = {"", "-", "+", ".", "e5", "-.", "x", "i", "--1"};
    struct number v;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK_EQ(number_read(none[i], strlen(none[i]), &v), 0);
    CHECK_EQ(number_read("1,5", 3, &v), 1);
    CHECK_EQ(number_read("1e", 2, &v), 1);
    CHECK_EQ(number_read("0x10", 4, &v), 1);
    CHECK_EQ(number_read("12", 1, &v), 1); /* no more than is there */
    CHECK_EQ(v.i, 1);
}

static void whole_numbers(void)
{
    struct number v;
    CHECK_EQ(number_read("-9223372036854775808", 20, &v), 20);
    CHECK(v.whole && !v.big && v.i == INT64_MIN);
    CHECK_EQ(number_read("9223372036854775807", 19, &v), 19);
    CHECK(v.whole && !v.big && v.i == INT64_MAX);
    CHECK_EQ(number_read("18446744073709551615", 20, &v), 20);
    CHECK(v.whole && v.big && (uint64_t)v.i == UINT64_MAX);
    CHECK_EQ(number_read("18446744073709551616", 20, &v), 20);
    CHECK(!v.whole && v.d == 18446744073709551616.0);
    CHECK_EQ(number_read("-9223372036854775809", 20, &v), 20);
    CHECK(!v.whole);
    CHECK_EQ(number_read("-3.0", 4, &v), 4);
    CHECK(v.whole && v.i == -3);
    CHECK_EQ(number_read("000000000000000000000000000017", 30, &v), 30);
    CHECK(v.whole && v.i == 17);
}

static void exact(void)
{
    struct rng r;
    rng_init(&r, &(struct draw){.seed = 5}, "number", 0);
    char text[64];
    for (int i = 0; i < 200000; i++) {
        const uint64_t bits = rng_u64(&r);
        double d;
        memcpy(&d, &bits, sizeof d);
        if (!isfinite(d))
            continue;
        snprintf(text, sizeof text, "%.*e", (int)(bits % 20), d);
        CHECK(reads(text, strtod(text, NULL)));
        snprintf(text, sizeof text, "%.*f", (int)(bits % 12), (double)(int32_t)bits / 1e4);
        CHECK(reads(text, strtod(text, NULL)));
    }
    /* Halfway between two doubles, and slightly above: only the last digit differs. */
    char half[1100] = "9007199254740993.";
    memset(half + 17, '0', 1000);
    half[1017] = 0;
    CHECK(reads(half, 9007199254740992.0));
    half[1016] = '1';
    CHECK(reads(half, 9007199254740994.0));
}

/* Any number of digits gives the right exponent. */
static void long_texts(void)
{
    enum { N = 2000000 };
    char *text = malloc(N + 32);
    CHECK(text != NULL);
    memset(text, '0', N + 32);
    memcpy(text, "1.", 2);
    text[200000] = 0;
    CHECK(reads(text, 1));
    text[200000] = '0';
    text[N] = 0;
    CHECK(reads(text, 1));
    memcpy(text, "0.", 2);
    memcpy(text + N, "1e1999999", 10); /* N - 2 zeros, then the 1 */
    CHECK(reads(text, 1));
    memset(text, '0', N);
    text[0] = '1';
    memcpy(text + N, "e-1999999", 10);
    CHECK(reads(text, 1));
    memcpy(text + N, "e-99999999999999999999", 23);
    CHECK(reads(text, 0));
    free(text);
}

static void comma_locale(void)
{
    char text[NUMBER_BYTES];
    if (!comma_enter())
        return;
    CHECK(strtod("1.5", NULL) < 1.25); /* as this locale has it */
    CHECK(reads("1.5", 1.5) && reads("0.1234567890123456789", 0x1.f9add3746f65fp-4));
    number_write(-1234.5, text);
    CHECK_STR(text, "-1234.5");
    comma_leave();
}

static void writes(void)
{
    static const struct {
        double d;
        const char *text;
    } cases[] = {
        {0, "0"}, {0.1, "0.1"}, {1e22, "1.0e22"}, {-1e-7, "-1.0e-7"}, {(double)INFINITY, "inf"}, {(double)NAN, "nan"}};
    char text[NUMBER_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        number_write(cases[i].d, text);
        CHECK_STR(text, cases[i].text);
    }
}

/* Casting many numbers at once gives the same as casting each through its text. */
static void casts(void)
{
    enum { N = 67 };
    int pairs = 0;
    for (int a = STK_FLOAT32; a <= STK_BOOL; a++)
        for (int b = STK_FLOAT32; b <= STK_BOOL; b++) {
            uint8_t from[8 * N + 1], to[8 * N + 1], one[8];
            for (size_t i = 0; i < N; i++) {
                char text[32];
                snprintf(text, sizeof text, "%d", (int)(hash_mix(i, 7) % 128));
                memset(one, 0, sizeof one);
                if (field_number(text, strlen(text), (stk_dtype)a, one) == 0)
                    memcpy(from + 1 + i * dtype_bytes((stk_dtype)a), one, dtype_bytes((stk_dtype)a));
            }
            if (!number_cast(from + 1, (stk_dtype)a, N, to + 1, (stk_dtype)b))
                continue;
            pairs++;
            for (size_t i = 0; i < N; i++) {
                char text[32];
                snprintf(text, sizeof text, "%d", (int)(hash_mix(i, 7) % 128));
                CHECK_EQ(field_number(text, strlen(text), (stk_dtype)b, one), 0);
                CHECK(memcmp(one, to + 1 + i * dtype_bytes((stk_dtype)b), dtype_bytes((stk_dtype)b)) == 0);
            }
        }
    CHECK(pairs > 10);
}

static void casts_at_the_ends(void)
{
    const uint32_t most = UINT32_MAX;
    const int8_t least = INT8_MIN;
    int64_t wide = 0;
    float f = 0;
    CHECK(number_cast((const uint8_t *)&most, STK_UINT32, 1, (uint8_t *)&wide, STK_INT64));
    CHECK_EQ(wide, 4294967295);
    CHECK(number_cast((const uint8_t *)&least, STK_INT8, 1, (uint8_t *)&f, STK_FLOAT32));
    CHECK(f == -128.0f);
    CHECK(!number_cast((const uint8_t *)&most, STK_UINT32, 1, (uint8_t *)&wide, STK_INT32));
    CHECK(!number_cast((const uint8_t *)&most, STK_FLOAT32, 1, (uint8_t *)&wide, STK_INT64));
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(forms), T(whole_numbers), T(exact), T(long_texts), T(comma_locale), T(writes), T(casts),
          T(casts_at_the_ends))
}
