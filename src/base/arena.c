/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c -- scratch memory of one thread.
 *
 * Pages come from the system, not from malloc, so that the memory of a large image returns to the system at once and
 * the heap does not keep it.
 */
#include "base/arena.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, CALM = 128 };

void *pages_new(size_t bytes)
{
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return NULL;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *pages_new_large(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), huge = HUGE_PAGE;
    if (bytes < huge || bytes > SIZE_MAX / 4)
        return pages_new(bytes);
    const size_t kept = (bytes + page - 1) / page * page;
    uint8_t *const p = pages_new(kept + huge);
    if (!p)
        return NULL;
    const size_t before = (huge - (uintptr_t)p % huge) % huge, behind = huge - before;
    if (before)
        munmap(p, before);
    munmap(p + before + kept, behind);
    /* Only advice. Not for the rest at the end, most of which would be wasted. */
    madvise(p + before, bytes / huge * huge, MADV_HUGEPAGE);
    return p + before;
}

void pages_free(void *p, size_t bytes)
{
    if (p)
        munmap(p, bytes);
}

size_t arena_cost(size_t n)
{
    if (n > SIZE_MAX - ARENA_SLACK - ARENA_ALIGN)
        return SIZE_MAX;
    return (n + ARENA_SLACK + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* A rare large image must not hold its memory forever: what none of the last CALM images needed returns to the system.
 * The address range stays reserved. */
static void settle(struct arena *a, size_t n)
{
    a->recent = n > a->recent ? n : a->recent;
    const bool large = a->recent > a->cap / 2;
    if (!large && ++a->calm < CALM)
        return;
    const size_t keep = (a->recent + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE; /* whole pages of any size */
    if (!large && keep < a->cap)
        madvise(a->base + keep, a->cap - keep, MADV_DONTNEED);
    a->calm = 0;
    a->recent = 0;
}

int arena_reserve(struct arena *a, size_t n)
{
    a->used = 0;
    if (n <= a->cap) {
        settle(a, n);
        return 0;
    }
    a->calm = 0;
    a->recent = 0;
    pages_free(a->base, a->cap);
    a->cap = 0;
    a->base = pages_new(n);
    if (!a->base)
        return -1;
    a->cap = n;
    return 0;
}

void *arena_alloc(struct arena *a, size_t n)
{
    const size_t cost = arena_cost(n);
    if (cost > a->cap - a->used)
        return NULL;
    void *p = a->base + a->used;
    a->used += cost;
    return p;
}

void arena_done(struct arena *a)
{
    pages_free(a->base, a->cap);
    *a = (struct arena){0};
}
