/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twins.h -- shared by the tests of kernels: the instruction sets of this machine, random input, output between guards.
 *
 * Inputs end where the slack that kernels may read ends, so that the sanitizer reports reads past it.
 */
#ifndef TWINS_H
#define TWINS_H

#include "base/cpu.h"
#include "base/rng.h"
#include "base/sample.h"
#include "test.h"

enum { GUARD = 64, POISON = 0xd7 };

static struct rng rng;
static uint64_t seed;

static stk_cpu sets[3] = {STK_CPU_C};
static int n_sets = 1;

static inline int below(int n)
{
    return (int)rng_below(&rng, (uint64_t)n);
}

/* Bytes that are random, extreme, or all equal. */
static inline void fill(uint8_t *p, size_t n)
{
    const int kind = below(4);
    const uint8_t same = (uint8_t)below(256);
    for (size_t i = 0; i < n; i++)
        p[i] = kind == 0 ? same : kind == 1 ? (uint8_t)(below(2) * 255) : (uint8_t)rng_u32(&rng);
}

static inline uint8_t *input(size_t n)
{
    uint8_t *p = malloc(n + IMAGE_SLACK);
    fill(p, n + IMAGE_SLACK);
    return p;
}

/* Aligned memory for n bytes between guards, shifted by `off`. */
struct output {
    uint8_t *memory, *at;
    size_t n;
};

static inline struct output output_new(size_t n, size_t off)
{
    struct output o = {.n = n};
    o.memory = aligned_alloc(64, (n + off + 2 * GUARD + 63) / 64 * 64);
    memset(o.memory, POISON, n + off + 2 * GUARD);
    o.at = o.memory + GUARD + off;
    return o;
}

static inline bool guards_hold(const struct output *o)
{
    for (int i = 1; i <= GUARD; i++)
        if (o->at[-i] != POISON || o->at[o->n + (size_t)i - 1] != POISON)
            return false;
    return true;
}

/* Checks that two outputs are equal and stayed within their bounds; frees them. */
static inline bool agree(struct output *a, struct output *b, const char *what, int set)
{
    const bool good = memcmp(a->at, b->at, a->n) == 0 && guards_hold(a) && guards_hold(b);
    if (!good)
        printf("seed %" PRIu64 ": %s on %s: %s\n", seed, what, cpu_name(sets[set]),
               guards_hold(b) ? "other bytes" : "wrote past its result");
    free(a->memory);
    free(b->memory);
    return good;
}

/* Detects the machine's instruction sets. The seed comes from the caller (STOKER_SEED) or from the clock. */
static inline void twins_begin(const char *name)
{
    struct machine m;
    machine_look(&m);
    if (m.avx2)
        sets[n_sets++] = STK_CPU_AVX2;
    if (m.avx512)
        sets[n_sets++] = STK_CPU_AVX512;
    const char *given = getenv("STOKER_SEED");
    seed = given ? strtoull(given, NULL, 10) : now_ns() % 1000000;
    rng_init(&rng, &(struct draw){.seed = seed}, name, 0);
}

static inline void twins_say(void)
{
    printf("seed %" PRIu64 ", kernels:", seed);
    for (int s = 0; s < n_sets; s++)
        printf(" %s", cpu_name(sets[s]));
    printf("\n");
}

#endif
