/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c -- scratch memory of one thread.
 *
 * Pages come from the system, not from malloc: what a large picture took goes back at once, and the
 * heap's own arenas do not ratchet up.
 */
#include "base/arena.h"

#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

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
    /* Only advice; and not for the end, of which most would be held in vain. */
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

int arena_reserve(struct arena *a, size_t n)
{
    a->used = 0;
    if (n <= a->cap)
        return 0;
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
