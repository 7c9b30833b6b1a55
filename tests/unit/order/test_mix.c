/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_mix.c -- shares, passes and positions of mixed sources; and a loader that mixes.
 */
#include "order/mix.h"

#include <math.h>

#include "order/perm.h"
#include "stoker.h"
#include "support/temp_tree.h"
#include "test.h"

static struct mix_walk walk;

static int source_of(const int64_t *first, int n, int64_t sample)
{
    int s = 0;
    while (s + 1 < n && first[s + 1] <= sample)
        s++;
    return s;
}

/* In every block of this many places, each source has exactly its share. */
static void shares_are_exact(void)
{
    const double weights[][3] = {{0.7, 0.2, 0.1}, {1, 1, 1}, {5, 0, 3}, {0.123, 0.456, 0.421}};
    const int64_t first[] = {0, 10, 1010, 1017};
    for (size_t k = 0; k < 4; k++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            struct mix m;
            walk.next = 0;
            CHECK_EQ(mix_init(&m, weights[k], 3, first, NULL), STK_OK);
            const double sum = weights[k][0] + weights[k][1] + weights[k][2];
            int64_t seen[3] = {0};
            for (int i = 0; i < 8 * m.block; i++)
                seen[source_of(first, 3, mix_at(&m, &walk, 7, shuffle, (uint64_t)i))]++;
            for (int s = 0; s < 3; s++) {
                CHECK_EQ(seen[s], 8 * m.sources[s].share);
                CHECK(fabs(m.sources[s].share - weights[k][s] / sum * m.block) < 1);
            }
            mix_done(&m);
            mix_done(&m);
        }
}

/* Every pass over a source has each of its samples once, even if a block contains several passes. */
static void no_sample_twice_in_a_pass(void)
{
    const double weights[] = {3, 1};
    const int64_t first[] = {0, 37, 737};
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        struct mix m;
        walk.next = 0;
        CHECK_EQ(mix_init(&m, weights, 2, first, NULL), STK_OK);
        static int times[737];
        memset(times, 0, sizeof times);
        int64_t had[2] = {0};
        for (uint64_t q = 0; q < 20000; q++) {
            const int64_t i = mix_at(&m, &walk, 3, shuffle, q);
            const int s = source_of(first, 2, i);
            const int64_t n = first[s + 1] - first[s];
            CHECK_EQ(times[i], had[s] / n);
            times[i]++;
            had[s]++;
        }
        mix_done(&m);
    }
}

static void positions_are_a_formula(void)
{
    const double weights[] = {0.6, 0.4};
    const int64_t first[] = {0, 5, 20};
    struct mix m;
    walk.next = 0;
    CHECK_EQ(mix_init(&m, weights, 2, first, NULL), STK_OK);
    uint64_t had[2] = {0};
    for (uint64_t q = 0; q < 5000; q++) {
        for (int s = 0; q % 97 == 0 && s < 2; s++)
            CHECK_EQ(mix_before(&m, &walk, 1, true, q, s), had[s]);
        had[mix_at(&m, &walk, 1, true, q) >= 5]++;
    }
    /* Any place, in any order, with another walker: the result is the same. */
    static struct mix_walk other;
    other.next = 0;
    for (uint64_t q = 5000; q-- > 0;)
        CHECK_EQ(mix_at(&m, &other, 1, true, q), mix_at(&m, &walk, 1, true, q));
    mix_done(&m);
}

static void seeds_differ(void)
{
    const double weights[] = {1, 1};
    const int64_t first[] = {0, 1000, 2000};
    struct mix m;
    walk.next = 0;
    CHECK_EQ(mix_init(&m, weights, 2, first, NULL), STK_OK);
    int same = 0;
    for (uint64_t q = 0; q < 1000; q++) {
        const int64_t a = mix_at(&m, &walk, 1, true, q);
        static struct mix_walk other;
        other.next = q == 0 ? 0 : other.next;
        same += a == mix_at(&m, &other, 2, true, q);
    }
    CHECK(same < 10);
    mix_done(&m);
}

