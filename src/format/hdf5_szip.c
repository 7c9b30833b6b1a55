/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_szip.c -- the szip filter: adaptive Rice codes, as CCSDS 121.0-B defines them.
 *
 * Samples form lines of blocks. A block starts with an identifier of its code: pairs of small values, k low bits split
 * off, or uncoded. A run of zero blocks is one code. With preprocessing, the first sample of a line is stored
 * unchanged, and the others as differences to the previous one, mapped to non-negative numbers.
 *
 * Samples of 32 and 64 bits are coded as 8-bit samples: all first bytes, then all second bytes, and so on. The chunk
 * starts with its length (4). A line is padded to a whole number of blocks; the padding is dropped here.
 */
#include <string.h>

#include "base/bytes.h"
#include "format/hdf5_codec.h"

enum { BLOCK_MOST = 32, BLOCKS_MOST = 128, SEGMENT = 64, TO_SEGMENT_END = 5, SUMS_MOST = 90 };
enum { MSB = 16, PREPROCESS = 32 };

struct szip {
    struct hdf5_bits bits;
    int width;         /* bits of a sample */
    int id_bits;       /* bits of the identifier of a block */
    int block, blocks; /* samples of a block, blocks of a line */
    int per_line;      /* samples of a line without padding */
    int word;          /* size of an element whose bytes are coded separately; otherwise 1 */
    bool preprocessed, big;
    int n; /* samples of the current line so far */
    uint32_t line[BLOCK_MOST * BLOCKS_MOST];
};

/* Options, samples of a block, bits of a sample, samples of a line. */
static bool set_up(struct szip *z, const uint32_t *values, size_t n_values)
{
    if (n_values < 4 || values[1] < 2 || values[1] > BLOCK_MOST || values[1] % 2 || values[3] < 1 ||
        values[3] > values[1] * BLOCKS_MOST)
        return false;
    const uint32_t bits = values[2];
    z->word = bits == 32 || bits == 64 ? (int)bits / 8 : 1;
    if (bits < 1 || (bits > 24 && z->word == 1))
        return false;
    z->width = z->word > 1 ? 8 : (int)bits;
    z->id_bits = z->width > 16 ? 5 : z->width > 8 ? 4 : 3;
    z->block = (int)values[1];
    z->per_line = (int)values[3];
    z->blocks = (z->per_line + z->block - 1) / z->block;
    z->preprocessed = values[0] & PREPROCESS;
    z->big = values[0] & MSB;
    return true;
}

bool hdf5_szip_known(const uint32_t *values, size_t n_values)
{
    struct szip z;
    return set_up(&z, values, n_values);
}

/* ------------------------------------------------------------------ blocks */

/* Counts the zeros before the next 1. */
static bool take_zeros(struct szip *z, uint32_t *out)
{
    struct hdf5_bits *b = &z->bits;
    for (uint32_t zeros = 0;; zeros++) {
        uint32_t one;
        if (!hdf5_bits_short(b, 1, &one))
            return false;
        if (one) {
            *out = zeros;
            return true;
        }
    }
}

static bool take_uncoded(struct szip *z, int n)
{
    for (; n > 0; n--)
        if (!hdf5_bits_short(&z->bits, z->width, &z->line[z->n++]))
            return false;
    return true;
}

/* The high bits of all samples, then the k low bits of each. */
static bool take_split(struct szip *z, int n, int k)
{
    uint32_t *const first = z->line + z->n;
    for (int i = 0; i < n; i++)
        if (!take_zeros(z, &first[i]))
            return false;
    for (int i = 0; i < n && k > 0; i++) {
        uint32_t low;
        if (!hdf5_bits_short(&z->bits, k, &low))
            return false;
        first[i] = first[i] << k | low;
    }
    z->n += n;
    return true;
}

/* A pair a, b is one number; pairs with smaller sums come first. The first sample of a line takes the place of an a. */
static bool take_sums(struct szip *z, int n)
{
    for (int left = n; left > 0; left--) {
        uint32_t m, sum = 0;
        if (!take_zeros(z, &m) || m > SUMS_MOST)
            return false;
        while ((sum + 1) * (sum + 2) / 2 <= m)
            sum++;
        const uint32_t b = m - sum * (sum + 1) / 2;
        if (left % 2 == 0) {
            z->line[z->n++] = sum - b;
            left--;
        }
        z->line[z->n++] = b;
    }
    return true;
}

