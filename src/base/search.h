/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h -- finds the range that contains a number, by the starts of the ranges.
 */
#ifndef SEARCH_H
#define SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The index of the last of n starts that is <= x; 0 if there is none. The starts ascend and are stride bytes apart. */
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
