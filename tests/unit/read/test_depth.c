/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_depth.c -- the depth of the queue with simulated storage.
 */
#include "read/ahead_inner.h"

#include "test.h"

/* Storage that gains nothing from more than `wide` at a time. */
static double rate(int depth, int wide)
{
    return depth < wide ? depth : wide;
}

static void settle(struct depth *d, int wide, int windows)
{
    for (int i = 0; i < windows; i++)
        depth_window(d, rate(d->now, wide), true);
}

static void grows_while_it_pays(void)
{
    for (int wide = 1; wide <= 256; wide *= 2) {
        struct depth d;
        depth_init(&d, 8, 8, 128);
        settle(&d, wide, 12); /* fewer than it holds still for */
        CHECK_EQ(d.now, wide < 8 ? 8 : wide > 128 ? 128 : wide);
    }
}

static void tries_again_later(void)
{
    struct depth d;
    depth_init(&d, 8, 8, 128);
    settle(&d, 8, 5);
    CHECK_EQ(d.now, 8);
    settle(&d, 64, 100); /* the storage has become another */
    CHECK(d.now >= 64);
}

static void shrinks_without_waiting(void)
{
    struct depth d;
    depth_init(&d, 8, 8, 128);
    settle(&d, 128, 8);
    CHECK_EQ(d.now, 128);
    for (int i = 0; i < 1000; i++)
        depth_window(&d, 1, false);
    CHECK_EQ(d.now, 8);
}

static void stays_within_its_bounds(void)
{
    struct depth d;
    depth_init(&d, 64, 64, 16); /* more threads than files may be open */
    CHECK(d.now == 16 && d.min == 16);
    settle(&d, 1000, 100);
    CHECK_EQ(d.now, 16);
    for (int i = 0; i < 1000; i++)
        depth_window(&d, 1, false);
    CHECK_EQ(d.now, 16);
}

int main(int argc, char **argv)
{
    TESTS(T(grows_while_it_pays), T(tries_again_later), T(shrinks_without_waiting), T(stays_within_its_bounds))
}
