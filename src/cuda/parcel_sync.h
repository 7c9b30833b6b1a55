/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parcel_sync.h -- decodes a whole scan by many threads, without checkpoints.
 *
 * The scan is cut into pieces of the same length. The state of the decoder at the start of a piece is unknown: it may
 * be within a code, a block or an MCU. But Huffman codes are self-synchronising: a decoder that starts in a wrong state
 * soon reaches the right one. In the first round, each piece is decoded as if an MCU began with its first bit. In each
 * further round, a piece is decoded again if its predecessor now ends in another state than the one it was decoded
 * from. Piece 0 starts in the right state. So when no piece is left to decode, all started in the right state.
 *
 *     round 1   |0-----x|0-----y|0-----z|
 *     round 2   |0-----x|x-----y|y-----z|     the second still ends in y, so the third has begun right
 *
 * A state is one number: bits of the last code beyond the piece's end, the block within its MCU, and the next
 * coefficient. Each piece finds the MCUs that begin in it, and how much the predictors change. Prefix sums then say
 * which MCUs these are, and with which predictors the first one begins. So the pieces become groups of MCUs, which
 * parcel_scan_group decodes. Such a group begins anywhere in a row of MCUs, and may end in a later row.
 *
 * The scan is good if every code is valid, and the last MCU of the image ends within the last byte. Otherwise the host
 * makes the row, because the CPU's decoder defines what becomes of a damaged file.
 *
 * As parcel_work.h, this is compiled for the device and, for tests, for the CPU.
 */
#ifndef PARCEL_SYNC_H
#define PARCEL_SYNC_H

#include "cuda/parcel_huffman.h"

enum {
    PARCEL_PIECES = 2048,    /* at most */
    PARCEL_PIECE_BITS = 512, /* at least */
    PARCEL_PARTS = 64,       /* of the pieces, for prefix sums */
    PARCEL_ROUNDS = 256,     /* photos take about 10 */
    PARCEL_SYNC = 512,       /* threads */
    PARCEL_SCAN_HEAD = 16    /* bytes in front of those of the scan, as JPEG_SCAN_HEAD */
};

/* A state. */
enum {
    PARCEL_OVER = 31,       /* bits beyond the end of the piece */
    PARCEL_BLOCK_SHIFT = 5, /* 3 bits: the block */
    PARCEL_NEXT_SHIFT = 8,  /* 6 bits: the coefficient, in zigzag order */
    PARCEL_STATE = 0x3fff,
    PARCEL_BROKEN = 0x4000, /* beside the state at the end: some code was wrong */
    PARCEL_AGAIN = 0x8000   /* beside the state at the beginning: the piece is still to be decoded */
};

/* A piece, in scratch memory. */
struct parcel_piece {
    uint32_t bit;     /* where its first MCU begins, from the start of the region */
    uint32_t mcus;    /* how many begin there; at last, which the first one is */
    int16_t dc[3];    /* predictors at this MCU: since the piece began; at last, since the scan began */
    uint16_t sums[3]; /* their changes in the whole piece */
    uint16_t late;    /* the last piece: places after `mcus` that may be the end of the scan */
    uint16_t unused;
};

/* In scratch memory, where pixels come later: whether the scan is good; then the pieces. */
enum { PARCEL_SCAN_BYTES = PARCEL_ALIGN + PARCEL_PIECES * (int)sizeof(struct parcel_piece) };

/* How a scan is cut. */
struct parcel_scan {
    uint32_t begin, end;   /* bits, from the start of the region */
    uint32_t each, pieces; /* bits of a piece; how many there are */
    uint32_t across, mcus; /* MCUs in a row of the image, and in all of it */
    uint32_t blocks, luma; /* of an MCU */
};

/* Near the threads. */
struct parcel_sync {
    uint16_t begins[PARCEL_PIECES], ends[PARCEL_PIECES]; /* states */
    uint32_t mcus[PARCEL_PARTS], sums[PARCEL_PARTS][3];
    uint32_t round;  /* the last one in which a piece was decoded */
    uint32_t broken; /* some code is wrong */
};

/* The size of the scan in bytes is in front of it, in 16 bytes. */
ON_DEVICE struct parcel_scan parcel_scan(const struct parcel *p, const uint8_t *region)
{
    const uint8_t *head = parcel_table(p, region, 2 * (uint32_t)p->components);
    const int32_t wide = p->halves_columns ? 16 : 8, high = p->halves_rows ? 16 : 8;
    const uint32_t bits = 8 * parcel_le32(head);
    struct parcel_scan s;
    s.begin = 8 * (uint32_t)(head + PARCEL_SCAN_HEAD - region);
    s.end = s.begin + bits;
    s.each = (bits / PARCEL_PIECES + 32) & ~31u;
    s.each = s.each > PARCEL_PIECE_BITS ? s.each : PARCEL_PIECE_BITS;
    s.pieces = (bits + s.each - 1) / s.each;
    s.across = (uint32_t)((p->w + wide - 1) / wide);
    s.mcus = s.across * (uint32_t)((p->h + high - 1) / high);
    s.blocks = parcel_mcu_blocks(p);
    s.luma = s.blocks - (uint32_t)p->components + 1;
    return s;
}

