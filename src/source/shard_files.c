/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_files.c -- descriptors of shards, and streams of those that are packed.
 */
#include "source/shard_files.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "source/io.h"

enum { OPEN_MOST = 1024 };

static void open_fds(struct shard_files *f)
{
    const uint64_t n = f->index->head->n_shards;
    struct rlimit most = {.rlim_cur = 256};
    getrlimit(RLIMIT_NOFILE, &most);
    if (n > OPEN_MOST || n > most.rlim_cur / 4)
        return;
    f->fds = malloc((size_t)n * sizeof *f->fds);
    for (uint64_t i = 0; f->fds && i < n; i++)
        atomic_init(&f->fds[i], -1);
}

/* ------------------------------------------------------------------ packed shards */

/* As many samples as SHARD_WINDOW has bytes for. */
static int64_t window_of(const struct records_index *x)
{
    int64_t raw = 0;
    for (uint64_t i = 0; i < x->head->n_shards; i++)
        raw += x->shards[i].raw;
    const int64_t n = (int64_t)x->head->n, mean = raw / (n > 0 ? n : 1) + 1;
    return mean < SHARD_WINDOW ? SHARD_WINDOW / mean : 1;
}

static int open_blocks(struct shard_files *f)
{
    const struct records_head *h = f->index->head;
    f->blocks.starts = malloc((size_t)(h->n_shards + 1) * sizeof *f->blocks.starts);
    if (!f->blocks.starts)
        return -1;
    for (uint64_t i = 0; i < h->n_shards; i++)
        f->blocks.starts[i] = f->index->shards[i].first;
    f->blocks.starts[h->n_shards] = (int64_t)h->n;
    f->blocks.n = (int64_t)h->n_shards;
    f->blocks.window = window_of(f->index);
    return 0;
}

static int open_streams(struct shard_files *f)
{
    const uint64_t n = f->index->head->n_shards;
    f->streams = calloc((size_t)n, sizeof *f->streams);
    f->cache = f->streams ? stream_cache_new(SHARD_KEPT) : NULL;
    if (!f->cache)
        return -1;
    for (uint64_t i = 0; i < n; i++) {
        const enum stream_form form = (enum stream_form)f->index->shards[i].form;
        f->streams[i] = form != STREAM_PLAIN ? stream_new(f->cache, form) : NULL;
        if (form != STREAM_PLAIN && !f->streams[i])
            return -1;
    }
    return open_blocks(f);
}

int shard_files_open(struct shard_files *f, const struct records_index *x, stk_error *e)
{
    bool packed = false;
    f->index = x;
    for (uint64_t i = 0; i < x->head->n_shards; i++) {
        const char *missing = stream_missing((enum stream_form)x->shards[i].form);
        if (missing)
            return error_set(e, STK_EUSAGE, "open", "is packed, and this build is without %s", missing);
        packed |= x->shards[i].form != STREAM_PLAIN;
    }
    open_fds(f);
    return packed && open_streams(f) ? error_nomem(e, "open", sizeof(struct stream *) * x->head->n_shards) : STK_OK;
}

void shard_files_done(struct shard_files *f)
{
    for (uint64_t i = 0; f->fds && i < f->index->head->n_shards; i++)
        if (f->fds[i] >= 0)
            close(f->fds[i]);
    for (uint64_t i = 0; f->streams && i < f->index->head->n_shards; i++)
        stream_free(f->streams[i]);
    stream_cache_free(f->cache);
    blocks_done(&f->blocks);
    free(f->streams);
    free(f->fds);
    *f = (struct shard_files){0};
}

/* ------------------------------------------------------------------ reading */

int shard_files_take(const struct shard_files *f, int64_t shard, int *fd, stk_error *e)
{
    *fd = f->fds ? atomic_load_explicit(&f->fds[shard], memory_order_acquire) : -1;
    if (*fd >= 0)
        return STK_OK;
    *fd = open(f->index->pool + f->index->shards[shard].name_at, IO_OPEN_FLAGS);
    if (*fd < 0)
        return error_os(e, errno, "read", "cannot be opened");
    int none = -1;
    if (f->fds && !atomic_compare_exchange_strong(&f->fds[shard], &none, *fd)) {
        close(*fd); /* another thread was first */
        *fd = none;
    }
    return STK_OK;
}

void shard_files_give(const struct shard_files *f, int fd)
{
    if (!f->fds)
        close(fd);
}

static int too_short(int64_t at, stk_error *e)
{
    return error_set(e, STK_EDATA, "read", "the shard ends at byte %lld, within the sample; it was longer before",
                     (long long)at);
}

int shard_files_read(const struct shard_files *f, int64_t shard, int fd, uint8_t *to, int64_t at, int64_t n,
                     stk_error *e)
{
    if (f->streams && f->streams[shard]) {
        size_t got;
        const int rc = stream_read(f->streams[shard], fd, to, (size_t)n, at, &got, e);
        return rc == STK_OK && got < (size_t)n ? too_short(at + (int64_t)got, e) : rc;
    }
    const ssize_t got = io_pread(fd, to, (size_t)n, at);
    if (got < 0)
        return error_os(e, errno, "read", "cannot be read");
    return got < n ? too_short(at + got, e) : STK_OK;
}
