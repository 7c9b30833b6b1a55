/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "batch/ring.h"
#include "test.h"

/* An order whose epochs have `batches` batches of `rows` rows, the last one short by `missing`. */
static struct order order_of(int64_t batches, int64_t rows, int64_t missing)
{
    const int64_t n = batches * rows - missing;
    return (struct order){.n = n, .samples = n, .batch_size = rows, .world = 1, .resumed_epoch = -1};
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

static void open_ring(struct order *o, int threads, int64_t slots)
{
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, o->batch_size, (int)slots + 1, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, threads, 1 + slots / 2, slots, depot, o, NULL), STK_OK);
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

static int64_t epoch_now(void)
{
    int64_t position;
    return ring_place(&ring, &position).epoch;
}

/* Reads one epoch and checks that all rows come, in order. */
static void read_epoch(const struct order *o, int64_t epoch)
{
    int64_t rows = 0, batches = 0;
    struct stk_batch *b = NULL;
    int rc;
    while ((rc = next(&b, &rows)) == STK_OK) {
        const struct span span = order_span(o, epoch, batches++);
        CHECK(b->epoch == epoch && rows == span.rows);
        for (int64_t i = 0; i < rows; i++) {
            int64_t value;
            memcpy(&value, batch_row(b, 0, i), sizeof value);
            CHECK_EQ(value, epoch * 1000 + span.first + i);
        }
        stk_release(b);
    }
    CHECK_EQ(rc, STK_END);
    CHECK_EQ(batches, order_batches(o, epoch));
}

static void in_order_through_epochs(void)
{
    struct order s = order_of(7, 5, 2);
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
    struct order empty_last = {.n = 12, .samples = 12, .batch_size = 4, .world = 2, .rank = 1, .resumed_epoch = -1};
    struct order none = order_of(0, 4, 0);
    open_ring(&empty_last, 2, 2);
    read_epoch(&empty_last, 0);
    close_ring();
    open_ring(&none, 2, 2);
    struct stk_batch *b = NULL;
    int64_t rows;
    CHECK_EQ(next(&b, &rows), STK_END);
    CHECK_EQ(next(&b, &rows), STK_END);
    CHECK_EQ(epoch_now(), 2);
    close_ring();
}

static void restarts_anywhere(void)
{
    struct order s = order_of(7, 5, 0);
    open_ring(&s, 3, 4);
    struct stk_batch *b = NULL;
    int64_t rows;
    for (int64_t epoch = 10; epoch < 40; epoch++) {
        ring_restart(&ring, epoch, 0);
        CHECK_EQ(next(&b, &rows), STK_OK);
        CHECK_EQ(b->epoch, epoch);
        stk_release(b);
    }
    ring_restart(&ring, 3, 0);
    read_epoch(&s, 3);
    close_ring();
}

static void time_out_and_stop(void)
{
    struct order s = order_of(3, 2, 0);
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, 2, 2, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 2, 2, 2, depot, &s, NULL), STK_OK);
    struct stk_batch *b = NULL;
    struct bad *bads;
    int64_t rows;
    CHECK_EQ(ring_deliver(&ring, 0, &b, &rows, &bads), STK_AGAIN); /* there are no workers */
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
    struct order s = order_of(3, 2, 0);
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    const stk_allocator none = {.alloc = no_alloc, .free = no_free};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, 2, 2, &none, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 2, 2, 2, depot, &s, NULL), STK_OK);
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

/* Whether all batches that fit are ready, so that the next one is delivered without waiting. */
static bool is_full(void)
{
    pthread_mutex_lock(&ring.lock);
    const bool full = ring.pace.idle && ring.in_flight == 0;
    pthread_mutex_unlock(&ring.lock);
    return full;
}

/* If the caller comes only when the ring is full, one thread is enough. If it empties the ring, all of them work. */
static void threads_follow_the_caller(void)
{
    struct order s = order_of(1000, 3, 0);
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
    struct order s = order_of(5, 3, 1);
    open_ring(&s, 3, 3);
    struct pool callers;
    CHECK_EQ(pool_open(&callers, 4, consume, stop, NULL, NULL), STK_OK);
    pool_close(&callers);
    CHECK(got > 300);
    close_ring();
}

