/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c -- reads files before their turn: the workers' side.
 *
 * The order of a whole epoch is known, so many reads can be under way at once. Cold storage needs that to be fast. One
 * thread follows the rows that the ring will hand out and fetches their files (fetch.c) into a queue of memory
 * (fifo.c). The worker that gets such a row takes the bytes from there, or waits while they are being read. If they
 * were not claimed, or reading failed, the worker reads the file with pread, so that all errors are pread's.
 *
 * Warm files need none of this. With reader=auto the thread is started when the workers' own reads turn out to be
 * cold, and sleeps again when the files that it fetches are warm.
 *
 * If all files fit into the page cache, they are read through it, so that the next epoch finds them there. If they do
 * not, only a share of them goes through it, always the same samples: otherwise files would evict each other before
 * they are read again. The rest bypasses it, which takes a fraction of the CPU time and evicts nothing.
 *
 * Invariants, under lock:
 *   (1) A row is in entries[serial % WINDOW] from ahead_claim() until ahead_release(), and nowhere else.
 *   (2) An entry belongs to the thread while COMING, and to the worker of its row while HERE or LOST.
 *   (3) No row is claimed that a worker has already asked for (`passed`), since the worker would not ask again.
 */
#include "read/ahead_inner.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"

struct entry *ahead_entry(struct ahead *a, int64_t serial)
{
    return &a->entries[serial % WINDOW];
}

/* Wakes the thread: there is something to do. */
static void poke(struct ahead *a)
{
    a->poked = true;
    pthread_cond_signal(&a->work);
}

/* Wakes the thread when there is room for many files, not after each one. */
void ahead_release(struct ahead *a, struct entry *e)
{
    if (e->slot >= 0)
        fifo_give(&a->fifo, e->slot);
    e->state = NOTHING;
    if (fifo_room(&a->fifo) >= a->fifo.limit / 4)
        poke(a);
}

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

/* Whether a row may have been claimed. */
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
    const bool known = e->row.serial == serial && e->state != NOTHING;
    if (!known)
        poke(a); /* the workers are faster than the thread */
    if (!known || e->state == COMING)
        a->waits++;
    while (known && e->state == COMING) {
        e->waited = true;
        pthread_cond_wait(&a->bells[serial % BELLS], &a->lock);
    }
    const bool here = known && e->state == HERE && (int64_t)e->row.draw.sample == sample;
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
    const bool known = e->row.serial == serial && e->state != NOTHING;
    if (known && !e->taken)
        ahead_feel(a, true); /* the worker did not need the file: reading it ahead helps as little as if it were warm */
    if (known && e->state == COMING)
        e->dropped = true;
    else if (known)
        ahead_release(a, e);
    pthread_mutex_unlock(&a->lock);
}

static void wake(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    if (!a->broken && !a->stopped) {
        atomic_store(&a->temperature, AWAKE);
        atomic_store(&a->awake, true);
        poke(a);
    }
    pthread_mutex_unlock(&a->lock);
}

void ahead_report(struct ahead *a, bool cold, size_t bytes)
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

bool ahead_probes(const struct ahead *a)
{
    return a && a->o.reader != STK_READER_URING;
}

bool ahead_starts(struct ahead *a)
{
    return a && atomic_load_explicit(&a->awake, memory_order_relaxed) && !atomic_load(&a->started) &&
           !atomic_exchange(&a->started, true);
}

/* ------------------------------------------------------------------ life */

int ahead_open(struct ahead **out, const struct ahead_options *o, stk_error *e)
{
    struct ahead *a = *out = calloc(1, sizeof *a);
    if (!a)
        return error_nomem(e, "open", sizeof *a);
    a->o = *o;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->work, NULL);
    for (int i = 0; i < BELLS; i++)
        pthread_cond_init(&a->bells[i], NULL);
    a->entries = calloc(WINDOW, sizeof *a->entries);
    if (!a->entries || fifo_init(&a->fifo, o->memory, WINDOW) != 0) {
        ahead_close(a);
        *out = NULL;
        return error_nomem(e, "open", o->memory);
    }
    madvise(a->fifo.memory, a->fifo.bytes, MADV_DONTFORK); /* the kernel writes there; a child must not share it */
    madvise(a->fifo.memory, a->fifo.bytes, MADV_HUGEPAGE); /* fewer pages to pin, and fewer segments per read */
    if (o->reader == STK_READER_URING)
        wake(a);
    return STK_OK;
}

void ahead_stop(struct ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->stopped = true;
    poke(a);
    pthread_mutex_unlock(&a->lock);
}

void ahead_close(struct ahead *a)
{
    if (!a)
        return;
    fifo_done(&a->fifo);
    free(a->entries);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->work);
    for (int i = 0; i < BELLS; i++)
        pthread_cond_destroy(&a->bells[i]);
    free(a);
}

/* ------------------------------------------------------------------ statistics */

size_t ahead_held(struct ahead *a)
{
    if (!a)
        return 0;
    pthread_mutex_lock(&a->lock);
    const size_t held = atomic_load(&a->started) && !a->broken ? a->fifo.bytes : 0;
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
                   "reader     io_uring, %d samples at a time; %.0f %% of them bypass the page cache, %.0f %% are read "
                   "in part\n",
                   atomic_load(&a->depth_now), percent * (double)direct,
                   percent * (double)atomic_load(&a->range_files));
    pthread_mutex_unlock(&a->lock);
}
