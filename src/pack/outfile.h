/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.h -- a file that is whole or not there: written under another name, then renamed, with a checksum.
 *
 *     struct outfile o = {0};
 *     outfile_open(&o, dir, "shard-000000.tar", e)
 *     outfile_add(&o, bytes, n, e)            behind what is there
 *     outfile_finish(&o, e)                   on disk, under its name; o.bytes and o.sum are its size and checksum
 *     outfile_done(&o)                        also zeroed, also half written: then nothing is left of it
 *
 * The checksum is stk_hash over blocks of OUTFILE_BLOCK bytes, each seeded with that of the blocks before it.
 */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdint.h>

#include "stoker.h"

enum { OUTFILE_BLOCK = 1 << 20, OUTFILE_NAME = 96 };

struct outfile {
    int dir, fd; /* fd is used while `open` */
    int open;
    char name[OUTFILE_NAME], temp[OUTFILE_NAME + 8];
    uint8_t *block;
    size_t used; /* of the block */
    int64_t bytes;
    uint64_t sum;
};

int outfile_open(struct outfile *o, int dir, const char *name, stk_error *e);
int outfile_add(struct outfile *o, const void *bytes, size_t n, stk_error *e);
/* Writes over the first n bytes, of which there are as many; the file is read again for its checksum. */
int outfile_begin_again(struct outfile *o, const void *bytes, size_t n, stk_error *e);
int outfile_finish(struct outfile *o, stk_error *e);
void outfile_done(struct outfile *o);

/* Writes a small file in one go. */
int outfile_write(int dir, const char *name, const void *bytes, size_t n, stk_error *e);
/* Reads all of a file and says its size and checksum. */
int outfile_check(int dir, const char *name, int64_t *bytes, uint64_t *sum, stk_error *e);

#endif
