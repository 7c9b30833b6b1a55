/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h -- bytes kept per sample, in memory or in a folder that processes and later runs share.
 *
 *     if (cache_find(c, sample, id, &entry))
 *         entry.bytes, or cache_load(c, &entry, buffer) where that is NULL: it lies on disk
 *     else
 *         make it, and cache_put(c, sample, id, bytes, n)
 *
 * A cache is filled while it lasts and never replaces what it has: the part that fits helps in proportion. What it
 * holds is always what was put, or nothing; it never fails but by not having something. All functions but open and
 * close may be called from any thread at once.
 *
 * id says which state of which sample an entry was made from (never 0): an entry in a folder is found only by it. In
 * memory entries go by the number of the sample alone, since they were made in this run.
 */
#ifndef CACHE_H
#define CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cache_kind { CACHE_POINTS, CACHE_BYTES, CACHE_DCT, CACHE_PIXELS, CACHE_KINDS };

const char *cache_kind_name(enum cache_kind k);

struct cache_options {
    enum cache_kind kind;
    int64_t samples;
    size_t memory;      /* all it may take, tables included */
    bool in_memory;     /* whether entries are kept in memory; a folder may come on top, and then has them, too */
    const char *folder; /* for caches, as cache_dir; NULL: in memory only */
    const char *source; /* the data set's name, which tells it from others */
    uint64_t variant;   /* of what is kept, where it depends on more than the sample */
    int64_t disk;       /* the most that the folder may hold; 0: a share of what is free */
    bool own;           /* disk counts this data set and kind alone */
};

/* How much more a folder could hold, with options.disk as given. */
int64_t cache_disk_room(const char *folder, int64_t disk);

struct cache;

/* Never fails: a cache that cannot be had keeps nothing and says why. NULL only when there is no memory at all, and
 * the functions below take that. */
struct cache *cache_open(const struct cache_options *o);
void cache_close(struct cache *c);

struct cache_entry {
    const uint8_t *bytes; /* for as long as the cache; followed by CACHE_SLACK zeros. NULL: cache_load reads them */
    size_t n;
    int64_t sample;
    uint32_t spot; /* the cache's own */
};
enum { CACHE_SLACK = 64 };

/* Whether id is needed to find an entry of this sample: not once it was found in this run. */
bool cache_asks_id(const struct cache *c, int64_t sample);
/* Whether an entry of this sample was found or put in this run. */
bool cache_has(const struct cache *c, int64_t sample);
bool cache_find(struct cache *c, int64_t sample, uint64_t id, struct cache_entry *out);
/* An entry of n bytes is about to be found: memory may be brought into the CPU's caches. false: none is in memory. */
bool cache_near(const struct cache *c, int64_t sample, size_t n);
/* Reads all of an entry's n bytes; on first use in a run their checksum is proved. false: it is not there, or not
 * as it was put, and is forgotten. */
bool cache_load(struct cache *c, const struct cache_entry *e, void *to);
/* Whether n more bytes for this sample would be kept; else making them is in vain. */
bool cache_has_room(struct cache *c, int64_t sample, size_t n);
/* id 0: not into a folder. */
void cache_put(struct cache *c, int64_t sample, uint64_t id, const void *bytes, size_t n);
/* The same in the place of an older entry of the sample, which stays valid for whoever has it. */
void cache_renew(struct cache *c, int64_t sample, uint64_t id, const void *bytes, size_t n);

struct cache_stats {
    int64_t entries;                   /* that can be found without making them, as far as is known */
    int64_t memory_bytes, memory_most; /* with tables */
    int64_t disk_bytes, disk_most;     /* of this data set and kind; of all in the folder */
    int64_t hits, misses, broken;      /* broken: found, but not as they were put */
    bool on_disk;
};
void cache_stats(struct cache *c, struct cache_stats *out);
/* Why nothing, or nothing more, is kept: words, or "". */
void cache_why_not(struct cache *c, char *buf, size_t n);

#endif
