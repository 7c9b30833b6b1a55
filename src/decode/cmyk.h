/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmyk.h -- CMYK to RGB.
 */
#ifndef CMYK_H
#define CMYK_H

#include <stddef.h>
#include <stdint.h>

/* Pillow's formula. The input is inverted, as Adobe stores it. */
static inline void cmyk_to_rgb(const uint8_t *in, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 4, out += 3) {
        const int k = in[3];
        for (int c = 0; c < 3; c++) {
            const int t = (255 - in[c]) * k + 128;
            out[c] = (uint8_t)(k - (((t >> 8) + t) >> 8));
        }
    }
}

#endif
