/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_files.h -- the shards as open files, decompressed if necessary, and the parts of a sample read from them.
 */
#ifndef SHARD_FILES_H
#define SHARD_FILES_H

#include "base/blocks.h"
#include "format/stream.h"
#include "source/records_index.h"

/* Decompressed data of at most SHARD_KEPT bytes, or an eighth of the memory limit, is kept. Samples of compressed
 * shards are shuffled within windows of SHARD_WINDOW bytes, so that two windows fit. The window is the same on every
 * machine, because the order of samples depends on it. */
enum { SHARD_KEPT = 128 << 20, SHARD_WINDOW = 48 << 20, SHARD_KEPT_SHARE = 8 };
/* Bytes that decompressing may use under this memory limit (0: no limit). */
size_t shard_files_work(int64_t memory);

struct shard_files {
    const struct records_index *index;
    _Atomic int *fds;    /* -1: not open; NULL: too many shards, so each read opens its file */
    _Atomic int *direct; /* the same files with O_DIRECT; -2: not possible; NULL: too many shards */
    struct stream_cache *cache;
    struct stream **streams; /* NULL: no shard is compressed; an element: this one is not */
    struct blocks blocks;    /* one per shard, if some are compressed */
};

int shard_files_open(struct shard_files *f, const struct records_index *x, int64_t memory, stk_error *e);
void shard_files_done(struct shard_files *f); /* accepts zeroed memory; may be called twice */

/* Bytes held for compressed shards: now, and at most. */
void shard_files_memory(const struct shard_files *f, size_t *held, size_t *most);

/* Lends the descriptor of a shard until shard_files_give. */
int shard_files_take(const struct shard_files *f, int64_t shard, int *fd, stk_error *e);
void shard_files_give(const struct shard_files *f, int fd);
/* Reads exactly n bytes of a shard from `at`. Sets *cold, unless it is NULL, if the read waited for storage. */
int shard_files_read(const struct shard_files *f, int64_t shard, int fd, uint8_t *to, int64_t at, int64_t n, bool *cold,
                     stk_error *e);
/* Fills out->fd and out->path, so that the caller can read the shard itself. false: it is compressed or missing. */
bool shard_files_lend(const struct shard_files *f, int64_t shard, bool direct, struct extent *out);

/* ------------------------------------------------------------------ the parts of one sample */

/* The parts of a sample to read, in the order of their positions. */
struct records_parts {
    int64_t shard;
    int n, largest;
    int part[RECORD_PARTS];
    int64_t from, to; /* the range that covers them */
    int64_t bytes;
};

/* Selects the parts of sample i; `wanted` has a bit for each part. Fails if the sample is bad. */
int records_parts_plan(const struct records_index *x, int64_t i, uint64_t wanted, struct records_parts *p,
                       stk_error *e);
/* Whether one read gets all of them without much besides. */
bool records_parts_adjacent(const struct records_parts *p);
/* Reads the parts into r->file, each followed by zeros, or takes them from r->ahead. */
int records_parts_read(const struct shard_files *files, struct reading *r, int64_t i, uint64_t wanted,
                       int64_t max_bytes, struct record *out, stk_error *e);

#endif
