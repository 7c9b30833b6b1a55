/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast.h -- converts arrays of numbers where no number can be out of range.
 */
#ifndef CAST_H
#define CAST_H

#include "base/sample.h"

/* Converts n numbers of type a to type b. false: some numbers of type a do not fit, so each must be checked. Neither
 * array needs to be aligned. */
bool cast_many(const uint8_t *from, stk_dtype a, size_t n, uint8_t *to, stk_dtype b);

#endif
