/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h -- where packed samples go: shards of tar or TFRecord, arrays, a folder of files.
 *
 *     target_open(&t, &options, e)        t.next is where to go on
 *     target_add(&t, &packed, e)          in order; t.position is of the sample after it
 *     target_end(&t, e)                   all is on disk, and its note with it
 *     target_done(&t)                     also zeroed, also in the middle: whole shards stay, and a later run goes on
 *
 * Which sample goes into which shard depends on the samples and the size of a shard alone.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdbool.h>

#include "pack/journal.h"
#include "pack/packed.h"

struct target;

/* What an array has of every sample, or what runs of values and where they end have: field i of every sample that is
 * packed, and behind them all the key. */
struct target_column {
    char name[FIELD_NAME]; /* fit for a file, and no other's */
    stk_kind kind;
    bool label, key, ragged;
    stk_dtype dtype;
    int ndim;                  /* of a row; of one of its rows where it is ragged */
    int64_t shape[FIELD_DIMS]; /* of that; a picture's is the first one's */
};

/* A format. With `measure` its samples go into shards; without it all of them into what begin opens. */
struct target_format {
    stk_to to;
    const char *name, *suffix; /* of shards */
    /* How many bytes the sample takes in a shard; and these bytes, in t->made or straight from p. */
    int (*measure)(struct target *t, const struct packed *p, size_t *bytes, stk_error *e);
    int (*begin)(struct target *t, stk_error *e);
    int (*write)(struct target *t, const struct packed *p, stk_error *e);
    int (*end)(struct target *t, stk_error *e); /* of a shard, or of all */
    void (*close)(struct target *t);            /* also in the middle; may be missing */
};

struct target_options {
    const char *out;
    stk_to to;
    int64_t shard_size, samples;
    const char *recipe;
    bool force; /* what a pack with another recipe has left there goes */
    const char *const *classes;
    int n_classes;
    uint64_t fingerprint;
    const struct target_column *columns; /* for arrays */
    int n_columns;
    const char *fields; /* as a source of them names them: stk_options.fields; NULL: they are found by looking */
    bool files;         /* samples are called by the names of files */
};

struct target {
    const struct target_format *format;
    struct target_options o;
    int dir; /* used while `open` */
    int open;
    bool complete;             /* all was there already */
    bool made_folder, touched; /* by this run */
    struct journal journal;
    struct outfile file;
    struct buf made;
    void *state;     /* of the format */
    int64_t written; /* samples, in all shards */
    int64_t in_shard;
    int64_t shards, bytes; /* that are whole */
    int64_t next;          /* position that is packed next */
    int64_t bad, bytes_in;
};

int target_open(struct target *t, const struct target_options *o, stk_error *e);
int target_add(struct target *t, const struct packed *p, stk_error *e);
/* The sample at t->next is left out. */
void target_skip(struct target *t);
int target_end(struct target *t, stk_error *e);
/* Removes what a run that was killed has left half written of an index. */
void target_sweep(struct target *t);
void target_done(struct target *t);
int64_t target_bytes(const struct target *t); /* written so far */

/* Removes the files that packing to a folder wrote below dir. */
void target_folder_clear(int dir);

extern const char target_note[]; /* the name of the note */
extern const struct target_format target_tar, target_tfrecord, target_hdf5, target_npy, target_folder;

#endif
