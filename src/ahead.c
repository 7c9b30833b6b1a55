/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c -- files are read before their turn, in the order of need.
 *
 * Who knows the order of a whole epoch can have many reads under way at once, which cold storage needs to be
 * fast. One thread walks along the rows that the ring will hand out and fetches their files (fetch.c) into
 * a strip of memory; the worker whose turn it is takes the bytes from there, waits while they are on
 * their way, or reads himself what nobody has begun or what went wrong, so that errors are the plain reader's.
 *
 * Warm files need none of this: by itself (auto) the thread sleeps, or was never started, until the workers' own
 * reads turn out to be cold, and sleeps again when what it fetches is warm.
 *
 * Where all files fit into the page cache they are read through it, so that the next epoch finds them warm. Of a
 * larger set only a share is, always the same samples, since files that come and go in turn would never be found there
 * again; the rest is read past it, for a fraction of the CPU time and without driving out anything.
 *
 * Invariants, under lock:
 *   (1) a serial is in entries[serial % WINDOW] from claim() until release(), or nowhere.
 *   (2) an entry belongs to the reader while COMING, to the worker of its row while HERE or LOST.
 *   (3) nothing is claimed that a worker has asked for before (`passed`): he would not ask again.
 */
#include "ahead.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/strip.h"
#include "source/depth.h"
#include "source/fetch.h"

enum {
    WINDOW = 1024,           /* rows ahead */
    MOST = 128,              /* files under way */
    BELLS = 16,              /* that workers wait at, by serial */
    FIRST_GUESS = 128 << 10, /* bytes of a file, before any was seen */
    /* Cold reads add 4 to the temperature, warm ones take 1 off: a fifth is the limit between the two. */
    COLD = 4,
    WAKE = 16,
    AWAKE = 64
};

enum state { NOTHING, COMING, HERE, LOST };

struct entry {
    enum state state;
    bool waited;  /* a worker is at the bell */
    bool dropped; /* nobody will come for it */
    bool taken;   /* somebody has come */
    int64_t serial, sample, piece;
    const uint8_t *bytes;
    size_t n;
};

struct ahead {
    struct ahead_options o;
    pthread_mutex_t lock;
    pthread_cond_t work, bells[BELLS];
    struct pool thread;
    struct entry *entries;
    struct strip strip;
    int64_t passed; /* rows before this serial were asked for */
    int waits;      /* workers who came too early, in this window of reads */
    bool started, stopped, poked, broken;
    stk_error why; /* of broken */
    atomic_bool awake;
    _Atomic int64_t cursor;       /* rows from this serial on were never claimed */
    atomic_int temperature;       /* how cold the last reads were */
    _Atomic int64_t files, bytes; /* that were read, for their mean size */

    /* Of the reader's thread alone. */
    struct fetch *fetch;
    struct foresight walk;
    struct walk shuffle;
    struct row_ahead {
        int64_t serial, sample;
    } rows[MOST];
    int n_rows, homeless; /* files under way that have no memory yet */
    struct depth depth;
    uint64_t window_ns;
    int64_t window_files, window_bytes;
    _Atomic int64_t direct_files, all_files;
    atomic_int depth_now; /* for explain() */
};

static struct entry *entry_of(struct ahead *a, int64_t serial)
{
    return &a->entries[serial % WINDOW];
}

static void poke(struct ahead *a)
{
    a->poked = true;
    pthread_cond_signal(&a->work);
}

/* The reader is called when there is room for many files, not for each. */
static void release(struct ahead *a, struct entry *e)
{
    if (e->piece >= 0)
        strip_give(&a->strip, e->piece);
    e->state = NOTHING;
    if (strip_room(&a->strip) >= a->strip.bytes / 4)
        poke(a);
}

/* ------------------------------------------------------------------ the reader: what comes */

static uint8_t *room(void *user, int64_t serial, size_t n)
{
    struct ahead *a = user;
    struct entry *e = entry_of(a, serial);
    pthread_mutex_lock(&a->lock);
    e->piece = e->dropped ? -1 : strip_take(&a->strip, n);
    uint8_t *at = e->piece < 0 ? NULL : strip_at(&a->strip, e->piece);
    pthread_mutex_unlock(&a->lock);
    if (at)
        a->homeless--;
    return at;
}

