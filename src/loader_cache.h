/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cache.h -- data of samples that a loader keeps for later epochs and later runs.
 */
#ifndef LOADER_CACHE_H
#define LOADER_CACHE_H

#include <stdatomic.h>

#include "cache/cache.h"
#include "desk.h"

struct stk_loader;
struct stk_batch;
struct worker;

struct loader_cache {
    stk_cache what; /* never DEFAULT or AUTO once open */
    struct cache *entries;
    struct cache *checkpoints; /* NULL: they would not help */
    size_t row_bytes;          /* of an entry, if rows are kept as the source returns them; 0: they are not */
    struct buf ahead;          /* checkpoints of a file that is about to be read ahead */
    bool logged;               /* that something is not kept */
    char chosen[256];          /* why this cache was chosen */
};

/* An image on its way to its row. */
struct making {
    const struct draw *draw;
    int64_t sample;
    bool plain; /* take no short cut: the file alone decides */
    /* Set on the way: */
    bool shortened;    /* a short cut was taken; if it fails, the usual path decides */
    size_t kept_bytes; /* > 0: `head` makes the pixels to keep, in an entry of this size; jobs make views from them */
    struct desk_image image;
    struct want want; /* what the views need of the image, or of the kept pixels */
    struct job head;
};

/* loader_cache.c: chooses a cache and opens it with at most `memory` bytes. Never fails. */
void loader_cache_open(struct stk_loader *l, size_t memory);
void loader_cache_close(struct stk_loader *l);
/* One paragraph for stk_explain. */
void loader_cache_explain(struct stk_loader *l, struct buf *b);
/* Finds the entry of a sample, in the cache's memory or read into the desk's. */
bool loader_cache_fetch(struct stk_loader *l, struct worker *w, int64_t sample, const uint8_t **bytes, size_t *n);
/* The version of the sample now, and the version that its bytes were read from. 0: unknown. */
uint64_t loader_cache_identity(struct stk_loader *l, struct worker *w, int64_t sample);
uint64_t loader_cache_read_identity(struct stk_loader *l, struct worker *w, int64_t sample);
/* The version of what Stoker makes from files. Entries of other versions are not found. */
uint64_t loader_cache_version(void);

/* loader_cache_image.c: short cuts on the path of an image. Returns whether one exists: pixels, coefficients or the
 * file were kept. Otherwise the file must be read. */
bool loader_cache_find(struct stk_loader *l, struct worker *w, struct making *m);
/* After the head is known: turns a JPEG into coefficients, keeps them, and continues with them. */
void loader_cache_to_dct(struct stk_loader *l, struct worker *w, struct making *m);
/* Instead of desk_draw: draws the two halves of the ops, if the pixels between them are to be kept. */
bool loader_cache_draw(struct stk_loader *l, struct worker *w, struct making *m);
/* After decoding: keeps the file and its checkpoints, or the pixels between the halves. */
int loader_cache_keep(struct stk_loader *l, struct worker *w, struct making *m, stk_error *e);

/* loader_checkpoints.c: opens the cache of checkpoints in this much memory, and returns how much it may take. */
size_t loader_checkpoints_open(struct stk_loader *l, size_t memory);
/* Before decoding a file: gives the decoder its checkpoints. After it: keeps new ones. */
void loader_checkpoints_lend(struct stk_loader *l, struct worker *w, const struct making *m);
void loader_checkpoints_keep(struct stk_loader *l, struct worker *w, int64_t sample);
/* For the thread that reads ahead: the ranges of its file that a row needs; none: all of it. */
void loader_checkpoints_ranges(struct stk_loader *l, const struct draw *d, struct ranges *out);

/* loader_rows.c: samples that need no decoding. loader_rows_only: whether this holds for all samples of the source.
 * loader_rows_bytes: the bytes to keep of each sample; 0 if lengths differ or the caller's own function makes them. */
bool loader_rows_only(const struct stk_loader *l);
size_t loader_rows_bytes(const struct stk_loader *l);
/* Brings a kept sample into the CPU's caches. false: it is not kept in memory. */
bool loader_rows_near(const struct stk_loader *l, int64_t sample);
/* Finds and keeps the pixels of an image as the source returns them. NULL: they are not kept. */
const uint8_t *loader_rows_find_pixels(struct stk_loader *l, int64_t sample);
void loader_rows_keep_pixels(struct stk_loader *l, int64_t sample, const uint8_t *px);
/* The same for all fields of a sample without an image, and its label. */
bool loader_rows_take(struct stk_loader *l, struct worker *w, int64_t sample, struct stk_batch *b, int64_t row);
void loader_rows_keep(struct stk_loader *l, struct worker *w, int64_t sample, const struct stk_batch *b, int64_t row);

#endif
