/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "batch/ring.h"
#include "test.h"

/* Every epoch has `batches` batches of `rows` rows, the last one short by `missing`. */
struct shape {
    int64_t batches, rows, missing;
};

static int64_t shape_batches(void *user, int64_t epoch)
{
    (void)epoch;
    return ((struct shape *)user)->batches;
}

static void shape_span(void *user, struct place at, int64_t *first, int64_t *rows)
{
    const struct shape *s = user;
    *first = at.batch * s->rows;
    *rows = s->rows - (at.batch == s->batches - 1 ? s->missing : 0);
}

static struct ring ring;
static struct depot *depot;
static struct pool pool;

static void work(void *user, int i)
{
    (void)user;
    struct ticket t;
    while (ring_take(&ring, i, 1 + i, &t)) {
        for (int64_t row = t.row; row < t.row + t.rows; row++) {
            const int64_t value = t.epoch * 1000 + t.first + row;
            memcpy(batch_row(t.to, 0, row), &value, sizeof value);
        }
        ring_give(&ring, &t);
    }
}

static void stop(void *user)
{
    (void)user;
    ring_stop(&ring);
}

static void open_ring(struct shape *s, int threads, int64_t slots)
{
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s->rows, (int)slots + 1, NULL, NULL), STK_OK);
    const struct ring_plan plan = {.user = s, .batches = shape_batches, .span = shape_span};
    CHECK_EQ(ring_init(&ring, threads, 1 + slots / 2, slots, depot, plan, NULL), STK_OK);
    CHECK_EQ(pool_open(&pool, threads, work, stop, NULL, NULL), STK_OK);
}

static void close_ring(void)
{
    ring_stop(&ring);
    pool_close(&pool);
    ring_done(&ring);
    ring_done(&ring);
    depot_close(depot);
}

static int next(struct stk_batch **b, int64_t *rows)
{
    struct bad *bads = NULL;
    return ring_deliver(&ring, -1, b, rows, &bads);
}

/* Reads one epoch and checks that all rows come, in order. */
static void read_epoch(const struct shape *s, int64_t epoch)
{
    int64_t expect = 0, rows = 0, batches = 0;
    struct stk_batch *b = NULL;
    int rc;
    while ((rc = next(&b, &rows)) == STK_OK) {
        CHECK_EQ(b->epoch, epoch);
        for (int64_t i = 0; i < rows; i++) {
            int64_t value;
            memcpy(&value, batch_row(b, 0, i), sizeof value);
            CHECK_EQ(value, epoch * 1000 + expect++);
        }
        batches++;
        stk_release(b);
    }
    CHECK_EQ(rc, STK_END);
    CHECK_EQ(batches, s->batches);
    CHECK_EQ(expect, s->batches * s->rows - s->missing);
}

static void in_order_through_epochs(void)
{
    struct shape s = {.batches = 7, .rows = 5, .missing = 2};
    for (int threads = 1; threads <= 8; threads *= 2)
        for (int64_t slots = 1; slots <= 20; slots += 6) {
            open_ring(&s, threads, slots);
            for (int64_t epoch = 0; epoch < 5; epoch++)
                read_epoch(&s, epoch);
            close_ring();
        }
}

static void empty_batches_and_epochs(void)
{
    struct shape empty_last = {.batches = 2, .rows = 4, .missing = 4}, none = {.batches = 0, .rows = 4};
    open_ring(&empty_last, 2, 2);
    read_epoch(&empty_last, 0);
    close_ring();
    open_ring(&none, 2, 2);
    struct stk_batch *b = NULL;
    int64_t rows;
    CHECK_EQ(next(&b, &rows), STK_END);
    CHECK_EQ(next(&b, &rows), STK_END);
    CHECK_EQ(ring_place(&ring).epoch, 2);
    close_ring();
}

static void restarts_anywhere(void)
{
    struct shape s = {.batches = 7, .rows = 5};
    open_ring(&s, 3, 4);
    struct stk_batch *b = NULL;
    int64_t rows;
    for (int64_t epoch = 10; epoch < 40; epoch++) {
        ring_restart(&ring, (struct place){.epoch = epoch}, NULL, NULL);
        CHECK_EQ(next(&b, &rows), STK_OK);
        CHECK_EQ(b->epoch, epoch);
        stk_release(b);
    }
    ring_restart(&ring, (struct place){.epoch = 3}, NULL, NULL);
    read_epoch(&s, 3);
    close_ring();
}