/* Reads that were warm need nobody ahead. */
static void feel(struct ahead *a, bool warm)
{
    if (a->o.reader == STK_READER_URING)
        return;
    const int t = atomic_load_explicit(&a->temperature, memory_order_relaxed) + (warm ? -1 : COLD);
    atomic_store_explicit(&a->temperature, t > AWAKE ? AWAKE : t, memory_order_relaxed);
    if (t <= 0)
        atomic_store(&a->awake, false);
}

static void arrived(void *user, int64_t serial, const uint8_t *bytes, size_t n, bool warm)
{
    struct ahead *a = user;
    struct entry *e = entry_of(a, serial);
    pthread_mutex_lock(&a->lock);
    if (e->piece < 0)
        a->homeless--;
    e->state = bytes ? HERE : LOST;
    e->bytes = bytes;
    e->n = n;
    if (e->waited)
        pthread_cond_broadcast(&a->bells[serial % BELLS]);
    if (e->dropped)
        release(a, e);
    pthread_mutex_unlock(&a->lock);
    a->window_files++;
    a->window_bytes += (int64_t)n;
    if (!bytes)
        return;
    feel(a, warm);
    atomic_fetch_add_explicit(&a->files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->bytes, (int64_t)n, memory_order_relaxed);
}

/* ------------------------------------------------------------------ the reader: what goes */

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
    a->rows[a->n_rows++] = (struct row_ahead){.serial = serial, .sample = p.index};
}

/* How many more files may be under way: within the depth, and with memory for each of them. */
static int64_t how_many(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
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
            release(a, e);
    }
}

static bool claim(struct ahead *a, const struct row_ahead *r)
{
    struct entry *e = entry_of(a, r->serial);
    if (r->serial < a->passed || e->state != NOTHING)
        return false;
    *e = (struct entry){.state = COMING, .serial = r->serial, .sample = r->sample, .piece = -1};
    return true;
}

static void fetch_row(struct ahead *a, const struct row_ahead *r)
{
    char path[PATH_MAX];
    struct fetch_want w = {.token = r->serial, .path = path, .direct = is_direct(a, r->sample)};
    w.max_bytes = (int64_t)(a->strip.bytes / 4) < a->o.max_bytes ? (int64_t)(a->strip.bytes / 4) : a->o.max_bytes;
    a->homeless++;
    if (!source_file(a->o.source, r->sample, &w.dir, path, sizeof path)) {
        arrived(a, r->serial, NULL, 0, false);
        return;
    }
    atomic_fetch_add_explicit(&a->all_files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->direct_files, w.direct && !fetch_refused(a->fetch), memory_order_relaxed);
    fetch_file(a->fetch, &w);
}

static void go_on(struct ahead *a)
{
    const int64_t n = how_many(a), born = a->walk.born;
    a->n_rows = 0;
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
    if (a->window_files < 64 || a->window_files < 4 * a->depth.now || ns < 10 * 1000 * 1000)
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

/* ------------------------------------------------------------------ the reader: its thread */

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
        .most = most_files(),
        .memory = a->strip.memory,
        .memory_bytes = a->strip.bytes,
        .user = a,
        .room = room,
        .done = arrived,
    };
    const int least = 2 * a->o.threads > 8 ? 2 * a->o.threads : 8;
    depth_init(&a->depth, least, o.most);
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

static void run(void *user, int i)
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

/* ------------------------------------------------------------------ workers */

/* Whether a row may be among those that are read ahead. */
static bool is_concerned(struct ahead *a, int64_t serial)
{
    return a && serial >= 0 && (atomic_load(&a->awake) || serial < atomic_load(&a->cursor));
}

bool ahead_take(struct ahead *a, int64_t serial, int64_t sample, const uint8_t **bytes, size_t *n)
{
    if (!is_concerned(a, serial))
        return false;
    struct entry *e = entry_of(a, serial);
    pthread_mutex_lock(&a->lock);
    if (a->passed <= serial)
        a->passed = serial + 1;
    const bool known = e->serial == serial && e->state != NOTHING;
    if (!known)
        poke(a); /* he has been left behind */
    if (!known || e->state == COMING)
        a->waits++;
    while (known && e->state == COMING) {
        e->waited = true;
        pthread_cond_wait(&a->bells[serial % BELLS], &a->lock);
    }
    const bool here = known && e->state == HERE && e->sample == sample;
    e->taken = e->taken || known;
    *bytes = e->bytes;
    *n = e->n;
    pthread_mutex_unlock(&a->lock);
    return here;
}

