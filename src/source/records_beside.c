/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_beside.c -- an index stored next to its shards, so that copies of the shards have it too.
 *
 * The file is a copy of the index's block under a hidden name in the folder of the shards. Folder, device and inode may
 * have changed. Names, sizes and modification times of all shards must be the same; cp -p, rsync -a and tar keep the
 * times.
 *
 * The index of a pack has no times, so that equal packs have equal bytes. stoker.json lists the shards instead, and no
 * shard may be newer than the index. The file is not trusted: the block is validated before use.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"
#include "source/records_index.h"

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The name contains a hash of the shards' names, so that several datasets can share a folder. false: the shards are in
 * several folders. */
static bool file_of(uint32_t format, const struct names *paths, char *buf, size_t n)
{
    const char *first = names_at(paths, 0);
    const size_t folder = (size_t)(base_of(first) - first);
    uint64_t h = format;
    for (uint32_t i = 0; i < paths->n; i++) {
        const char *path = names_at(paths, i), *base = base_of(path);
        if ((size_t)(base - path) != folder || memcmp(path, first, folder) != 0)
            return false;
        h = hash_bytes(base, strlen(base), h);
    }
    const int length = snprintf(buf, n, "%.*s.stoker-%016llx.index", (int)folder, first, (unsigned long long)h);
    return length > 0 && (size_t)length < n;
}

/* Ignores the folder, device and inode, since the shard may be a copy. Updates its stamp. */
static bool shard_is(struct records_index *x, uint64_t i, const char *path)
{
    struct record_shard *s = &x->shards[i];
    const struct stamp then = s->stamp;
    struct stat st;
    if (strcmp(x->pool + s->name_at, base_of(path)) != 0 || stat(path, &st) != 0 || (int64_t)st.st_size != s->bytes)
        return false;
    index_stamp(&s->stamp, &st);
    return x->head->has & RECORDS_TIMELESS ||
           (s->stamp.seconds == then.seconds && s->stamp.nanoseconds == then.nanoseconds);
}

static bool none_is_newer(const struct records_index *x, const struct stat *index)
{
    struct stamp own;
    index_stamp(&own, index);
    for (uint64_t i = 0; i < x->head->n_shards; i++) {
        const struct stamp *w = &x->shards[i].stamp;
        if (w->seconds > own.seconds || (w->seconds == own.seconds && w->nanoseconds > own.nanoseconds))
            return false;
    }
    return true;
}

/* Labels that are words were numbered without these classes. Integers must be among them. */
static bool labels_fit(const struct records_index *x, const struct names *classes)
{
    if (classes->n == 0)
        return true;
    if (x->head->n_classes > 0)
        return false;
    for (uint64_t i = 0; x->label && i < x->head->n; i++)
        if (x->label[i] != LABEL_NONE && (x->label[i] < 0 || x->label[i] >= (int64_t)classes->n))
            return false;
    return true;
}

/* A copy of the block with other names of the shards, from malloc, without checksum; NULL: out of memory. */
static struct records_head *copy_renamed(const struct records_index *x, const struct names *paths,
                                         const char *(*name)(const char *path))
{
    const uint64_t kept = x->shards[0].name_at, before = x->head->bytes - x->head->pool_bytes + kept;
    uint8_t *block = malloc((size_t)before + paths->pool.len);
    if (!block)
        return NULL;
    memcpy(block, x->head, (size_t)before);
    struct records_head *h = (void *)block;
    struct record_shard *shards = (void *)(h + 1);
    uint64_t at = kept;
    for (uint32_t i = 0; i < paths->n; i++) {
        const char *to = name(names_at(paths, i));
        const size_t n = strlen(to) + 1;
        memcpy(block + before + at - kept, to, n);
        shards[i].name_at = at;
        at += n;
    }
    h->pool_bytes = at;
    h->bytes = before + at - kept;
    return h;
}

static void seal(struct records_head *h)
{
    records_seal(&(struct records_index){.head = h});
}

static const char *whole_path(const char *path)
{
    return path;
}

/* Replaces the names of the shards by their paths. */
static int set_paths(struct records_index *x, const struct names *paths)
{
    struct records_head *h = copy_renamed(x, paths, whole_path);
    records_done(x);
    if (!h)
        return -1;
    h->has &= ~(uint64_t)RECORDS_TIMELESS;
    seal(h);
    if (records_adopt(x, h, (size_t)h->bytes) == 0)
        return 0;
    free(h);
    return -1;
}

int records_load_beside(struct records_index *x, uint32_t format, const struct names *paths,
                        const struct names *classes)
{
    char file[PATH_MAX];
    struct stat st;
    if (!file_of(format, paths, file, sizeof file) || stat(file, &st) != 0 ||
        records_load_as(x, file, FILE_ANY, format, paths, shard_is))
        return -1;
    if (!labels_fit(x, classes) || (x->head->has & RECORDS_TIMELESS && !none_is_newer(x, &st))) {
        records_done(x);
        return -1;
    }
    return set_paths(x, paths);
}

int records_save_beside(const struct records_index *x, uint32_t format, const struct names *paths, bool timeless,
                        stk_error *e)
{
    char file[PATH_MAX];
    if (!file_of(format, paths, file, sizeof file))
        return error_set(e, STK_EUSAGE, "open",
                         "the shards are in several folders; an index next to them needs one folder");
    struct records_head *h = copy_renamed(x, paths, base_of);
    if (!h)
        return error_nomem(e, "open", (size_t)x->head->bytes);
    struct record_shard *shards = (void *)(h + 1);
    for (uint32_t i = 0; timeless && i < paths->n; i++)
        shards[i].stamp = (struct stamp){0};
    h->has |= timeless ? RECORDS_TIMELESS : 0;
    seal(h);
    int rc = file_replace(file, h, (size_t)h->bytes);
    free(h);
    if (rc == 0 && chmod(file, 0644) != 0)
        rc = errno;
    if (rc == 0)
        return STK_OK;
    rc = error_os(e, rc, "open", "cannot write the index next to the shards");
    error_at(e, file, -1);
    return rc;
}
