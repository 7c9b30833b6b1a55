/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h -- the text after the ? in a source's name: "dtype=uint8&shape=32,32,3".
 *
 *     static const char *const known[] = {"dtype", "shape", NULL};
 *     query_check(text, known, &e)                    fails on other keys and repeated keys
 *     if (query_get(text, "dtype", buf, sizeof buf))  its value
 */
#ifndef QUERY_H
#define QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

enum { QUERY_TEXT = 1024 }; /* a key or a value is shorter */

/* text may be NULL everywhere: there is no query. known ends with NULL; known == NULL accepts any key. */
int query_check(const char *text, const char *const *known, stk_error *e);
bool query_get(const char *text, const char *key, char *value, size_t n);
/* The i-th key and its value, into buffers of QUERY_TEXT bytes; false: there are fewer. */
bool query_at(const char *text, int i, char *key, char *value);
/* Reads an integer from least to most; leaves *value unchanged without the key. */
int query_number(const char *text, const char *key, int64_t least, int64_t most, int64_t *value, stk_error *e);

#endif
