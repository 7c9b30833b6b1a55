/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.c -- reads, writes, stores and converts numbers.
 *
 * The only thing that strtod and printf take from the locale is the decimal point, so they never see one: they read and
 * write digits and an exponent, and the point is handled here.
 */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sample.h"

/* ------------------------------------------------------------------ reading */

/* More digits than these cannot change the nearest double. If a dropped digit is not 0, a final 1 is appended. */
enum { DIGITS_MOST = 768 };

/* Exponents are clamped here: far more than the digits of any text, far below overflow. */
#define EXPONENT_MOST INT64_C(1000000000000000)

struct decimal {
    const char *at, *end;
    const char *digits; /* from the first digit that is not 0; may contain the point */
    int64_t n;          /* significant digits */
    uint64_t value;     /* the first 19 of them as a number */
    int64_t exponent;   /* power of ten that value times 10^(n - 19) is multiplied by */
    bool any;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void take_digits(struct decimal *d, bool fraction)
{
    for (; d->at < d->end && is_digit(*d->at); d->at++) {
        d->any = true;
        d->exponent -= fraction;
        if (d->n == 0 && *d->at == '0')
            continue;
        if (d->n == 0)
            d->digits = d->at;
        if (d->n < 19)
            d->value = d->value * 10 + (uint64_t)(*d->at - '0');
        d->n++;
    }
}

static bool take_exponent(struct decimal *d)
{
    const char *p = d->at;
    if (p == d->end || (*p | 0x20) != 'e')
        return false;
    p++;
    const bool minus = p < d->end && *p == '-';
    p += p < d->end && (*p == '-' || *p == '+');
    if (p == d->end || !is_digit(*p))
        return false;
    int64_t e = 0;
    for (; p < d->end && is_digit(*p); p++)
        e = e < EXPONENT_MOST ? 10 * e + (*p - '0') : e;
    d->at = p;
    d->exponent += minus ? -e : e;
    return true;
}

/* Writes "digits e exponent" for strtod. */
static double by_strtod(const struct decimal *d)
{
    char text[DIGITS_MOST + 32];
    int n = 0;
    int64_t left = d->n;
    bool rest = false;
    for (const char *p = d->digits; left > 0; p++) {
        if (!is_digit(*p))
            continue;
        if (n < DIGITS_MOST)
            text[n++] = *p;
        else
            rest |= *p != '0';
        left--;
    }
    if (rest)
        text[n++] = '1';
    snprintf(text + n, sizeof text - (size_t)n, "e%lld", (long long)(d->exponent + d->n - n));
    return strtod(text, NULL);
}

/* Both factors are exact, so one multiplication or division rounds correctly. */
static double value_of(const struct decimal *d)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (d->n == 0)
        return 0.0;
    if (d->n > 19 || d->value > UINT64_C(1) << 53 || d->exponent < -22 || d->exponent > 22)
        return by_strtod(d);
    return d->exponent < 0 ? (double)d->value / tens[-d->exponent] : (double)d->value * tens[d->exponent];
}

/* All digits as a 64-bit number. */
static bool whole_of(const struct decimal *d, uint64_t *value)
{
    *value = d->value;
    if (d->n < 20)
        return true;
    const uint64_t digit = (uint64_t)(d->digits[19] - '0');
    if (d->n > 20 || d->value > (UINT64_MAX - digit) / 10)
        return false;
    *value = d->value * 10 + digit;
    return true;
}

static size_t read_word(const char *text, size_t n, double *d)
{
    static const struct {
        const char *word;
        double d;
    } words[] = {{"infinity", (double)INFINITY}, {"inf", (double)INFINITY}, {"nan", (double)NAN}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t length = strlen(words[i].word);
        size_t same = 0;
        while (same < length && same < n && (text[same] | 0x20) == words[i].word[same])
            same++;
        if (same == length) {
            *d = words[i].d;
            return length;
        }
    }
    return 0;
}

/* 3.0 also counts as an integer, as far as doubles are exact. */
static struct number of_text(double d)
{
    const bool whole = d >= -9007199254740992.0 && d <= 9007199254740992.0 && d == floor(d);
    return (struct number){.whole = whole, .i = whole ? (int64_t)d : 0, .d = d};
}

