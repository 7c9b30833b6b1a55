/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c -- the index of samples that are files, in one block of memory.
 *
 * A block from a file is not trusted. Its checksum and every offset are verified once, so that later code need not
 * check.
 */
#include "source/index.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/pool.h"

/* ------------------------------------------------------------------ the block */

/* The size of the block; 0: the counts are impossible. */
static size_t block_bytes(const struct index_head *h)
{
    const uint64_t most = SIZE_MAX / 16;
    if (h->n > most / 64 || h->n_dirs > most / 64 || h->n_dirs > UINT32_MAX || h->n_classes > INT_MAX ||
        h->pool_bytes > most || h->has_labels > 1)
        return 0;
    const uint64_t per_sample = sizeof(int64_t) + sizeof(uint64_t) + sizeof(uint32_t) + h->has_labels * sizeof(int64_t);
    const uint64_t per_dir = sizeof(struct stamp) + sizeof(uint64_t) + sizeof(int64_t);
    return (size_t)(sizeof *h + h->n * per_sample + h->n_dirs * per_dir + h->n_classes * sizeof(uint64_t) +
                    h->pool_bytes);
}

static void lay_out(struct index *x, void *block)
{
    const struct index_head *h = x->head = block;
    x->size = (void *)(x->head + 1);
    x->name_at = (void *)(x->size + h->n);
    x->label = h->has_labels ? (void *)(x->name_at + h->n) : NULL;
    x->stamp = (void *)(x->name_at + h->n + (h->has_labels ? h->n : 0));
    x->dir_at = (void *)(x->stamp + h->n_dirs);
    x->dir_label = (void *)(x->dir_at + h->n_dirs);
    x->class_at = (void *)(x->dir_label + h->n_dirs);
    x->dir_of = (void *)(x->class_at + h->n_classes);
    x->pool = (void *)(x->dir_of + h->n);
}

int index_init(struct index *x, const struct index_head *head)
{
    const size_t bytes = block_bytes(head);
    void *block = bytes && head->pool_bytes ? calloc(1, bytes) : NULL;
    if (!block)
        return -1;
    memcpy(block, head, sizeof *head);
    lay_out(x, block);
    x->head->magic = INDEX_MAGIC;
    x->head->bytes = bytes;
    for (uint64_t i = 0; i < head->n; i++)
        atomic_init(&x->size[i], -1);
    return 0;
}

void index_done(struct index *x)
{
    free(x->head);
    *x = (struct index){0};
}

uint64_t index_checksum(const struct index_head *h, const int64_t *sizes, const uint8_t *rest, size_t rest_bytes)
{
    struct index_head head = *h;
    head.checksum = 0;
    const uint64_t seed = hash_bytes(sizes, (size_t)h->n * sizeof *sizes, hash_bytes(&head, sizeof head, 0));
    return hash_bytes(rest, rest_bytes, seed);
}

static bool offsets_are_valid(const struct index *x)
{
    const struct index_head *h = x->head;
    uint64_t furthest = 0, dir = 0;
    for (uint64_t i = 0; i < h->n; i++) {
        furthest = x->name_at[i] > furthest ? x->name_at[i] : furthest;
        dir = x->dir_of[i] > dir ? x->dir_of[i] : dir;
    }
    for (uint64_t i = 0; i < h->n_dirs; i++) {
        furthest = x->dir_at[i] > furthest ? x->dir_at[i] : furthest;
        if (x->dir_label[i] < -1 || x->dir_label[i] >= (int64_t)h->n_classes)
            return false;
    }
    for (uint64_t i = 0; i < h->n_classes; i++)
        furthest = x->class_at[i] > furthest ? x->class_at[i] : furthest;
    return furthest < h->pool_bytes && dir < h->n_dirs && x->pool[h->pool_bytes - 1] == 0;
}

int index_adopt(struct index *x, void *block, size_t bytes)
{
    const struct index_head *h = block;
    if (bytes < sizeof *h || h->magic != INDEX_MAGIC || h->bytes != bytes || block_bytes(h) != bytes || h->n == 0 ||
        h->n_dirs == 0 || h->pool_bytes == 0)
        return -1;
    const size_t sizes_end = sizeof *h + (size_t)h->n * sizeof(int64_t);
    const uint8_t *all = block;
    if (index_checksum(h, (const void *)(h + 1), all + sizes_end, bytes - sizes_end) != h->checksum)
        return -1;
    struct index adopted;
    lay_out(&adopted, block);
    if (!offsets_are_valid(&adopted))
        return -1;
    *x = adopted;
    return 0;
}

/* ------------------------------------------------------------------ samples */

