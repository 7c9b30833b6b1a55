/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/ring.h"

#include "test.h"

/* n batches taken without waiting, each with a full ring behind it. */
static void calm(struct pace *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        pace_full(p);
        pace_served(p);
    }
}

static void threads_go_to_sleep_one_by_one(void)
{
    struct pace p;
    pace_init(&p, 4, 2, 8);
    CHECK_EQ(p.active, 4);
    calm(&p, p.patience - 1);
    CHECK_EQ(p.active, 4);
    calm(&p, 1);
    CHECK_EQ(p.active, 3);
    calm(&p, 100 * p.patience);
    CHECK_EQ(p.active, 1);
}

static void one_that_just_keeps_up_keeps_them(void)
{
    struct pace p;
    pace_init(&p, 4, 2, 8);
    for (int64_t i = 0; i < 10 * p.patience; i++) {
        if (i % 8 != 0)
            pace_full(&p);
        pace_served(&p);
    }
    CHECK_EQ(p.active, 4);
}

static void waiting_brings_all_back_and_teaches_patience(void)
{
    struct pace p;
    pace_init(&p, 4, 2, 8);
    const int64_t first = p.patience;
    calm(&p, 3 * first);
    CHECK_EQ(p.active, 1);
    pace_waits(&p);
    CHECK_EQ(p.active, 4);
    CHECK_EQ(p.patience, 2 * first);
    calm(&p, first);
    CHECK_EQ(p.active, 4);
    for (int i = 0; i < 100; i++) {
        calm(&p, p.patience);
        pace_waits(&p);
    }
    CHECK(p.patience < 10000);
}

static void only_a_full_ring_that_ran_dry_is_made_deeper(void)
{
    struct pace p;
    pace_init(&p, 2, 2, 7);
    for (int i = 0; i < 10; i++)
        pace_waits(&p);
    CHECK_EQ(p.depth, 2);
    calm(&p, 2);
    pace_waits(&p);
    CHECK_EQ(p.depth, 2);
    calm(&p, 12);
    pace_waits(&p);
    CHECK_EQ(p.depth, 4);
    pace_waits(&p);
    CHECK_EQ(p.depth, 4);
    calm(&p, 12);
    pace_waits(&p);
    CHECK_EQ(p.depth, 7);
}

int main(int argc, char **argv)
{
    TESTS(T(threads_go_to_sleep_one_by_one), T(one_that_just_keeps_up_keeps_them),
          T(waiting_brings_all_back_and_teaches_patience), T(only_a_full_ring_that_ran_dry_is_made_deeper))
}
