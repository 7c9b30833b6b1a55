/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c -- recognises text, and formats text into memory of a given size.
 */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

static bool is_plain(uint8_t c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n' || c == '\r';
}

/* Bytes of the UTF-8 character at p, which is not ASCII; 0: it is invalid, as overlong forms and surrogates are. */
static size_t character(const uint8_t *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t bytes = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < bytes)
        return 0;
    uint32_t v = p[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (p[i] & 0x3f);
    }
    return v < least[bytes] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff) ? 0 : bytes;
}

bool text_is(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        const size_t took = p[i] < 0x80 ? is_plain(p[i]) : character(p + i, n - i);
        if (took == 0)
            return false;
        i += took;
    }
    return true;
}

void text_put(struct text_out *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int wrote = vsnprintf(t->buf + t->used, t->n - t->used, format, args);
    va_end(args);
    t->used += wrote > 0 ? (size_t)wrote : 0;
    t->used = t->used < t->n ? t->used : t->n - 1;
}