static void refuses(void)
{
    struct mix m;
    stk_error e;
    const int64_t first[] = {0, 10, 10}, good[] = {0, 10, 20};
    const double bad[][2] = {{1, -1}, {1, NAN}, {INFINITY, 1}, {0, 0}, {1, 1e-5}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(mix_init(&m, bad[i], 2, good, &e), STK_EUSAGE);
    const double both[] = {1, 1};
    CHECK_EQ(mix_init(&m, both, 2, first, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "no samples"));
    CHECK_EQ(mix_init(&m, both, 0, good, &e), STK_EUSAGE);
    const double small[] = {1, 1.0 / 5000};
    CHECK_EQ(mix_init(&m, small, 2, good, &e), STK_OK);
    CHECK_EQ(m.sources[1].share, 1);
    mix_done(&m);
}

/* ------------------------------------------------------------------ a loader that mixes */

static const char *two[2];

static void make_two(void)
{
    const uint8_t px[4 * 4 * 3] = {0};
    const stk_encode_options png = {.format = STK_PNG};
    void *bytes;
    size_t n;
    CHECK_EQ(stk_encode(px, 4, 4, 3, 12, &png, &bytes, &n, NULL), STK_OK);
    char path[64];
    for (int i = 0; i < 30; i++) {
        snprintf(path, sizeof path, "%s/%02d.png", i < 10 ? "a" : "b", i);
        temp_bytes(path, bytes, n);
    }
    stk_free(bytes);
    two[0] = temp_path("a");
    two[1] = temp_path("b");
}

static int64_t read_indices(stk_loader *l, int64_t batches, int64_t *to)
{
    int64_t n = 0;
    stk_batch *b;
    while (batches-- > 0 && stk_next(l, &b, NULL) == STK_OK) {
        memcpy(to + n, stk_field(b, "index")->data, (size_t)stk_samples(b) * sizeof *to);
        n += stk_samples(b);
        stk_release(b);
    }
    return n;
}

static void a_loader_mixes_and_resumes(void)
{
    temp_begin();
    make_two();
    const double weights[] = {0.75, 0.25};
    stk_options o = {.sources = two,
                     .n_sources = 2,
                     .mix = weights,
                     .n_mix = 2,
                     .ops = "CenterCrop(2)",
                     .batch_size = 4,
                     .shuffle = 1,
                     .threads = 2,
                     .cache_dir = "off"};
    stk_loader *l;
    stk_error e;
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    int64_t whole[120], rest[120];
    int64_t n = read_indices(l, 3, whole);
    char state[300], text[4096];
    CHECK(stk_state_get(l, state, sizeof state) < sizeof state);
    CHECK(strstr(state, "\"mix\""));
    stk_explain(l, text, sizeof text);
    CHECK(strstr(text, "source 0: 75 % of the positions"));
    n += read_indices(l, 100, whole + n);
    CHECK_EQ(n, 30);
    stk_close(l);

    /* With one rank, and with two that divide the rest. */
    const int64_t at = 12;
    o.threads = 1;
    o.batch_size = 7;
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    CHECK_EQ(stk_state_set(l, state, &e), STK_OK);
    CHECK_EQ(read_indices(l, 100, rest), n - at);
    CHECK(memcmp(rest, whole + at, (size_t)(n - at) * sizeof rest[0]) == 0);
    stk_close(l);
    o.batch_size = 9;
    o.world_size = 2;
    for (int64_t from = at; o.rank < 2; o.rank++, from += 9) {
        CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
        CHECK_EQ(stk_state_set(l, state, &e), STK_OK);
        CHECK_EQ(read_indices(l, 1, rest), 9);
        CHECK(memcmp(rest, whole + from, 9 * sizeof rest[0]) == 0);
        stk_close(l);
    }
    const double other[] = {0.5, 0.5};
    o.rank = 0;
    o.mix = other;
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    stk_close(l);
    temp_end();
}

static void a_loader_refuses(void)
{
    temp_begin();
    make_two();
    const double weights[] = {0.75, 0.25, 1};
    const int64_t back[] = {12, 3}, mixed[] = {3, 12, 13};
    stk_options o = {.sources = two,
                     .n_sources = 2,
                     .mix = weights,
                     .n_mix = 3,
                     .ops = "CenterCrop(2)",
                     .threads = 1,
                     .cache_dir = "off"};
    stk_loader *l;
    stk_error e;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "3 weights for 2 sources"));
    o.n_mix = 2;
    o.subset = back;
    o.n_subset = 2;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    o.subset = mixed;
    o.n_subset = 3;
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    int64_t seen[120];
    CHECK_EQ(read_indices(l, 100, seen), 3);
    stk_close(l);
    o.take = 1;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    temp_end();
}

int main(int argc, char **argv)
{
    TESTS(T(shares_are_exact), T(no_sample_twice_in_a_pass), T(positions_are_a_formula), T(seeds_differ), T(refuses),
          T(a_loader_mixes_and_resumes), T(a_loader_refuses))
}
