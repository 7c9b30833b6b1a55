/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h -- a pair of files. One process at a time appends entries to it, and every process may read it.
 *
 *     NAME.data     the bytes of the entries, one after the other
 *     NAME.index    a record of fixed size for each, written after its bytes
 *
 * A process that is killed leaves bytes without a record, or a partial record at the end; readers ignore both. A record
 * has a checksum, and damaged ones are skipped. The checksum of the bytes is verified when they are read.
 */
#ifndef SEGMENT_H
#define SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEGMENT_NAME = 96 };

struct segment_record {
    uint32_t magic, kind;
    uint64_t key, at, n;
    uint64_t sum;   /* of the bytes, seeded with the key */
    uint64_t check; /* of everything before it */
};

struct segment {
    int index, data; /* descriptors; -1: none */
    int64_t seen;    /* bytes of the index that were read */
    bool ours;       /* locked and open for writing */
    int64_t index_end, data_end;
    char name[SEGMENT_NAME]; /* without the suffix */
};

/* Opens NAME.* below dir for reading. Returns 0, or -1 if it is missing or belongs to another user. */
int segment_open(struct segment *s, int dir, const char *name);
/* Locks it and opens it for writing. Returns 0, or -1 if another process has it or it was deleted. */
int segment_lock(struct segment *s, int dir);
/* Creates one, locked. Returns 0, or the errno. */
int segment_make(struct segment *s, int dir, const char *prefix);
void segment_unlink(const struct segment *s, int dir);
void segment_close(struct segment *s); /* may be called after segment_none, and twice */
void segment_none(struct segment *s);

/* Calls each(user, record) for the valid records that were added since the last call. */
void segment_news(struct segment *s, void (*each)(void *user, const struct segment_record *r), void *user);

struct segment_record segment_record(uint32_t kind, uint64_t key, int64_t at, const void *bytes, size_t n);
uint64_t segment_sum(uint64_t key, const void *bytes, size_t n);
bool segment_record_good(const struct segment_record *r);

#endif