size_t index_path(const struct index *x, int64_t i, char *buf, size_t n)
{
    const char *dir = x->pool + x->dir_at[x->dir_of[i]], *name = x->pool + x->name_at[i];
    const size_t n_dir = strlen(dir), n_name = strlen(name);
    if (n_dir + n_name < n) {
        memcpy(buf, dir, n_dir);
        memcpy(buf + n_dir, name, n_name + 1);
    } else if (n > 0) { /* truncate, as snprintf does */
        const size_t k = n_dir < n - 1 ? n_dir : n - 1;
        memcpy(buf, dir, k);
        memcpy(buf + k, name, n - 1 - k);
        buf[n - 1] = 0;
    }
    return n_dir + n_name;
}

int64_t index_label(const struct index *x, int64_t i)
{
    return x->label ? x->label[i] : x->dir_label[x->dir_of[i]];
}

const char *index_class(const struct index *x, int64_t i)
{
    return x->pool + x->class_at[i];
}

static int64_t stat_size(const struct index *x, int dir, int64_t i, struct stat *st)
{
    char path[PATH_MAX];
    const bool there = index_path(x, i, path, sizeof path) < sizeof path && fstatat(dir, path, st, 0) == 0;
    const int64_t size = there ? (int64_t)st->st_size : -1;
    atomic_store_explicit(&x->size[i], size, memory_order_relaxed);
    return size;
}

int64_t index_size(const struct index *x, int dir, int64_t i)
{
    struct stat st;
    const int64_t known = atomic_load_explicit(&x->size[i], memory_order_relaxed);
    return known >= 0 ? known : stat_size(x, dir, i, &st);
}

/* ------------------------------------------------------------------ measuring all files */

/* Samples; fixed, because the fingerprint combines the hashes of the chunks. */
enum { CHUNK = 1024 };

struct measuring {
    const struct index *x;
    int dir;
    struct index_sum *chunks;
};

/* Calls faccessat only if the mode does not allow everyone to read. */
static bool is_forbidden(const struct index *x, int dir, int64_t i, mode_t mode)
{
    char path[PATH_MAX];
    if ((mode & (S_IRUSR | S_IRGRP | S_IROTH)) == (S_IRUSR | S_IRGRP | S_IROTH))
        return false;
    index_path(x, i, path, sizeof path);
    return faccessat(dir, path, R_OK, AT_EACCESS) != 0;
}

/* A size in the index may be out of date: rewriting a file in place does not change the time of its folder. */
static int64_t measure_file(const struct index *x, int dir, int64_t i, struct index_sum *sum)
{
    struct stat st;
    const int64_t known = atomic_load_explicit(&x->size[i], memory_order_relaxed), size = stat_size(x, dir, i, &st);
    sum->learned += size != known;
    sum->missing += size < 0;
    sum->unreadable += size >= 0 && is_forbidden(x, dir, i, st.st_mode);
    return size;
}

/* The sizes of sparse files can add up to any number. */
static int64_t add_bytes(int64_t a, int64_t b)
{
    return b > INT64_MAX - a ? INT64_MAX : a + b;
}

static struct index_sum measure(const struct index *x, int dir, int64_t chunk)
{
    const int64_t n = (int64_t)x->head->n, last = (chunk + 1) * CHUNK, end = last < n ? last : n;
    struct index_sum sum = {0};
    uint64_t h = 0;
    for (int64_t i = chunk * CHUNK; i < end; i++) {
        const int64_t size = measure_file(x, dir, i, &sum);
        char path[PATH_MAX];
        const size_t length = index_path(x, i, path, sizeof path);
        h = hash_bytes(path, length < sizeof path ? length : sizeof path - 1, h);
        h = hash_mix(hash_mix(h, (uint64_t)size), (uint64_t)index_label(x, i));
        sum.bytes = add_bytes(sum.bytes, size > 0 ? size : 0);
    }
    sum.fingerprint = h;
    return sum;
}

static void measure_chunk(void *user, int64_t chunk)
{
    const struct measuring *m = user;
    m->chunks[chunk] = measure(m->x, m->dir, chunk);
}

static void add(struct index_sum *sum, const struct index_sum *chunk)
{
    sum->bytes = add_bytes(sum->bytes, chunk->bytes);
    sum->missing += chunk->missing;
    sum->unreadable += chunk->unreadable;
    sum->learned += chunk->learned;
    sum->fingerprint = hash_mix(sum->fingerprint, chunk->fingerprint);
}

void index_measure(const struct index *x, int dir, int threads, struct index_sum *sum)
{
    const int64_t n_chunks = ((int64_t)x->head->n + CHUNK - 1) / CHUNK;
    struct measuring m = {.x = x, .dir = dir, .chunks = calloc((size_t)n_chunks, sizeof *m.chunks)};
    if (m.chunks)
        pool_for(threads, n_chunks, measure_chunk, &m);
    *sum = (struct index_sum){.fingerprint = x->head->n};
    for (int64_t c = 0; c < n_chunks; c++) { /* out of memory: one chunk after the other */
        const struct index_sum one = m.chunks ? m.chunks[c] : measure(x, dir, c);
        add(sum, &one);
    }
    free(m.chunks);
}
