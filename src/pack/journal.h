/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h -- a record of what has been written: one line for every complete shard, in a file next to them.
 *
 * The first line is the recipe: all options that determine the bytes, as "name=value" separated by tabs. A later run
 * with the same recipe continues after the last shard. A run with another recipe is refused. The file is locked while
 * open.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "base/buf.h"
#include "pack/outfile.h"

struct shard_line {
    char name[OUTFILE_NAME];
    int64_t samples, bytes;
    uint64_t sum;
    int64_t next;          /* the first position after this shard */
    int64_t bad, bytes_in; /* of all shards up to this one */
};

struct journal {
    int dir, fd;
    int open;
    struct shard_line *shards;
    int64_t n, room;
    int64_t end; /* bytes of valid lines in the file */
};

/* Opens or creates it. STK_EUSAGE if it has another recipe, with the first option that differs. */
int journal_open(struct journal *j, int dir, const char *recipe, stk_error *e);
/* Call this after the shard is on disk. */
int journal_add(struct journal *j, const struct shard_line *s, stk_error *e);
/* Removes the lines from shard n on. */
int journal_cut(struct journal *j, int64_t n, stk_error *e);
/* Removes the file, when everything is written. */
void journal_remove(struct journal *j);
void journal_done(struct journal *j); /* accepts a zeroed struct */

extern const char journal_name[];

/* Fails with the first option that differs between two recipes. */
int journal_differs(const char *then, const char *now, stk_error *e);

#endif
