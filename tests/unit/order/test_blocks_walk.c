/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_blocks_walk.c -- every sample comes once, blocks come one after the other, windows are shuffled evenly.
 */
#include "order/blocks_walk.h"

#include <stdbool.h>

#include "test.h"

enum { N = 1000 };

/* Blocks of 0 to 40 samples. */
static struct blocks some(int64_t window)
{
    struct blocks b = {.window = window, .starts = malloc((N + 1) * sizeof *b.starts)};
    int64_t at = 0;
    for (uint64_t r = 7; at < N; r = r * 6364136223846793005u + 1442695040888963407u) {
        b.starts[b.n++] = at;
        at += (int64_t)(r >> 33) % 41;
    }
    b.starts[b.n] = N;
    return b;
}

static void is_a_permutation(void)
{
    for (int64_t window = 1; window < 2 * N; window = window * 3 + 1) {
        struct blocks b = some(window);
        struct blocks_walk fast, slow = {.pass = -1};
        blocks_walk_init(&fast, &b);
        for (int64_t pass = 0; pass < 3; pass++) {
            int seen[N] = {0};
            for (int64_t i = 0; i < N; i++) {
                const int64_t at = blocks_at(&b, &fast, 5, pass, i);
                CHECK_EQ(blocks_at(&b, &slow, 5, pass, i), at);
                seen[at]++;
            }
            for (int i = 0; i < N; i++)
                CHECK_EQ(seen[i], 1);
        }
        blocks_walk_done(&fast);
        blocks_walk_done(&fast);
        blocks_done(&b);
        blocks_done(&b);
    }
}

static int64_t block_of(const struct blocks *b, int64_t sample)
{
    int64_t k = 0;
    while (b->starts[k + 1] <= sample)
        k++;
    return k;
}

/* With windows of one position the blocks come whole and in their own order; with larger ones nothing strays further
 * than a window. */
static void stays_near(void)
{
    struct blocks b = some(1), wide = some(64);
    struct blocks_walk w, v;
    blocks_walk_init(&w, &b);
    blocks_walk_init(&v, &wide);
    int64_t place[N], before = -1, shuffled = 0;
    for (int64_t i = 0; i < N; i++) {
        const int64_t at = blocks_at(&b, &w, 1, 2, i);
        place[at] = i;
        const bool same = before >= 0 && block_of(&b, at) == block_of(&b, before);
        CHECK(!same || at == before + 1);
        shuffled += before >= 0 && !same && at != before + 1;
        before = at;
    }
    CHECK(shuffled > b.n / 2);
    for (int64_t i = 0; i < N; i++)
        CHECK_EQ(place[blocks_at(&wide, &v, 1, 2, i)] / 64, i / 64);
    blocks_walk_done(&w);
    blocks_walk_done(&v);
    blocks_done(&b);
    blocks_done(&wide);
}

/* Within a window, all places are equally likely. */
static void is_even(void)
{
    struct blocks b = {.n = 1, .window = 10, .starts = (int64_t[]){0, 100}};
    struct blocks_walk w;
    blocks_walk_init(&w, &b);
    int count[10][10] = {0};
    for (int64_t pass = 0; pass < 2000; pass++)
        for (int64_t i = 30; i < 40; i++)
            count[i - 30][blocks_at(&b, &w, 9, pass, i) - 30]++;
    double chi = 0;
    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 10; k++)
            chi += (count[i][k] - 200.0) * (count[i][k] - 200.0) / 200.0;
    CHECK(chi < 140); /* 81 degrees of freedom: one in 20,000 */
    blocks_walk_done(&w);
}

static void of_subsets(void)
{
    const struct blocks all = {.n = 3, .window = 5, .starts = (int64_t[]){0, 10, 10, 30}};
    struct blocks b;
    CHECK_EQ(blocks_init(&b, &all, NULL, 30), 0);
    CHECK_EQ(b.n, 2);
    CHECK_EQ(b.starts[1], 10);
    CHECK_EQ(b.starts[2], 30);
    blocks_done(&b);
    CHECK_EQ(blocks_init(&b, &all, NULL, 4), 0);
    CHECK_EQ(b.n, 1);
    CHECK_EQ(b.starts[1], 4);
    blocks_done(&b);
    const int64_t subset[] = {1, 3, 25, 12, 2};
    CHECK_EQ(blocks_init(&b, &all, subset, 5), 0);
    CHECK_EQ(b.n, 3);
    CHECK_EQ(b.starts[1], 2);
    CHECK_EQ(b.starts[2], 4);
    CHECK_EQ(b.starts[3], 5);
    struct blocks_walk w;
    blocks_walk_init(&w, &b);
    int seen[5] = {0};
    for (int64_t i = 0; i < 5; i++)
        seen[blocks_at(&b, &w, 0, 0, i)]++;
    for (int i = 0; i < 5; i++)
        CHECK_EQ(seen[i], 1);
    blocks_walk_done(&w);
    blocks_done(&b);
}

static void joined(void)
{
    const struct blocks a = {.n = 2, .window = 5, .starts = (int64_t[]){0, 7, 20}},
                        c = {.n = 1, .window = 9, .starts = (int64_t[]){0, 3}};
    const struct blocks *const parts[] = {&a, NULL, &c}, *const none[] = {NULL, NULL, NULL};
    struct blocks b;
    CHECK_EQ(blocks_join(&b, none, (int64_t[]){0, 20, 32, 35}, 3), 0);
    CHECK_EQ(b.n, 0);
    CHECK_EQ(blocks_join(&b, parts, (int64_t[]){0, 20, 32, 35}, 3), 0);
    static const int64_t want[] = {0, 7, 20, 25, 30, 32, 35};
    CHECK_EQ(b.n, 6);
    CHECK_EQ(b.window, 5);
    for (int i = 0; i < 7; i++)
        CHECK_EQ(b.starts[i], want[i]);
    blocks_done(&b);
}

int main(int argc, char **argv)
{
    TESTS(T(is_a_permutation), T(stays_near), T(is_even), T(of_subsets), T(joined))
}
