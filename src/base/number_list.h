/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number_list.h -- parses numbers written as text: "1 2.5", "1, 2", or nested lists, "[[1, 2], [3, 4]]".
 */
#ifndef NUMBER_LIST_H
#define NUMBER_LIST_H

#include "base/sample.h"

struct number_list {
    int64_t count;
    int ndim; /* -1: there are no brackets, and the numbers may have any shape */
    int64_t shape[FIELD_DIMS];
};

/* Writes up to `most` numbers as elements of type t; further ones are only checked and counted. Returns NULL, or what
 * is wrong with the text. */
const char *number_list_read(const char *text, size_t n, stk_dtype t, uint8_t *to, int64_t most,
                             struct number_list *out);
/* An upper bound of how many numbers the text contains. */
size_t number_list_most(const char *text, size_t n);

#endif
