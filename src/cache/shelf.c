/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf.c -- entries in memory.
 *
 *     base:  | unused | length, bytes, zeros | length, bytes, zeros | ... | not written yet
 *                                                                         ^ used
 *     slots[sample]: where its entry begins, in units of UNIT; or EMPTY, or FILLING
 *
 * Invariants:
 *   (1) used only grows. Memory below it belongs to one writer, or is never written again.
 *   (2) A slot is set, with release, after its entry was written. Readers load it with acquire.
 *   (3) Only the thread that set FILLING changes it.
 *   (4) Memory that was never written is zero, so that every entry is followed by zeros.
 *   (5) Processes that share the memory use these rules, too. If one dies in FILLING, the sample is never kept.
 */
#include "cache/shelf.h"

#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "cache/cache.h"

enum { EMPTY = 0, FILLING = 1, UNIT = 32, HEAD = 16, FIRST = 2, PAGE = 4096 };

static const size_t MOST = (size_t)UINT32_MAX * UNIT;

static size_t slots_bytes(int64_t samples)
{
    const size_t bytes = sizeof(struct shelf_head) + (size_t)samples * sizeof(uint32_t);
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void *map_shared(int fd, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

int shelf_init(struct shelf *s, int64_t samples, size_t bytes, int fd)
{
    const size_t slots = samples < 1 ? 0 : slots_bytes(samples);
    if (samples < 1 || bytes <= slots + FIRST * UNIT)
        return -1;
    const size_t n = bytes - slots < MOST ? bytes : slots + MOST;
    uint8_t *p = fd > 0 ? map_shared(fd, n) : pages_new(n);
    if (!p)
        return -1;
    *s = (struct shelf){.head = (struct shelf_head *)(void *)p,
                        .slots = (_Atomic uint32_t *)(void *)(p + sizeof(struct shelf_head)),
                        .base = p + slots,
                        .cap = n - slots,
                        .mapped_bytes = n,
                        .samples = samples};
    size_t none = 0;
    atomic_compare_exchange_strong(&s->head->used, &none, FIRST * UNIT);
    return 0;
}

void shelf_done(struct shelf *s)
{
    pages_free(s->head, s->mapped_bytes);
    *s = (struct shelf){0};
}

const uint8_t *shelf_find(const struct shelf *s, int64_t sample, size_t *n)
{
    const uint32_t slot = sample < s->samples ? atomic_load_explicit(&s->slots[sample], memory_order_acquire) : EMPTY;
    if (slot < FIRST)
        return NULL;
    const uint8_t *p = s->base + (size_t)slot * UNIT;
    uint64_t length;
    memcpy(&length, p, sizeof length);
    *n = (size_t)length;
    return p + HEAD;
}

bool shelf_near(const struct shelf *s, int64_t sample, size_t n)
{
    const uint32_t slot = sample < s->samples ? atomic_load_explicit(&s->slots[sample], memory_order_acquire) : EMPTY;
    if (slot < FIRST)
        return false;
    cpu_near(s->base + (size_t)slot * UNIT, HEAD + n);
    return true;
}

/* Bytes that an entry takes; 0: more than the shelf has. */
static size_t cost(const struct shelf *s, size_t n)
{
    if (n > s->cap)
        return 0;
    return (HEAD + n + CACHE_SLACK + UNIT - 1) / UNIT * UNIT;
}

bool shelf_fits(const struct shelf *s, size_t n)
{
    const size_t need = cost(s, n);
    return need > 0 && need <= s->cap - atomic_load_explicit(&s->head->used, memory_order_relaxed);
}

/* Claims room for an entry of n bytes; 0: no room left. */
static size_t claim(struct shelf *s, size_t n)
{
    const size_t need = cost(s, n);
    size_t at = atomic_load_explicit(&s->head->used, memory_order_relaxed);
    do {
        if (need == 0 || need > s->cap - at)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&s->head->used, &at, at + need, memory_order_relaxed,
                                                    memory_order_relaxed));
    return at;
}

bool shelf_put(struct shelf *s, int64_t sample, const void *bytes, size_t n, bool renew)
{
    _Atomic uint32_t *slot = &s->slots[sample];
    uint32_t old = EMPTY;
    const bool first =
        atomic_compare_exchange_strong_explicit(slot, &old, FILLING, memory_order_relaxed, memory_order_relaxed);
    if (!first && (!renew || old == FILLING))
        return false;
    const size_t at = claim(s, n);
    if (at == 0) {
        if (first)
            atomic_store_explicit(slot, EMPTY, memory_order_relaxed);
        return false;
    }
    const uint64_t length = n;
    memcpy(s->base + at, &length, sizeof length);
    memcpy(s->base + at + HEAD, bytes, n);
    atomic_store_explicit(slot, (uint32_t)(at / UNIT), memory_order_release);
    if (first)
        atomic_fetch_add_explicit(&s->head->entries, 1, memory_order_relaxed);
    return true;
}

size_t shelf_held(const struct shelf *s)
{
    return s->head ? slots_bytes(s->samples) + atomic_load_explicit(&s->head->used, memory_order_relaxed) : 0;
}

int64_t shelf_entries(const struct shelf *s)
{
    return s->head ? atomic_load_explicit(&s->head->entries, memory_order_relaxed) : 0;
}
