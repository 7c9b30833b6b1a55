/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/perm.h"
#include "test.h"

static void every_number_once(void)
{
    static uint8_t seen[70000];
    const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 64, 65, 100, 1000, 1024, 1025, 65536, 65537};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct perm p;
        perm_init(&p, sizes[s], 1, 2);
        memset(seen, 0, sizeof seen);
        for (uint64_t i = 0; i < sizes[s]; i++) {
            const uint64_t v = perm_at(&p, i);
            CHECK(v < sizes[s] && !seen[v]);
            seen[v] = 1;
        }
    }
}

static void large_n(void)
{
    struct perm p;
    const uint64_t n = ((uint64_t)1 << 62) + 12345;
    perm_init(&p, n, 9, 0);
    for (uint64_t i = 0; i < 1000; i++)
        CHECK(perm_at(&p, n - 1 - i) < n);
}

static void seed_and_epoch_count(void)
{
    struct perm a, b, c;
    perm_init(&a, 1000, 1, 0);
    perm_init(&b, 1000, 2, 0);
    perm_init(&c, 1000, 1, 1);
    int same_b = 0, same_c = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        same_b += perm_at(&a, i) == perm_at(&b, i);
        same_c += perm_at(&a, i) == perm_at(&c, i);
    }
    CHECK(same_b < 10 && same_c < 10);
}

/* All six orders of three things come up about as often, over many epochs. */
static void small_orders_are_fair(void)
{
    int count[27] = {0};
    for (uint64_t epoch = 0; epoch < 6000; epoch++) {
        struct perm p;
        perm_init(&p, 3, 42, epoch);
        count[perm_at(&p, 0) * 9 + perm_at(&p, 1) * 3 + perm_at(&p, 2)]++;
    }
    int orders = 0;
    for (int i = 0; i < 27; i++) {
        orders += count[i] > 0;
        CHECK(count[i] == 0 || (count[i] > 800 && count[i] < 1200));
    }
    CHECK_EQ(orders, 6);
}

/* What stands at a position, and what follows what, looks like chance. */
static void looks_random(void)
{
    enum { N = 1000, EPOCHS = 400 };
    double sum = 0;
    int neighbours = 0;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        struct perm p;
        perm_init(&p, N, 3, epoch);
        uint64_t before = perm_at(&p, 0);
        sum += (double)before;
        for (uint64_t i = 1; i < N; i++) {
            const uint64_t v = perm_at(&p, i);
            neighbours += v == before + 1;
            before = v;
        }
    }
    CHECK(fabs(sum / EPOCHS - (N - 1) / 2.0) < 80); /* 5.5 sigma */
    CHECK(abs(neighbours - EPOCHS) < 120);          /* one a shuffle, 6 sigma */
}

static void run_from(const struct perm *p, uint64_t first)
{
    uint64_t run[PERM_RUN];
    perm_run(p, first, run);
    for (uint64_t k = 0; k < PERM_RUN && first + k < p->n; k++)
        CHECK_EQ(run[k], perm_at(p, first + k));
}

/* In plain C, and with what this CPU has. */
static void runs_are_the_same(void)
{
    const uint64_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 100, 1023, 1024, 1025, (uint64_t)1 << 40, UINT64_MAX / 2};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct perm own, c;
        perm_init(&own, sizes[s], 5, 6);
        c = own;
        c.scramble = perm_scramble_c;
        for (uint64_t i = 0; i < sizes[s] && i < 1100; i++) {
            run_from(&own, i);
            run_from(&c, i);
            run_from(&own, sizes[s] - 1 - i);
        }
    }
}

int main(int argc, char **argv)
{
    TESTS(T(every_number_once), T(runs_are_the_same), T(large_n), T(seed_and_epoch_count), T(small_orders_are_fair),
          T(looks_random))
}
