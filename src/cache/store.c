/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c -- entries on disk.
 *
 *     slots[sample] --> spots[] --> volumes[].data
 *     key --> table ------^
 *
 * At open the indexes of all volumes are read into spots, and the table finds them by key. The first lookup of a
 * sample goes through the table, under lock: the key contains the current version of the sample. The slot remembers the
 * spot, and later lookups need no lock. A key may have several spots, if two processes wrote it, or if it was written
 * again after an entry was found damaged. The longest one counts, then the latest. A damaged one is forgotten, and the
 * next lookup finds another or none.
 *
 * Every LOOK-th miss looks for entries that other processes have added, so that ranks share what each of them makes.
 *
 * To write an entry, room is claimed under lock, the bytes are written without it, and then the record, under lock. So
 * no record exists before its bytes, whenever the process is killed. After the first failure nothing is written any
 * more: a disk that is full or read-only will not be better for the next sample.
 */
#include "cache/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "cache/folder.h"

struct spot {
    uint64_t key, at, sum;
    uint32_t n, volume;
};

enum { UNKNOWN = 0, FILLING = 1, FIRST = 2, LOOK = 8 };

static const uint32_t PROVED = UINT32_C(1) << 31, GONE = UINT32_MAX;
static const int64_t LOOK_BYTES = 64 << 20;

/* ------------------------------------------------------------------ tables */

static uint32_t spots_for(int64_t samples)
{
    const int64_t most = (int64_t)PROVED - FIRST - 1, n = samples + samples / 4 + 1024;
    return (uint32_t)(n < most ? n : most);
}

static uint32_t table_for(uint32_t spots)
{
    uint32_t size = 1024;
    while (size < UINT32_C(1) << 31 && size / 5 * 4 < spots)
        size *= 2;
    return size;
}

size_t store_memory(int64_t samples)
{
    const uint32_t spots = spots_for(samples);
    return (size_t)samples * sizeof(uint32_t) + (size_t)spots * sizeof(struct spot) +
           (size_t)table_for(spots) * sizeof(uint32_t);
}

static int make_tables(struct store *s, int64_t samples)
{
    s->samples = samples;
    s->max_spots = spots_for(samples);
    s->table_size = table_for(s->max_spots);
    s->slots = pages_new((size_t)samples * sizeof *s->slots);
    s->spots = pages_new((size_t)s->max_spots * sizeof *s->spots);
    s->table = pages_new((size_t)s->table_size * sizeof *s->table);
    return s->slots && s->spots && s->table ? 0 : -1;
}

/* The index in the table of the best spot for a key; -1: none. The table is never full. */
static int64_t look_up(const struct store *s, uint64_t key)
{
    int64_t best = -1;
    for (uint32_t i = (uint32_t)key & (s->table_size - 1); s->table[i]; i = (i + 1) & (s->table_size - 1)) {
        if (s->table[i] == GONE || s->spots[s->table[i] - 1].key != key)
            continue;
        const struct spot *now = best < 0 ? NULL : &s->spots[s->table[best] - 1];
        const struct spot *new = &s->spots[s->table[i] - 1];
        if (!now || new->n > now->n || (new->n == now->n &&new > now))
            best = i;
    }
    return best;
}

/* Returns the index of the new spot; -1: no room. During open a better spot replaces an older one with the same key:
 * otherwise entries that grew from run to run would use up the room. */
static int64_t add_spot(struct store *s, const struct volume_record *r, int volume)
{
    const struct spot new = {
        .key = r->key, .at = r->at, .sum = r->sum, .n = (uint32_t)r->n, .volume = (uint32_t)volume};
    const int64_t old = look_up(s, r->key);
    if (s->opening && old >= 0) {
        struct spot *p = &s->spots[s->table[old] - 1];
        *p = new.n >= p->n ? new : *p;
        s->bytes += (int64_t)(r->n + sizeof *r);
        return s->table[old] - 1;
    }
    if (s->n_spots >= s->max_spots)
        return -1;
    s->entries += old < 0;
    s->spots[s->n_spots] = new;
    uint32_t i = (uint32_t)r->key & (s->table_size - 1);
    while (s->table[i])
        i = (i + 1) & (s->table_size - 1);
    s->table[i] = ++s->n_spots;
    s->bytes += (int64_t)(r->n + sizeof *r);
    return s->n_spots - 1;
}

