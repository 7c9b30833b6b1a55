/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_block.h -- blocks of coefficients in a few bytes each, exactly, that are decoded without looking at single bits.
 *
 * Some blocks share six streams:
 *
 *     dc        16 bits a block
 *     rows      a byte a block: which of its rows have coefficients beside DC
 *     columns   a byte for each of those rows: which of its columns have
 *     small     half a byte for each coefficient, row by row, the lower half first; a block begins with a new byte.
 *               -7 to 7 in two's complement; 8 stands for the next of bytes, 0 for the next of words
 *     bytes     8 bits, signed
 *     words     16 bits
 *
 * How far a stream reaches depends on the others' content, but never on its own position: so a processor can
 * work on many blocks at a time.
 */
#ifndef DCT_BLOCK_H
#define DCT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DCT_SLACK = 128, /* bytes behind the end of each stream that may be read */
    /* Most that one block takes of a stream. */
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

/* Where a block goes: 64 coefficients in natural order, and what jpeg_kernels.idct wants to know of them. */
struct dct_place {
    int16_t *coef;
    uint8_t *last;
};

/* The next n blocks, for which dc and rows must suffice. false: another stream does not, and what was written counts
 * for nothing. */
typedef bool dct_decode_fn(struct dct_in *in, const struct dct_place *to, size_t n);

struct dct_out {
    uint8_t *dc, *rows, *columns, *small, *bytes, *words; /* with room for another block and 64 bytes */
};

typedef void dct_encode_fn(struct dct_out *out, const int16_t *coef);

/* The functions in plain C, and of the instruction sets; for jpeg_kernels_fill. */
dct_decode_fn dct_decode_c, dct_decode_avx2, dct_decode_vbmi;
dct_encode_fn dct_encode_c, dct_encode_vbmi;

/* What a block's mask (a bit a coefficient, without DC) says to the IDCT. */
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
