/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recognise.h -- what kind of source a name refers to.
 *
 *     train/                        detected from the content
 *     tar:shards/a-{000..127}.tar   a prefix decides; braces and globs name several files
 *     hdf5:x.h5?image=images        with a prefix, the text after ? is for the container
 */
#ifndef RECOGNISE_H
#define RECOGNISE_H

#include "base/names.h"
#include "source/source_ops.h"

/* A kind of container: how it is detected, and what opens it. */
struct container {
    const char *prefix;      /* "tar:" */
    const char *what;        /* "tar shards" */
    const char *suffixes[6]; /* of its files; ended by NULL */
    const char *magic;       /* the first bytes of its files, or NULL */
    unsigned short magic_bytes, magic_at;
    bool compressible;                      /* whole files may be compressed with gzip or zstd */
    bool (*is)(const uint8_t *p, size_t n); /* detects files without a magic; may be NULL */
    bool (*is_folder)(const char *folder);  /* detects folders; may be NULL */
    /* Gets the files in order, and the text after the ? or NULL. NULL: the engine cannot read it. */
    int (*open)(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                stk_error *e);
};

struct recognised {
    enum source_form form;
    const char *path;                  /* as typed, without the prefix; for containers the pattern */
    const struct container *container; /* if form is SOURCE_CONTAINER */
    struct names paths;                /* its files */
    struct names classes;              /* of a pack */
    bool is_pack, keys_are_files;      /* it is a pack; its keys are file names */
    char *fields;                      /* of a pack: the fields it was written with; NULL: detect them */
    char *query, *own;                 /* the text after the ?, and the path before it */
};

/* Sets r->path even on failure; recognised_done() frees it. */
int recognise(const char *source, struct recognised *r, stk_error *e);
void recognised_done(struct recognised *r); /* accepts zeroed memory */

/* The container with this prefix, including the colon; or whose files have the suffix of this path; NULL: none. */
const struct container *container_find(const char *prefix);
const struct container *container_by_suffix(const char *path);

/* Whether a folder is a pack, complete or not. pack_folder_read reads its stoker.json. */
bool pack_folder_is(const char *folder);
int pack_folder_read(struct recognised *r, stk_error *e);
/* The same for the text of a stoker.json. */
int pack_folder_parse(struct recognised *r, const void *text, size_t n, stk_error *e);
/* Reads the text of a stoker.json in an open folder. STK_ENOTFOUND: there is none. */
int pack_manifest_read(int dir, struct buf *out, stk_error *e);
extern const char pack_manifest_name[]; /* "stoker.json" */

/* Expands a pattern with {000..127}, {a,b}, * ? [] into file names, in order. Fails if a glob matches nothing. */
int pattern_files(const char *pattern, struct names *out, stk_error *e);
bool pattern_is(const char *path);

#endif
