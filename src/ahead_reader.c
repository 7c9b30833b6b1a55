/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead_reader.c -- the thread that reads ahead: it foresees rows, claims them, and has their files fetched.
 *
 *     foresee -> claim -> fetch ... parts, room -> arrived
 *
 * It sleeps when there is nothing to foresee, no memory, or no need.
 */
#include "ahead_inner.h"

#include <limits.h>
#include <sys/resource.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "read/fetch.h"

/* ------------------------------------------------------------------ what comes */

static uint8_t *room(void *user, int64_t serial, size_t n)
{
    struct ahead *a = user;
    struct entry *e = ahead_entry(a, serial);
    pthread_mutex_lock(&a->lock);
    e->piece = e->dropped ? -1 : strip_take(&a->strip, n);
    uint8_t *at = e->piece < 0 ? NULL : strip_at(&a->strip, e->piece);
    pthread_mutex_unlock(&a->lock);
    if (at)
        a->homeless--;
    return at;
}

/* Asked when the file is open: its notes may have to be found by its size and time of change. */
static void parts(void *user, int64_t serial, size_t n, struct parts *out)
{
    struct ahead *a = user;
    struct entry *e = ahead_entry(a, serial); /* ours while it is coming */
    a->o.parts(a->o.user, e->epoch, e->pick, out);
    if (out->n > 0 && out->at[out->n - 1].to > n)
        out->n = 0;
    e->file.parts = *out;
    atomic_fetch_add_explicit(&a->part_files, out->n > 0, memory_order_relaxed);
}

static size_t read_bytes(const struct ahead_file *f)
{
    size_t sum = f->parts.n > 0 ? 0 : f->n;
    for (int i = 0; i < f->parts.n && f->bytes; i++)
        sum += (size_t)(f->parts.at[i].to - f->parts.at[i].from);
    return sum;
}

static void arrived(void *user, int64_t serial, const uint8_t *bytes, size_t n, bool warm)
{
    struct ahead *a = user;
    struct entry *e = ahead_entry(a, serial);
    pthread_mutex_lock(&a->lock);
    if (e->piece < 0)
        a->homeless--;
    e->state = bytes ? HERE : LOST;
    e->file.bytes = bytes;
    e->file.n = n;
    const size_t read = e->file.read = read_bytes(&e->file);
    const bool waited = e->waited;
    if (e->dropped)
        ahead_release(a, e);
    pthread_mutex_unlock(&a->lock);
    if (waited) /* without the lock, which they would only have to wait for */
        pthread_cond_broadcast(&a->bells[serial % BELLS]);
    a->window_files++;
    a->window_bytes += (int64_t)read;
    if (!bytes)
        return;
    ahead_feel(a, warm);
    atomic_fetch_add_explicit(&a->files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->bytes, (int64_t)n, memory_order_relaxed);
}

/* ------------------------------------------------------------------ what goes */

static int64_t mean_bytes(struct ahead *a)
{
    const int64_t n = atomic_load_explicit(&a->files, memory_order_relaxed);
    return n ? atomic_load_explicit(&a->bytes, memory_order_relaxed) / n + 1 : FIRST_GUESS;
}

/* Whether a sample is among those that are not kept in the page cache. */
static bool is_direct(struct ahead *a, int64_t sample)
{
    if (a->o.reader == STK_READER_URING)
        return true;
    const double share = (double)a->o.cache_bytes / ((double)mean_bytes(a) * (double)a->o.samples);
    return (double)(hash_mix((uint64_t)sample, 0x636f6c64) >> 11) * 0x1p-53 >= share;
}

static void foresee(void *user, int64_t serial, int64_t epoch, int64_t position)
{
    struct ahead *a = user;
    const struct pick p = a->o.pick(a->o.user, &a->shuffle, epoch, position);
    if (a->o.needless && a->o.needless(a->o.user, p.index))
        return;
    a->rows[a->n_rows++] = (struct row_ahead){.serial = serial, .epoch = epoch, .pick = p};
}

/* How many more files may be under way: within the depth, and with memory for each of them. No more memory than the
 * depth asks for is gone through in turn: on the whole strip reading was a fifth slower. */
static int64_t how_many(struct ahead *a)
{
    const size_t enough = 4 * (size_t)a->depth.now * (size_t)mean_bytes(a);
    pthread_mutex_lock(&a->lock);
    strip_limit(&a->strip, enough > LIMIT_LEAST ? enough : LIMIT_LEAST);
    const size_t free_bytes = strip_room(&a->strip);
    pthread_mutex_unlock(&a->lock);
    const int64_t fit = (int64_t)(free_bytes / 2) / mean_bytes(a) - a->homeless;
    const int64_t deep = a->depth.now - fetch_under_way(a->fetch);
    return fit < deep ? fit : deep;
}

/* What was foreseen before the ring went elsewhere. */
static void forget(struct ahead *a, int64_t born)
{
    for (int i = 0; i < WINDOW; i++) {
        struct entry *e = &a->entries[i];
        if (e->state == NOTHING || e->serial >= born)
            continue;
        if (e->state == COMING)
            e->dropped = true;
        else
            ahead_release(a, e);
    }
}