void ahead_done(struct ahead *a, int64_t serial)
{
    if (!is_concerned(a, serial))
        return;
    struct entry *e = entry_of(a, serial);
    pthread_mutex_lock(&a->lock);
    if (a->passed <= serial)
        a->passed = serial + 1;
    const bool known = e->serial == serial && e->state != NOTHING;
    if (known && !e->taken)
        feel(a, true); /* another way was found: what is read in vain is as good as warm */
    if (known && e->state == COMING)
        e->dropped = true;
    else if (known)
        release(a, e);
    pthread_mutex_unlock(&a->lock);
}

static void wake(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    if (!a->started && !a->broken) {
        a->started = true;
        stk_error e;
        if (pool_open(&a->thread, 1, run, NULL, a, &e) != STK_OK) {
            a->broken = true;
            a->why = e;
        }
    }
    if (!a->broken && !a->stopped) {
        atomic_store(&a->temperature, AWAKE);
        atomic_store(&a->awake, true);
        poke(a);
    }
    pthread_mutex_unlock(&a->lock);
}

void ahead_note(struct ahead *a, bool cold, size_t bytes)
{
    if (!a || atomic_load_explicit(&a->awake, memory_order_relaxed))
        return;
    const int t = atomic_load_explicit(&a->temperature, memory_order_relaxed);
    if (!cold && t == 0)
        return;
    atomic_store_explicit(&a->temperature, cold ? t + COLD : t - 1, memory_order_relaxed);
    if (!cold)
        return;
    atomic_fetch_add_explicit(&a->files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->bytes, (int64_t)bytes, memory_order_relaxed);
    if (t + COLD >= WAKE)
        wake(a);
}

/* ------------------------------------------------------------------ life */

int ahead_open(struct ahead **out, const struct ahead_options *o, stk_error *e)
{
    struct ahead *a = *out = calloc(1, sizeof *a);
    if (!a)
        return error_nomem(e, "open", sizeof *a);
    a->o = *o;
    a->shuffle.pass = -1;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->work, NULL);
    for (int i = 0; i < BELLS; i++)
        pthread_cond_init(&a->bells[i], NULL);
    a->entries = calloc(WINDOW, sizeof *a->entries);
    if (!a->entries || strip_init(&a->strip, o->memory, WINDOW) != 0) {
        ahead_close(a);
        *out = NULL;
        return error_nomem(e, "open", o->memory);
    }
    madvise(a->strip.memory, a->strip.bytes, MADV_DONTFORK); /* the kernel writes there, and not for a child */
    if (o->reader == STK_READER_URING)
        wake(a);
    return STK_OK;
}

void ahead_close(struct ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->stopped = true;
    poke(a);
    pthread_mutex_unlock(&a->lock);
    pool_close(&a->thread);
    strip_done(&a->strip);
    free(a->entries);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->work);
    for (int i = 0; i < BELLS; i++)
        pthread_cond_destroy(&a->bells[i]);
    free(a);
}

/* ------------------------------------------------------------------ what is said of it */

bool ahead_probes(const struct ahead *a)
{
    return a && a->o.reader != STK_READER_URING;
}

size_t ahead_held(struct ahead *a)
{
    if (!a)
        return 0;
    pthread_mutex_lock(&a->lock);
    const size_t held = a->started && !a->broken ? a->strip.bytes : 0;
    pthread_mutex_unlock(&a->lock);
    return held;
}

void ahead_explain(struct ahead *a, struct buf *to)
{
    pthread_mutex_lock(&a->lock);
    const int64_t all = atomic_load(&a->all_files), direct = atomic_load(&a->direct_files);
    if (a->broken)
        buf_printf(to, "reader     pread (%s)\n", a->why.reason);
    else if (!atomic_load(&a->awake))
        buf_printf(to, "reader     pread (files are in the page cache; io_uring when they are not)\n");
    else
        buf_printf(to, "reader     io_uring, %d files at a time, %.0f %% of them past the page cache\n",
                   atomic_load(&a->depth_now), all ? 100.0 * (double)direct / (double)all : 0.0);
    pthread_mutex_unlock(&a->lock);
}
