/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packer.h -- what pack*.c share.
 */
#ifndef PACKER_H
#define PACKER_H

#include <stdbool.h>

#include "base/budget.h"
#include "desk.h"
#include "order/order.h"
#include "pack/keys.h"
#include "pack/target.h"

/* What one thread packs with. */
struct pack_bench {
    struct desk desk;
    struct walk walk;
};

struct pack_slot;

struct packer {
    stk_options options;
    stk_pack_options how;
    struct source *source;
    struct order order;
    int64_t n;          /* positions */
    bool names;         /* samples are called by the names of files */
    const char *suffix; /* that all pictures get; NULL: their own */
    struct budget budget;
    struct pack_bench *benches;
    struct target target;
    struct keys keys;
    const char **classes;
    struct buf recipe;
    char plain[FIELD_MAX][PACKED_NAME]; /* what fields are called behind a key */
    struct target_column columns[FIELD_MAX + 1];
    int n_columns;
    struct buf fields; /* as a source of the pack has them */
    stk_pack_report report;
    uint64_t began_ns;
    struct pack_slot *slots; /* see pack.c */
};

/* pack_open.c: all that comes before the first sample. The closer takes what it leaves. */
int packer_open(struct packer *p, stk_error *e);
void packer_close(struct packer *p);
/* Which sample stands at a position. */
int64_t packer_sample(const struct packer *p, struct walk *w, int64_t position);
/* Puts the path and the number of a sample into an error. */
void packer_blame(const struct packer *p, int64_t sample, stk_error *e);
/* What the whole of it will take, from a few samples; STK_EIO when the disk has not so much. */
int packer_estimate(struct packer *p, stk_error *e);

/* pack_trial.c: refuses raw pictures of several sizes; and what is written of a sample but cannot be read back. */
int packer_one_size(struct packer *p, stk_error *e);
/* Sets *tried when it has written the sample; one that lacks a field is left for the next. */
int packer_trial(struct packer *p, struct packed *s, bool *tried, stk_error *e);

/* pack_columns.c: names and forms of what is written; what has no place in the target is refused. */
int packer_columns(struct packer *p, stk_error *e);
bool packer_into_arrays(const struct packer *p);
bool packer_labels(const struct packer *p); /* whether the label is among the fields */
/* Whether a field stays the file that it is behind a key: its name says what is in it. */
bool packer_stays(const struct packer *p, const struct field *f);
bool packer_has_keys(const struct packer *p);

/* pack_make.c: from the sample to its fields. Of out, the bytes' memory is used again. */
int packer_make(struct packer *p, struct desk *d, int64_t sample, struct packed *out, stk_error *e);
/* pack_names.c: the name under which it is written, in order. */
int packer_key(struct packer *p, struct packed *s, stk_error *e);
/* The suffix of its own that a sample's picture keeps, in buf; NULL: none. */
const char *packer_suffix(const struct packer *p, int64_t sample, char *buf, size_t n);
/* pack_picture.c: the picture at d->reading as a field of out. */
int packer_picture(struct packer *p, struct desk *d, struct packed *out, stk_error *e);
/* The same for pixels in memory, of the source's field f. */
int packer_pixels(struct packer *p, struct desk *d, int f, struct packed *out, stk_error *e);
/* From the size of a picture to the one that it is packed with. */
int packer_size(const struct packer *p, int32_t *w, int32_t *h, stk_error *e);
/* Adds a field of n bytes to out, uninitialised where bytes is NULL; NULL: no memory. */
struct packed_field *packer_field(struct packed *out, const char *name, const void *bytes, size_t n);

#endif
