/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.c -- a growable array of bytes with a maximum. Grows by half, so that appending is O(1) on average.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t limit_of(const struct buf *b)
{
    return b->max ? b->max : SIZE_MAX / 2;
}

int buf_reserve(struct buf *b, size_t n)
{
    if (n <= b->cap)
        return 0;
    const size_t limit = limit_of(b);
    if (n > limit)
        return -1;
    size_t cap = b->cap + b->cap / 2;
    if (cap < n)
        cap = n;
    if (cap > limit)
        cap = limit;
    uint8_t *p = realloc(b->data, cap);
    if (!p)
        return -1;
    b->data = p;
    b->cap = cap;
    return 0;
}

int buf_add(struct buf *b, const void *p, size_t n)
{
    if (n == 0)
        return 0;
    if (n > limit_of(b) - b->len || buf_reserve(b, b->len + n))
        return -1;
    memcpy(b->data + b->len, p, n);
    b->len += n;
    return 0;
}

int buf_add_str(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= limit_of(b) - b->len || buf_reserve(b, b->len + (size_t)n + 1))
        return -1;
    va_start(args, format);
    vsnprintf((char *)b->data + b->len, (size_t)n + 1, format, args);
    va_end(args);
    b->len += (size_t)n;
    return 0;
}

void buf_trim(struct buf *b, size_t keep)
{
    if (b->cap > keep) {
        const size_t max = b->max;
        buf_done(b);
        b->max = max;
    }
}

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}
