/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/hash.h"
#include "order/perm.h"
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

enum { PAIRS = 4, MOST = 40 };

/* How far the pairs at two places deviate from equal probability, in standard deviations. */
static double bias(int count[MOST][MOST], uint64_t n, uint64_t epochs)
{
    const double expected = (double)epochs / (double)(n * (n - 1)), df = (double)(n * (n - 1) - 1);
    double chi2 = 0;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < n; j++)
            if (i != j)
                chi2 += (count[i][j] - expected) * (count[i][j] - expected) / expected;
    return (chi2 - df) / sqrt(2 * df);
}

static void check_pairs(uint64_t n, uint64_t places[PAIRS][2], uint64_t epochs)
{
    static int count[PAIRS][MOST][MOST];
    memset(count, 0, sizeof count);
    for (uint64_t epoch = 0; epoch < epochs; epoch++) {
        struct perm p;
        perm_init(&p, n, 42, epoch);
        for (int k = 0; k < PAIRS; k++)
            count[k][perm_at(&p, places[k][0])][perm_at(&p, places[k][1])]++;
    }
    for (int k = 0; k < PAIRS; k++) {
        const double b = bias(count[k], n, epochs);
        if (b > 5)
            printf("n = %d: places %d and %d are biased: %.1f sigma\n", (int)n, (int)places[k][0], (int)places[k][1],
                   b);
        CHECK(b <= 5);
    }
}

static void pairs_are_fair(void)
{
    for (uint64_t n = 2; n <= MOST; n++) {
        uint64_t places[PAIRS][2] = {{0, 1}, {0, n - 1}, {0, n / 2}, {n - 2, n - 1}};
        check_pairs(n, places, 20000);
    }
}

/* A small cipher is worst at places that differ only in one half of their bits. */
static void near_pairs_are_fair(void)
{
    static const uint64_t sizes[] = {13, 16, 24, 32, 33};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t places[PAIRS][2] = {{0, 4}, {0, 8}, {1, 5}, {1, 9}};
        check_pairs(sizes[i], places, 300000);
    }
}

/* All orders of n <= 5 things are about equally frequent. */
static void small_orders_are_fair(void)
{
    enum { EACH = 400, CODES = 3125 };
    for (uint64_t n = 2, orders = 2; n <= 5; n++, orders *= n) {
        static int count[CODES];
        memset(count, 0, sizeof count);
        for (uint64_t epoch = 0; epoch < orders * EACH; epoch++) {
            struct perm p;
            perm_init(&p, n, 42, epoch);
            uint64_t code = 0;
            for (uint64_t i = 0; i < n; i++)
                code = code * n + perm_at(&p, i);
            count[code]++;
        }
        uint64_t found = 0;
        for (int i = 0; i < CODES; i++) {
            found += count[i] > 0;
            CHECK(count[i] == 0 || abs(count[i] - EACH) < 100); /* 5 sigma */
        }
        CHECK_EQ(found, orders);
    }
}

/* Existing states depend on the orders of more than PERM_SMALL samples, so these recorded values must not change. */
static void larger_orders_stay(void)
{
    static const struct {
        uint64_t n, first, second, last, hash;
    } recorded[] = {
        {33, 6, 15, 13, 0x6f297fecc80da79f},
        {34, 3, 4, 13, 0x0333cb0df3e4671a},
        {48, 10, 23, 40, 0x2689994c1c011440},
        {63, 41, 25, 27, 0x4b1eaad45fdf85c9},
        {64, 60, 6, 23, 0xab16ec5e49e6a577},
        {65, 4, 57, 46, 0x482e7001ce3d8d12},
        {100, 31, 19, 25, 0xde6187329ce6d164},
        {1000, 37, 104, 364, 0x4f1f880c768a2575},
        {65537, 7212, 65307, 42193, 0x8dea97efd062a3c0},
        {1099511627776, 734005319917, 539453208616, 1039341793245, 0x23e14ed80dea3626},
        {4611686018427400249, 2154679967202955965, 583140490908351814, 1948004850049085702, 0xeeccf7350901a370},
    };
    for (size_t i = 0; i < sizeof recorded / sizeof recorded[0]; i++) {
        const uint64_t n = recorded[i].n;
        struct perm p;
        perm_init(&p, n, 11, 3);
        CHECK_EQ(perm_at(&p, 0), recorded[i].first);
        CHECK_EQ(perm_at(&p, 1), recorded[i].second);
        CHECK_EQ(perm_at(&p, n - 1), recorded[i].last);
        uint64_t hash = 0;
        for (uint64_t k = 0; k < n && k < 1000; k++)
            hash = hash_mix(hash, perm_at(&p, k));
        CHECK_EQ(hash, recorded[i].hash);
    }
}

/* The value at a position, and the value after it, look random. */
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
    const uint64_t sizes[] = {
        1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 1023, 1024, 1025, (uint64_t)1 << 40, UINT64_MAX / 2};
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
          T(pairs_are_fair), T(near_pairs_are_fair), T(larger_orders_stay), T(looks_random))
}
