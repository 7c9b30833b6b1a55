/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_codec.h -- decoders of HDF5's own filters: szip, scale-offset and n-bit.
 *
 * `values` are the filter's parameters from the file. A decoder writes at most `room` bytes to `out` and returns how
 * many. -1: the stream or the parameters are damaged.
 */
#ifndef HDF5_CODEC_H
#define HDF5_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t hdf5_codec(const uint32_t *values, size_t n_values, const uint8_t *in, size_t n, uint8_t *out,
                           size_t room);
hdf5_codec hdf5_szip, hdf5_scale_offset, hdf5_nbit;

/* Whether the decoder supports these parameters. */
bool hdf5_szip_known(const uint32_t *values, size_t n_values);
bool hdf5_scale_offset_known(const uint32_t *values, size_t n_values);
bool hdf5_nbit_known(const uint32_t *values, size_t n_values);

/* A stream of bits, the highest of each byte first. */
struct hdf5_bits {
    const uint8_t *p, *end;
    uint64_t held; /* from the top */
    int n;         /* bits in it */
};

static inline void hdf5_bits_fill(struct hdf5_bits *b)
{
    for (; b->n <= 56 && b->p < b->end; b->n += 8)
        b->held |= (uint64_t)*b->p++ << (56 - b->n);
}

/* Reads 0 to 32 bits as a number; false: the stream has fewer. */
static inline bool hdf5_bits_short(struct hdf5_bits *b, int n, uint32_t *out)
{
    if (b->n < n)
        hdf5_bits_fill(b);
    if (b->n < n)
        return false;
    *out = n ? (uint32_t)(b->held >> (64 - n)) : 0;
    b->held <<= n;
    b->n -= n;
    return true;
}

/* Reads 0 to 64 bits. */
static inline bool hdf5_bits_take(struct hdf5_bits *b, int n, uint64_t *out)
{
    uint32_t high = 0, low = 0;
    if (n > 32 && !hdf5_bits_short(b, n - 32, &high))
        return false;
    if (!hdf5_bits_short(b, n > 32 ? 32 : n, &low))
        return false;
    *out = (uint64_t)high << 32 | low;
    return true;
}

/* Stores the low bytes of a number, in either byte order. */
static inline void hdf5_store(uint8_t *to, uint64_t x, size_t bytes, bool big)
{
    for (size_t i = 0; i < bytes; i++)
        to[big ? bytes - 1 - i : i] = (uint8_t)(x >> 8 * i);
}

#endif
