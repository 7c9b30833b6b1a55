/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h -- what has been written already: a line for every whole shard, in a file beside them.
 *
 * The first line is the recipe, all that decides the bytes. A later run with the same recipe goes on behind the last
 * shard; with another one it is refused. The file is locked while it is open.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "base/buf.h"
#include "pack/outfile.h"

struct shard_line {
    char name[OUTFILE_NAME];
    int64_t samples, bytes;
    uint64_t sum;
    int64_t next;          /* the first position that is in none of the shards so far */
    int64_t bad, bytes_in; /* of all shards so far */
};

struct journal {
    int dir, fd;
    int open;
    struct shard_line *shards;
    int64_t n, room;
    int64_t end; /* bytes of the file that hold */
};

/* Opens or begins it. When there is one with another recipe: STK_EUSAGE, with the first word in which they differ. */
int journal_open(struct journal *j, int dir, const char *recipe, stk_error *e);
/* The shard is on disk by now. */
int journal_add(struct journal *j, const struct shard_line *s, stk_error *e);
/* Leaves out the shards from number n on. */
int journal_cut(struct journal *j, int64_t n, stk_error *e);
/* All is done: the file goes. */
void journal_remove(struct journal *j);
void journal_done(struct journal *j); /* also zeroed */

extern const char journal_name[];

/* Says in which of their words, which tabs divide, two recipes differ. */
int journal_differs(const char *then, const char *now, stk_error *e);

#endif
