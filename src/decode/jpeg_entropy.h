/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_entropy.h -- from the coded bytes of a scan to coefficients.
 *
 *     jpeg_scan_begin(&s, frame, store, bytes, n)
 *     jpeg_scan_skip(&s, 120)                   skips MCUs
 *     jpeg_scan_read(&s, 8, &blocks)            reads MCUs; coefficients are in natural order
 *
 * All return false at any sign of damage: an unknown code, a run past the end of a block, an early marker, an
 * unexpected restart marker. What was decoded until then is meaningless.
 */
#ifndef JPEG_ENTROPY_H
#define JPEG_ENTROPY_H

#include "decode/jpeg_frame.h"
#include "decode/jpeg_huff.h"

enum { JPEG_MCU_ROWS = 2 }; /* rows of blocks in an MCU, at most */

/* Where coefficients go: for every component and row of blocks in an MCU a run of zeroed blocks, and for each block
 * the zigzag index of the last coefficient that is not 0 (or a higher one). */
struct jpeg_blocks {
    int16_t *coef[JPEG_COMPONENTS][JPEG_MCU_ROWS];
    uint8_t *last[JPEG_COMPONENTS][JPEG_MCU_ROWS];
    bool first_only[JPEG_COMPONENTS]; /* use only the first coefficient of a component's blocks */
};

/*
 * Bits, the next one highest. There are `n` of them. The last `made_up` are zeros that stand in for what follows a
 * marker or the end. Below them is the start of the byte at p.
 */
struct jpeg_bits {
    uint64_t bits;
    int n, made_up;
    const uint8_t *p, *end;
};

struct jpeg_scan {
    const struct jpeg_frame *frame;
    struct jpeg_bits in;
    int16_t dc[JPEG_COMPONENTS]; /* predictors */
    int to_restart;              /* MCUs until the next marker, if there are any */
    int next_restart;            /* its number, 0 to 7 */
    const uint8_t *bytes;
    const struct huff_dc *dc_tables[JPEG_COMPONENTS];
    const struct huff_ac *ac_tables[JPEG_COMPONENTS];
};

/* Whether libjpeg would accept the tables. */
bool jpeg_scan_is_good(const struct jpeg_frame *f);
/* Starts at the first MCU. Returns false if libjpeg would refuse a table. */
bool jpeg_scan_begin(struct jpeg_scan *s, const struct jpeg_frame *f, struct huff_store *store, const uint8_t *bytes,
                     size_t n);
bool jpeg_scan_read(struct jpeg_scan *s, int32_t mcus, const struct jpeg_blocks *to);
bool jpeg_scan_skip(struct jpeg_scan *s, int32_t mcus);
/* Passes the restart marker that is due before the next MCU, if any. */
bool jpeg_scan_settle(struct jpeg_scan *s);
/* Jumps to an MCU that is known to start at `bit` with these predictors. */
bool jpeg_scan_jump(struct jpeg_scan *s, int64_t mcu, uint64_t bit, const int16_t *dc);
/* The position of the next bit in the file; FF 00 counts as the two bytes that it takes. */
uint64_t jpeg_scan_at(const struct jpeg_scan *s);
/* Whether libjpeg, which reads ahead, would not have met the end of the file yet. */
bool jpeg_scan_has_more(const struct jpeg_scan *s);
/* Whether the end-of-image marker is next. */
bool jpeg_scan_is_over(const struct jpeg_scan *s);

#endif
