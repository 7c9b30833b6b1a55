/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h -- which of several stretches a number lies in, by where they begin.
 */
#ifndef SEARCH_H
#define SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The last of n begins that is not above x; they rise and lie stride bytes apart. 0 where all are above, or none is. */
static inline int64_t search_last(const int64_t *begins, size_t stride, int64_t n, int64_t x)
{
    int64_t low = 0, high = n;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        int64_t begin;
        memcpy(&begin, (const char *)begins + (size_t)middle * stride, sizeof begin);
        if (begin <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