/* Rows that were foreseen are handed out under the same serial. Serials of rows that a restart drops are not reused. */
static void foresight(void)
{
    struct order s = order_of(3, 4, 1);
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s.batch_size, 11, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 1, 10, 10, depot, &s, NULL), STK_OK);
    struct foreseen seen[20];
    struct foresight walk = {.walk.pass = -1};
    struct ticket t;
    CHECK(ring_take(&ring, 0, 2, &t));
    CHECK_EQ(ring_foresee(&ring, &walk, seen, 15), 15);
    CHECK(seen[0].serial == 2 && seen[0].position == 2 && seen[0].pick.index == 2 && seen[14].serial == 16);
    ring_give(&ring, &t);
    for (int64_t i = 0; i < 15; i += t.rows) {
        CHECK(ring_take(&ring, 0, 1, &t));
        CHECK(t.serial == seen[i].serial && t.epoch == seen[i].epoch && t.first + t.row == seen[i].position);
        ring_give(&ring, &t);
    }
    CHECK(ring_take(&ring, 0, 3, &t)); /* ahead of the walk, which then continues after it */
    ring_give(&ring, &t);
    CHECK_EQ(ring_foresee(&ring, &walk, seen, 5), 5);
    CHECK_EQ(seen[0].serial, t.serial + t.rows);
    ring_restart(&ring, 9, 4);
    CHECK_EQ(ring_foresee(&ring, &walk, &seen[5], 1), 1);
    CHECK(walk.born == seen[4].serial + 1 && seen[5].serial == walk.born && seen[5].epoch == 9 &&
          seen[5].position == 4);
    CHECK(ring_take(&ring, 0, 1, &t));
    CHECK_EQ(t.serial, walk.born);
    ring_give(&ring, &t);
    ring_restart(&ring, 0, 0);
    s.rank = 1; /* batches without rows: it comes to an end */
    s.world = 4;
    s.n = 4;
    CHECK_EQ(ring_foresee(&ring, &walk, seen, 5), 0);
    ring_stop(&ring);
    ring_done(&ring);
    depot_close(depot);
}

/* A batch is not ready before the worker that gave back its last rows has completed it. */
static void batches_are_completed(void)
{
    struct order s = order_of(2, 4, 0);
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s.batch_size, 3, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 1, 2, 2, depot, &s, NULL), STK_OK);
    ring.completes = true;
    struct stk_batch *b = NULL;
    struct bad *bads = NULL;
    struct ticket early, late;
    int64_t rows;
    CHECK(ring_take(&ring, 0, 3, &early) && ring_take(&ring, 0, 3, &late));
    CHECK(early.all_rows == 4 && late.all_rows == 4 && late.rows == 1);
    CHECK(!ring_give(&ring, &late));
    CHECK(ring_give(&ring, &early));
    CHECK_EQ(ring_deliver(&ring, 0, &b, &rows, &bads), STK_AGAIN);
    ring_complete(&ring, &early);
    CHECK_EQ(ring_deliver(&ring, 0, &b, &rows, &bads), STK_OK);
    CHECK_EQ(rows, 4);
    stk_release(b);
    ring_stop(&ring);
    ring_done(&ring);
    depot_close(depot);
}

static void give_order(int64_t epoch)
{
    const struct given g = {.epoch = epoch, .n = 4, .samples = calloc(4, sizeof *g.samples)};
    CHECK_EQ(ring_give_order(&ring, &g, NULL), STK_OK);
}

/* After an epoch was delivered, no batch of it is started: its order may have been freed. */
static void epochs_are_forgotten(void)
{
    struct order s = {
        .samples = 4, .batch_size = 4, .world = 1, .sampled = true, .resumed_epoch = -1, .given = {{-1}, {-1}}};
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s.batch_size, 2, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 1, 1, 1, depot, &s, NULL), STK_OK);
    struct foreseen seen[8];
    struct foresight walk = {.walk.pass = -1};
    struct stk_batch *b = NULL;
    struct ticket t;
    int64_t rows;
    give_order(0);
    give_order(1);
    CHECK_EQ(ring_give_order(&ring, &(struct given){.epoch = 1}, NULL), STK_EUSAGE);
    CHECK_EQ(ring_give_order(&ring, &(struct given){.epoch = 2}, NULL), STK_EUSAGE);
    CHECK_EQ(ring_foresee(&ring, &walk, seen, 4), 4);
    CHECK(ring_take(&ring, 0, 4, &t));
    ring_give(&ring, &t);
    CHECK_EQ(next(&b, &rows), STK_OK);
    stk_release(b);
    CHECK_EQ(next(&b, &rows), STK_END);
    give_order(2); /* in the place of epoch 0 */
    CHECK_EQ(ring_foresee(&ring, &walk, seen, 4), 4);
    CHECK_EQ(seen[0].epoch, 1);
    struct bad *bads = NULL;
    CHECK_EQ(ring_deliver(&ring, 0, &b, &rows, &bads), STK_AGAIN);
    ring_stop(&ring);
    ring_done(&ring);
    depot_close(depot);
    order_done(&s);
}

