/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume.c -- a pair of files that one process at a time appends entries to.
 *
 * The writer holds a lock (flock) on the index as long as it lives. The system releases it however the process ends,
 * and the next writer continues after the last complete record. Readers take no lock: the files only grow. Deleting
 * them does not affect processes that have them open.
 */
#include "cache/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/hash.h"

static const uint32_t MAGIC = 0x31306373; /* in this machine's byte order; the digits are the version */

enum { OPEN_FLAGS = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW };

/* ------------------------------------------------------------------ records */

uint64_t volume_sum(uint64_t key, const void *bytes, size_t n)
{
    return hash_bytes(bytes, n, key);
}

static uint64_t check_of(const struct volume_record *r)
{
    return hash_bytes(r, offsetof(struct volume_record, check), MAGIC);
}

struct volume_record volume_record(uint32_t kind, uint64_t key, int64_t at, const void *bytes, size_t n)
{
    struct volume_record r = {.magic = MAGIC, .kind = kind, .key = key, .at = (uint64_t)at, .n = n};
    r.sum = volume_sum(key, bytes, n);
    r.check = check_of(&r);
    return r;
}

bool volume_record_good(const struct volume_record *r)
{
    return r->magic == MAGIC && r->check == check_of(r) && r->at <= INT64_MAX / 2 && r->n > 0 && r->n <= INT32_MAX;
}

/* ------------------------------------------------------------------ files */

void volume_none(struct volume *s)
{
    *s = (struct volume){.index = -1, .data = -1};
}

void volume_close(struct volume *s)
{
    if (s->index >= 0)
        close(s->index);
    if (s->data >= 0)
        close(s->data);
    volume_none(s);
}

void volume_unlink(const struct volume *s, int dir)
{
    char file[VOLUME_NAME + 8];
    snprintf(file, sizeof file, "%s.index", s->name);
    unlinkat(dir, file, 0);
    snprintf(file, sizeof file, "%s.data", s->name);
    unlinkat(dir, file, 0);
}

static int open_part(int dir, const char *name, const char *suffix, int flags)
{
    char file[VOLUME_NAME + 8];
    struct stat st;
    snprintf(file, sizeof file, "%s%s", name, suffix);
    const int fd = openat(dir, file, flags | OPEN_FLAGS, 0600);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

static int open_both(struct volume *s, int dir, const char *name, int flags)
{
    volume_none(s);
    snprintf(s->name, sizeof s->name, "%s", name);
    s->index = open_part(dir, name, ".index", flags);
    s->data = s->index < 0 ? -1 : open_part(dir, name, ".data", flags);
    if (s->data >= 0)
        return 0;
    const int why = errno;
    volume_close(s);
    return why ? why : EIO;
}

int volume_open(struct volume *s, int dir, const char *name)
{
    return open_both(s, dir, name, O_RDONLY) == 0 ? 0 : -1;
}

/* Locks it, and finds the end of the last complete record. Returns 0, or the errno: EWOULDBLOCK if another process has
 * it. */
static int take(struct volume *s)
{
    struct stat index, data;
    if (flock(s->index, LOCK_EX | LOCK_NB) != 0 || fstat(s->index, &index) != 0 || fstat(s->data, &data) != 0)
        return errno;
    if (index.st_nlink == 0 || data.st_nlink == 0)
        return ESTALE;
    s->index_end =
        (int64_t)index.st_size / (int64_t)sizeof(struct volume_record) * (int64_t)sizeof(struct volume_record);
    s->data_end = (int64_t)data.st_size;
    s->ours = true;
    return 0;
}

int volume_lock(struct volume *s, int dir)
{
    struct volume mine;
    if (open_both(&mine, dir, s->name, O_RDWR) != 0)
        return -1;
    mine.seen = s->seen;
    if (take(&mine) != 0) {
        volume_close(&mine);
        return -1;
    }
    /* Other threads may be reading with the descriptors: their numbers stay the same. */
    if (dup3(mine.index, s->index, O_CLOEXEC) < 0 || dup3(mine.data, s->data, O_CLOEXEC) < 0) {
        volume_close(&mine);
        return -1;
    }
    s->index_end = mine.index_end;
    s->data_end = mine.data_end;
    s->ours = true;
    volume_close(&mine); /* the lock belongs to the open file, which s->index refers to as well */
    return 0;
}

/* Between creating and locking a file, another process may find it and lock it first. */
int volume_make(struct volume *s, int dir, const char *prefix)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        char name[VOLUME_NAME];
        snprintf(name, sizeof name, "%s.%lx.%llx", prefix, (unsigned long)getpid(), (unsigned long long)now_ns());
        int why = open_both(s, dir, name, O_RDWR | O_CREAT | O_EXCL);
        if (why != 0)
            return why;
        why = take(s);
        if (why == 0)
            return 0;
        if (why != EWOULDBLOCK && why != ESTALE) { /* the file system has no locks; no other process uses this name */
            s->index_end = s->data_end = 0;
            s->ours = true;
            return 0;
        }
        volume_close(s);
    }
    return EBUSY;
}

/* ------------------------------------------------------------------ reading the index */

int volume_news(struct volume *s, struct volume_record *some)
{
    struct stat st;
    int good = 0;
    if (fstat(s->index, &st) != 0)
        return 0;
    while (good == 0) {
        const int64_t left = ((int64_t)st.st_size - s->seen) / (int64_t)sizeof *some;
        const int64_t n = left < VOLUME_AT_ONCE ? left : VOLUME_AT_ONCE;
        if (n < 1 || !file_read_at(s->index, some, (size_t)n * sizeof *some, s->seen))
            return 0;
        for (int64_t i = 0; i < n; i++)
            if (volume_record_good(&some[i]))
                some[good++] = some[i];
        s->seen += n * (int64_t)sizeof *some;
    }
    return good;
}