size_t number_read(const char *text, size_t n, struct number *out)
{
    const bool minus = n > 0 && text[0] == '-', sign = minus || (n > 0 && text[0] == '+');
    struct decimal d = {.at = text + sign, .end = text + n};
    double special;
    const size_t word = read_word(d.at, n - sign, &special);
    if (word > 0) {
        *out = (struct number){.d = minus ? -special : special};
        return word + sign;
    }
    take_digits(&d, false);
    const bool point = d.at < d.end && *d.at == '.';
    d.at += point;
    if (point)
        take_digits(&d, true);
    if (!d.any)
        return 0;
    uint64_t value;
    const bool real = take_exponent(&d) || point, fits = !real && whole_of(&d, &value);
    if (fits && value <= (uint64_t)INT64_MAX + minus)
        *out = (struct number){.whole = true, .i = (int64_t)(minus ? 0 - value : value), .d = value_of(&d)};
    else if (fits && !minus)
        *out = (struct number){.whole = true, .big = true, .i = (int64_t)value, .d = value_of(&d)};
    else
        *out = of_text(value_of(&d));
    if (minus) {
        out->d = -out->d;
        out->i = fits ? out->i : -out->i;
    }
    return (size_t)(d.at - text);
}

/* ------------------------------------------------------------------ writing */

/* Composes the text from the digits and the exponent of the first one. */
static void layout(char buf[NUMBER_BYTES], const char *sign, const char *digits, int exponent)
{
    const int n = (int)strlen(digits);
    if (exponent < -5 || exponent > 15)
        snprintf(buf, NUMBER_BYTES, "%s%c.%se%d", sign, digits[0], n > 1 ? digits + 1 : "0", exponent);
    else if (exponent < 0)
        snprintf(buf, NUMBER_BYTES, "%s0.%.*s%s", sign, -exponent - 1, "00000", digits);
    else if (n <= exponent + 1)
        snprintf(buf, NUMBER_BYTES, "%s%s%.*s", sign, digits, exponent + 1 - n, "000000000000000");
    else
        snprintf(buf, NUMBER_BYTES, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}

void number_write(double v, char buf[NUMBER_BYTES])
{
    char raw[NUMBER_BYTES], digits[20], back[48];
    if (!isfinite(v)) {
        snprintf(buf, NUMBER_BYTES, "%s", isnan(v) ? "nan" : v < 0.0 ? "-inf" : "inf");
        return;
    }
    for (int precision = 0; precision <= 16; precision++) {
        snprintf(raw, sizeof raw, "%.*e", precision, fabs(v));
        int n = 0;
        const char *p = raw;
        for (; *p != 'e'; p++)
            if (is_digit(*p))
                digits[n++] = *p;
        digits[n] = 0;
        const int exponent = (int)strtol(p + 1, NULL, 10);
        layout(buf, v < 0.0 ? "-" : "", digits, exponent);
        snprintf(back, sizeof back, "%se%d", digits, exponent - n + 1);
        if (strtod(back, NULL) == fabs(v))
            return;
    }
}

/* ------------------------------------------------------------------ elements */

#define LOAD(type)                                                                                                     \
    {                                                                                                                  \
        type v;                                                                                                        \
        memcpy(&v, p, sizeof v);                                                                                       \
        return (struct number){.whole = true, .i = (int64_t)v, .d = (double)v};                                        \
    }

static struct number load_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return (struct number){.whole = true, .big = v > INT64_MAX, .i = (int64_t)v, .d = (double)v};
}

/* 3.0 also counts as an integer. */
static struct number of_double(double d)
{
    const bool whole = d > -0x1p63 && d < 0x1p63 && (double)(int64_t)d == d;
    return (struct number){.whole = whole, .i = whole ? (int64_t)d : 0, .d = d};
}

struct number number_load(stk_dtype t, const uint8_t *p)
{
    float f;
    double d;
    switch (t) {
    case STK_INT8:
        LOAD(int8_t)
    case STK_INT16:
        LOAD(int16_t)
    case STK_UINT16:
        LOAD(uint16_t)
    case STK_INT32:
        LOAD(int32_t)
    case STK_UINT32:
        LOAD(uint32_t)
    case STK_INT64:
        LOAD(int64_t)
    case STK_UINT64:
        return load_u64(p);
    case STK_FLOAT32:
        memcpy(&f, p, sizeof f);
        return of_double((double)f);
    case STK_FLOAT64:
        memcpy(&d, p, sizeof d);
        return of_double(d);
    default: /* uint8, bool */
        return (struct number){.whole = true, .i = *p, .d = *p};
    }
}

