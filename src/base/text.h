/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h -- recognises characters and text, and formats text into memory of a given size.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Whether the bytes are UTF-8 without control characters other than tab, line feed and carriage return. True for no
 * bytes. */
bool text_is(const uint8_t *p, size_t n);

/* In every locale alike: ASCII only. */
static inline bool text_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline char text_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Whether a name has the suffix, and something before it. */
bool text_has_suffix(const char *name, const char *suffix);

/* Bytes of the UTF-8 character at p, one of n > 0 bytes. 0: it is invalid, as overlong forms and surrogates are. */
size_t text_character(const uint8_t *p, size_t n);

/* n bytes of memory for text. */
struct text_out {
    char *buf;
    size_t n;
    size_t used; /* bytes that were put; if this is n or more, the text is cut off */
};
/* The text always ends with 0, unless n is 0. */
void text_add(struct text_out *t, const char *p, size_t n);
void text_put(struct text_out *t, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
