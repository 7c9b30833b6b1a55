/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.h -- writes a file under a temporary name, then renames it: it is complete or absent. Computes its checksum.
 *
 *     struct outfile o = {0};
 *     outfile_open(&o, dir, "shard-000000.tar", e)
 *     outfile_add(&o, bytes, n, e)            appends
 *     outfile_finish(&o, e)                   syncs and renames; sets o.bytes and o.sum, its size and checksum
 *     outfile_done(&o)                        accepts a zeroed outfile; removes an unfinished file
 *
 * The checksum is stk_hash over blocks of OUTFILE_BLOCK bytes, each seeded with the checksum so far.
 */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdint.h>

#include "stoker.h"

enum { OUTFILE_BLOCK = 1 << 20, OUTFILE_NAME = 96 };

struct outfile {
    int dir, fd; /* fd is valid while `open` */
    int open;
    char name[OUTFILE_NAME], temp[OUTFILE_NAME + 8];
    uint8_t *block;
    size_t used; /* of the block */
    int64_t bytes;
    uint64_t sum;
};

int outfile_open(struct outfile *o, int dir, const char *name, stk_error *e);
int outfile_add(struct outfile *o, const void *bytes, size_t n, stk_error *e);
/* Replaces the first n bytes and reads the file again for its checksum. */
int outfile_replace_head(struct outfile *o, const void *bytes, size_t n, stk_error *e);
int outfile_finish(struct outfile *o, stk_error *e);
void outfile_done(struct outfile *o);

/* Writes a whole file. */
int outfile_write(int dir, const char *name, const void *bytes, size_t n, stk_error *e);
/* Reads a file and computes its size and checksum. */
int outfile_check(int dir, const char *name, int64_t *bytes, uint64_t *sum, stk_error *e);

#endif
