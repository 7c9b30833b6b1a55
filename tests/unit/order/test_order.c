/* SPDX-License-Identifier: Apache-2.0 */
#include "order/order.h"
#include "test.h"

static struct order plain(int64_t n, int64_t batch, int64_t world)
{
    return (struct order){.n = n, .samples = n, .batch_size = batch, .world = world, .resumed_epoch = -1};
}

/* In every epoch, each position comes once over all ranks, and all ranks have the same number of batches. */
static void ranks_share_an_epoch(void)
{
    for (int64_t n = 1; n < 40; n++)
        for (int64_t world = 1; world < 5; world++)
            for (int64_t batch = 1; batch < 6; batch++) {
                int seen[64] = {0};
                for (int64_t rank = 0; rank < world; rank++) {
                    struct order o = plain(n, batch, world);
                    o.rank = rank;
                    for (int64_t b = 0; b < order_batches(&o, 0); b++) {
                        const struct span s = order_span(&o, 0, b);
                        for (int64_t i = 0; i < s.rows; i++)
                            seen[s.first + i]++;
                    }
                }
                for (int64_t i = 0; i < 64; i++)
                    CHECK_EQ(seen[i], i < n);
            }
}

static void drop_last_drops(void)
{
    struct order o = plain(103, 10, 2);
    CHECK_EQ(order_batches(&o, 0), 6);
    CHECK_EQ(order_span(&o, 0, 5).rows, 3);
    o.rank = 1;
    CHECK_EQ(order_span(&o, 0, 5).rows, 0);
    o.drop_last = true;
    CHECK_EQ(order_batches(&o, 0), 5);
    o.n = 19;
    CHECK_EQ(order_batches(&o, 0), 0);
}

static void pad_last_pads(void)
{
    struct order o = plain(13, 10, 2);
    o.pad_last = true;
    o.rank = 1;
    const struct span s = order_span(&o, 0, 0);
    CHECK_EQ(s.rows, 10);
    CHECK_EQ(s.first, 10);
    struct walk w = {.pass = -1};
    CHECK_EQ(order_at(&o, &w, 0, 12).index, 12);
    CHECK_EQ(order_at(&o, &w, 0, 13).index, 0);
}

/* 40 positions with 2 ranks, then the rest with 3: each comes exactly once. */
static void resumes_with_other_ranks(void)
{
    struct order o = plain(100, 10, 2);
    const int64_t at = order_position(&o, 4, 2);
    CHECK_EQ(at, 40);
    int seen[100] = {0};
    for (int64_t rank = 0; rank < 3; rank++) {
        struct order r = plain(100, 7, 3);
        r.rank = rank;
        r.resumed_epoch = 4;
        r.resumed_at = at;
        CHECK_EQ(order_batches(&r, 4), 3);
        CHECK_EQ(order_batches(&r, 5), 5);
        for (int64_t b = 0; b < order_batches(&r, 4); b++) {
            const struct span s = order_span(&r, 4, b);
            for (int64_t i = 0; i < s.rows; i++)
                seen[s.first + i]++;
        }
        CHECK_EQ(order_position(&r, 4, 3), 100);
    }
    for (int i = 0; i < 100; i++)
        CHECK_EQ(seen[i], i >= 40);
}

static void shuffles_by_epoch(void)
{
    struct order o = plain(1000, 1, 1);
    struct walk w = {.pass = -1}, other = {.pass = -1};
    CHECK_EQ(order_at(&o, &w, 0, 17).index, 17);
    o.shuffle = true;
    int moved = 0, same = 0;
    for (int64_t i = 0; i < 1000; i++) {
        moved += order_at(&o, &w, 0, i).index != i;
        same += order_at(&o, &w, 0, i).index == order_at(&o, &other, 1, i).index;
    }
    CHECK(moved > 980);
    CHECK(same < 20);
}

/* A walk may jump to any position, also of another epoch, and back. */
static void walks_jump(void)
{
    struct order o = plain(101, 10, 1);
    o.shuffle = true;
    struct walk w = {.pass = -1};
    for (int64_t i = 0; i < 500; i++) {
        const int64_t epoch = i / 7 % 2, position = i * 37 % 150;
        struct walk fresh = {.pass = -1};
        CHECK_EQ(order_at(&o, &w, epoch, position).index, order_at(&o, &fresh, epoch, position).index);
        struct perm p;
        perm_init(&p, 101, o.seed, (uint64_t)epoch);
        CHECK_EQ(order_at(&o, &w, epoch, position).index, (int64_t)perm_at(&p, (uint64_t)(position % 101)));
    }
}