static bool take_zero_blocks(struct szip *z)
{
    const int done = z->n / z->block, rest = z->blocks - done, segment = SEGMENT - done % SEGMENT;
    uint32_t zeros;
    if (!take_zeros(z, &zeros) || zeros > BLOCKS_MOST)
        return false;
    const int coded = (int)zeros + 1;
    const int run = coded < TO_SEGMENT_END   ? coded
                    : coded > TO_SEGMENT_END ? coded - 1
                                             : (rest < segment ? rest : segment);
    if (run > rest)
        return false;
    const int end = (done + run) * z->block;
    memset(z->line + z->n, 0, (size_t)(end - z->n) * sizeof z->line[0]);
    z->n = end;
    return true;
}

static bool take_block(struct szip *z)
{
    const uint32_t uncoded = (1u << z->id_bits) - 1;
    uint32_t id, second = 0;
    if (!hdf5_bits_short(&z->bits, z->id_bits, &id) || (id == 0 && !hdf5_bits_short(&z->bits, 1, &second)))
        return false;
    if (id == uncoded)
        return take_uncoded(z, z->block);
    const int reference = z->preprocessed && z->n == 0;
    if (reference && !take_uncoded(z, 1))
        return false;
    if (id > 0)
        return take_split(z, z->block - reference, (int)id - 1);
    return second ? take_sums(z, z->block - reference) : take_zero_blocks(z);
}

/* ------------------------------------------------------------------ lines */

/* Converts differences to samples. Small differences alternate in sign; beyond the end of the range on one side, they
 * continue on the other. */
static void undo_differences(struct szip *z, int n)
{
    const uint32_t most = (uint32_t)((UINT64_C(1) << z->width) - 1);
    uint32_t x = z->line[0];
    for (int i = 1; i < n; i++) {
        const uint32_t d = z->line[i], half = (d >> 1) + (d & 1), room = x <= most / 2 ? x : most - x;
        if (half <= room)
            x = d & 1 ? x - half : x + half;
        else
            x = x <= most / 2 ? d : most - d;
        x &= most;
        z->line[i] = x;
    }
}

struct place {
    uint8_t *out;
    size_t bytes, at; /* at: samples written */
};

static void put_line(const struct szip *z, struct place *p, int n)
{
    const size_t width = z->width > 16 ? 4 : z->width > 8 ? 2 : 1, per_plane = p->bytes / (size_t)z->word;
    for (int i = 0; i < n; i++, p->at++) {
        if (z->word > 1)
            p->out[p->at % per_plane * (size_t)z->word + p->at / per_plane] = (uint8_t)z->line[i];
        else
            hdf5_store(p->out + p->at * width, z->line[i], width, z->big);
    }
}

static bool take_line(struct szip *z, struct place *p, size_t left)
{
    const int n = left < (size_t)z->per_line ? (int)left : z->per_line;
    z->n = 0;
    while (z->n < n)
        if (!take_block(z))
            return false;
    if (z->preprocessed)
        undo_differences(z, n);
    put_line(z, p, n);
    return true;
}

int64_t hdf5_szip(const uint32_t *values, size_t n_values, const uint8_t *in, size_t n, uint8_t *out, size_t room)
{
    struct szip z;
    if (n < 4 || !set_up(&z, values, n_values))
        return -1;
    const size_t bytes = le32(in), width = z.width > 16 ? 4 : z.width > 8 ? 2 : 1;
    if (bytes > room || bytes % (z.word > 1 ? (size_t)z.word : width))
        return -1;
    z.bits = (struct hdf5_bits){in + 4, in + n, 0, 0};
    struct place p = {out, bytes, 0};
    while (p.at < bytes / width)
        if (!take_line(&z, &p, bytes / width - p.at))
            return -1;
    return (int64_t)bytes;
}
