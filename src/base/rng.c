/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.c -- Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
 */
#include "base/rng.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

static void philox(uint32_t c[4], uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)c[0] * 0xd2511f53u, b = (uint64_t)c[2] * 0xcd9e8d57u;
        const uint32_t x0 = (uint32_t)(b >> 32) ^ c[1] ^ k0, x2 = (uint32_t)(a >> 32) ^ c[3] ^ k1;
        c[0] = x0;
        c[1] = (uint32_t)b;
        c[2] = x2;
        c[3] = (uint32_t)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
}

void rng_init(struct rng *r, const struct draw *d, const char *op, int nth)
{
    uint64_t key = hash_bytes(op, strlen(op), (uint64_t)nth);
    key = hash_mix(key, d->seed);
    key = hash_mix(key, d->epoch);
    key = hash_mix(key, d->sample);
    key = hash_mix(key, d->repeat);
    key = hash_mix(key, d->view);
    *r = (struct rng){.key = key};
}

uint32_t rng_u32(struct rng *r)
{
    if (r->left == 0) {
        const uint32_t c[4] = {(uint32_t)r->counter, (uint32_t)(r->counter >> 32), 0, 0};
        memcpy(r->block, c, sizeof c);
        philox(r->block, r->key);
        r->counter++;
        r->left = 4;
    }
    return r->block[4 - r->left--];
}

uint64_t rng_u64(struct rng *r)
{
    const uint64_t high = rng_u32(r);
    return high << 32 | rng_u32(r);
}

double rng_double(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

double rng_between(struct rng *r, double low, double high)
{
    return low + (high - low) * rng_double(r);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    /* Numbers below 2^64 mod n would favour small results: draw again. */
    const uint64_t reject = (0 - n) % n;
    for (;;) {
        const uint64_t v = rng_u64(r);
        if (v >= reject)
            return v % n;
    }
}

bool rng_chance(struct rng *r, double p)
{
    return rng_double(r) < p;
}

/* Box and Muller. */
double rng_normal(struct rng *r)
{
    const double u = 1.0 - rng_double(r), v = rng_double(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables". */
double rng_log_gamma(struct rng *r, double shape)
{
    if (shape < 1.0) {
        const double u = 1.0 - rng_double(r);
        return rng_log_gamma(r, shape + 1.0) + log(u) / shape;
    }
    const double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        const double x = rng_normal(r), t = 1.0 + c * x, v = t * t * t, u = 1.0 - rng_double(r);
        if (t > 0.0 && log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v);
    }
}

uint64_t rng_of_hook(const struct draw *d, const char *hook)
{
    struct rng r;
    rng_init(&r, d, hook, 0);
    return rng_u64(&r);
}
