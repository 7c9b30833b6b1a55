/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c -- recognises characters and text, and formats text into memory of a given size.
 */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool text_has_suffix(const char *name, const char *suffix)
{
    const size_t n = strlen(name), end = strlen(suffix);
    return n > end && strcmp(name + n - end, suffix) == 0;
}

size_t text_character(const uint8_t *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (p[0] < 0x80)
        return 1;
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
        const bool control = (p[i] < 0x20 && p[i] != '\t' && p[i] != '\n' && p[i] != '\r') || p[i] == 0x7f;
        const size_t took = text_character(p + i, n - i);
        if (control || took == 0)
            return false;
        i += took;
    }
    return true;
}

void text_add(struct text_out *t, const char *p, size_t n)
{
    const size_t room = t->used < t->n ? t->n - t->used - 1 : 0, some = n < room ? n : room;
    if (t->used < t->n) {
        memcpy(t->buf + t->used, p, some);
        t->buf[t->used + some] = 0;
    }
    t->used += n;
}

void text_put(struct text_out *t, const char *format, ...)
{
    const size_t room = t->used < t->n ? t->n - t->used : 0;
    va_list args;
    va_start(args, format);
    const int wrote = vsnprintf(room ? t->buf + t->used : NULL, room, format, args);
    va_end(args);
    t->used += wrote > 0 ? (size_t)wrote : 0;
}
