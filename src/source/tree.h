/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h -- all folders below a folder, and the names of the images in each.
 */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/names.h"
#include "source/index.h"
#include "stoker.h"

enum { TREE_ROOT = 0, TREE_DEPTH = 100, TREE_REPEATS = 4096 };

/* Which files are samples: images by suffix, images by their first bytes, or files that end in .npy. */
enum tree_by { TREE_SUFFIX, TREE_MAGIC, TREE_NPY };

struct tree_dir {
    size_t path;       /* offset in tree.paths: relative to the root, ends with "/"; "" for the root */
    size_t path_bytes; /* without the 0 */
    uint32_t parent;
    uint32_t top; /* the folder directly below the root that contains this one, or is it; for the root: the root */
    int depth;
    struct stamp stamp;
    struct buf names;    /* images, in byte order, each terminated by 0 */
    struct buf children; /* while scanning */
    int64_t n;           /* images */
    int64_t hidden, other;
    char other_suffix[12]; /* of the first file that is not a sample */
    bool stable;
    int os_error; /* of reading the folder; 0: none */
};

struct tree {
    int fd; /* of the root; belongs to the caller */
    enum tree_by by;
    struct tree_dir *dirs; /* the root, then level by level */
    uint32_t n, cap;
    struct buf paths;
    struct names seen; /* device and inode of every folder */
    int64_t loops, repeats;
    uint32_t level; /* index of the first folder of the current level */
};

/* Scans the folder open at fd, several folders in parallel. Fails if the root cannot be read, or if memory or
 * descriptors run out. Other folders that cannot be read have os_error set. */
int tree_scan(struct tree *t, int fd, enum tree_by by, int threads, stk_error *e);
void tree_done(struct tree *t); /* accepts a zeroed tree; may be called twice */

static inline const char *tree_path(const struct tree *t, const struct tree_dir *d)
{
    return (const char *)t->paths.data + d->path;
}

#endif
