/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h -- entries on disk, of one data set and kind, which processes of a host and later runs share.
 */
#ifndef STORE_H
#define STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/cache.h"
#include "cache/segment.h"

enum { STORE_SEGMENTS = 64, STORE_WORDS = 256 };

struct spot;

struct store {
    int dir; /* the data set's folder; -1: none */
    uint32_t kind;
    char prefix[40];         /* of the names of its segments */
    _Atomic uint32_t *slots; /* one a sample: its spot, once it was looked for */
    int64_t samples;

    /* Where everything is: written under lock, a spot never after it was handed out. */
    pthread_mutex_t lock;
    struct spot *spots;
    uint32_t *table; /* key -> spot + 1 */
    uint32_t n_spots, max_spots, table_size;
    uint32_t found; /* spots at open */
    struct segment segments[STORE_SEGMENTS];
    int n_segments, own;                    /* own: the one that is written to; -1: none yet */
    uint64_t misses, useful;                /* samples that were looked for by key and not found, and found */
    int64_t entries, bytes;                 /* keys that can be found; of all that was written for them */
    int64_t held, limit, file_limit, spare; /* of the whole folder; of one file; to be left free on the disk */
    int64_t unlooked;                       /* written since the free space was last looked at */
    bool read_only;                         /* nothing more is written */
    bool opening;                           /* no other thread is there yet */
    bool full;                              /* something did not fit */
    char why[STORE_WORDS];
    _Atomic int64_t broken;
};

/* Memory for the tables of so many samples. */
size_t store_memory(int64_t samples);
/* On failure why says it, and nothing is kept; store_close in any case. */
int store_open(struct store *s, const struct cache_options *o);
void store_close(struct store *s);

/* As cache_*: the slot knows. */
bool store_knows(const struct store *s, int64_t sample);
bool store_find(struct store *s, int64_t sample, uint64_t key, struct cache_entry *out);
bool store_load(struct store *s, const struct cache_entry *e, void *to);
bool store_fits(struct store *s, size_t n);
bool store_put(struct store *s, int64_t sample, uint64_t key, const void *bytes, size_t n, bool renew);

#endif