/* ------------------------------------------------------------------ reading the indexes */

static void take_records(struct store *s, int volume)
{
    struct volume_record some[VOLUME_AT_ONCE];
    for (int n; (n = volume_news(&s->volumes[volume], some)) > 0;)
        for (int i = 0; i < n; i++)
            if (some[i].kind == s->kind)
                add_spot(s, &some[i], volume);
}

static bool has_volume(const struct store *s, const char *name, size_t length)
{
    for (int i = 0; i < s->n_volumes; i++)
        if (strncmp(s->volumes[i].name, name, length) == 0 && s->volumes[i].name[length] == 0)
            return true;
    return false;
}

/* If a file is the index of a volume of this kind: the length of its name without the suffix. Otherwise 0. */
static size_t is_index(const struct store *s, const char *file)
{
    const size_t n = strlen(file), suffix = strlen(".index"), prefix = strlen(s->prefix);
    if (n <= suffix || n - suffix >= VOLUME_NAME || strcmp(file + n - suffix, ".index") != 0)
        return 0;
    return strncmp(file, s->prefix, prefix) == 0 && file[prefix] == '.' ? n - suffix : 0;
}

static void find_volumes(struct store *s)
{
    const int fd = fcntl(s->dir, F_DUPFD_CLOEXEC, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    rewinddir(d); /* duplicated descriptors share their position */
    for (const struct dirent *f; s->n_volumes < STORE_VOLUMES && (f = readdir(d));) {
        char name[VOLUME_NAME];
        const size_t n = is_index(s, f->d_name);
        if (n == 0 || has_volume(s, f->d_name, n))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)n, f->d_name);
        if (volume_open(&s->volumes[s->n_volumes], s->dir, name) == 0)
            s->n_volumes++;
    }
    closedir(d);
}

/* Reads new volumes and new records of other processes. */
static void look(struct store *s)
{
    const int64_t before = s->bytes;
    find_volumes(s);
    for (int i = 0; i < s->n_volumes; i++)
        if (i != s->own)
            take_records(s, i);
    s->held += s->bytes - before;
}

/* ------------------------------------------------------------------ life */

static int refuse(struct store *s, const char *what, int why)
{
    char words[128];
    if (why)
        snprintf(s->why, sizeof s->why, "%s: %s", what, strerror_r(why, words, sizeof words));
    else
        snprintf(s->why, sizeof s->why, "%s", what);
    s->read_only = true;
    return -1;
}

static void set_limits(struct store *s, const struct cache_options *o)
{
    struct rlimit r;
    const int64_t share = folder_share(s->dir, s->held, &s->spare);
    s->limit = o->disk <= 0 || (o->own && share < o->disk) ? share : o->disk;
    if (o->disk > 0 && !o->own)
        s->spare = 0; /* the caller set the limit */
    s->file_limit = INT64_MAX / 2;
    if (getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur != RLIM_INFINITY && r.rlim_cur < (rlim_t)s->file_limit)
        s->file_limit = (int64_t)r.rlim_cur; /* writing beyond it would raise a signal */
}

