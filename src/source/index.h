/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h -- paths, sizes and labels of samples that are files, in about forty bytes each.
 *
 * The index is one block of memory, so that its cache file is a copy of the block:
 *
 *     head | size[n] | name_at[n] | label[n]? | stamp[n_dirs] | dir_at[n_dirs] | dir_label[n_dirs]
 *          | class_at[n_classes] | dir_of[n] | pool
 *
 * The pool contains the strings, each terminated by 0. A folder's path ends with "/" (the source's own folder is ""),
 * so folder + name is the path of a sample.
 *
 * Only sizes change after the index is built. Any thread stores a size when it reads a file or calls stat on it. -1:
 * the size is unknown, or the file is missing.
 */
#ifndef INDEX_H
#define INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum index_kind {
    INDEX_CLASSES = 1,
    INDEX_FILES,
    INDEX_LIST,
    INDEX_FOLDER /* a request: detect CLASSES or FILES; no index has this kind */
};

/* Identifies a state of a folder or list. If a later stamp is equal, nothing changed. */
struct stamp {
    uint64_t dev, ino;
    int64_t seconds, nanoseconds;
};

struct index_head {
    uint64_t magic, bytes, checksum;
    uint64_t kind;
    uint64_t n, n_dirs, n_classes, has_labels, pool_bytes;
    int64_t hidden, other, loops, empty_classes, beside;
    int64_t list_bytes;
    struct stamp list;
};

struct index {
    struct index_head *head; /* the block */
    _Atomic int64_t *size;
    uint64_t *name_at;
    int64_t *label; /* NULL: folders have the labels, or there are none */
    struct stamp *stamp;
    uint64_t *dir_at;
    int64_t *dir_label; /* -1: none */
    uint64_t *class_at;
    uint32_t *dir_of;
    char *pool;
};

/* Allocates a block for the counts in head (kind, n, n_dirs, n_classes, has_labels, pool_bytes). Sizes are -1; the rest
 * is zero, for the caller to fill. Returns 0, or -1: out of memory, or the counts are impossible. */
int index_init(struct index *x, const struct index_head *head);
/* Turns a block from malloc, read from a file, into an index. Checks every offset. Returns 0 and takes the block, or -1
 * if index_save did not write it. */
int index_adopt(struct index *x, void *block, size_t bytes);
void index_done(struct index *x); /* accepts a zeroed index; may be called twice */

size_t index_path(const struct index *x, int64_t i, char *buf, size_t n); /* as snprintf */
int64_t index_label(const struct index *x, int64_t i);                    /* -1: none */
const char *index_class(const struct index *x, int64_t i);

/* The size of sample i; calls stat if it is unknown; -1: missing. dir is the source's folder. */
int64_t index_size(const struct index *x, int dir, int64_t i);

struct index_sum {
    int64_t bytes, missing, unreadable;
    int64_t learned; /* sizes that were unknown or have changed */
    uint64_t fingerprint;
};
/* Calls stat on every file, in parallel, and adds up. The fingerprint covers path, size and label of every sample, in
 * order, and nothing else. */
void index_measure(const struct index *x, int dir, int threads, struct index_sum *sum);

/* ------------------------------------------------------------------ its cache on disk */

#define INDEX_MAGIC UINT64_C(0x32307864696b7473) /* in this machine's byte order; the digits are the version */

/* Covers head, sizes and the rest of the block. */
uint64_t index_checksum(const struct index_head *h, const int64_t *sizes, const uint8_t *rest, size_t rest_bytes);

/* The cache folder: `asked`, or STOKER_CACHE_DIR, or the user's cache folder. Returns the length as snprintf does; 0:
 * no cache. */
size_t index_cache_dir(const char *asked, char *buf, size_t n);
/* The cache file of the index with this key, from malloc; NULL: no cache. */
char *index_cache_file(const char *asked, uint64_t key);
/* Sets *w. false: the folder changed just now, so a later change could leave the stamp equal. */
bool index_stamp(struct stamp *w, const struct stat *st);
/* Returns 0 if there is a cached index and nothing it was built from has changed. list is the list's descriptor, or -1.
 */
int index_load(struct index *x, const char *file, enum index_kind kind, int dir, int list, int threads);
/* Writes the whole file, or none. */
void index_save(const struct index *x, const char *file);
/* Stores the source's location next to the cache file, for source_list_cached. */
void index_save_location(const char *file, const char *location);

#endif
