/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast.h -- conversions of numbers that always succeed, many at a time.
 */
#ifndef CAST_H
#define CAST_H

#include "base/sample.h"

/* Turns n numbers of type a into type b; false: that needs a look at every number. Neither need be aligned. */
bool cast_many(const uint8_t *from, stk_dtype a, size_t n, uint8_t *to, stk_dtype b);

#endif
