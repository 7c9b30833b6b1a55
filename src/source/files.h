/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h -- sources whose samples are files: an index, and the folder that its paths are relative to.
 *
 *     files_open(s, &options, &e)         opens the folder, and the index if it is cached
 *     if (!files_cached(s)) ...           build the index in *files_index(s)
 *     files_finish(s, "list", &report);
 */
#ifndef FILES_H
#define FILES_H

#include "source/index.h"
#include "source/source_ops.h"

struct files_options {
    const char *path;   /* the folder or the list, as typed */
    const char *folder; /* what paths are relative to, as typed; "": the current folder */
    const char *cache_dir;
    enum index_kind kind;
    int list; /* its descriptor, or -1 */
    int threads;
};

/* What building the index found out. */
struct files_report {
    uint64_t began_ns;
    int64_t unreadable; /* folders */
    bool stable;        /* no folder changed while it was read */
    bool values;        /* the list contains no paths */
};

/* Sets s->ops even on failure: closing the source frees everything. */
int files_open(struct source *s, const struct files_options *o, stk_error *e);
bool files_cached(const struct source *s); /* the index came from the cache */
struct index *files_index(const struct source *s);
int files_dir(const struct source *s); /* the folder's descriptor */
void files_finish(struct source *s, const char *kind, const struct files_report *report);

/* Reads further fields of a sample, after its file or instead of it. */
struct files_extra {
    int (*read)(const void *state, const struct source *s, struct reading *r, int64_t i, stk_error *e);
    void (*done)(void *state);
    void *state;
    bool file; /* needs the bytes of the file */
    /* Of what is read besides the file; part of the source's fingerprint. NULL: none. */
    uint64_t (*fingerprint)(const void *state, const struct source *s);
};
/* The source takes the state and calls done() when it closes. */
void files_add_extra(struct source *s, const struct files_extra *b);
const void *files_extra_state(const struct source *s);
/* Every field with a column gets all bytes of the file. */
void files_add_bytes(struct source *s);

#endif
