/* SPDX-License-Identifier: Apache-2.0 */
#include "base/window.h"

#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

enum { SLOTS = 4, MANY = 5000 };

struct squares {
    int64_t made[SLOTS];
    int64_t taken, sum, stop_at;
    atomic_int in_use, most; /* slots that are being made or wait */
};

static size_t square(void *user, int thread, int64_t position, int64_t n, int slot)
{
    struct squares *s = user;
    (void)thread;
    const int now = ++s->in_use;
    for (int most = s->most; now > most && !atomic_compare_exchange_weak(&s->most, &most, now);)
        ;
    if (position % 7 == 0)
        usleep(50);
    s->made[slot] = position * position + n - 1;
    return 100;
}

static int take(void *user, int slot, stk_error *e)
{
    struct squares *s = user;
    (void)e;
    s->in_use--;
    if (s->taken == s->stop_at)
        return STK_EDATA;
    s->sum += s->made[slot];
    CHECK_EQ(s->made[slot], s->taken * s->taken);
    s->taken++;
    return STK_OK;
}

static struct window_job job_of(struct squares *s)
{
    s->stop_at = -1;
    return (struct window_job){.user = s, .end = MANY, .n_slots = SLOTS, .make = square, .take = take};
}

static void takes_in_order(void)
{
    for (int threads = 1; threads <= 8; threads *= 2) {
        struct squares s = {0};
        const struct window_job job = job_of(&s);
        CHECK_EQ(window_run(&job, threads, NULL), STK_OK);
        CHECK_EQ(s.taken, MANY);
        CHECK(s.most <= SLOTS);
    }
}

static void begins_anywhere(void)
{
    struct squares s = {.taken = MANY - 3};
    struct window_job job = job_of(&s);
    job.first = MANY - 3;
    CHECK_EQ(window_run(&job, 3, NULL), STK_OK);
    CHECK_EQ(s.taken, MANY);
    job.first = MANY; /* nothing to do */
    CHECK_EQ(window_run(&job, 3, NULL), STK_OK);
    CHECK_EQ(s.taken, MANY);
}

static void ends_early(void)
{
    struct squares s = {0};
    const struct window_job job = job_of(&s);
    s.stop_at = 100;
    CHECK_EQ(window_run(&job, 4, NULL), STK_EDATA);
    CHECK_EQ(s.taken, 100);
}

/* One result may always be made, whatever the size of the last one. */
static void holds_few_bytes(void)
{
    struct squares s = {0};
    struct window_job job = job_of(&s);
    job.held_max = 1;
    job.end = 300;
    CHECK_EQ(window_run(&job, 4, NULL), STK_OK);
    CHECK_EQ(s.taken, 300);
}

static int64_t ten(void *user, int64_t position)
{
    (void)user;
    return MANY - 3 - position < 10 ? MANY - 3 - position : 10;
}

static int take_run(void *user, int slot, stk_error *e)
{
    struct squares *s = user;
    (void)e;
    s->in_use--;
    const int64_t position = s->taken * 10;
    CHECK_EQ(s->made[slot], position * position + ten(NULL, position) - 1);
    s->taken++;
    return STK_OK;
}

static void takes_runs_of_positions(void)
{
    struct squares s = {0};
    struct window_job job = job_of(&s);
    job.count = ten;
    job.take = take_run;
    job.end = MANY - 3;
    CHECK_EQ(window_run(&job, 4, NULL), STK_OK);
    CHECK_EQ(s.taken, MANY / 10);
}

int main(int argc, char **argv)
{
    TESTS(T(takes_in_order), T(begins_anywhere), T(ends_early), T(holds_few_bytes), T(takes_runs_of_positions))
}