/* Which orders shuffle 32 or fewer things. */
static void few(void)
{
    struct order o = plain(32, 4, 1);
    CHECK(!order_shuffles_few(&o));
    o.shuffle = true;
    CHECK(order_shuffles_few(&o));
    o.samples = 1;
    CHECK(!order_shuffles_few(&o));
    o.samples = 1000;
    CHECK(!order_shuffles_few(&o));
    o.near = (struct blocks){.n = 40, .window = 100};
    CHECK(!order_shuffles_few(&o));
    o.samples = 1020; /* the last window */
    CHECK(order_shuffles_few(&o));
    o.near = (struct blocks){.n = 3, .window = 1100};
    CHECK(order_shuffles_few(&o));
    o.sampled = true;
    CHECK(!order_shuffles_few(&o));
}

/* Epochs of 25 positions over 10 samples: the passes continue where the previous epoch ended. */
static void passes_go_on(void)
{
    struct order o = plain(25, 5, 1);
    o.samples = 10;
    o.passes = o.shuffle = true;
    struct walk w = {.pass = -1};
    int seen[4][10] = {{0}};
    for (int64_t q = 0; q < 40; q++) {
        const struct pick p = order_at(&o, &w, q / 25, q % 25);
        seen[q / 10][p.index]++;
        CHECK_EQ(p.repeat, q / 10 - q / 25 * 25 / 10);
    }
    for (int pass = 0; pass < 4; pass++)
        for (int i = 0; i < 10; i++)
            CHECK_EQ(seen[pass][i], 1);
}

static int64_t *copy(const int64_t *from, size_t n)
{
    int64_t *to = malloc(n * sizeof *to);
    memcpy(to, from, n * sizeof *to);
    return to;
}

static void given_orders(void)
{
    struct order o = plain(10, 4, 1);
    o.sampled = true;
    struct walk w = {.pass = -1};
    CHECK_EQ(order_batches(&o, 0), -1);
    const int64_t samples[] = {9, 9, 3, 1, 0, 2}, starts[] = {0, 1, 5};
    order_give(&o, &(struct given){.epoch = 0, .n = 6, .samples = copy(samples, 6)});
    CHECK_EQ(order_batches(&o, 0), 2);
    CHECK_EQ(order_span(&o, 0, 1).rows, 2);
    order_give(&o, &(struct given){
                       .epoch = 1, .n = 6, .samples = copy(samples, 6), .starts = copy(starts, 3), .n_batches = 3});
    CHECK_EQ(order_batches(&o, 1), 3);
    CHECK_EQ(order_span(&o, 1, 0).rows, 1);
    CHECK_EQ(order_span(&o, 1, 1).rows, 4);
    CHECK_EQ(order_span(&o, 1, 2).first, 5);
    CHECK_EQ(order_repeat(&o, 4), 4);
    o.mine = 1; /* of three ranks */
    o.all = 3;
    CHECK_EQ(order_repeat(&o, 4), 13);
    CHECK_EQ(order_at(&o, &w, 1, 4).repeat, 13);
    o.mine = o.all = 0;
    CHECK_EQ(order_span(&o, 1, 2).rows, 1);
    CHECK_EQ(order_position(&o, 1, 2), 5);
    CHECK_EQ(order_position(&o, 1, 3), 6);
    CHECK_EQ(order_at(&o, &w, 1, 2).index, 3);
    CHECK_EQ(order_at(&o, &w, 1, 2).repeat, 2);
    o.resumed_epoch = 1;
    o.resumed_at = 3;
    CHECK_EQ(order_batches(&o, 1), 2);
    CHECK_EQ(order_span(&o, 1, 0).first, 3);
    CHECK_EQ(order_span(&o, 1, 0).rows, 2);
    CHECK_EQ(order_position(&o, 1, 1), 5);
    o.resumed_at = 6;
    CHECK_EQ(order_batches(&o, 1), 0);
    order_forget(&o);
    CHECK_EQ(order_batches(&o, 1), -1);
    order_forget(&o);
}

int main(int argc, char **argv)
{
    TESTS(T(ranks_share_an_epoch), T(drop_last_drops), T(pad_last_pads), T(resumes_with_other_ranks), T(walks_jump),
          T(few), T(shuffles_by_epoch), T(passes_go_on), T(given_orders))
}
