/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h -- numbers of any type, and their text form, independent of the locale.
 */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

/* 64-bit integers are exact; d is always set. */
struct number {
    bool whole;
    bool big; /* whole, and i holds the bits of a uint64 beyond INT64_MAX */
    int64_t i;
    double d;
};

enum { NUMBER_BYTES = 48 };

/* Reads the decimal number at the start of the text, e.g. "-1.5e3"; also inf, infinity and nan in any case. Returns
 * the bytes read; 0: there is no number. The nearest double is exact, as strtod's is. */
size_t number_read(const char *text, size_t n, struct number *out);
/* The shortest digits that read back as the same number. */
void number_write(double v, char buf[NUMBER_BYTES]);

/* One element of type t. */
struct number number_load(stk_dtype t, const uint8_t *from);
/* Writes one element of type t; -1: the type cannot hold it. */
int number_store(const struct number *v, stk_dtype t, uint8_t *to);
/* Whether number_load and number_store know the type: all but the 16-bit floats. */
bool number_is_type(stk_dtype t);

/* Converts n numbers of type a to type b. false: some numbers of type a do not fit, so each must be checked. Neither
 * array needs to be aligned. */
bool number_cast(const uint8_t *from, stk_dtype a, size_t n, uint8_t *to, stk_dtype b);

#endif
