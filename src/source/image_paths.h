/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_paths.h -- the index of files whose paths are known.
 *
 *     struct image_paths p = {0};
 *     image_paths_add(&p, path, n);                 in the order of samples
 *     image_paths_index(&p, &classes, &index);
 *     image_paths_done(&p);
 */
#ifndef IMAGE_PATHS_H
#define IMAGE_PATHS_H

#include "base/names.h"
#include "source/index.h"

struct image_paths {
    struct names dirs;
    struct buf names;   /* of the files, each terminated by 0 */
    struct buf entries; /* struct image_path */
    uint32_t last;      /* the folder of the last path */
};

struct image_path {
    uint64_t name; /* offset in names */
    uint32_t dir;
};

/* Returns 0, or -1: out of memory. */
int image_paths_add(struct image_paths *p, const char *path, size_t n);
int64_t image_paths_count(const struct image_paths *p);
/* The path of sample i; returns the length as snprintf does. */
size_t image_paths_get(const struct image_paths *p, int64_t i, char *buf, size_t n);
/* classes may be NULL. Returns 0, or -1: out of memory. */
int image_paths_index(const struct image_paths *p, const struct names *classes, struct index *x);
void image_paths_done(struct image_paths *p); /* accepts zeroed memory; may be called twice */

#endif
