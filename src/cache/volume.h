/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume.h -- a pair of files. One process at a time appends entries to it, and every process may read it.
 *
 *     NAME.data     the bytes of the entries, one after the other
 *     NAME.index    a record of fixed size for each, written after its bytes
 *
 * A process that is killed leaves bytes without a record, or a partial record at the end; readers ignore both. A record
 * has a checksum, and damaged ones are skipped. The checksum of the bytes is verified when they are read.
 */
#ifndef VOLUME_H
#define VOLUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VOLUME_NAME = 96, VOLUME_AT_ONCE = 256 };

struct volume_record {
    uint32_t magic, kind;
    uint64_t key, at, n;
    uint64_t sum;   /* of the bytes, seeded with the key */
    uint64_t check; /* of everything before it */
};

struct volume {
    int index, data; /* descriptors; -1: none */
    int64_t seen;    /* bytes of the index that were read */
    bool ours;       /* locked and open for writing */
    int64_t index_end, data_end;
    char name[VOLUME_NAME]; /* without the suffix */
};

/* Opens NAME.* below dir for reading. Returns 0, or -1 if it is missing or belongs to another user. */
int volume_open(struct volume *s, int dir, const char *name);
/* Locks it and opens it for writing. Returns 0, or -1 if another process has it or it was deleted. */
int volume_lock(struct volume *s, int dir);
/* Creates one, locked. Returns 0, or the errno. */
int volume_make(struct volume *s, int dir, const char *prefix);
void volume_unlink(const struct volume *s, int dir);
void volume_close(struct volume *s); /* may be called after volume_none, and twice */
void volume_none(struct volume *s);

/* Reads up to VOLUME_AT_ONCE valid records that were not read before. Returns their count; 0: there are no more. */
int volume_news(struct volume *s, struct volume_record *some);

struct volume_record volume_record(uint32_t kind, uint64_t key, int64_t at, const void *bytes, size_t n);
uint64_t volume_sum(uint64_t key, const void *bytes, size_t n);
bool volume_record_good(const struct volume_record *r);

#endif
