/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h -- entries on disk, of one dataset and kind. Processes on this machine and later runs share them.
 */
#ifndef STORE_H
#define STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/cache.h"
#include "cache/volume.h"

enum { STORE_VOLUMES = 64, STORE_WORDS = 256 };

struct spot;

struct store {
    int dir; /* the dataset's folder; -1: none */
    uint32_t kind;
    char prefix[40];         /* of the names of its volumes */
    _Atomic uint32_t *slots; /* one per sample: its spot, once it was found */
    int64_t samples;

    /* Where entries are. Written under lock; a spot never changes after it was handed out. */
    pthread_mutex_t lock;
    struct spot *spots;
    uint32_t *table; /* key -> spot + 1 */
    uint32_t n_spots, max_spots, table_size;
    uint32_t found; /* spots at open */
    struct volume volumes[STORE_VOLUMES];
    int n_volumes, own;                     /* own: the volume that we write to; -1: none yet */
    uint64_t misses, useful;                /* lookups by key that failed; that succeeded */
    int64_t entries, bytes;                 /* keys that can be found; bytes written for them */
    int64_t held, limit, file_limit, spare; /* held and limit of the folder; limit of a file; to stay free on disk */
    int64_t unlooked;                       /* bytes written since the free space was last checked */
    bool read_only;                         /* nothing more is written */
    bool opening;                           /* no other thread uses it yet */
    bool full;                              /* something did not fit */
    char why[STORE_WORDS];
    _Atomic int64_t broken;
};

/* Memory that the tables for this many samples take. */
size_t store_memory(int64_t samples);
/* On failure `why` explains it, and nothing is kept. Call store_close in any case. */
int store_open(struct store *s, const struct cache_options *o);
void store_close(struct store *s);

/* As in cache.h. store_knows: the entry was found or put in this run. */
bool store_knows(const struct store *s, int64_t sample);
bool store_find(struct store *s, int64_t sample, uint64_t key, struct cache_entry *out);
bool store_load(struct store *s, const struct cache_entry *e, void *to);
bool store_fits(struct store *s, size_t n);
bool store_put(struct store *s, int64_t sample, uint64_t key, const void *bytes, size_t n, bool renew);

#endif
