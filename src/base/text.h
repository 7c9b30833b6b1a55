/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h -- whether bytes are text, and text put together in a given room.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* UTF-8, without control characters other than tab, line feed and carriage return. No bytes at all are text. */
bool text_is(const uint8_t *p, size_t n);

/* Room for n > 0 bytes, of which `used` are text so far. */
struct text_out {
    char *buf;
    size_t n, used;
};
/* What has no room is cut off; the text always ends with 0. */
void text_put(struct text_out *t, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