static bool claim(struct ahead *a, const struct row_ahead *r)
{
    struct entry *e = ahead_entry(a, r->serial);
    if (r->serial < a->passed || e->state != NOTHING)
        return false;
    *e = (struct entry){.state = COMING, .serial = r->serial, .epoch = r->epoch, .pick = r->pick, .piece = -1};
    return true;
}

static void count_row(struct ahead *a, bool direct)
{
    atomic_fetch_add_explicit(&a->all_files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->direct_files, direct, memory_order_relaxed);
}

/* A file, or what of a shard the sample is. */
static void fetch_row(struct ahead *a, const struct row_ahead *r)
{
    char path[PATH_MAX];
    const bool direct = is_direct(a, r->pick.index) && !fetch_refused(a->fetch);
    const int64_t fair = (int64_t)(a->strip.bytes / 4), most = fair < a->o.max_bytes ? fair : a->o.max_bytes;
    struct fetch_want w = {.token = r->serial, .path = path, .max_bytes = most, .direct = direct};
    struct extent x;
    a->homeless++;
    if (source_file(a->o.source, r->pick.index, &w.dir, path, sizeof path)) {
        count_row(a, direct);
        fetch_file(a->fetch, &w);
    } else if (source_extent(a->o.source, r->pick.index, direct, &x) && x.bytes <= (size_t)most) {
        count_row(a, x.direct);
        fetch_extent(a->fetch, r->serial, &x);
    } else {
        arrived(a, r->serial, NULL, 0, false);
    }
}

static void go_on(struct ahead *a)
{
    const int64_t n = how_many(a), born = a->walk.born;
    a->n_rows = 0;
    atomic_store(&a->cursor,
                 INT64_MAX); /* who is handed such a row from now on is to say so, also when we fall asleep */
    ring_foresee(a->o.ring, &a->walk, n, foresee, a);
    int claimed = 0;
    pthread_mutex_lock(&a->lock);
    if (a->walk.born != born)
        forget(a, a->walk.born);
    for (int i = 0; i < a->n_rows; i++)
        if (claim(a, &a->rows[i]))
            a->rows[claimed++] = a->rows[i];
    atomic_store(&a->cursor, a->walk.serial);
    pthread_mutex_unlock(&a->lock);
    for (int i = 0; i < claimed; i++)
        fetch_row(a, &a->rows[i]);
}

/* A window of reads is long enough to tell one depth from another. */
static void adjust(struct ahead *a)
{
    const uint64_t now = now_ns(), ns = now - a->window_ns;
    if (a->window_files < 8 * a->depth.now || ns < 20 * 1000 * 1000)
        return;
    pthread_mutex_lock(&a->lock);
    const bool waited = a->waits > 0;
    a->waits = 0;
    pthread_mutex_unlock(&a->lock);
    depth_window(&a->depth, (double)a->window_bytes / (double)ns, waited);
    atomic_store_explicit(&a->depth_now, a->depth.now, memory_order_relaxed);
    a->window_ns = now;
    a->window_files = a->window_bytes = 0;
}

/* ------------------------------------------------------------------ its thread */

/* Descriptors are the whole program's: a small part of them is for us. */
static int most_files(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur / 8 >= MOST)
        return MOST;
    return r.rlim_cur < 8 ? 1 : (int)(r.rlim_cur / 8);
}

static int set_up(struct ahead *a, stk_error *e)
{
    const struct fetch_options o = {
        .most = a->o.most > 0 && a->o.most < most_files() ? a->o.most : most_files(),
        .memory = a->strip.memory,
        .memory_bytes = a->strip.bytes,
        .user = a,
        .room = room,
        .parts = a->o.parts ? parts : NULL,
        .done = arrived,
    };
    const int least = 2 * a->o.threads > 8 ? 2 * a->o.threads : 8;
    depth_init(&a->depth, least, 4 * least, o.most);
    atomic_store_explicit(&a->depth_now, a->depth.now, memory_order_relaxed);
    a->window_ns = now_ns();
    return fetch_open(&a->fetch, &o, e);
}

/* From now on everybody reads for himself. */
static void give_up(struct ahead *a, const stk_error *e)
{
    atomic_store(&a->awake, false);
    pthread_mutex_lock(&a->lock);
    a->broken = true;
    a->why = *e;
    pthread_mutex_unlock(&a->lock);
}

/* Waits for something to do; false: no more. */
static bool rest(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    while (!a->stopped && !(atomic_load(&a->awake) && a->poked))
        pthread_cond_wait(&a->work, &a->lock);
    a->poked = false;
    const bool more = !a->stopped;
    pthread_mutex_unlock(&a->lock);
    a->window_ns = now_ns();
    a->window_files = a->window_bytes = 0;
    return more;
}

void ahead_reader(void *user, int i)
{
    (void)i;
    struct ahead *a = user;
    stk_error e;
    if (set_up(a, &e) != STK_OK) {
        give_up(a, &e);
        return;
    }
    bool more = true;
    while (more) {
        if (atomic_load(&a->awake))
            go_on(a);
        if (fetch_under_way(a->fetch) == 0)
            more = rest(a);
        else if (!fetch_wait(a->fetch))
            break;
        adjust(a);
    }
    if (more) {
        error_set(&e, STK_EIO, "read", "io_uring failed while it was in use");
        give_up(a, &e);
    }
    fetch_close(a->fetch);
}
