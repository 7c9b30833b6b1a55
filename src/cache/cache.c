/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c -- a shelf in memory, a store on disk, or both. With both, the store serves later runs and other processes,
 * and entries found there are copied to the shelf.
 */
#include "cache/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "cache/folder.h"
#include "cache/shelf.h"
#include "cache/store.h"

struct cache {
    enum cache_kind kind;
    uint64_t seed; /* of keys: the kind, the variant and the dataset */
    size_t most, tables;
    bool has_shelf, has_store, opened; /* opened: the store has to be closed, even if it cannot be used */
    struct shelf shelf;
    struct store store;
    const char *why;
    _Atomic int64_t hits, misses;
};

const char *cache_kind_name(enum cache_kind k)
{
    static const char *const names[CACHE_KINDS] = {"checkpoints", "bytes", "dct", "pixels"};
    return (unsigned)k < CACHE_KINDS ? names[k] : "unknown";
}

int64_t cache_disk_room(const char *folder, int64_t disk)
{
    const int64_t held = folder_bytes(folder);
    int64_t spare, limit = disk;
    if (disk <= 0) {
        const int dir = file_make_folders(folder) == 0 ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        limit = dir < 0 ? held : folder_share(dir, held, &spare);
        if (dir >= 0)
            close(dir);
    }
    return limit > held ? limit - held : 0;
}

/* ------------------------------------------------------------------ life */

static void open_store(struct cache *c, const struct cache_options *o)
{
    c->tables = store_memory(o->samples);
    if (c->tables > o->memory) {
        c->tables = 0;
        c->why = "the memory limit is too small for the tables of the cache folder";
        return;
    }
    c->has_store = store_open(&c->store, o) == 0;
    c->opened = true;
}

struct cache *cache_open(const struct cache_options *o)
{
    struct cache *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->kind = o->kind;
    c->most = o->memory;
    c->why = "";
    c->seed = hash_mix(hash_bytes(o->source ? o->source : "", o->source ? strlen(o->source) : 0, o->kind), o->variant);
    if (o->folder && o->source)
        open_store(c, o);
    if (!o->in_memory)
        return c;
    c->has_shelf = shelf_init(&c->shelf, o->samples, o->memory - c->tables, o->shared) == 0;
    if (!c->has_shelf)
        c->why = "the memory limit is too small for it";
    return c;
}

void cache_close(struct cache *c)
{
    if (!c)
        return;
    shelf_done(&c->shelf);
    if (c->opened)
        store_close(&c->store);
    free(c);
}

/* ------------------------------------------------------------------ finding */

static uint64_t key_of(const struct cache *c, uint64_t id)
{
    const uint64_t key = id ? hash_mix(c->seed, id) : 0;
    return id && key == 0 ? 1 : key;
}

bool cache_has(const struct cache *c, int64_t sample)
{
    size_t n;
    if (!c)
        return false;
    return (c->has_shelf && shelf_find(&c->shelf, sample, &n)) || (c->has_store && store_knows(&c->store, sample));
}

bool cache_asks_id(const struct cache *c, int64_t sample)
{
    return c && c->has_store && !cache_has(c, sample);
}

static bool find(struct cache *c, int64_t sample, uint64_t id, struct cache_entry *out)
{
    *out = (struct cache_entry){.sample = sample};
    if (c->has_shelf)
        out->bytes = shelf_find(&c->shelf, sample, &out->n);
    if (out->bytes)
        return true;
    return c->has_store && store_find(&c->store, sample, key_of(c, id), out);
}

bool cache_find(struct cache *c, int64_t sample, uint64_t id, struct cache_entry *out)
{
    if (!c)
        return false;
    const bool found = find(c, sample, id, out);
    atomic_fetch_add_explicit(found ? &c->hits : &c->misses, 1, memory_order_relaxed);
    return found;
}

bool cache_near(const struct cache *c, int64_t sample, size_t n)
{
    return c && c->has_shelf && shelf_near(&c->shelf, sample, n);
}

bool cache_load(struct cache *c, const struct cache_entry *e, void *to)
{
    const bool good = store_load(&c->store, e, to);
    if (!good) {
        atomic_fetch_sub_explicit(&c->hits, 1, memory_order_relaxed);
        return false;
    }
    if (c->has_shelf)
        shelf_put(&c->shelf, e->sample, to, e->n, false);
    return true;
}

/* ------------------------------------------------------------------ keeping */

bool cache_has_room(struct cache *c, int64_t sample, size_t n)
{
    size_t held;
    if (!c || n == 0)
        return false;
    if (c->has_shelf && !shelf_find(&c->shelf, sample, &held) && shelf_fits(&c->shelf, n))
        return true;
    return c->has_store && !store_knows(&c->store, sample) && store_fits(&c->store, n);
}

