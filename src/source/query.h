/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h -- what stands behind the ? of a source's name: "dtype=uint8&shape=32,32,3".
 *
 *     static const char *const known[] = {"dtype", "shape", NULL};
 *     query_check(text, known, &e)                    no other keys, none twice
 *     if (query_get(text, "dtype", buf, sizeof buf))  its value
 */
#ifndef QUERY_H
#define QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

enum { QUERY_TEXT = 1024 }; /* a key or a value is shorter */

/* text may be NULL everywhere: nothing was said. known is ended by NULL; NULL itself: any keys are taken. */
int query_check(const char *text, const char *const *known, stk_error *e);
bool query_get(const char *text, const char *key, char *value, size_t n);
/* The i-th key and its value, each of QUERY_TEXT bytes; false: there are not so many. */
bool query_at(const char *text, int i, char *key, char *value);
/* A whole number from least to most; without the key *value is left alone. */
int query_number(const char *text, const char *key, int64_t least, int64_t most, int64_t *value, stk_error *e);

#endif
