/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf.h -- entries in memory: appended, found by the index of the sample, never moved.
 */
#ifndef SHELF_H
#define SHELF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shelf {
    uint8_t *base;
    size_t cap, slots_bytes;
    _Atomic size_t used;
    _Atomic uint32_t *slots; /* one per sample */
    int64_t samples;
    _Atomic int64_t entries;
};

/* Takes at most `bytes`: address space now, memory when it is written. Returns 0, or -1 if that is not available. */
int shelf_init(struct shelf *s, int64_t samples, size_t bytes);
void shelf_done(struct shelf *s); /* accepts a zeroed struct; may be called twice */

/* NULL: no entry. */
const uint8_t *shelf_find(const struct shelf *s, int64_t sample, size_t *n);
/* Prefetches an entry of n bytes into the CPU's caches. false: no entry. */
bool shelf_near(const struct shelf *s, int64_t sample, size_t n);
bool shelf_fits(const struct shelf *s, size_t n);
/* false: it does not fit, or there is already one and renew is not set. */
bool shelf_put(struct shelf *s, int64_t sample, const void *bytes, size_t n, bool renew);
size_t shelf_held(const struct shelf *s);

#endif
