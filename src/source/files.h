/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h -- sources whose samples are files: an index, and the folder that its paths begin in.
 *
 *     files_open(s, &options, &e)         the folder is open; the index too, when it is cached
 *     if (!files_found(s)) ...            make it, in *files_index(s)
 *     files_ready(s, "list", &made);
 */
#ifndef FILES_H
#define FILES_H

#include "source/index.h"
#include "source/shard.h"

struct files_options {
    const char *path;   /* the folder or the list, as typed */
    const char *folder; /* what paths are relative to, as typed; "": the current one */
    const char *cache_dir;
    enum index_kind kind;
    int list; /* its descriptor, or -1 */
    int threads;
};

/* What came to light while the index was made. */
struct files_made {
    uint64_t began_ns;
    int64_t unreadable; /* folders */
    bool settled;       /* nothing changed in the very moment it was read */
    bool values;        /* the list names no files at all */
};

/* On failure, too, the source is closed by its ops. */
int files_open(struct source *s, const struct files_options *o, stk_error *e);
bool files_found(const struct source *s); /* the index came from the cache */
struct index *files_index(const struct source *s);
int files_dir(const struct source *s); /* the folder's descriptor */
void files_ready(struct source *s, const char *kind, const struct files_made *made);

/* What samples have beside their files: read after each, also without it. */
struct files_beside {
    int (*read)(const void *state, const struct source *s, struct reading *r, int64_t i, stk_error *e);
    void (*done)(void *state);
    void *state;
    bool file; /* it is made of the file itself */
};
/* Which is then closed with the source. */
void files_add(struct source *s, const struct files_beside *b);
/* Every field with a column is all of the file's bytes. */
void files_add_whole(struct source *s);

#endif