/* Entries in memory are found first, so a larger one on disk would never be found. */
bool cache_can_renew(struct cache *c, int64_t sample, size_t n)
{
    size_t held;
    if (!c || n == 0)
        return false;
    if (c->has_shelf && shelf_find(&c->shelf, sample, &held))
        return shelf_fits(&c->shelf, n);
    return c->has_store && store_fits(&c->store, n);
}

static void put(struct cache *c, int64_t sample, uint64_t id, const void *bytes, size_t n, bool renew)
{
    if (!c || n == 0)
        return;
    if (c->has_shelf)
        shelf_put(&c->shelf, sample, bytes, n, renew);
    if (c->has_store)
        store_put(&c->store, sample, key_of(c, id), bytes, n, renew);
}

void cache_put(struct cache *c, int64_t sample, uint64_t id, const void *bytes, size_t n)
{
    put(c, sample, id, bytes, n, false);
}

void cache_renew(struct cache *c, int64_t sample, uint64_t id, const void *bytes, size_t n)
{
    put(c, sample, id, bytes, n, true);
}

/* ------------------------------------------------------------------ statistics */

void cache_stats(struct cache *c, struct cache_stats *out)
{
    *out = (struct cache_stats){0};
    if (!c)
        return;
    out->memory_bytes = (int64_t)(shelf_held(&c->shelf) + c->tables);
    out->memory_most = (int64_t)c->most;
    out->hits = atomic_load_explicit(&c->hits, memory_order_relaxed);
    out->misses = atomic_load_explicit(&c->misses, memory_order_relaxed);
    out->entries = shelf_entries(&c->shelf);
    if (!c->has_store)
        return;
    struct store *s = &c->store;
    pthread_mutex_lock(&s->lock);
    out->on_disk = true;
    out->disk_bytes = s->bytes;
    out->disk_most = s->limit;
    out->entries = s->entries > out->entries ? s->entries : out->entries;
    pthread_mutex_unlock(&s->lock);
    out->broken = atomic_load_explicit(&s->broken, memory_order_relaxed);
}

void cache_why_not(struct cache *c, char *buf, size_t n)
{
    snprintf(buf, n, "%s", c ? c->why : "out of memory");
    if (!c || !c->opened || buf[0])
        return;
    struct store *s = &c->store;
    pthread_mutex_lock(&s->lock);
    if (s->full && !s->why[0])
        snprintf(buf, n, "it is full; `stoker cache ls` lists what the folder contains");
    else
        snprintf(buf, n, "%s", s->why);
    pthread_mutex_unlock(&s->lock);
}

/* ------------------------------------------------------------------ entries of kept pixels */

/*
 *     | w | h | channels | 0 |  pixels, 8-bit, interleaved, without gaps
 *
 * Pixels are kept as they are after the last op that does not draw. Even rows that are then complete are kept as 8-bit
 * pixels, not as floats: that takes a quarter of the room, and converting them costs no more than copying floats.
 */
/* In this machine's byte order. */
struct shape {
    uint32_t w, h, channels, zero;
    int32_t whole[2], none[2];
};

size_t cache_pixels_bytes(int32_t w, int32_t h, int32_t channels)
{
    return size_add(size_mul(size_mul((size_t)w, (size_t)h), (size_t)channels), sizeof(struct shape));
}

uint8_t *cache_pixels_begin(uint8_t *entry, int32_t w, int32_t h, int32_t channels, const int32_t whole[2])
{
    const struct shape s = {(uint32_t)w, (uint32_t)h, (uint32_t)channels, 0, {whole[0], whole[1]}, {0}};
    memcpy(entry, &s, sizeof s);
    return entry + sizeof s;
}

bool cache_pixels_image(const uint8_t *entry, size_t n, int channels, struct image *out, int32_t whole[2])
{
    struct shape s;
    if (n < sizeof s)
        return false;
    memcpy(&s, entry, sizeof s);
    memcpy(whole, s.whole, sizeof s.whole);
    if (s.w < 1 || s.whole[0] < 1 || s.whole[1] < 1 || s.h < 1 || s.w > INT32_MAX / 4 || s.h > INT32_MAX ||
        (int)s.channels != channels || size_mul(size_mul(s.w, s.channels), s.h) != n - sizeof s)
        return false;
    *out = (struct image){.px = (uint8_t *)(uintptr_t)entry + sizeof s,
                          .stride = (size_t)s.w * s.channels,
                          .w = (int32_t)s.w,
                          .h = (int32_t)s.h,
                          .channels = (int32_t)s.channels};
    return true;
}