static void restart_to_9(void *user, int i)
{
    (void)user, (void)i;
    ring_restart(&ring, 9, 0);
}

/* An order that is given while a restart waits for its last rows belongs to the new epoch and is kept. */
static void orders_during_a_restart(void)
{
    struct order s = {
        .samples = 4, .batch_size = 4, .world = 1, .sampled = true, .resumed_epoch = -1, .given = {{-1}, {-1}}};
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s.batch_size, 2, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 1, 1, 1, depot, &s, NULL), STK_OK);
    struct ticket t;
    give_order(0);
    CHECK(ring_take(&ring, 0, 4, &t));
    CHECK_EQ(pool_open(&pool, 1, restart_to_9, NULL, NULL, NULL), STK_OK);
    while (!ring_wants_back(&ring))
        sched_yield();
    CHECK_EQ(ring_give_order(&ring, &(struct given){.epoch = 1}, NULL), STK_EUSAGE);
    give_order(9);
    give_order(10);
    CHECK_EQ(ring_give_order(&ring, &(struct given){.epoch = 9}, NULL), STK_EUSAGE);
    ring_give(&ring, &t);
    pool_close(&pool);
    CHECK(ring_take(&ring, 0, 4, &t));
    CHECK_EQ(t.epoch, 9);
    ring_give(&ring, &t);
    ring_stop(&ring);
    ring_done(&ring);
    depot_close(depot);
    order_done(&s);
}

/* A batch is not delivered if its rows were dropped before they were made. */
static void nothing_is_delivered_while_dropping(void)
{
    struct order s = order_of(3, 4, 0);
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    struct stk_batch *b = NULL;
    struct bad *bads = NULL;
    struct ticket first, second;
    int64_t rows;
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s.batch_size, 5, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 1, 4, 4, depot, &s, NULL), STK_OK);
    CHECK(ring_take(&ring, 0, 4, &first) && ring_take(&ring, 0, 4, &second));
    CHECK_EQ(pool_open(&pool, 1, restart_to_9, NULL, NULL, NULL), STK_OK);
    while (!ring_wants_back(&ring))
        sched_yield();
    ring_give(&ring, &first);
    CHECK_EQ(ring_deliver(&ring, 0, &b, &rows, &bads), STK_AGAIN);
    ring_give(&ring, &second);
    pool_close(&pool);
    CHECK_EQ(epoch_now(), 9);
    ring_stop(&ring);
    ring_done(&ring);
    depot_close(depot);
}

/* A restart also waits for a caller that changes the batch it took: the changes depend on the order. */
static void a_restart_waits_for_deliveries(void)
{
    struct order s = order_of(3, 4, 0);
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    struct stk_batch *b = NULL;
    struct ticket t;
    int64_t rows;
    CHECK_EQ(depot_open(&depot, &f, 1, 1, s.batch_size, 5, NULL, NULL), STK_OK);
    CHECK_EQ(ring_init(&ring, 1, 4, 4, depot, &s, NULL), STK_OK);
    ring.amends = true;
    CHECK(ring_take(&ring, 0, 4, &t));
    ring_give(&ring, &t);
    CHECK_EQ(next(&b, &rows), STK_OK);
    CHECK_EQ(pool_open(&pool, 1, restart_to_9, NULL, NULL, NULL), STK_OK);
    while (!ring_wants_back(&ring))
        sched_yield();
    CHECK_EQ(epoch_now(), 0);
    ring_delivered(&ring);
    pool_close(&pool);
    CHECK_EQ(epoch_now(), 9);
    CHECK(!ring_wants_back(&ring));
    stk_release(b);
    ring_stop(&ring);
    ring_done(&ring);
    depot_close(depot);
}

int main(int argc, char **argv)
{
    TESTS(T(in_order_through_epochs), T(empty_batches_and_epochs), T(restarts_anywhere), T(time_out_and_stop),
          T(no_memory_is_said), T(threads_follow_the_caller), T(several_callers), T(foresight), T(epochs_are_forgotten),
          T(orders_during_a_restart), T(nothing_is_delivered_while_dropping), T(batches_are_completed),
          T(a_restart_waits_for_deliveries))
}