ON_DEVICE uint32_t *parcel_scan_good(const struct parcel *p, uint8_t *scratch)
{
    return (uint32_t *)(void *)(scratch + p->pixels);
}
ON_DEVICE struct parcel_piece *parcel_scan_pieces(const struct parcel *p, uint8_t *scratch)
{
    return (struct parcel_piece *)(void *)(scratch + p->pixels + PARCEL_ALIGN);
}

/* ------------------------------------------------------------------ states */

/* Decodes piece i from the state at its beginning. Returns that at its end. */
ON_DEVICE uint32_t parcel_sync_piece(const struct parcel_scan *s, const uint8_t *region,
                                     const struct parcel_codes *codes, uint32_t state, uint32_t i,
                                     struct parcel_piece *to)
{
    const uint32_t last = i + 1 == s->pieces, end = last ? s->end : s->begin + (i + 1) * s->each;
    uint32_t bit = s->begin + i * s->each + (state & PARCEL_OVER), broken = 0, found = 0, late = 0, first = bit;
    uint32_t block = state >> PARCEL_BLOCK_SHIFT & 7, next = state >> PARCEL_NEXT_SHIFT & 63;
    int32_t dc0 = 0, dc1 = 0, dc2 = 0, at0 = 0, at1 = 0, at2 = 0;
    struct parcel_group from;
    struct parcel_bits r;
    from.bit = bit;
    from.stop = s->end / 8;
    parcel_bits_open(&r, region, &from);
    while (bit < end) {
        if (block == 0 && next == 0) {
            if (found + late == 0) {
                first = bit;
                at0 = dc0, at1 = dc1, at2 = dc2;
            }
            if (bit + 8 <= s->end)
                found++;
            else
                late++;
        }
        const uint32_t c = block < s->luma ? 0 : block - s->luma + 1;
        parcel_refill(&r);
        const uint32_t code = parcel_code(&r, codes, 2 * c + (next > 0)), length = code >> 8,
                       size = next ? code & 15 : code & 255, run = next ? code >> 4 & 15 : 0;
        if (code == 0 || size > 15 || next + run > 63) { /* goes on somehow: it may not have begun right */
            if (bit + 8 > s->end)
                break; /* there is only padding */
            broken = PARCEL_BROKEN;
            bit++;
            parcel_drop(&r, 1);
            next = 0;
            continue;
        }
        const int32_t v = parcel_value(&r, length, size);
        if (next == 0) {
            dc0 += c == 0 ? v : 0;
            dc1 += c == 1 ? v : 0;
            dc2 += c == 2 ? v : 0;
        }
        bit += length + size;
        const uint32_t ends = next > 0 && size == 0 && run != 15;
        next = ends ? 0 : (next + run + 1) & 63; /* 64 ends the block, too */
        block += next == 0;
        block = block == s->blocks ? 0 : block;
    }
    late += last && bit == end && block == 0 && next == 0;
    to->bit = first;
    to->mcus = found;
    to->dc[0] = (int16_t)at0, to->dc[1] = (int16_t)at1, to->dc[2] = (int16_t)at2;
    to->sums[0] = (uint16_t)dc0, to->sums[1] = (uint16_t)dc1, to->sums[2] = (uint16_t)dc2;
    to->late = (uint16_t)late;
    return broken | ((bit - end) & PARCEL_OVER) | block << PARCEL_BLOCK_SHIFT | next << PARCEL_NEXT_SHIFT;
}

/* Before each round, for each piece: it is to be decoded if it has begun in another state. */
ON_DEVICE void parcel_sync_begin(struct parcel_sync *all, uint32_t i, uint32_t round)
{
    const uint32_t state = round == 1 || i == 0 ? 0 : all->ends[i - 1] & (uint32_t)PARCEL_STATE;
    if (round == 1 || all->begins[i] != state)
        all->begins[i] = (uint16_t)(state | PARCEL_AGAIN);
}

/* A round, for each piece. */
ON_DEVICE void parcel_sync_run(const struct parcel_scan *s, const uint8_t *region, const struct parcel_codes *codes,
                               struct parcel_sync *all, struct parcel_piece *pieces, uint32_t i, uint32_t round)
{
    const uint32_t state = all->begins[i] & (uint32_t)PARCEL_STATE;
    if (!(all->begins[i] & PARCEL_AGAIN))
        return;
    all->ends[i] = (uint16_t)parcel_sync_piece(s, region, codes, state, i, &pieces[i]);
    all->begins[i] = (uint16_t)state;
    all->round = round;
}

