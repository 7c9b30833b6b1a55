/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.h -- names what a file is by its first bytes, for the words of an error.
 */
#ifndef SNIFF_H
#define SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

struct sniffed {
    const char *name;  /* "GIF", "HTML", ...; NULL: not known */
    bool is_text;      /* no picture at all */
    stk_format format; /* one that may be missing in this build */
};

struct sniffed sniff(const uint8_t *bytes, size_t n);

/* Why these bytes, which no decoder takes, are no image of ours. */
enum { SNIFF_WORDS = 256 };
void sniff_words(const struct sniffed *s, const uint8_t *bytes, size_t n, char words[SNIFF_WORDS]);

#endif
