/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h -- where packed samples go: tar or TFRecord shards, arrays, or a folder of files.
 *
 *     target_open(&t, &options, e)        t.next is the first position that is still to be packed
 *     target_add(&t, &packed, e)          in order; t.next is the position after it
 *     target_end(&t, e)                   everything is on disk, with its stoker.json
 *     target_done(&t)                     accepts a zeroed or unfinished target: complete shards stay for a later run
 *
 * Which sample goes into which shard depends only on the samples and on the shard size.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/sample.h"
#include "pack/journal.h"

/* ------------------------------------------------------------------ a sample ready to be written */

enum { PACKED_FIELDS = FIELD_MAX + 1, PACKED_NAME = FIELD_NAME + 8 };

struct packed_field {
    char name[PACKED_NAME];  /* in a tar: "jpg", "caption.txt" */
    char column[FIELD_NAME]; /* in the source */
    stk_kind kind;
    stk_dtype dtype; /* 0: bytes, not numbers */
    int ndim;
    int64_t shape[FIELD_DIMS];
    size_t at, n;      /* its bytes in packed.bytes, as a tar has them */
    size_t head_bytes; /* of these, the npy header before the numbers */
};

struct packed {
    struct buf bytes; /* of all fields */
    struct packed_field fields[PACKED_FIELDS];
    int n_fields;
    int image;         /* the field that is the image; -1: none */
    stk_format format; /* of the image; unknown: raw pixels */
    int32_t w, h;      /* 0: unknown */
    int channels;
    int64_t sample, label; /* label -1: none */
    int64_t bytes_in;      /* read from the source */
    struct buf key;        /* as in a tar, ended by 0 */
};

static inline const uint8_t *packed_bytes(const struct packed *p, const struct packed_field *f)
{
    return p->bytes.data + f->at;
}

/* ------------------------------------------------------------------ formats */

struct target;

/* A column of arrays. Column i has field i of every sample; after the fields, one column may have the keys. */
struct target_column {
    char name[FIELD_NAME]; /* unique, and valid as a file name */
    stk_kind kind;
    bool label, key, ragged;
    stk_dtype dtype;
    int ndim;                  /* of a row; of one element of a row if ragged */
    int64_t shape[FIELD_DIMS]; /* of the same; an image has the shape of the first image */
};

/* With `measure` samples go into shards; without it, all of them go into what begin() opens. */
struct target_format {
    stk_to to;
    const char *name, *suffix; /* suffix of shards */
    /* Computes how many bytes the sample takes in a shard. May leave in t->made what write() needs. */
    int (*measure)(struct target *t, const struct packed *p, size_t *bytes, stk_error *e);
    int (*begin)(struct target *t, stk_error *e); /* may be NULL */
    int (*write)(struct target *t, const struct packed *p, stk_error *e);
    int (*end)(struct target *t, stk_error *e); /* ends a shard, or the whole target; may be NULL */
    void (*close)(struct target *t);            /* at any moment; may be NULL */
};

struct target_options {
    const char *out;
    stk_to to;
    int64_t shard_size, samples;
    const char *recipe; /* see journal.h */
    bool force;         /* removes a pack that was made with another recipe */
    const char *const *classes;
    int n_classes;
    uint64_t fingerprint;
    const struct target_column *columns; /* for arrays */
    int n_columns;
    const char *fields; /* in the form of stk_options.fields, for reading the pack */
    bool files;         /* the names of samples are file names */
};

struct target {
    const struct target_format *format;
    struct target_options o;
    int dir; /* valid while `open` */
    int open;
    bool complete;             /* an earlier run wrote everything */
    bool made_folder, touched; /* by this run */
    struct journal journal;
    struct outfile file;
    struct buf made;
    void *state;     /* of the format */
    int64_t written; /* samples, in all shards */
    int64_t in_shard;
    int64_t shards, bytes; /* of complete shards */
    int64_t next;          /* the position that is packed next */
    int64_t bad, bytes_in;
};

int target_open(struct target *t, const struct target_options *o, stk_error *e);
int target_add(struct target *t, const struct packed *p, stk_error *e);
/* Leaves out the sample at t->next. */
void target_skip(struct target *t);
int target_end(struct target *t, stk_error *e);
/* Removes incomplete index files that killed runs left behind. */
void target_sweep(struct target *t);
void target_done(struct target *t);
int64_t target_bytes(const struct target *t); /* written so far */

extern const struct target_format target_tar, target_tfrecord, target_hdf5, target_npy, target_folder;

/* target_folder.c: removes the files that packing to a folder wrote below dir. */
void target_folder_clear(int dir);

/* ------------------------------------------------------------------ target_arrays.c: for HDF5 and npy */

/* The bytes of one column of a sample. */
struct target_arrays_cell {
    const uint8_t *bytes;
    size_t n;
};

struct target_arrays_cell target_arrays_cell(const struct target *t, const struct packed *p, int column);
/* A copy of the columns in which an image has the shape of this sample's image, from malloc. NULL: out of memory. */
struct target_column *target_arrays_columns(const struct target *t, const struct packed *p);
/* Fails if the image of a sample does not have that shape. */
int target_arrays_check(const struct target *t, const struct target_column *columns, const struct packed *p,
                        stk_error *e);

#endif
