/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recognise.h -- what a source's name stands for.
 *
 *     train/                        by looking
 *     tar:shards/a-{000..127}.tar   a prefix settles doubt; braces and globs name several files
 *     hdf5:x.h5?image=images        what follows ? is for the container, when it has a prefix
 */
#ifndef RECOGNISE_H
#define RECOGNISE_H

#include "base/names.h"
#include "source/shard.h"

/* A kind of container: how it is known, and who opens it. */
struct container {
    const char *prefix;      /* "tar:" */
    const char *what;        /* "tar shards" */
    const char *suffixes[6]; /* of its files; ended by NULL */
    const char *magic;       /* how its files begin, or NULL */
    unsigned short magic_bytes, magic_at;
    bool packed;                            /* its files may be packed by gzip or zstd as a whole */
    bool (*is)(const uint8_t *p, size_t n); /* whether a file begins like one, where no magic tells it; NULL */
    /* The files in order, and what stood behind the ?, or NULL. NULL: not in this build. */
    int (*open)(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                stk_error *e);
};

struct recognised {
    enum source_form form;
    const char *path;                  /* without the prefix, as it was given; for containers the pattern */
    const struct container *container; /* where form is SOURCE_CONTAINER */
    struct names paths;                /* its files */
    struct names classes;              /* of a pack: their names */
    bool packed, files;                /* it is one; its samples are called by the names of files */
    char *fields;                      /* of a pack: as they were; NULL: as they are found */
    char *query, *own;                 /* what stood behind the ?; the path where it had one */
};

/* r->path is told in any case, of which only recognised_done may forget. */
int recognise(const char *source, struct recognised *r, stk_error *e);
void recognised_done(struct recognised *r); /* also zeroed */

/* A container by its prefix, with the colon; NULL: none. */
const struct container *container_of(const char *prefix);

/* Whether a folder is a pack; and which container its files are. */
bool pack_folder_is(const char *folder);
int pack_folder(struct recognised *r, stk_error *e);
/* The same of the text of its stoker.json. */
int pack_folder_parse(struct recognised *r, const void *text, size_t n, stk_error *e);

/* The files that a pattern with {000..127}, {a,b}, * ? [] names, in order; one that names nothing is an error. */
int pattern_files(const char *pattern, struct names *out, stk_error *e);
bool pattern_is(const char *path);

#endif
