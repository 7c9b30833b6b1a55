/* SPDX-License-Identifier: Apache-2.0 */
/* test_arena.c -- scratch memory: what was reserved is there, and no more. */
#include "base/arena.h"
#include "test.h"

static void hands_out_what_was_reserved(void)
{
    struct arena a = {0};
    CHECK_EQ(arena_reserve(&a, arena_cost(100) + arena_cost(1)), 0);
    uint8_t *p = arena_alloc(&a, 100), *q = arena_alloc(&a, 1);
    CHECK(p && q && q >= p + 100 + ARENA_SLACK);
    CHECK_EQ((uintptr_t)p % ARENA_ALIGN, 0);
    CHECK_EQ((uintptr_t)q % ARENA_ALIGN, 0);
    CHECK(arena_alloc(&a, 1) == NULL);
    q[ARENA_SLACK] = 1; /* the slack is ours */
    arena_done(&a);
    arena_done(&a);
}

static void does_not_shrink(void)
{
    struct arena a = {0};
    arena_reserve(&a, 1 << 20);
    arena_alloc(&a, 10);
    const uint8_t *base = a.base;
    arena_reserve(&a, 4096);
    CHECK(a.base == base);
    CHECK_EQ(a.cap, 1 << 20);
    CHECK_EQ(a.used, 0);
    arena_done(&a);
}

static void refuses_the_absurd(void)
{
    struct arena a = {0};
    CHECK_EQ(arena_cost(SIZE_MAX), SIZE_MAX);
    CHECK_EQ(arena_reserve(&a, SIZE_MAX), -1);
    CHECK(arena_alloc(&a, 1) == NULL);
    CHECK(pages_new(0) == NULL);
    pages_free(NULL, 0);
    arena_done(&a);
}

int main(int argc, char **argv)
{
    TESTS(T(hands_out_what_was_reserved), T(does_not_shrink), T(refuses_the_absurd))
}
