/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep.h -- what a loader keeps of its samples from epoch to epoch, and from run to run.
 */
#ifndef KEEP_H
#define KEEP_H

#include <stdatomic.h>

#include "cache/cache.h"
#include "decode/decode.h"
#include "order/order.h"
#include "transform/plan.h"

struct stk_loader;
struct worker;

struct keep {
    stk_cache what; /* never DEFAULT or AUTO once open */
    struct cache *cache;
    struct cache *points; /* NULL: they would not help */
    size_t row_bytes;     /* of an entry, where rows are kept as the source gives them */
    struct buf ahead;     /* notes on a file that is about to be read ahead */
    bool told;            /* that something is not kept */
    char chosen[256];     /* why this and no other */
};

/* Chooses and opens, within so many bytes of memory; never fails. */
void keep_open(struct stk_loader *l, size_t memory);
void keep_close(struct stk_loader *l);

/* The row from pixels or a pack that were kept; false: there are none, and the sample goes its usual way. */
bool keep_row(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row);
/* The picture's bytes as desk_read would have left them; false: they are not kept. */
bool keep_read(struct stk_loader *l, struct worker *w, int64_t sample);
/* From a picture that was read and whose head is known: makes the pixels or the pack, keeps that, and makes the row
 * of it. false: not so, and the row is still to be made. */
bool keep_fill(struct stk_loader *l, struct worker *w, const struct draw *d, const struct head *h, uint8_t *row);
/* Before and after decode_pixels: the decoder gets its notes on the file, and what it noted now is kept. */
void keep_lend(struct stk_loader *l, struct worker *w, int64_t sample, const struct head *h);
void keep_notes(struct stk_loader *l, struct worker *w, int64_t sample);
/* By whoever reads ahead, one at a time: the parts of its file that a row will take; none: all of it. */
void keep_parts(struct stk_loader *l, int64_t epoch, struct pick p, struct parts *out);
/* Keeps the bytes of a picture that proved good. */
void keep_bytes(struct stk_loader *l, struct worker *w, int64_t sample);

/* For keep_*.c: the entry of a sample, wherever it lies, in the cache's memory or read into the desk's; and the time
 * since *clock, added to a sum. */
/* Which state of the sample there is now; and of which its bytes are, which were read before or after that. 0: none. */
uint64_t keep_identity(struct stk_loader *l, struct worker *w, int64_t sample);
uint64_t keep_read_identity(struct stk_loader *l, struct worker *w, int64_t sample);
bool keep_fetch(struct stk_loader *l, struct worker *w, int64_t sample, const uint8_t **bytes, size_t *n);
void keep_lap(_Atomic uint64_t *sum, uint64_t *clock);
/* Of what we make of files: others' is not found. */
uint64_t keep_version(void);
/* keep_points.c: opens l->keep.points within so much memory, and says how much it may take. */
size_t keep_points_open(struct stk_loader *l, size_t memory);
/* keep_pixels.c, keep_dct.c: keep_row and keep_fill of one kind. */
bool keep_row_pixels(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row);
bool keep_fill_pixels(struct stk_loader *l, struct worker *w, const struct draw *d, const struct head *h, uint8_t *row);
bool keep_row_pack(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row);
bool keep_fill_pack(struct stk_loader *l, struct worker *w, const struct draw *d, const struct head *h, uint8_t *row);

/* keep_rows.c: samples that need no decoding. Whether all of the source's are; and the bytes that are kept of each, 0:
 * they are of different lengths, or the caller's own function makes them. */
bool keep_is_rows(const struct stk_loader *l);
size_t keep_rows_bytes(const struct stk_loader *l);
/* The sample is about to be taken from what is kept; false: it is not. */
bool keep_near(const struct stk_loader *l, int64_t sample);
/* Pixels as the source has them: from what is kept, and to be kept. */
bool keep_take_pixels(struct stk_loader *l, int64_t sample, uint8_t *px);
void keep_put_pixels(struct stk_loader *l, int64_t sample, const uint8_t *px);
/* The same for all fields of a sample without a picture, and its label. */
struct stk_batch;
bool keep_take_fields(struct stk_loader *l, struct worker *w, int64_t sample, struct stk_batch *b, int64_t row);
void keep_put_fields(struct stk_loader *l, struct worker *w, int64_t sample, const struct stk_batch *b, int64_t row);

/* One paragraph for explain. */
struct buf;
void keep_explain(struct stk_loader *l, struct buf *b);

/* keep_choose.c: what pays, with room for so many bytes; the words say why. Without AUTO: what was asked, if possible.
 */
stk_cache keep_choose(const struct stk_loader *l, int64_t room, char *words, size_t n);

#endif
