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

/* At the start of the memory. */
struct shelf_head {
    _Atomic size_t used;
    _Atomic int64_t entries;
};

struct shelf {
    struct shelf_head *head;
    _Atomic uint32_t *slots; /* one per sample */
    uint8_t *base;
    size_t cap, mapped_bytes;
    int64_t samples;
};

/* Takes at most `bytes`: address space now, memory when it is written. With a file descriptor, the memory is that file
 * of `bytes`, and all processes that open it share the entries. Returns 0, or -1 if the memory is not available. */
int shelf_init(struct shelf *s, int64_t samples, size_t bytes, int fd);
void shelf_done(struct shelf *s); /* accepts a zeroed struct; may be called twice */

/* NULL: no entry. */
const uint8_t *shelf_find(const struct shelf *s, int64_t sample, size_t *n);
/* Prefetches an entry of n bytes into the CPU's caches. false: no entry. */
bool shelf_near(const struct shelf *s, int64_t sample, size_t n);
bool shelf_fits(const struct shelf *s, size_t n);
/* false: it does not fit, or there is already one and renew is not set. */
bool shelf_put(struct shelf *s, int64_t sample, const void *bytes, size_t n, bool renew);
size_t shelf_held(const struct shelf *s);
int64_t shelf_entries(const struct shelf *s);

#endif
