/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c -- parses numbers as people type them, independent of the locale.
 */
#include "value.h"

#include <string.h>

int value_uint64(const char *s, uint64_t *out)
{
    uint64_t v = 0;
    if (!*s)
        return -1;
    for (; *s; s++) {
        const uint64_t digit = (uint64_t)(unsigned char)*s - '0';
        if (digit > 9 || v > (UINT64_MAX - digit) / 10)
            return -1;
        v = v * 10 + digit;
    }
    *out = v;
    return 0;
}

int value_int64(const char *s, int64_t min, int64_t max, int64_t *out)
{
    const int negative = *s == '-';
    uint64_t v;
    if (value_uint64(s + negative, &v) || v > INT64_MAX)
        return -1;
    *out = negative ? -(int64_t)v : (int64_t)v;
    return *out < min || *out > max ? -1 : 0;
}

/* Parses digits with at most one decimal point; *end is what follows. */
static int decimal(const char *s, double *out, const char **end)
{
    double v = 0, unit = 1;
    int digits = 0, point = 0;
    for (; (*s >= '0' && *s <= '9') || (*s == '.' && !point); s++) {
        if (*s == '.') {
            point = 1;
            continue;
        }
        v = v * 10 + (*s - '0');
        unit *= point ? 10 : 1;
        digits++;
    }
    *out = v / unit;
    *end = s;
    return digits ? 0 : -1;
}

int value_weight(const char *s, const char **end, double *out)
{
    return decimal(s, out, end);
}

int value_size(const char *s, int64_t *out)
{
    static const char units[] = "kmgt";
    double v;
    const char *end;
    if (decimal(s, &v, &end))
        return -1;
    const char lower = (char)(*end | 0x20);
    const char *unit = *end ? strchr(units, lower) : NULL;
    if (unit && *unit) {
        for (long i = 0; i <= unit - units; i++)
            v *= 1024;
        end++;
    }
    if (strcmp(end, "") != 0 && strcmp(end, "B") != 0 && !(unit && strcmp(end, "iB") == 0))
        return -1;
    if (v < 1 || v > 9e18)
        return -1;
    *out = (int64_t)v;
    return 0;
}

int value_share(const char *s, double *out)
{
    const char *end;
    if (decimal(s, out, &end))
        return -1;
    if (*end == '%') {
        *out /= 100;
        end++;
    }
    return *end || *out > 1 ? -1 : 0;
}

int value_grid(const char *s, int *columns, int *rows)
{
    char left[8];
    const size_t n = strcspn(s, "xX");
    int64_t c, r;
    if (n == 0 || n >= sizeof left || !s[n])
        return -1;
    memcpy(left, s, n);
    left[n] = 0;
    if (value_int64(left, 1, 100, &c) || value_int64(s + n + 1, 1, 100, &r))
        return -1;
    *columns = (int)c;
    *rows = (int)r;
    return 0;
}
