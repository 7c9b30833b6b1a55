/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_build.c -- loads the index of shards from the cache, or builds it with all threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/pool.h"
#include "source/records_index.h"
#include "source/shard_files.h"

enum { SCAN_KEPT = 2 << 20 }; /* decompressed bytes per thread */

struct scanning {
    const struct record_format *format;
    const struct names *paths;
    struct record_list *lists;
    struct stream_cache *streams;
    pthread_mutex_t lock; /* protects the following */
    int rc;
    stk_error error;
};

static enum stream_form form_of(const struct record_format *f, int fd)
{
    uint8_t first[STREAM_FIRST];
    const ssize_t got = io_pread(fd, first, sizeof first, 0);
    const size_t n = got > 0 ? (size_t)got : 0;
    return f->compression ? f->compression(first, n) : stream_form_of(first, n);
}

/* Reads to the end, which verifies the checksum. Damage becomes a bad sample after the others. */
static int end_stream(struct record_scan *sc, stk_error *e)
{
    size_t got = RECORD_PEEK;
    for (int64_t at = records_window_end(sc->window); got == RECORD_PEEK; at += RECORD_PEEK)
        record_peek(sc, at, RECORD_PEEK, &got);
    const int64_t end = stream_end(sc->window->stream);
    sc->list->raw = end > 0 ? end : 0;
    const char *broken = records_window_broken(sc->window);
    if (!broken)
        return STK_OK;
    char key[32];
    const int n = snprintf(key, sizeof key, "@%lld", (long long)end);
    return record_begin(sc, key, (size_t)n) || record_bad(sc, end, broken) ? error_nomem(e, "open", 0) : STK_OK;
}

static int scan_open(struct scanning *all, uint32_t i, int fd, stk_error *e)
{
    struct record_list *l = &all->lists[i];
    struct records_window window = {0};
    struct stat st;
    if (fstat(fd, &st) != 0)
        return error_os(e, errno, "open", "cannot be opened");
    if (!S_ISREG(st.st_mode))
        return error_set(e, STK_EUSAGE, "open",
                         "is not a regular file; name the files of a folder with a pattern: FOLDER/*");
    l->stable = index_stamp(&l->stamp, &st);
    l->bytes = (int64_t)st.st_size;
    l->form = form_of(all->format, fd);
    const char *missing = stream_missing((enum stream_form)l->form);
    if (missing)
        return error_set(e, STK_EUSAGE, "open", "is compressed, and this build has no %s", missing);
    int rc = records_window_init(&window, fd, (enum stream_form)l->form, all->streams, e);
    struct record_scan sc = {
        .path = names_at(all->paths, i), .bytes = window.stream ? INT64_MAX : l->bytes, .window = &window, .list = l};
    if (rc == STK_OK)
        rc = all->format->scan(&sc, e);
    if (rc == STK_OK && window.stream)
        rc = end_stream(&sc, e);
    if (rc == STK_OK && record_failed(&sc, e))
        rc = e->code;
    records_window_done(&window);
    return rc;
}

static void scan_one(void *user, int64_t i)
{
    struct scanning *all = user;
    stk_error e = {0};
    const char *name = names_at(all->paths, (uint32_t)i);
    const int fd = open(name, IO_OPEN_FLAGS);
    const int rc = fd < 0 ? error_os(&e, errno, "open", "cannot be opened") : scan_open(all, (uint32_t)i, fd, &e);
    if (fd >= 0)
        close(fd);
    if (rc == STK_OK)
        return;
    error_at(&e, name, -1);
    pthread_mutex_lock(&all->lock);
    if (all->rc == STK_OK) {
        all->rc = rc;
        all->error = e;
    }
    pthread_mutex_unlock(&all->lock);
}

static int build(struct records_index *x, const struct record_format *f, const struct source *s,
                 const struct source_options *o, const struct names *paths, bool *stable, stk_error *e)
{
    struct scanning all = {.format = f, .paths = paths};
    all.lists = calloc(paths->n, sizeof *all.lists);
    all.streams = stream_cache_new((size_t)o->threads * SCAN_KEPT, shard_files_work(o->memory));
    if (!all.lists || !all.streams) {
        free(all.lists);
        stream_cache_free(all.streams);
        return error_nomem(e, "open", paths->n * sizeof *all.lists);
    }
    pthread_mutex_init(&all.lock, NULL);
    pool_for(o->threads, paths->n, scan_one, &all);
    pthread_mutex_destroy(&all.lock);
    int rc = all.rc;
    if (rc != STK_OK)
        *e = all.error;
    else
        rc = records_join(x, f, paths, all.lists, &s->classes, e);
    *stable = true;
    for (uint32_t i = 0; i < paths->n; i++) {
        *stable &= all.lists[i].stable;
        record_list_done(&all.lists[i]);
    }
    free(all.lists);
    stream_cache_free(all.streams);
    return rc;
}

static uint64_t cache_key(const struct source *s, const struct record_format *f, const struct names *paths)
{
    uint64_t h = hash_mix(hash_bytes("records", 7, 0), f->id);
    for (uint32_t i = 0; i < paths->n; i++) {
        char real[PATH_MAX];
        const char *name = realpath(names_at(paths, i), real) ? real : names_at(paths, i);
        h = hash_bytes(name, strlen(name), hash_mix(h, i));
    }
    return s->classes.n > 0 ? hash_bytes(s->classes.pool.data, s->classes.pool.len, h) : h;
}

int records_open_index(struct records_index *x, const struct record_format *f, const struct source *s,
                       const struct source_options *o, const struct names *paths, struct source_tally *t, stk_error *e)
{
    const uint64_t began = now_ns();
    char *file = index_cache_file(o->cache_dir, cache_key(s, f, paths));
    bool stable = false;
    int rc = STK_OK;
    const bool cached = file && records_load(x, file, f->id, paths) == 0;
    const bool beside = !cached && records_load_beside(x, f->id, paths, &s->classes) == 0;
    t->index_cached = cached || beside;
    if (!t->index_cached)
        rc = build(x, f, s, o, paths, &stable, e);
    if (rc == STK_OK && o->index_beside && !beside)
        rc = s->classes.n == 0 || s->is_pack
                 ? records_save_beside(x, f->id, paths, s->is_pack, e)
                 : error_set(e, STK_EUSAGE, "open",
                             "an index next to the shards cannot be written with classes; leave out classes");
    if (rc == STK_OK && file && stable && file_replace(file, x->head, (size_t)x->head->bytes) == 0)
        index_save_location(file, names_at(paths, 0));
    free(file);
    t->index_s = (double)(now_ns() - began) / 1e9;
    t->index_bytes = rc == STK_OK ? (int64_t)x->head->bytes : 0;
    return rc;
}
