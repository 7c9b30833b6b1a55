/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_beside.c -- the index that lies beside its shards and goes where they go.
 *
 * It is the block of the cache under a hidden name in the shards' folder. Folder, device and inode may be others than
 * when it was made; names, sizes and times of change of all shards have to be the same (copies keep their times with cp
 * -p, rsync -a and tar). Whoever wrote it need not be trusted: the block is looked through before it is used.
 */
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

/* The name depends on those of the shards, so that several sets can share a folder; false: they lie in several. */
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

/* Wherever it lies: it may have been copied with its index, and is from now on known as the file that it is here. */
static bool shard_is(struct records_index *x, uint64_t i, const char *path)
{
    struct record_shard *s = &x->shards[i];
    const struct watch then = s->watch;
    struct stat st;
    if (strcmp(base_of(x->pool + s->name_at), base_of(path)) != 0 || stat(path, &st) != 0)
        return false;
    index_watch(&s->watch, &st);
    return (int64_t)st.st_size == s->bytes && s->watch.seconds == then.seconds &&
           s->watch.nanoseconds == then.nanoseconds;
}

/* The shards are called what they are called now; the names they had stay in the pool, unused. */
static int rename_shards(struct records_index *x, const struct names *paths)
{
    const size_t before = (size_t)x->head->bytes;
    const uint64_t pool = x->head->pool_bytes;
    uint8_t *block = realloc(x->head, before + paths->pool.len);
    if (!block)
        return -1;
    struct records_head *h = (void *)block;
    struct record_shard *shards = (void *)(h + 1);
    uint64_t at = pool;
    for (uint32_t i = 0; i < paths->n; i++) {
        const size_t n = names_length(paths, i) + 1;
        memcpy(block + before - pool + at, names_at(paths, i), n);
        shards[i].name_at = at;
        at += n;
    }
    h->pool_bytes = at;
    h->bytes = before - pool + at;
    *x = (struct records_index){.head = h};
    records_seal(x);
    return records_adopt(x, block, (size_t)h->bytes);
}

int records_load_beside(struct records_index *x, uint32_t format, const struct names *paths)
{
    char file[PATH_MAX];
    if (!file_of(format, paths, file, sizeof file) || records_load_as(x, file, FILE_ANY, format, paths, shard_is))
        return -1;
    if (rename_shards(x, paths)) {
        records_done(x);
        return -1;
    }
    return 0;
}

int records_save_beside(const struct records_index *x, uint32_t format, const struct names *paths, stk_error *e)
{
    char file[PATH_MAX];
    if (!file_of(format, paths, file, sizeof file))
        return error_set(e, STK_EUSAGE, "open", "the shards lie in several folders; an index lies beside those of one");
    int rc = file_replace(file, x->head, (size_t)x->head->bytes);
    if (rc == 0 && chmod(file, 0644) != 0)
        rc = STK_EIO;
    if (rc == 0)
        return STK_OK;
    rc = error_os(e, rc, "open", "the index cannot be written beside the shards");
    error_at(e, file, -1);
    return rc;
}