/* ------------------------------------------------------------------ prefix sums */

/* The pieces of a part: from the first up to that of the next part. */
ON_DEVICE uint32_t parcel_part(const struct parcel_scan *s, uint32_t part)
{
    const uint32_t each = (s->pieces + PARCEL_PARTS - 1) / PARCEL_PARTS;
    return part * each < s->pieces ? part * each : s->pieces;
}

/* For each part: what its pieces have. */
ON_DEVICE void parcel_sync_add(const struct parcel_scan *s, struct parcel_sync *all, const struct parcel_piece *pieces,
                               uint32_t part)
{
    uint32_t mcus = 0, sums[3] = {0, 0, 0};
    for (uint32_t i = parcel_part(s, part); i < parcel_part(s, part + 1); i++) {
        mcus += pieces[i].mcus;
        UNROLL for (int c = 0; c < 3; c++) sums[c] += pieces[i].sums[c];
        if (all->ends[i] & PARCEL_BROKEN)
            all->broken = 1;
    }
    all->mcus[part] = mcus;
    UNROLL for (int c = 0; c < 3; c++) all->sums[part][c] = sums[c];
}

/* For each part: makes groups of its pieces. Returns the MCUs up to its end. */
ON_DEVICE uint32_t parcel_sync_place(const struct parcel_scan *s, const struct parcel_sync *all,
                                     struct parcel_piece *pieces, uint32_t part)
{
    uint32_t mcus = 0, sums[3] = {0, 0, 0};
    for (uint32_t i = 0; i < part; i++) {
        mcus += all->mcus[i];
        UNROLL for (int c = 0; c < 3; c++) sums[c] += all->sums[i][c];
    }
    for (uint32_t i = parcel_part(s, part); i < parcel_part(s, part + 1); i++) {
        const struct parcel_piece p = pieces[i];
        pieces[i].mcus = mcus;
        UNROLL for (int c = 0; c < 3; c++) pieces[i].dc[c] = (int16_t)(uint16_t)(sums[c] + (uint16_t)p.dc[c]);
        mcus += p.mcus;
        UNROLL for (int c = 0; c < 3; c++) sums[c] += p.sums[c];
    }
    return mcus;
}

/* Whether the scan is good. mcus: that begin before its last byte. After the last one, less than a byte is left. */
ON_DEVICE int parcel_sync_is_good(const struct parcel_scan *s, const struct parcel_sync *all,
                                  const struct parcel_piece *pieces, uint32_t mcus)
{
    return !all->broken && mcus <= s->mcus && s->mcus < mcus + pieces[s->pieces - 1].late;
}

/* ------------------------------------------------------------------ samples */

/* Whether the body has MCU m of the image: then *x and *y are where. */
ON_DEVICE int parcel_scan_has(const struct parcel *p, const struct parcel_scan *s, uint32_t m, int32_t *x, int32_t *y)
{
    *x = (int32_t)(m % s->across) - p->left / (p->halves_columns ? 16 : 8);
    *y = (int32_t)(m / s->across) - p->top / (p->halves_rows ? 16 : 8);
    return *x >= 0 && *x < p->across && *y >= 0 && *y < p->down;
}

/* Decodes the MCUs that begin in piece i, up to the last one that the body has. coef: room for a block. */
ON_DEVICE void parcel_scan_group(const struct parcel *p, const struct parcel_scan *s, const uint8_t *region,
                                 const struct parcel_codes *codes, int16_t *coef, uint8_t *samples,
                                 const struct parcel_piece *pieces, uint32_t i)
{
    const struct parcel_piece piece = pieces[i];
    uint32_t end = i + 1 < s->pieces ? pieces[i + 1].mcus : s->mcus;
    int32_t x, y, dc0 = piece.dc[0], dc1 = piece.dc[1], dc2 = piece.dc[2];
    while (end > piece.mcus && !parcel_scan_has(p, s, end - 1, &x, &y))
        end--;
    if (end <= piece.mcus)
        return;
    struct parcel_group from;
    struct parcel_bits r;
    from.bit = piece.bit;
    from.stop = s->end / 8;
    parcel_bits_open(&r, region, &from);
    for (uint32_t m = piece.mcus; m < end; m++) {
        const int wanted = parcel_scan_has(p, s, m, &x, &y);
        for (uint32_t k = 0; k < s->blocks; k++) {
            const int c = parcel_component(p, k);
            int32_t dc = c == 0 ? dc0 : c == 1 ? dc1 : dc2;
            const int below = parcel_coded_block(&r, codes, c, &dc, coef);
            if (below < 0)
                return;
            dc0 = c == 0 ? dc : dc0;
            dc1 = c == 1 ? dc : dc1;
            dc2 = c == 2 ? dc : dc2;
            if (wanted)
                parcel_samples(p, coef, below, samples, x, y, k);
        }
    }
}

#endif
