/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h -- the folders below a folder, and the names of the pictures in each.
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

/* What is taken for a sample: pictures by their suffix, or by their first bytes; files that end in .npy. */
enum tree_by { TREE_SUFFIX, TREE_MAGIC, TREE_NPY };

struct tree_dir {
    size_t path;       /* in tree.paths: below the root, with "/" at the end; "" for the root */
    size_t path_bytes; /* without the 0 */
    uint32_t parent;
    uint32_t top; /* the folder right below the root that this one is in, or is; the root's own is itself */
    int depth;
    struct watch watch;
    struct buf names;    /* pictures, in byte order, each ended by 0 */
    struct buf children; /* while scanning */
    int64_t n;           /* pictures */
    int64_t hidden, other;
    char other_suffix[12]; /* of the first file that is no picture */
    bool settled;
    int os_error; /* why it could not be read; 0: it was */
};

struct tree {
    int fd; /* of the root; the caller's */
    enum tree_by by;
    struct tree_dir *dirs; /* the root, then level by level */
    uint32_t n, cap;
    struct buf paths;
    struct names seen; /* device and inode of every folder */
    int64_t loops, repeats;
    uint32_t level; /* first folder of the level being scanned */
};

/* Scans the folder open at fd, many folders at a time. Fails when the root cannot be read, or for
 * want of memory or descriptors; other folders that cannot be read have os_error set. */
int tree_scan(struct tree *t, int fd, enum tree_by by, int threads, stk_error *e);
void tree_done(struct tree *t); /* also zeroed, also twice */

static inline const char *tree_path(const struct tree *t, const struct tree_dir *d)
{
    return (const char *)t->paths.data + d->path;
}

#endif
