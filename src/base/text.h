/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h -- recognises text, and formats text into memory of a given size.
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
