/* SPDX-License-Identifier: Apache-2.0 */
/* test_arena.c -- scratch memory: exactly what was reserved can be used. */
#include <sys/mman.h>

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

/* Resident bytes, from a page on. */
static size_t resident(uint8_t *p, size_t bytes)
{
    static unsigned char in[(16 << 20) / 4096];
    size_t n = 0;
    CHECK_EQ(mincore(p, bytes, in), 0);
    for (size_t i = 0; i < bytes / 4096; i++)
        n += in[i] & 1;
    return n * 4096;
}

static void gives_back_what_is_rarely_needed(void)
{
    const size_t large = 16 << 20;
    struct arena a = {0};
    CHECK_EQ(arena_reserve(&a, large), 0);
    memset(a.base, 1, large);
    for (int i = 0; i < 127; i++)
        arena_reserve(&a, 3 << 20);
    CHECK_EQ(resident(a.base, large), large);
    arena_reserve(&a, 1 << 20);
    CHECK_EQ(resident(a.base, large), 4 << 20);
    CHECK_EQ(arena_reserve(&a, large), 0); /* still there */
    memset(a.base, 1, large);
    for (int i = 0; i < 1000; i++) /* not rare */
        arena_reserve(&a, i % 100 ? 4096 : large);
    CHECK_EQ(resident(a.base, large), large);
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

/* All pages are zeroed, and are freed with their size. */
static void large_ones(void)
{
    const size_t huge = 2 << 20, sizes[] = {1, 4096, huge - 1, huge, huge + 1, 2 * huge + 5000, 9 * huge};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *p = pages_new_large(sizes[i]);
        CHECK(p != NULL);
        CHECK(sizes[i] < huge || (uintptr_t)p % huge == 0);
        CHECK_EQ(p[0] | p[sizes[i] / 2] | p[sizes[i] - 1], 0);
        memset(p, 1, sizes[i]);
        pages_free(p, sizes[i]);
    }
    CHECK(pages_new_large(0) == NULL);
    CHECK(pages_new_large(SIZE_MAX) == NULL);
}

int main(int argc, char **argv)
{
    TESTS(T(hands_out_what_was_reserved), T(does_not_shrink), T(gives_back_what_is_rarely_needed),
          T(refuses_the_absurd), T(large_ones))
}
