/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.h -- what one thread works with: its reading, its codecs, its scratch, and how much of it it may hold.
 *
 *     desk_read(d, source, i, e)               the bytes, charged before they are taken
 *     desk_reserve(d, scratch, foreign, e)     room for what comes next in d->arena
 *     desk_clear(d)                            after every sample, also a bad one
 */
#ifndef DESK_H
#define DESK_H

#include "ahead.h"
#include "base/arena.h"
#include "base/budget.h"
#include "decode/decode.h"
#include "source/source.h"

struct desk {
    struct reading reading;
    struct decoder *decoder;
    struct buf spare; /* for what is made of the file */
    struct arena arena;
    struct budget *budget; /* shared by all desks; NULL: no limit */
    bool in_turn;
    struct ahead *ahead; /* who may have read the sample already; NULL: nobody */
    int64_t serial;      /* of the row that is worked on, where it is known; -1 */
    bool lent;           /* the bytes are his */
    bool all_read;       /* all fields of the sample */
    struct parts parts;  /* of the file that are there; none: all of it */
    size_t read;         /* bytes that reading it took */
};

/* codecs: whether pictures are to be decoded here, and with which kernels. */
int desk_init(struct desk *d, int thread, struct budget *b, bool codecs, stk_cpu cpu, stk_error *e);
void desk_done(struct desk *d); /* also zeroed, also half-built */

/* Room for n bytes in place of a file's, followed by zeros; NULL: it may not be had. */
uint8_t *desk_blank(struct desk *d, size_t n);
/* An empty buffer for up to `most` bytes, while a codec takes foreign ones; NULL: it may not be had. */
struct buf *desk_spare(struct desk *d, size_t most, size_t foreign);
int desk_read(struct desk *d, const struct source *s, int64_t i, stk_error *e);
/* The same without the picture. */
int desk_read_rest(struct desk *d, const struct source *s, int64_t i, stk_error *e);
/* The label that the source knows, or that was read of a column of its own; without one -1. */
int desk_label(const struct desk *d, const struct source *s, int64_t i, int64_t *label, stk_error *e);
/* For want.parts, after it. */
const struct parts *desk_parts(const struct desk *d);
/* Whether there were only parts of the file. If so, all is cleared, and the next desk_read reads the whole. */
bool desk_had_parts(struct desk *d);
/* scratch in the arena, foreign in the codec's own heap. STK_EDATA with words when it never fits. */
int desk_reserve(struct desk *d, size_t scratch, size_t foreign, stk_error *e);
void desk_clear(struct desk *d);
size_t desk_held(const struct desk *d);

#endif
