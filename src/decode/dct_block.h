/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_block.h -- blocks of coefficients in a few bytes each, without loss, decoded without looking at single bits.
 *
 * A group of blocks shares six streams:
 *
 *     dc        16 bits per block
 *     rows      a byte per block: which of its rows have coefficients besides DC
 *     columns   a byte for each of those rows: which of its columns have
 *     small     4 bits for each coefficient, row by row, low half first; a block starts at a new byte.
 *               -7 to 7 in two's complement; 8 means the next of bytes, 0 the next of words
 *     bytes     8 bits, signed
 *     words     16 bits
 *
 * How much a block takes of a stream depends on the content of the other streams, never on its position in the stream.
 * So a processor can work on many blocks at a time.
 */
#ifndef DCT_BLOCK_H
#define DCT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DCT_SLACK = 128, /* bytes after the end of each stream that may be read */
    /* At most, for one block. */
    DCT_MAX_COLUMNS = 8,
    DCT_MAX_SMALL = 32,
    DCT_MAX_BYTES = 63,
    DCT_MAX_WORDS = 126,
};

struct dct_in {
    const uint8_t *dc, *rows;
    const uint8_t *columns, *small, *bytes, *words;
    const uint8_t *columns_end, *small_end, *bytes_end, *words_end;
};

/* Where a block goes: 64 coefficients in natural order, and the index that jpeg_kernels.idct needs. */
struct dct_place {
    int16_t *coef;
    uint8_t *last;
};

/* Decodes the next n blocks; dc and rows must be long enough for them. Returns false if another stream is too short;
 * what was written is then meaningless. */
typedef bool dct_decode_fn(struct dct_in *in, const struct dct_place *to, size_t n);

struct dct_out {
    uint8_t *dc, *rows, *columns, *small, *bytes, *words; /* with room for another block and 64 bytes */
};

typedef void dct_encode_fn(struct dct_out *out, const int16_t *coef);

/* In plain C, and for instruction sets; for jpeg_kernels_fill. */
dct_decode_fn dct_decode_c, dct_decode_avx2, dct_decode_vbmi;
dct_encode_fn dct_encode_c, dct_encode_vbmi;

/* What the IDCT needs to know of a block's mask (a bit per coefficient, without DC). */
static inline uint8_t dct_last(uint64_t mask)
{
    const int any = mask != 0, far = (mask & ~(uint64_t)0x0f0f0f0f) != 0;
    return (uint8_t)(9 * any + 54 * far);
}

static inline bool dct_in_good(const struct dct_in *in)
{
    return in->columns <= in->columns_end && in->small <= in->small_end && in->bytes <= in->bytes_end &&
           in->words <= in->words_end;
}

#endif
