/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotated.h -- sources of images with annotations in other files: what COCO, VOC, YOLO and folders of masks share.
 */
#ifndef ANNOTATED_H
#define ANNOTATED_H

#include <limits.h>

#include "base/names.h"
#include "source/columns.h"
#include "source/files.h"
#include "source/image_paths.h"

/* What the state of such a source contains. */
struct annotated_files {
    int dir;                   /* the folder of the annotations; -1: not open */
    struct image_paths images; /* while opening */
    struct columns columns;    /* the image comes first */
};

struct annotated {
    const char *kind;                /* "COCO annotations" */
    const char *path;                /* of the source, as typed */
    const char *folder;              /* of the images, as typed; "": the current folder */
    const struct image_paths *paths; /* of the images, below it */
    const struct names *classes;     /* that were found; NULL: none */
    const struct columns *columns;   /* the image comes first */
    uint64_t began_ns;
};

/* Checks the query, and that the name stands for one file or folder. what: "file" or "folder". */
int annotated_check(const struct names *paths, const char *what, const char *query, const char *const known[],
                    stk_error *e);
/* Opens the source. Its fields other than the image have columns; annotated_end() says how they are read. */
int annotated_open(struct source *s, const struct source_options *o, const struct annotated *a, stk_error *e);
/* Ends opening with the result rc: adds the annotations to the source, or frees their state. Returns rc. */
int annotated_end(struct source *s, int rc, const struct files_extra *x);
void annotated_files_done(struct annotated_files *f);

/* Adds the paths of all images below an open folder, in byte order. */
int annotated_scan(struct image_paths *out, int dir, int threads, stk_error *e);
/* As annotated_scan(), and closes the folder. It must be open (dir >= 0) and have images; name: for messages. */
int annotated_scan_images(struct image_paths *out, int dir, const char *name, int threads, stk_error *e);

/* Appends the file to `to`, followed by IO_SLACK zeros that to->len does not count. If it does not exist:
 * STK_ENOTFOUND. An empty file is not an error. held: other bytes that the sample already has. */
int annotated_load(const struct source *s, struct reading *r, int dir, const char *path, size_t held, struct buf *to,
                   stk_error *e);
/* The path of a file that is named after sample i: folder, key without its suffix, suffix. Returns the length as
 * snprintf does. */
size_t annotated_beside(const struct source *s, int64_t i, const char *folder, const char *suffix, char *buf, size_t n);
/* A hash of the sizes of the files of all samples, for a files_extra.fingerprint; name() returns the length of the path
 * of sample i below dir, or 0. */
uint64_t annotated_hash(const struct source *s, int dir,
                        size_t (*name)(const struct source *s, int64_t i, char *buf, size_t n));

/* Opens a folder; folder + below is its path. -1: see errno. */
int annotated_folder(const char *folder, const char *below);
bool annotated_has_folder(const char *folder, const char *below);

/* Chooses a set. set: from the query, or ""; sets: those that there are. If there are several, one must be named; "all"
 * stands for all. On success set is the one to read; "": all. */
int annotated_set(const char *prefix, const struct names *sets, char set[1024], stk_error *e);

/* Whether the name of a folder is that of a set: train, val, ... */
bool annotated_is_set(const char *name, size_t n);
/* Whether the folder contains sets, which contain a folder images/: train/images/, val/images/, and the other folder.
 */
bool annotated_has_sets(const char *folder, const char *other);
/* If so, chooses a set, appends it to folder, and empties set. */
int annotated_enter_set(const char *prefix, char folder[PATH_MAX], char set[1024], stk_error *e);

#endif
