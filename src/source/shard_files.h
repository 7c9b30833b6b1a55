/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_files.h -- the files that shards are, open as far as that is possible, and unpacked where they are packed as a
 * whole.
 */
#ifndef SHARD_FILES_H
#define SHARD_FILES_H

#include "base/blocks.h"
#include "format/stream.h"
#include "source/records_index.h"

/* Of what packed shards unpack to, so much is kept, or an eighth of memory; samples are shuffled within windows of so
 * many bytes, of which two have room there. The window does not depend on the machine, since the order of samples
 * would.
 */
enum { SHARD_KEPT = 128 << 20, SHARD_WINDOW = 48 << 20, SHARD_KEPT_SHARE = 8 };
/* What unpacking may take, of so much memory (0: no limit). */
size_t shard_files_work(int64_t memory);

struct shard_files {
    const struct records_index *index;
    _Atomic int *fds;    /* -1: not open; NULL: opened for every read, since there are too many */
    _Atomic int *direct; /* the same files, past the page cache; -2: not to be had; NULL: there are too many */
    struct stream_cache *cache;
    struct stream **streams; /* NULL: no shard is packed; inside: this one is not */
    struct blocks blocks;    /* the shards, where some are packed */
};

int shard_files_open(struct shard_files *f, const struct records_index *x, int64_t memory, stk_error *e);
void shard_files_done(struct shard_files *f); /* also zeroed, also twice */

/* Of packed shards: bytes held now, and at most. */
void shard_files_memory(const struct shard_files *f, size_t *held, size_t *most);

/* The descriptor of a shard, until it is given back. */
int shard_files_take(const struct shard_files *f, int64_t shard, int *fd, stk_error *e);
void shard_files_give(const struct shard_files *f, int fd);
/* n bytes of a shard from `at`, all of them. *cold, unless NULL: set when storage had to be waited for. */
int shard_files_read(const struct shard_files *f, int64_t shard, int fd, uint8_t *to, int64_t at, int64_t n, bool *cold,
                     stk_error *e);
/* The file that a shard is, for others to read, open where it is kept so; false: it is packed, or not there. */
bool shard_files_lend(const struct shard_files *f, int64_t shard, bool direct, struct extent *out);

#endif