static void time_out_and_stop(void)
{
    struct shape s = {.batches = 3, .rows = 2};
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, 2, 2, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 2, 2, 2, depot, (struct ring_plan){&s, shape_batches, shape_span}, NULL), STK_OK);
    struct stk_batch *b = NULL;
    struct bad *bads;
    int64_t rows;
    CHECK_EQ(ring_deliver(&ring, 0, &b, &rows, &bads), STK_AGAIN); /* nobody works */
    CHECK_EQ(ring_deliver(&ring, 20, &b, &rows, &bads), STK_AGAIN);
    ring_stop(&ring);
    CHECK_EQ(ring_deliver(&ring, -1, &b, &rows, &bads), STK_STOPPED);
    ring_done(&ring);
    depot_close(depot);
}

static void *no_alloc(void *user, size_t bytes)
{
    (void)user, (void)bytes;
    return NULL;
}

static void no_free(void *user, void *p, size_t bytes)
{
    (void)user, (void)p, (void)bytes;
}

static void no_memory_is_said(void)
{
    struct shape s = {.batches = 3, .rows = 2};
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    const stk_allocator none = {.alloc = no_alloc, .free = no_free};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, 2, 2, &none, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 2, 2, 2, depot, (struct ring_plan){&s, shape_batches, shape_span}, NULL), STK_OK);
    CHECK_EQ(pool_open(&pool, 2, work, stop, NULL, NULL), STK_OK);
    struct stk_batch *b = NULL;
    int64_t rows;
    CHECK_EQ(next(&b, &rows), STK_ENOMEM);
    close_ring();
}

static void take_one(void)
{
    struct stk_batch *b = NULL;
    int64_t rows;
    if (next(&b, &rows) == STK_OK)
        stk_release(b);
}

/* Whether all batches that there is room for are ready, so that nobody waits for the next one. */
static bool is_full(void)
{
    pthread_mutex_lock(&ring.lock);
    const bool full = ring.pace.idle && ring.in_flight == 0;
    pthread_mutex_unlock(&ring.lock);
    return full;
}

/* A caller who comes only when the ring is full needs one thread; one who runs it dry gets all back. */
static void threads_follow_the_caller(void)
{
    struct shape s = {.batches = 1000, .rows = 3};
    open_ring(&s, 3, 4);
    for (int i = 0; i < 500 && ring_pace(&ring).active > 1; i++) {
        while (!is_full())
            sched_yield();
        take_one();
    }
    CHECK_EQ(ring_pace(&ring).active, 1);
    while (ring_pace(&ring).active < 3)
        take_one();
    close_ring();
}

static atomic_int got;

static void consume(void *user, int i)
{
    (void)user, (void)i;
    struct stk_batch *b = NULL;
    int64_t rows;
    while (next(&b, &rows) != STK_STOPPED) {
        if (b)
            got++;
        stk_release(b);
        b = NULL;
        if (got > 300)
            ring_stop(&ring);
    }
}

static void several_callers(void)
{
    struct shape s = {.batches = 5, .rows = 3, .missing = 1};
    open_ring(&s, 3, 3);
    struct pool callers;
    CHECK_EQ(pool_open(&callers, 4, consume, stop, NULL, NULL), STK_OK);
    pool_close(&callers);
    CHECK(got > 300);
    close_ring();
}

struct seen {
    int64_t n, serial[100], epoch[100], position[100];
};

static void see(void *user, int64_t serial, int64_t epoch, int64_t position)
{
    struct seen *s = user;
    s->serial[s->n] = serial;
    s->epoch[s->n] = epoch;
    s->position[s->n++] = position;
}

