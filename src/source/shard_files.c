/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_files.c -- the descriptors of shards, and the streams of compressed ones.
 */
#include "source/shard_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"

enum { OPEN_MOST = 1024 };

static _Atomic int *new_fds(uint64_t n, uint64_t most)
{
    _Atomic int *fds = n > OPEN_MOST || n > most ? NULL : malloc((size_t)n * sizeof *fds);
    for (uint64_t i = 0; fds && i < n; i++)
        atomic_init(&fds[i], -1);
    return fds;
}

/* Takes only a part of the process's descriptors. */
static void open_fds(struct shard_files *f)
{
    struct rlimit most = {.rlim_cur = 256};
    getrlimit(RLIMIT_NOFILE, &most);
    f->fds = new_fds(f->index->head->n_shards, most.rlim_cur / 4);
    f->direct = f->fds ? new_fds(f->index->head->n_shards, most.rlim_cur / 8) : NULL;
}

static void close_fds(_Atomic int *fds, uint64_t n)
{
    for (uint64_t i = 0; fds && i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(fds);
}

/* ------------------------------------------------------------------ compressed shards */

/* How many samples of mean size fit into SHARD_WINDOW. */
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

size_t shard_files_work(int64_t memory)
{
    return memory > 0 ? (size_t)memory / STREAM_WORK_SHARE : STREAM_WORK_MOST;
}

static int open_streams(struct shard_files *f, int64_t memory)
{
    const uint64_t n = f->index->head->n_shards;
    const int64_t share = memory > 0 ? memory / SHARD_KEPT_SHARE : SHARD_KEPT;
    f->streams = calloc((size_t)n, sizeof *f->streams);
    f->cache = f->streams
                   ? stream_cache_new((size_t)(share < SHARD_KEPT ? share : SHARD_KEPT), shard_files_work(memory))
                   : NULL;
    if (!f->cache)
        return -1;
    for (uint64_t i = 0; i < n; i++) {
        const enum stream_form form = (enum stream_form)f->index->shards[i].form;
        f->streams[i] = form != STREAM_PLAIN ? stream_new(f->cache, form, false) : NULL;
        if (form != STREAM_PLAIN && !f->streams[i])
            return -1;
    }
    return open_blocks(f);
}

int shard_files_open(struct shard_files *f, const struct records_index *x, int64_t memory, stk_error *e)
{
    bool compressed = false;
    f->index = x;
    for (uint64_t i = 0; i < x->head->n_shards; i++) {
        const char *missing = stream_missing((enum stream_form)x->shards[i].form);
        if (missing)
            return error_set(e, STK_EUSAGE, "open", "is compressed, and this build has no %s", missing);
        compressed |= x->shards[i].form != STREAM_PLAIN;
    }
    open_fds(f);
    return compressed && open_streams(f, memory) ? error_nomem(e, "open", sizeof(struct stream *) * x->head->n_shards)
                                                 : STK_OK;
}

void shard_files_done(struct shard_files *f)
{
    if (f->fds)
        close_fds(f->fds, f->index->head->n_shards);
    if (f->direct)
        close_fds(f->direct, f->index->head->n_shards);
    for (uint64_t i = 0; f->streams && i < f->index->head->n_shards; i++)
        stream_free(f->streams[i]);
    stream_cache_free(f->cache);
    blocks_done(&f->blocks);
    free(f->streams);
    *f = (struct shard_files){0};
}

void shard_files_memory(const struct shard_files *f, size_t *held, size_t *most)
{
    *held = *most = 0;
    if (f->cache)
        stream_cache_memory(f->cache, held, most);
}

/* ------------------------------------------------------------------ reading */

static const char *path_of(const struct shard_files *f, int64_t shard)
{
    return f->index->pool + f->index->shards[shard].name_at;
}

/* Stores a descriptor, unless another thread was first. Returns the stored one. */
static int store(_Atomic int *place, int fd)
{
    int none = -1;
    if (atomic_compare_exchange_strong(place, &none, fd))
        return fd;
    if (fd >= 0)
        close(fd);
    return none;
}

/* Whether it is still the file that was indexed. The offsets are wrong for any other. */
static bool is_indexed(const struct shard_files *f, int64_t shard, const struct stat *st)
{
    const struct record_shard *s = &f->index->shards[shard];
    struct stamp now;
    index_stamp(&now, st);
    return (int64_t)st->st_size == s->bytes && memcmp(&now, &s->stamp, sizeof now) == 0;
}

static int changed(stk_error *e)
{
    return error_set(e, STK_EDATA, "read",
                     "the shard was changed or replaced after the source was opened; open it again");
}

int shard_files_take(const struct shard_files *f, int64_t shard, int *fd, stk_error *e)
{
    struct stat st;
    *fd = f->fds ? atomic_load_explicit(&f->fds[shard], memory_order_acquire) : -1;
    if (*fd >= 0)
        return STK_OK;
    *fd = open(path_of(f, shard), IO_OPEN_FLAGS);
    if (*fd < 0)
        return error_os(e, errno, "read", "cannot be opened");
    if (fstat(*fd, &st) != 0 || !is_indexed(f, shard, &st)) {
        close(*fd);
        *fd = -1;
        return changed(e);
    }
    if (f->fds)
        *fd = store(&f->fds[shard], *fd);
    return STK_OK;
}

void shard_files_give(const struct shard_files *f, int fd)
{
    if (!f->fds)
        close(fd);
}

static int too_short(int64_t at, stk_error *e)
{
    return error_set(e, STK_EDATA, "read",
                     "the shard ends at byte %lld, inside the sample: it became shorter; open it again", (long long)at);
}

/* Opens the file of fd with O_DIRECT, unless another file has its name by now; -2: not possible. */
static int open_direct(const char *path, int fd)
{
    struct stat now, then;
    const int direct = open(path, IO_OPEN_FLAGS | O_DIRECT);
    if (direct >= 0 && fstat(direct, &now) == 0 && fstat(fd, &then) == 0 && now.st_dev == then.st_dev &&
        now.st_ino == then.st_ino)
        return direct;
    if (direct >= 0)
        close(direct);
    return -2;
}

bool shard_files_lend(const struct shard_files *f, int64_t shard, bool direct, struct extent *out)
{
    if (f->streams && f->streams[shard])
        return false;
    out->fd = -1;
    out->path = path_of(f, shard);
    out->direct = direct;
    struct stat st;
    if (!f->fds)
        return stat(out->path, &st) == 0 && is_indexed(f, shard, &st);
    if (shard_files_take(f, shard, &out->fd, NULL) != STK_OK)
        return false;
    int past = direct && f->direct ? atomic_load_explicit(&f->direct[shard], memory_order_acquire) : -2;
    if (past == -1)
        past = store(&f->direct[shard], open_direct(out->path, out->fd));
    out->direct = past >= 0;
    out->fd = past >= 0 ? past : out->fd;
    return true;
}

int shard_files_read(const struct shard_files *f, int64_t shard, int fd, uint8_t *to, int64_t at, int64_t n, bool *cold,
                     stk_error *e)
{
    if (f->streams && f->streams[shard]) {
        size_t got;
        const int rc = stream_read(f->streams[shard], fd, to, (size_t)n, at, &got, e);
        return rc == STK_OK && got < (size_t)n ? too_short(at + (int64_t)got, e) : rc;
    }
    if (cold && io_pread_warm(fd, to, (size_t)n, at))
        return STK_OK;
    if (cold)
        *cold = true;
    const ssize_t got = io_pread(fd, to, (size_t)n, at);
    if (got < 0)
        return error_os(e, errno, "read", "cannot be read");
    return got < n ? too_short(at + got, e) : STK_OK;
}
