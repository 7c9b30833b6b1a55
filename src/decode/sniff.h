/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.h -- recognises a file by its first bytes, for error messages.
 */
#ifndef SNIFF_H
#define SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

struct sniffed {
    const char *name;  /* "GIF", "HTML", ...; NULL: unknown */
    bool is_text;      /* not an image */
    stk_format format; /* may be missing in this build */
};

struct sniffed sniff(const uint8_t *bytes, size_t n);

/* Writes why no decoder accepts these bytes. */
enum { SNIFF_WORDS = 256 };
void sniff_words(const struct sniffed *s, const uint8_t *bytes, size_t n, char words[SNIFF_WORDS]);

#endif
