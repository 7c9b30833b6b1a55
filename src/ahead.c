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
 *   (1) a serial is in entries[serial % WINDOW] from claim() until ahead_release(), or nowhere.
 *   (2) an entry belongs to the reader while COMING, to the worker of its row while HERE or LOST.
 *   (3) nothing is claimed that a worker has asked for before (`passed`): he would not ask again.
 */
#include "ahead_inner.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"

struct entry *ahead_entry(struct ahead *a, int64_t serial)
{
    return &a->entries[serial % WINDOW];
}

/* There is something to do for the reader. */
static void poke(struct ahead *a)
{
    a->poked = true;
    pthread_cond_signal(&a->work);
}

/* The reader is called when there is room for many files, not for each. */
void ahead_release(struct ahead *a, struct entry *e)
{
    if (e->piece >= 0)
        strip_give(&a->strip, e->piece);
    e->state = NOTHING;
    if (strip_room(&a->strip) >= a->strip.limit / 4)
        poke(a);
}

/* Reads that were warm need nobody ahead. */
void ahead_feel(struct ahead *a, bool warm)
{
    if (a->o.reader == STK_READER_URING)
        return;
    const int t = atomic_load_explicit(&a->temperature, memory_order_relaxed) + (warm ? -1 : COLD);
    atomic_store_explicit(&a->temperature, t > AWAKE ? AWAKE : t, memory_order_relaxed);
    if (t <= 0)
        atomic_store(&a->awake, false);
}

/* ------------------------------------------------------------------ workers */

/* Whether a row may be among those that are read ahead. */
static bool is_concerned(struct ahead *a, int64_t serial)
{
    return a && serial >= 0 && (atomic_load(&a->awake) || serial < atomic_load(&a->cursor));
}

bool ahead_take(struct ahead *a, int64_t serial, int64_t sample, struct ahead_file *out)
{
    if (!is_concerned(a, serial))
        return false;
    struct entry *e = ahead_entry(a, serial);
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
    const bool here = known && e->state == HERE && e->pick.index == sample;
    e->taken = e->taken || known;
    if (here)
        *out = e->file;
    pthread_mutex_unlock(&a->lock);
    return here;
}

void ahead_done(struct ahead *a, int64_t serial)
{
    if (!is_concerned(a, serial))
        return;
    struct entry *e = ahead_entry(a, serial);
    pthread_mutex_lock(&a->lock);
    if (a->passed <= serial)
        a->passed = serial + 1;
    const bool known = e->serial == serial && e->state != NOTHING;
    if (known && !e->taken)
        ahead_feel(a, true); /* another way was found: what is read in vain is as good as warm */
    if (known && e->state == COMING)
        e->dropped = true;
    else if (known)
        ahead_release(a, e);
    pthread_mutex_unlock(&a->lock);
}

static void wake(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    if (!a->started && !a->broken) {
        a->started = true;
        stk_error e;
        if (pool_open(&a->thread, 1, ahead_reader, NULL, a, &e) != STK_OK) {
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
    madvise(a->strip.memory, a->strip.bytes, MADV_HUGEPAGE); /* few pages to pin, and few pieces to a read */
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
    const double percent = all ? 100.0 / (double)all : 0;
    if (a->broken)
        buf_printf(to, "reader     pread (%s)\n", a->why.reason);
    else if (!atomic_load(&a->awake))
        buf_printf(to, "reader     pread (files are in the page cache; io_uring when they are not)\n");
    else
        buf_printf(to,
                   "reader     io_uring, %d samples at a time, %.0f %% of them past the page cache, %.0f %% in part\n",
                   atomic_load(&a->depth_now), percent * (double)direct, percent * (double)atomic_load(&a->part_files));
    pthread_mutex_unlock(&a->lock);
}
