/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number_list.h -- numbers written as text: "1 2.5", "1, 2", or lists in brackets, "[[1, 2], [3, 4]]".
 */
#ifndef NUMBER_LIST_H
#define NUMBER_LIST_H

#include "base/sample.h"

struct number_list {
    int64_t count;
    int ndim; /* -1: there are no brackets, and the numbers may have any shape */
    int64_t shape[FIELD_DIMS];
};

/* Writes the numbers as elements of type t. NULL, or what is wrong with the text. More than `most` numbers are counted,
 * but only checked for their form. */
const char *number_list_read(const char *text, size_t n, stk_dtype t, uint8_t *to, int64_t most,
                             struct number_list *out);
/* How many numbers the text has at most. */
size_t number_list_most(const char *text, size_t n);

#endif