/* What is foreseen is handed out, under the same serial; what a restart drops keeps its own. */
static void foresight(void)
{
    struct shape s = {.batches = 3, .rows = 4, .missing = 1};
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    const struct ring_plan plan = {.user = &s, .batches = shape_batches, .span = shape_span};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s.rows, 11, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 1, 10, 10, depot, plan, NULL), STK_OK);
    static struct seen seen;
    struct foresight walk = {0};
    struct ticket t;
    CHECK(ring_take(&ring, 0, 2, &t));
    CHECK_EQ(ring_foresee(&ring, &walk, 15, see, &seen), 15);
    CHECK(seen.serial[0] == 2 && seen.position[0] == 2 && seen.serial[14] == 16);
    ring_give(&ring, &t);
    for (int64_t i = 0; i < 15; i += t.rows) {
        CHECK(ring_take(&ring, 0, 1, &t));
        CHECK(t.serial == seen.serial[i] && t.epoch == seen.epoch[i] && t.first + t.row == seen.position[i]);
        ring_give(&ring, &t);
    }
    CHECK(ring_take(&ring, 0, 3, &t)); /* ahead of the walk, which then begins behind it */
    ring_give(&ring, &t);
    seen.n = 0;
    CHECK_EQ(ring_foresee(&ring, &walk, 5, see, &seen), 5);
    CHECK_EQ(seen.serial[0], t.serial + t.rows);
    ring_restart(&ring, (struct place){.epoch = 9, .batch = 1}, NULL, NULL);
    CHECK_EQ(ring_foresee(&ring, &walk, 1, see, &seen), 1);
    CHECK(walk.born == seen.serial[4] + 1 && seen.serial[5] == walk.born && seen.epoch[5] == 9 &&
          seen.position[5] == 4);
    CHECK(ring_take(&ring, 0, 1, &t));
    CHECK_EQ(t.serial, walk.born);
    ring_give(&ring, &t);
    s = (struct shape){.batches = 1}; /* batches without rows: it comes to an end */
    ring_restart(&ring, (struct place){0}, NULL, NULL);
    CHECK_EQ(ring_foresee(&ring, &walk, 5, see, &seen), 0);
    ring_stop(&ring);
    ring_done(&ring);
    depot_close(depot);
}

static int64_t known_from;

/* The last epochs alone are known, as where the caller gives orders. */
static int64_t known_batches(void *user, int64_t epoch)
{
    return epoch < known_from ? -1 : shape_batches(user, epoch);
}

/* An epoch that was delivered is over, also for the next batch to begin: its order may be gone by then. */
static void epochs_are_forgotten(void)
{
    struct shape s = {.batches = 1, .rows = 4};
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    const struct ring_plan plan = {.user = &s, .batches = known_batches, .span = shape_span};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s.rows, 2, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 1, 1, 1, depot, plan, NULL), STK_OK);
    static struct seen seen;
    struct foresight walk = {0};
    struct stk_batch *b = NULL;
    struct ticket t;
    int64_t rows;
    known_from = 0;
    CHECK_EQ(ring_foresee(&ring, &walk, 4, see, &seen), 4);
    CHECK(ring_take(&ring, 0, 4, &t));
    ring_give(&ring, &t);
    CHECK_EQ(next(&b, &rows), STK_OK);
    stk_release(b);
    CHECK_EQ(next(&b, &rows), STK_END);
    known_from = 1;
    CHECK_EQ(ring_foresee(&ring, &walk, 4, see, &seen), 4);
    CHECK_EQ(seen.epoch[4], 1);
    struct bad *bads = NULL;
    CHECK_EQ(ring_deliver(&ring, 0, &b, &rows, &bads), STK_AGAIN);
    ring_stop(&ring);
    ring_done(&ring);
    depot_close(depot);
}

static void restart(void *user, int i)
{
    (void)user, (void)i;
    ring_restart(&ring, (struct place){.epoch = 9}, NULL, NULL);
}

/* A batch whose rows came back unmade, since they are to be dropped, goes to nobody. */
static void nothing_is_delivered_while_dropping(void)
{
    struct shape s = {.batches = 3, .rows = 4};
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    const struct ring_plan plan = {.user = &s, .batches = shape_batches, .span = shape_span};
    struct stk_batch *b = NULL;
    struct bad *bads = NULL;
    struct ticket first, second;
    int64_t rows;
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s.rows, 5, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 1, 4, 4, depot, plan, NULL), STK_OK);
    CHECK(ring_take(&ring, 0, 4, &first) && ring_take(&ring, 0, 4, &second));
    CHECK_EQ(pool_open(&pool, 1, restart, NULL, NULL, NULL), STK_OK);
    while (!ring_wants_back(&ring))
        sched_yield();
    ring_give(&ring, &first);
    CHECK_EQ(ring_deliver(&ring, 0, &b, &rows, &bads), STK_AGAIN);
    ring_give(&ring, &second);
    pool_close(&pool);
    CHECK_EQ(ring_place(&ring).epoch, 9);
    ring_stop(&ring);
    ring_done(&ring);
    depot_close(depot);
}

int main(int argc, char **argv)
{
    TESTS(T(in_order_through_epochs), T(empty_batches_and_epochs), T(restarts_anywhere), T(time_out_and_stop),
          T(no_memory_is_said), T(threads_follow_the_caller), T(several_callers), T(foresight), T(epochs_are_forgotten),
          T(nothing_is_delivered_while_dropping))
}
