/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.h -- sums and products of sizes that saturate at SIZE_MAX.
 */
#ifndef SIZE_H
#define SIZE_H

#include <stddef.h>
#include <stdint.h>

static inline size_t size_add(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

static inline size_t size_mul(size_t a, size_t b)
{
    return b && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}

#endif
