/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead_reader.c -- reads files before their turn: the side of the thread that reads.
 *
 *     wanted -> claim -> file or extent -> (opened -> read) -> arrived
 *
 * The thread sleeps when there is no row to read, no memory, or no need.
 */
#include <sys/resource.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "read/ahead_inner.h"

/* ------------------------------------------------------------------ depth */

enum { HOLD = 32, CALM = 8 }; /* windows */

void depth_init(struct depth *d, int min, int start, int max)
{
    *d = (struct depth){.now = start < max ? start : max, .min = min < max ? min : max, .max = max};
}

static void grow(struct depth *d, double rate)
{
    const int next = 2 * d->now < d->max ? 2 * d->now : d->max;
    d->before = next > d->now ? d->now : 0;
    d->before_rate = rate;
    d->now = next;
}

static void shrink(struct depth *d)
{
    d->before = 0;
    if (++d->calm < CALM)
        return;
    d->calm = 0;
    d->now -= (d->now - d->min + 7) / 8;
}

void depth_window(struct depth *d, double rate, bool waited)
{
    if (!waited) {
        shrink(d);
        return;
    }
    d->calm = 0;
    if (d->before && rate < 1.05 * d->before_rate) {
        d->now = d->before;
        d->before = 0;
        d->hold = HOLD;
    } else if (d->hold > 0) {
        d->hold--;
    } else {
        grow(d, rate);
    }
}

/* A window of reads is long enough to compare two depths. */
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

/* ------------------------------------------------------------------ claiming rows */

static int64_t mean_bytes(struct ahead *a)
{
    const int64_t n = atomic_load_explicit(&a->files, memory_order_relaxed);
    return n ? atomic_load_explicit(&a->bytes, memory_order_relaxed) / n + 1 : FIRST_GUESS;
}

/* The rows fit into the depth, and into memory. Only as much memory is used as the depth needs: going through the whole
 * queue in turn made reading a fifth slower. */
int ahead_wanted(struct ahead *a)
{
    if (!atomic_load(&a->awake))
        return -1;
    const size_t enough = 4 * (size_t)a->depth.now * (size_t)mean_bytes(a);
    pthread_mutex_lock(&a->lock);
    fifo_limit(&a->fifo, enough > LIMIT_LEAST ? enough : LIMIT_LEAST);
    const size_t free_bytes = fifo_room(&a->fifo);
    pthread_mutex_unlock(&a->lock);
    /* Workers that get a row from now on have to report it, also if the thread falls asleep meanwhile. */
    atomic_store(&a->cursor, INT64_MAX);
    const int64_t fit = (int64_t)(free_bytes / 2) / mean_bytes(a) - a->homeless;
    const int64_t deep = a->depth.now - fetch_under_way(a->fetch), n = fit < deep ? fit : deep;
    return n < 0 ? 0 : (int)n;
}

/* Drops the rows that were foreseen before the ring was restarted. */
static void forget(struct ahead *a, int64_t born)
{
    for (int i = 0; i < WINDOW; i++) {
        struct entry *e = &a->entries[i];
        if (e->state == NOTHING || e->row.serial >= born)
            continue;
        if (e->state == COMING)
            e->dropped = true;
        else
            ahead_release(a, e);
    }
}

static bool claim(struct ahead *a, const struct ahead_row *r)
{
    struct entry *e = ahead_entry(a, r->serial);
    if (r->serial < a->passed || e->state != NOTHING)
        return false;
    *e = (struct entry){.state = COMING, .row = *r, .slot = -1};
    return true;
}

int ahead_claim(struct ahead *a, struct ahead_row *rows, int n, int64_t born, int64_t next)
{
    int claimed = 0;
    pthread_mutex_lock(&a->lock);
    if (a->born != born)
        forget(a, born);
    a->born = born;
    for (int i = 0; i < n; i++)
        if (claim(a, &rows[i]))
            rows[claimed++] = rows[i];
    atomic_store(&a->cursor, next);
    pthread_mutex_unlock(&a->lock);
    return claimed;
}

/* ------------------------------------------------------------------ reading them */

static size_t read_bytes(const struct ahead_file *f)
{
    size_t sum = f->ranges.n > 0 ? 0 : f->n;
    for (int i = 0; i < f->ranges.n && f->bytes; i++)
        sum += (size_t)(f->ranges.at[i].to - f->ranges.at[i].from);
    return sum;
}

static void arrived(struct ahead *a, const struct fetch_event *v)
{
    struct entry *e = ahead_entry(a, v->token);
    pthread_mutex_lock(&a->lock);
    if (e->slot < 0)
        a->homeless--;
    e->state = v->bytes ? HERE : LOST;
    e->file.bytes = v->bytes;
    e->file.n = v->bytes ? v->size : 0;
    const size_t read = e->file.read = read_bytes(&e->file);
    const bool waited = e->waited;
    if (e->dropped)
        ahead_release(a, e);
    pthread_mutex_unlock(&a->lock);
    if (waited) /* after unlocking: the worker would only have to wait for the lock */
        pthread_cond_broadcast(&a->bells[v->token % BELLS]);
    a->window_files++;
    a->window_bytes += (int64_t)read;
    if (!v->bytes)
        return;
    ahead_feel(a, v->warm);
    atomic_fetch_add_explicit(&a->files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->bytes, (int64_t)v->size, memory_order_relaxed);
}

