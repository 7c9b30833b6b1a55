/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_block.c -- encoding and decoding blocks in plain C.
 */
#include "decode/dct_block.h"

#include <string.h>

#include "base/bytes.h"
#include "decode/jpeg_kernel.h"

/* ------------------------------------------------------------------ encoding */

static void put_le16(uint8_t **to, int16_t v)
{
    const uint16_t u = (uint16_t)v;
    *(*to)++ = (uint8_t)u;
    *(*to)++ = (uint8_t)(u >> 8);
}

/* The code of a coefficient in `small`. */
static unsigned code_of(struct dct_out *out, int16_t v)
{
    if (v >= -7 && v <= 7)
        return (unsigned)v & 15;
    if (v >= INT8_MIN && v <= INT8_MAX) {
        *out->bytes++ = (uint8_t)v;
        return 8;
    }
    put_le16(&out->words, v);
    return 0;
}

static unsigned columns_of(const int16_t *row)
{
    unsigned columns = 0;
    for (unsigned x = 0; x < 8; x++)
        columns |= (unsigned)(row[x] != 0) << x;
    return columns;
}

void dct_encode_c(struct dct_out *out, const int16_t *coef)
{
    unsigned rows = 0, n = 0;
    put_le16(&out->dc, coef[0]);
    for (unsigned y = 0; y < 8; y++) {
        const int16_t *row = coef + 8 * y;
        const unsigned columns = columns_of(row) & (y == 0 ? 254 : 255);
        if (!columns)
            continue;
        rows |= 1u << y;
        *out->columns++ = (uint8_t)columns;
        for (unsigned left = columns; left; left &= left - 1, n++) {
            const unsigned code = code_of(out, row[__builtin_ctz(left)]);
            if (n % 2)
                *out->small++ |= (uint8_t)(code << 4);
            else
                *out->small = (uint8_t)code;
        }
    }
    out->small += n % 2;
    *out->rows++ = (uint8_t)rows;
}

/* ------------------------------------------------------------------ decoding */

static int16_t next_value(struct dct_in *in, unsigned code)
{
    int16_t v = (int16_t)((int)(code ^ 8) - 8);
    if (code == 8)
        v = (int8_t)*in->bytes++;
    if (code == 0) {
        v = (int16_t)le16(in->words);
        in->words += 2;
    }
    return v;
}

static void decode_one(struct dct_in *in, const struct dct_place *to)
{
    memset(to->coef, 0, JPEG_BLOCK * sizeof *to->coef);
    uint64_t mask = 0;
    unsigned n = 0;
    const unsigned rows = *in->rows++;
    for (unsigned y = 0; y < 8; y++) {
        if (!(rows >> y & 1))
            continue;
        const unsigned columns = *in->columns++;
        mask |= (uint64_t)columns << 8 * y;
        for (unsigned x = 0; x < 8; x++)
            if (columns >> x & 1) {
                to->coef[8 * y + x] = next_value(in, in->small[n / 2] >> n % 2 * 4 & 15);
                n++;
            }
    }
    in->small += (n + 1) / 2;
    to->coef[0] = (int16_t)le16(in->dc);
    in->dc += 2;
    *to->last = dct_last(mask);
}

bool dct_decode_c(struct dct_in *in, const struct dct_place *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        decode_one(in, &to[i]);
        if (!dct_in_good(in))
            return false;
    }
    return true;
}