int store_open(struct store *s, const struct cache_options *o)
{
    int why = 0;
    *s = (struct store){.dir = -1, .own = -1, .kind = (uint32_t)o->kind};
    pthread_mutex_init(&s->lock, NULL);
    if (make_tables(s, o->samples) != 0)
        return refuse(s, "out of memory for the tables of the cache folder", 0);
    s->dir = folder_open(o->folder, o->source, &why);
    if (s->dir < 0)
        return refuse(s, "its folder cannot be created", why);
    snprintf(s->prefix, sizeof s->prefix, "%s.%016llx", cache_kind_name(o->kind), (unsigned long long)o->variant);
    s->opening = true;
    look(s);
    s->opening = false;
    s->found = s->n_spots;
    s->held = o->own ? s->bytes : folder_bytes(o->folder);
    set_limits(s, o);
    const struct timespec now[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    for (int i = 0; i < s->n_volumes; i++)
        futimens(s->volumes[i].index, now); /* the time of last use, for `cache ls` */
    return 0;
}

/* If the store is full, and hardly any entry was used although half of all samples were looked up, the files have
 * changed. Then the entries are deleted, and the next run starts with an empty store. Volumes that another process
 * writes to are not deleted. */
static void clear_stale(struct store *s)
{
    const uint64_t useful = s->useful + s->n_spots - s->found; /* including the entries of this run */
    if (!s->full || useful >= (s->found + 15) / 16 || (int64_t)s->misses < s->samples / 2)
        return;
    for (int i = 0; i < s->n_volumes; i++)
        if (i == s->own || volume_lock(&s->volumes[i], s->dir) == 0)
            volume_unlink(&s->volumes[i], s->dir);
}

void store_close(struct store *s)
{
    clear_stale(s);
    for (int i = 0; i < s->n_volumes; i++)
        volume_close(&s->volumes[i]);
    if (s->dir >= 0)
        close(s->dir);
    pages_free((void *)s->slots, (size_t)s->samples * sizeof *s->slots);
    pages_free(s->spots, (size_t)s->max_spots * sizeof *s->spots);
    pages_free(s->table, (size_t)s->table_size * sizeof *s->table);
    pthread_mutex_destroy(&s->lock);
}

/* ------------------------------------------------------------------ finding */

bool store_knows(const struct store *s, int64_t sample)
{
    return atomic_load_explicit(&s->slots[sample], memory_order_acquire) >= FIRST;
}

static void entry_of(const struct store *s, int64_t sample, uint32_t slot, struct cache_entry *out)
{
    const struct spot *p = &s->spots[(slot & ~PROVED) - FIRST];
    *out = (struct cache_entry){.n = p->n, .sample = sample, .spot = slot};
}

bool store_find(struct store *s, int64_t sample, uint64_t key, struct cache_entry *out)
{
    uint32_t slot = atomic_load_explicit(&s->slots[sample], memory_order_acquire);
    if (slot >= FIRST) {
        entry_of(s, sample, slot, out);
        return true;
    }
    if (key == 0)
        return false;
    pthread_mutex_lock(&s->lock);
    int64_t i = look_up(s, key);
    if (i < 0 && s->misses++ % LOOK == 0) {
        look(s);
        i = look_up(s, key);
    }
    if (i >= 0) {
        slot = s->table[i] - 1 + FIRST;
        s->useful++;
    }
    pthread_mutex_unlock(&s->lock);
    if (i < 0)
        return false;
    entry_of(s, sample, slot, out);
    uint32_t unknown = UNKNOWN;
    atomic_compare_exchange_strong_explicit(&s->slots[sample], &unknown, slot, memory_order_release,
                                            memory_order_relaxed);
    return true;
}

/* A damaged entry is not found again. */
static void forget(struct store *s, const struct cache_entry *e, uint32_t spot)
{
    uint32_t slot = e->spot;
    atomic_fetch_add_explicit(&s->broken, 1, memory_order_relaxed);
    pthread_mutex_lock(&s->lock);
    const uint32_t mask = s->table_size - 1;
    for (uint32_t i = (uint32_t)s->spots[spot].key & mask; s->table[i]; i = (i + 1) & mask)
        if (s->table[i] == spot + 1) {
            s->table[i] = GONE;
            s->entries -= look_up(s, s->spots[spot].key) < 0;
        }
    pthread_mutex_unlock(&s->lock);
    atomic_compare_exchange_strong_explicit(&s->slots[e->sample], &slot, UNKNOWN, memory_order_relaxed,
                                            memory_order_relaxed);
}

bool store_load(struct store *s, const struct cache_entry *e, void *to)
{
    const uint32_t spot = (e->spot & ~PROVED) - FIRST;
    const struct spot *p = &s->spots[spot];
    const bool read = file_read_at(s->volumes[p->volume].data, to, p->n, (int64_t)p->at);
    if (read && (e->spot & PROVED))
        return true;
    if (!read || volume_sum(p->key, to, p->n) != p->sum) {
        forget(s, e, spot);
        return false;
    }
    uint32_t slot = e->spot;
    atomic_compare_exchange_strong_explicit(&s->slots[e->sample], &slot, e->spot | PROVED, memory_order_relaxed,
                                            memory_order_relaxed);
    return true;
}

/* ------------------------------------------------------------------ keeping */

/* Chooses the volume to write to, under lock: one that no process writes to any more, or a new one. */
static int choose_own(struct store *s)
{
    for (int i = 0; i < s->n_volumes; i++) {
        if (volume_lock(&s->volumes[i], s->dir) != 0)
            continue;
        take_records(s, i); /* records of the process that had it before */
        s->own = i;
        return 0;
    }
    if (s->n_volumes == STORE_VOLUMES)
        return refuse(s, "too many processes write to its folder", 0);
    const int why = volume_make(&s->volumes[s->n_volumes], s->dir, s->prefix);
    if (why)
        return refuse(s, "its folder cannot be written to", why);
    s->own = s->n_volumes++;
    take_records(s, s->own); /* records of a process that locked it before us */
    return 0;
}

static bool fits(struct store *s, size_t n)
{
    const int64_t need = (int64_t)(n + sizeof(struct volume_record));
    if (s->read_only || n == 0 || n > INT32_MAX)
        return false;
    const bool yes = s->n_spots < s->max_spots && need <= s->limit - s->held &&
                     (s->own < 0 || need <= s->file_limit - s->volumes[s->own].data_end);
    s->full |= !yes;
    return yes;
}

bool store_fits(struct store *s, size_t n)
{
    pthread_mutex_lock(&s->lock);
    const bool yes = fits(s, n);
    pthread_mutex_unlock(&s->lock);
    return yes;
}

/* Under lock. Other programs fill the disk as well. */
static bool disk_has_room(struct store *s, size_t n)
{
    s->unlooked += (int64_t)n;
    if (s->spare == 0 || s->unlooked < LOOK_BYTES)
        return true;
    s->unlooked = 0;
    const int64_t left = folder_free(s->dir);
    return left < 0 || left >= s->spare || refuse(s, "the disk is nearly full", 0) == 0;
}

/* Claims room for n bytes. Returns the offset, or -1. */
static int64_t claim(struct store *s, size_t n)
{
    int64_t at = -1;
    pthread_mutex_lock(&s->lock);
    if (fits(s, n) && disk_has_room(s, n) && (s->own >= 0 || choose_own(s) == 0) && fits(s, n)) {
        struct volume *own = &s->volumes[s->own];
        at = own->data_end;
        own->data_end += (int64_t)n;
        s->held += (int64_t)(n + sizeof(struct volume_record));
    }
    pthread_mutex_unlock(&s->lock);
    return at;
}

/* Writes the bytes, then the record. Returns the index of its spot, or -1. */
static int64_t write_entry(struct store *s, uint64_t key, int64_t at, const void *bytes, size_t n)
{
    struct volume *own = &s->volumes[s->own]; /* once chosen, it does not change */
    int why = file_write_at(own->data, bytes, n, at);
    const struct volume_record r = volume_record(s->kind, key, at, bytes, n);
    int64_t spot = -1;
    pthread_mutex_lock(&s->lock);
    if (why == 0 && !s->read_only)
        why = file_write_at(own->index, &r, sizeof r, own->index_end);
    if (why != 0 && !s->read_only)
        refuse(s, "it cannot be written", why);
    if (!s->read_only) {
        own->index_end += (int64_t)sizeof r;
        spot = add_spot(s, &r, s->own);
    }
    pthread_mutex_unlock(&s->lock);
    return spot;
}

bool store_put(struct store *s, int64_t sample, uint64_t key, const void *bytes, size_t n, bool renew)
{
    _Atomic uint32_t *slot = &s->slots[sample];
    uint32_t old = UNKNOWN;
    if (key == 0)
        return false;
    const bool first =
        atomic_compare_exchange_strong_explicit(slot, &old, FILLING, memory_order_relaxed, memory_order_relaxed);
    if (!first && (!renew || old == FILLING))
        return false;
    const int64_t at = claim(s, n), spot = at < 0 ? -1 : write_entry(s, key, at, bytes, n);
    if (spot >= 0)
        atomic_store_explicit(slot, ((uint32_t)spot + FIRST) | PROVED, memory_order_release);
    else if (first)
        atomic_store_explicit(slot, UNKNOWN, memory_order_relaxed);
    return spot >= 0;
}
