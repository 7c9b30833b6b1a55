/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h -- whether bytes are text.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* UTF-8, without control characters other than tab, line feed and carriage return. No bytes at all are text. */
bool text_is(const uint8_t *p, size_t n);

#endif
