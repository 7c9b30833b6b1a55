/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h -- keeps bytes per sample, in memory or in a folder that processes and later runs share.
 *
 *     if (cache_find(c, sample, id, &entry))
 *         entry.bytes; if that is NULL, the entry is on disk: cache_load(c, &entry, buffer)
 *     else
 *         make it, and cache_put(c, sample, id, bytes, n)
 *
 * A cache is filled until it is full, and never replaces an entry: the part that fits helps in proportion. It returns
 * what was put, or nothing. It never fails in another way. All functions except open and close may be called from
 * several threads at once.
 *
 * id identifies the sample and the version of its file (never 0). Entries in a folder are found only by it. Entries in
 * memory are found by the index of the sample alone, because they were made in this run.
 */
#ifndef CACHE_H
#define CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sample.h"

enum cache_kind { CACHE_CHECKPOINTS, CACHE_BYTES, CACHE_DCT, CACHE_PIXELS, CACHE_KINDS };

const char *cache_kind_name(enum cache_kind k);

struct cache_options {
    enum cache_kind kind;
    int64_t samples;
    size_t memory;      /* the limit, tables included */
    bool in_memory;     /* keep entries in memory; with a folder, they are kept there as well */
    const char *folder; /* the cache folder; NULL: in memory only */
    const char *source; /* the name of the dataset */
    uint64_t variant;   /* identifies what entries depend on besides the sample */
    int64_t disk;       /* the limit of the folder; 0: a share of the free space */
    int shared;         /* a descriptor of memory that processes share; 0: none */
    bool own;           /* the limit is for this dataset and kind alone */
};

/* How many more bytes a folder can hold, with this options.disk. */
int64_t cache_disk_room(const char *folder, int64_t disk);

struct cache;

/* Never fails: a cache that cannot be opened keeps nothing and explains why. NULL only if no memory is left; the
 * functions below accept that. */
struct cache *cache_open(const struct cache_options *o);
void cache_close(struct cache *c);

struct cache_entry {
    const uint8_t *bytes; /* valid as long as the cache; followed by CACHE_SLACK zeros. NULL: use cache_load */
    size_t n;
    int64_t sample;
    uint32_t spot; /* for cache_load */
};
enum { CACHE_SLACK = 64 };

/* Whether id is needed to find an entry of this sample. It is not once the entry was found in this run. */
bool cache_asks_id(const struct cache *c, int64_t sample);
/* Whether an entry of this sample was found or put in this run. */
bool cache_has(const struct cache *c, int64_t sample);
bool cache_find(struct cache *c, int64_t sample, uint64_t id, struct cache_entry *out);
/* Prefetches an entry of n bytes into the CPU's caches. false: it is not in memory. */
bool cache_near(const struct cache *c, int64_t sample, size_t n);
/* Reads all n bytes of an entry, and verifies their checksum on first use in a run. false: the entry is missing or
 * damaged, and will not be found again. */
bool cache_load(struct cache *c, const struct cache_entry *e, void *to);
/* Whether an entry of n bytes for this sample would be kept. If not, it need not be made. */
bool cache_has_room(struct cache *c, int64_t sample, size_t n);
/* The same for a larger entry that replaces one that was found. */
bool cache_can_renew(struct cache *c, int64_t sample, size_t n);
/* id 0: not in a folder. */
void cache_put(struct cache *c, int64_t sample, uint64_t id, const void *bytes, size_t n);
/* Replaces an older entry of the sample, whose bytes stay valid. */
void cache_renew(struct cache *c, int64_t sample, uint64_t id, const void *bytes, size_t n);

struct cache_stats {
    int64_t entries;                   /* that can be found, as far as is known */
    int64_t memory_bytes, memory_most; /* tables included */
    int64_t disk_bytes, disk_most;     /* of this dataset and kind; the limit of the folder */
    int64_t hits, misses, broken;      /* broken: found, but damaged */
    bool on_disk;
};
void cache_stats(struct cache *c, struct cache_stats *out);
/* Why nothing, or nothing more, is kept; "" if there is no reason. */
void cache_why_not(struct cache *c, char *buf, size_t n);

/* ------------------------------------------------------------------ cache_choose.c */

/* What is known about a dataset when a cache is chosen. */
struct cache_facts {
    stk_cache asked;
    bool rows;        /* no sample needs decoding */
    size_t row_bytes; /* of each row; 0: rows differ in length, or cannot be kept */
    bool in_memory;   /* the samples are already in memory */
    bool drafted; /* fidelity=draft, and an op draws: kept pixels would differ from those decoded at a smaller size */
    const char *place; /* the path of the source; NULL: the samples come from the caller */
    int64_t samples;
    /* From a look at a few samples: how many, how many of them are JPEGs, and the mean bytes of the file and of the
     * pixels that would be kept. Needed only for AUTO. */
    int looked_at, jpegs;
    double file_bytes, pixel_bytes;
};

/* Chooses what to keep in `room` bytes, and writes the reason to words. Any choice but AUTO is kept if possible. */
stk_cache cache_choose(const struct cache_facts *f, int64_t room, char *words, size_t n);

/* ------------------------------------------------------------------ kept pixels, with their shape in front */

/* Bytes of an entry; SIZE_MAX: too many. */
size_t cache_pixels_bytes(int32_t w, int32_t h, int32_t channels);
/* Writes the shape, and the size of the image before the ops, and returns where the pixels go. */
uint8_t *cache_pixels_begin(uint8_t *entry, int32_t w, int32_t h, int32_t channels, const int32_t whole[2]);
/* An entry as an image, which must not be written to, and the size before the ops. false: it is not a valid entry with
 * this many channels. */
bool cache_pixels_image(const uint8_t *entry, size_t n, int channels, struct image *out, int32_t whole[2]);

#endif
