/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/rng.h"
#include "test.h"

static const struct draw here = {.seed = 7, .epoch = 1, .sample = 2};

static uint64_t first_of(struct draw d, const char *op, int nth)
{
    struct rng r;
    rng_init(&r, &d, op, nth);
    return rng_u64(&r);
}

static void every_name_counts(void)
{
    const uint64_t base = first_of(here, "RandomCrop", 0);
    CHECK(first_of(here, "RandomCrop", 0) == base);
    CHECK(first_of(here, "RandomCrop", 1) != base);
    CHECK(first_of(here, "RandomFlip", 0) != base);
    struct draw d = here;
    d.seed++;
    CHECK(first_of(d, "RandomCrop", 0) != base);
    d = here;
    d.epoch++;
    CHECK(first_of(d, "RandomCrop", 0) != base);
    d = here;
    d.sample++;
    CHECK(first_of(d, "RandomCrop", 0) != base);
    d = here;
    d.repeat++;
    CHECK(first_of(d, "RandomCrop", 0) != base);
    d = here;
    d.view++;
    CHECK(first_of(d, "RandomCrop", 0) != base);
}

static void is_uniform(void)
{
    enum { N = 200000, BINS = 10 };
    double sum = 0;
    int bins[BINS] = {0};
    for (uint64_t i = 0; i < N / 4; i++) {
        struct draw d = here;
        d.sample = i;
        struct rng r;
        rng_init(&r, &d, "x", 0);
        for (int k = 0; k < 4; k++) {
            const double v = rng_double(&r);
            CHECK(v >= 0 && v < 1);
            sum += v;
            bins[(int)(v * BINS)]++;
        }
    }
    CHECK(fabs(sum / N - 0.5) < 0.005);
    for (int i = 0; i < BINS; i++)
        CHECK(fabs(bins[i] - N / (double)BINS) < 800); /* six sigma */
}

static void below_stays_below(void)
{
    struct rng r;
    rng_init(&r, &here, "x", 0);
    int seen[7] = {0};
    for (int i = 0; i < 7000; i++)
        seen[rng_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        CHECK(seen[i] > 800 && seen[i] < 1200);
    CHECK_EQ(rng_below(&r, 1), 0);
    for (int i = 0; i < 100; i++)
        CHECK(rng_below(&r, (uint64_t)1 << 63) < (uint64_t)1 << 63);
}

static void chances(void)
{
    struct rng r;
    rng_init(&r, &here, "x", 0);
    int yes = 0;
    for (int i = 0; i < 10000; i++)
        yes += rng_chance(&r, 0.25);
    CHECK(yes > 2300 && yes < 2700);
    CHECK(!rng_chance(&r, 0));
    CHECK(rng_chance(&r, 1));
    const double v = rng_between(&r, -2, 3);
    CHECK(v >= -2 && v < 3);
}

int main(int argc, char **argv)
{
    TESTS(T(every_name_counts), T(is_uniform), T(below_stays_below), T(chances))
}