static bool fits(const struct number *v, stk_dtype t)
{
    static const struct {
        int64_t least, most;
    } limits[] = {[STK_UINT8] = {0, UINT8_MAX},         [STK_INT8] = {INT8_MIN, INT8_MAX},
                  [STK_INT16] = {INT16_MIN, INT16_MAX}, [STK_UINT16] = {0, UINT16_MAX},
                  [STK_INT32] = {INT32_MIN, INT32_MAX}, [STK_UINT32] = {0, UINT32_MAX},
                  [STK_INT64] = {INT64_MIN, INT64_MAX}, [STK_BOOL] = {0, 1}};
    if (t == STK_FLOAT32 || t == STK_FLOAT64)
        return true;
    if (!v->whole)
        return false;
    if (t == STK_UINT64)
        return v->big || v->i >= 0;
    return !v->big && v->i >= limits[t].least && v->i <= limits[t].most;
}

/* The low bytes of an integer, in either byte order of the machine. */
int number_store(const struct number *v, stk_dtype t, uint8_t *to)
{
    if (!fits(v, t))
        return -1;
    const float f = (float)v->d;
    const int8_t i8 = (int8_t)v->i;
    const int16_t i16 = (int16_t)v->i;
    const int32_t i32 = (int32_t)v->i;
    switch (dtype_bytes(t)) {
    case 1:
        memcpy(to, &i8, sizeof i8);
        break;
    case 2:
        memcpy(to, &i16, sizeof i16);
        break;
    case 4:
        memcpy(to, t == STK_FLOAT32 ? (const void *)&f : (const void *)&i32, sizeof i32);
        break;
    default:
        memcpy(to, t == STK_FLOAT64 ? (const void *)&v->d : (const void *)&v->i, sizeof v->i);
        break;
    }
    return 0;
}

bool number_is_type(stk_dtype t)
{
    return dtype_bytes(t) > 0 && t != STK_FLOAT16 && t != STK_BFLOAT16;
}

/* ------------------------------------------------------------------ many numbers */

/* One plain loop per pair of types, which the compiler vectorises. */
#define LOOP(name, type_a, type_b)                                                                                     \
    static void name(const uint8_t *from, size_t n, uint8_t *to)                                                       \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type_a a;                                                                                                  \
            memcpy(&a, from + i * sizeof a, sizeof a);                                                                 \
            const type_b b = (type_b)a;                                                                                \
            memcpy(to + i * sizeof b, &b, sizeof b);                                                                   \
        }                                                                                                              \
    }

LOOP(u8_f32, uint8_t, float)
LOOP(i8_f32, int8_t, float)
LOOP(u16_f32, uint16_t, float)
LOOP(i16_f32, int16_t, float)
LOOP(i32_f32, int32_t, float)
LOOP(i64_f32, int64_t, float)
LOOP(f64_f32, double, float)
LOOP(f32_f64, float, double)
LOOP(u8_i64, uint8_t, int64_t)
LOOP(u16_i64, uint16_t, int64_t)
LOOP(i32_i64, int32_t, int64_t)
LOOP(u32_i64, uint32_t, int64_t)
LOOP(u8_i32, uint8_t, int32_t)
LOOP(u16_i32, uint16_t, int32_t)

static const struct {
    stk_dtype a, b;
    void (*run)(const uint8_t *from, size_t n, uint8_t *to);
} loops[] = {
    {STK_UINT8, STK_FLOAT32, u8_f32},    {STK_INT8, STK_FLOAT32, i8_f32},     {STK_UINT16, STK_FLOAT32, u16_f32},
    {STK_INT16, STK_FLOAT32, i16_f32},   {STK_INT32, STK_FLOAT32, i32_f32},   {STK_INT64, STK_FLOAT32, i64_f32},
    {STK_FLOAT64, STK_FLOAT32, f64_f32}, {STK_FLOAT32, STK_FLOAT64, f32_f64}, {STK_UINT8, STK_INT64, u8_i64},
    {STK_UINT16, STK_INT64, u16_i64},    {STK_INT32, STK_INT64, i32_i64},     {STK_UINT32, STK_INT64, u32_i64},
    {STK_UINT8, STK_INT32, u8_i32},      {STK_UINT16, STK_INT32, u16_i32},
};

bool number_cast(const uint8_t *from, stk_dtype a, size_t n, uint8_t *to, stk_dtype b)
{
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
        if (loops[i].a == a && loops[i].b == b) {
            loops[i].run(from, n, to);
            return true;
        }
    return false;
}