bool ahead_is_direct(struct ahead *a, int64_t sample)
{
    if (fetch_refused(a->fetch))
        return false;
    if (a->o.reader == STK_READER_URING)
        return true;
    const double share = (double)a->o.cache_bytes / ((double)mean_bytes(a) * (double)a->o.samples);
    return (double)(hash_mix((uint64_t)sample, 0x636f6c64) >> 11) * 0x1p-53 >= share;
}

static int64_t max_bytes(const struct ahead *a)
{
    const int64_t fair = (int64_t)(a->fifo.bytes / 4);
    return fair < a->o.max_bytes ? fair : a->o.max_bytes;
}

static void count_row(struct ahead *a, bool direct)
{
    a->homeless++;
    atomic_fetch_add_explicit(&a->all_files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->direct_files, direct, memory_order_relaxed);
}

void ahead_file(struct ahead *a, const struct ahead_row *r, int dir, const char *path, bool direct)
{
    count_row(a, direct);
    fetch_file(a->fetch,
               &(struct fetch_want){
                   .token = r->serial, .dir = dir, .path = path, .max_bytes = max_bytes(a), .direct = direct});
}

void ahead_extent(struct ahead *a, const struct ahead_row *r, const struct extent *x)
{
    if (!x || x->bytes > (size_t)max_bytes(a)) {
        a->homeless++;
        arrived(a, &(struct fetch_event){.token = r->serial});
        return;
    }
    count_row(a, x->direct);
    fetch_extent(a->fetch, r->serial, x);
}

/* Memory for an open file. NULL: none now, or the row was dropped. */
static uint8_t *room(struct ahead *a, const struct fetch_event *v)
{
    struct entry *e = ahead_entry(a, v->token);
    pthread_mutex_lock(&a->lock);
    e->slot = e->dropped ? -1 : fifo_take(&a->fifo, v->n);
    uint8_t *at = e->slot < 0 ? NULL : fifo_at(&a->fifo, e->slot);
    pthread_mutex_unlock(&a->lock);
    if (at)
        a->homeless--;
    return at;
}

bool ahead_opened(struct ahead *a, struct ahead_open *out)
{
    struct fetch_event *v = &out->event;
    while (fetch_next(a->fetch, v)) {
        if (v->kind == FETCH_DONE) {
            arrived(a, v);
        } else if (!v->by_range) {
            fetch_read(a->fetch, v, room(a, v), NULL);
        } else {
            out->row = ahead_entry(a, v->token)->row; /* the entry is ours while COMING */
            return true;
        }
    }
    return false;
}

void ahead_read(struct ahead *a, const struct ahead_open *o, const struct ranges *ranges)
{
    const struct fetch_event *v = &o->event;
    const bool some = ranges->n > 0 && ranges->at[ranges->n - 1].to <= v->size;
    if (some)
        ahead_entry(a, v->token)->file.ranges = *ranges;
    atomic_fetch_add_explicit(&a->range_files, some, memory_order_relaxed);
    fetch_read(a->fetch, v, room(a, v), some ? ranges : NULL);
}

/* ------------------------------------------------------------------ life */

/* Descriptors belong to the whole program, which leaves us a small share. */
static int most_files(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur / 8 >= AHEAD_MOST)
        return AHEAD_MOST;
    return r.rlim_cur < 8 ? 1 : (int)(r.rlim_cur / 8);
}

bool ahead_begin(struct ahead *a)
{
    stk_error e;
    const int files = most_files(), most = a->o.most > 0 && a->o.most < files ? a->o.most : files;
    const int least = 2 * a->o.threads > 8 ? 2 * a->o.threads : 8;
    depth_init(&a->depth, least, 4 * least, most);
    atomic_store_explicit(&a->depth_now, a->depth.now, memory_order_relaxed);
    a->window_ns = now_ns();
    if (fetch_open(&a->fetch, most, a->fifo.memory, a->fifo.bytes, &e) == STK_OK)
        return true;
    ahead_give_up(a, &e);
    return false;
}

void ahead_end(struct ahead *a)
{
    fetch_close(a->fetch);
    a->fetch = NULL;
}

void ahead_give_up(struct ahead *a, const stk_error *why)
{
    atomic_store(&a->awake, false);
    pthread_mutex_lock(&a->lock);
    a->broken = true;
    a->why = *why;
    pthread_mutex_unlock(&a->lock);
}

static bool sleep_until_needed(struct ahead *a)
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

bool ahead_wait(struct ahead *a)
{
    bool more;
    if (fetch_under_way(a->fetch) == 0) {
        more = sleep_until_needed(a);
    } else {
        more = fetch_wait(a->fetch);
        if (!more) {
            stk_error e;
            error_set(&e, STK_EIO, "read", "io_uring failed while it was in use");
            ahead_give_up(a, &e);
            struct ahead_open open;
            while (ahead_opened(a, &open)) /* all of them have ended */
                ;
        }
    }
    adjust(a);
    return more;
}
