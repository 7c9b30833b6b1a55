/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h -- the samples that are files: their paths, sizes and labels, in some forty bytes each.
 *
 * The whole index is one block of memory, laid out so that writing it to a file and reading it
 * back is all that its cache has to do:
 *
 *     head | size[n] | name_at[n] | label[n]? | watch[n_dirs] | dir_at[n_dirs] | dir_label[n_dirs]
 *          | class_at[n_classes] | dir_of[n] | pool
 *
 * Strings lie in the pool, each ended by 0. A folder's path ends with "/" (the source's own is
 * ""), so that folder and name put together are the path.
 *
 * Only sizes change after the index is made: they are learned when a file is read or looked at,
 * from any thread. -1 is a file nobody has looked at, or one that is missing.
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
    INDEX_FOLDER /* CLASSES or FILES, by looking; no index is of this kind */
};

/* What a folder, or the list, looked like when it was read: another look tells whether it changed. */
struct watch {
    uint64_t dev, ino;
    int64_t seconds, nanoseconds;
};

struct index_head {
    uint64_t magic, bytes, checksum;
    uint64_t kind;
    uint64_t n, n_dirs, n_classes, has_labels, pool_bytes;
    int64_t hidden, other, loops, empty_classes, beside;
    int64_t list_bytes;
    struct watch list;
};

struct index {
    struct index_head *head; /* the block */
    _Atomic int64_t *size;
    uint64_t *name_at;
    int64_t *label; /* NULL: labels are those of the folders, or there are none */
    struct watch *watch;
    uint64_t *dir_at;
    int64_t *dir_label; /* -1: none */
    uint64_t *class_at;
    uint32_t *dir_of;
    char *pool;
};

/* A block for what head says (kind, n, n_dirs, n_classes, has_labels, pool_bytes); sizes are -1, all else is
 * zero and for the caller to fill. 0, or -1 when there is no memory or the numbers are absurd. */
int index_init(struct index *x, const struct index_head *head);
/* Makes an index of a block from malloc that was read from a file: 0, and the block belongs to x; or
 * -1 when it is not what index_save wrote, down to the last offset. */
int index_adopt(struct index *x, void *block, size_t bytes);
void index_done(struct index *x); /* also zeroed, also twice */

size_t index_path(const struct index *x, int64_t i, char *buf, size_t n); /* as snprintf */
int64_t index_label(const struct index *x, int64_t i);                    /* -1: none */
const char *index_class(const struct index *x, int64_t i);

/* The size of sample i, looked up in the file system when it is not known yet; -1: missing. dir is the source's
 * folder. */
int64_t index_size(const struct index *x, int dir, int64_t i);

struct index_sum {
    int64_t bytes, missing, unreadable;
    int64_t learned; /* sizes that were not known, or other ones */
    uint64_t fingerprint;
};
/* Looks at every file, in parallel, and sums up. The fingerprint covers path, size and label
 * of every sample in order, and nothing else. */
void index_measure(const struct index *x, int dir, int threads, struct index_sum *sum);

/* ------------------------------------------------------------------ its cache on disk */

#define INDEX_MAGIC UINT64_C(0x32307864696b7473) /* in this machine's byte order; the digits are the version */

/* Over head, sizes and everything behind them. */
uint64_t index_checksum(const struct index_head *h, const int64_t *sizes, const uint8_t *rest, size_t rest_bytes);

/* Where caches are: asked, else STOKER_CACHE_DIR, else the user's cache folder; the length as snprintf, 0: nowhere. */
size_t index_cache_dir(const char *asked, char *buf, size_t n);
/* The file for an index with this key, from malloc; NULL: none is to be used. */
char *index_cache_file(const char *asked, uint64_t key);
/* Whether what a folder looked like can be relied on: it did not change in the very moment it was read. */
bool index_watch(struct watch *w, const struct stat *st);
/* 0 when there is a cached index and everything it was made from is unchanged. list is the list's descriptor, or -1. */
int index_load(struct index *x, const char *file, enum index_kind kind, int dir, int list, int threads);
/* Writes it, or leaves no trace. */
void index_save(const struct index *x, const char *file);
/* Says beside it which source it is of, for those who list caches. */
void index_name(const char *file, const char *place);

#endif
