/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packer.h -- one run of packing, shared by pack*.c.
 */
#ifndef PACKER_H
#define PACKER_H

#include <stdbool.h>

#include "base/budget.h"
#include "desk.h"
#include "order/order.h"
#include "pack/keys.h"
#include "pack/target.h"

/* What belongs to one thread. */
struct pack_worker {
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
    bool names;         /* samples have file names */
    const char *suffix; /* of all images; NULL: each keeps its own */
    struct budget budget;
    struct pack_worker *workers;
    struct target target;
    struct keys keys;
    const char **classes;
    struct buf recipe;
    char plain[FIELD_MAX][PACKED_NAME]; /* names of fields after a key */
    struct target_column columns[FIELD_MAX + 1];
    int n_columns;
    struct buf fields; /* target_options.fields */
    stk_pack_report report;
    uint64_t began_ns;
    struct pack_slot *slots; /* see pack.c */
};

/* ------------------------------------------------------------------ pack_open.c */

/* Does everything that comes before the first sample. packer_close() accepts what it leaves, also after a failure. */
int packer_open(struct packer *p, stk_error *e);
void packer_close(struct packer *p);
/* The sample at a position. */
int64_t packer_sample(const struct packer *p, struct walk *w, int64_t position);
/* Estimates size and time from a few samples. STK_EIO when the disk has too little room. */
int packer_estimate(struct packer *p, stk_error *e);

/* ------------------------------------------------------------------ pack_trial.c */

/* Refuses raw images of different sizes. */
int packer_one_size(struct packer *p, stk_error *e);
/* Writes a sample to a temporary pack and reads it back. Sets *tried when it did: a sample that lacks a field is not
 * tried. */
int packer_trial(struct packer *p, struct packed *s, bool *tried, stk_error *e);

/* ------------------------------------------------------------------ pack_columns.c */

/* Chooses names and types for the target, and refuses fields that the target cannot hold. */
int packer_columns(struct packer *p, stk_error *e);
bool packer_into_arrays(const struct packer *p);
bool packer_labels(const struct packer *p); /* whether the label is among the fields */
/* Whether a field that is a file in the source stays that file: its name already says what it contains. */
bool packer_stays(const struct packer *p, const struct field *f);

/* ------------------------------------------------------------------ pack_names.c */

bool packer_has_keys(const struct packer *p);
/* Sets the name under which a sample is written. Called in order: names depend on those before them. */
int packer_key(struct packer *p, struct packed *s, stk_error *e);
/* The suffix that a sample's image keeps, in buf; NULL: none. */
const char *packer_suffix(const struct packer *p, int64_t sample, char *buf, size_t n);

/* ------------------------------------------------------------------ pack_make.c, pack_image.c */

/* Makes the fields of a sample. Reuses the memory of out->bytes. */
int packer_make(struct packer *p, struct desk *d, int64_t sample, struct packed *out, stk_error *e);
/* Adds a field of n bytes, uninitialised if bytes is NULL. NULL: out of memory. */
struct packed_field *packer_field(struct packed *out, const char *name, const void *bytes, size_t n);
/* The same for n bytes of numbers, with an npy header before them. */
struct packed_field *packer_numbers(struct packed *out, const char *name, stk_dtype dtype, int ndim,
                                    const int64_t *shape, const void *bytes, size_t n);
/* Adds the image of field f, which was read. */
int packer_image(struct packer *p, struct desk *d, int f, struct packed *out, stk_error *e);
/* Adds the image of field f, which the source has as pixels. */
int packer_pixels(struct packer *p, struct desk *d, int f, struct packed *out, stk_error *e);
/* Replaces the size of an image by the size that it is packed with. */
int packer_size(const struct packer *p, int32_t *w, int32_t *h, stk_error *e);

#endif
