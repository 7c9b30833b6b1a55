/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_entropy.h -- from the coded bytes of a scan to coefficients.
 *
 *     jpeg_scan_begin(&s, frame, store, bytes, n)
 *     jpeg_scan_skip(&s, 120)                   MCUs that nobody wants
 *     jpeg_scan_read(&s, 8, &blocks)            MCUs, their coefficients in natural order
 *
 * Any sign of damage ends it with false: an unknown code, a run past the end of a block, a marker too early, a restart
 * marker that is not the expected one. What was decoded until then counts for nothing.
 */
#ifndef JPEG_ENTROPY_H
#define JPEG_ENTROPY_H

#include "decode/jpeg_frame.h"
#include "decode/jpeg_huff.h"

enum { JPEG_MCU_ROWS = 2 }; /* rows of blocks in an MCU, at most */

/* Where coefficients go: for every component and row of blocks in an MCU a run of blocks, zeroed, and the zigzag index
 * of the last one that is not 0 (or a higher one) of each. */
struct jpeg_blocks {
    int16_t *coef[JPEG_COMPONENTS][JPEG_MCU_ROWS];
    uint8_t *last[JPEG_COMPONENTS][JPEG_MCU_ROWS];
    bool first_only[JPEG_COMPONENTS]; /* of a component's blocks only the first coefficient counts */
};

/*
 * Bits, the next one highest. `n` of them are there, the last `made_up` of which are zeros that stand in for what lies
 * behind a marker or the end. What stands below them is the beginning of the byte at p.
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
    int to_restart;              /* MCUs until the next marker, where there are any */
    int next_restart;            /* its number */
    const uint8_t *bytes;
    const struct huff_dc *dc_tables[JPEG_COMPONENTS];
    const struct huff_ac *ac_tables[JPEG_COMPONENTS];
};

/* At the first MCU. false: a table that libjpeg would refuse. */
bool jpeg_scan_begin(struct jpeg_scan *s, const struct jpeg_frame *f, struct huff_store *store, const uint8_t *bytes,
                     size_t n);
bool jpeg_scan_read(struct jpeg_scan *s, int32_t mcus, const struct jpeg_blocks *to);
bool jpeg_scan_skip(struct jpeg_scan *s, int32_t mcus);
/* Past the restart marker that is due before the next MCU, if one is. */
bool jpeg_scan_settle(struct jpeg_scan *s);
/* To an MCU, of which is known at which bit it begins, with which predictors. */
bool jpeg_scan_jump(struct jpeg_scan *s, int64_t mcu, uint64_t bit, const int16_t *dc);
/* Where the next bit is: bits from the start of the file, FF 00 counted as the two bytes that it takes. */
uint64_t jpeg_scan_at(const struct jpeg_scan *s);
/* Whether libjpeg, which reads ahead, would not have met the end of the file by now. */
bool jpeg_scan_has_more(const struct jpeg_scan *s);
/* Whether the end-of-image marker comes next. */
bool jpeg_scan_is_over(const struct jpeg_scan *s);

#endif
