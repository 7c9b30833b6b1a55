/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h -- files below a folder, under names from outside: they never leave it.
 *
 * Every folder on the way is opened without following links, and a name that would lead elsewhere is refused. A file
 * is whole or not there. One that is there already with the same bytes stays; with others it is an error, unless it is
 * to be written over.
 */
#ifndef PLACE_H
#define PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker.h"

/* What a file is to hold: bytes in memory, or a stretch of another file. */
struct content {
    const uint8_t *bytes; /* NULL: fd */
    int fd;
    int64_t at, n;
};

/* An age at which nobody writes a file any more: for those who cannot know who else writes into the folder. */
enum { PLACE_OLD_S = 24 * 60 * 60 };

/* Removes half-written files that are older than age_s seconds; 0: all, if the caller alone writes into the folder. */
void place_sweep(int root, int64_t age_s);
int place_file(int root, const char *name, const struct content *c, bool force, stk_error *e);
/* Removes a file, and the folders above it that are empty then. A name that leads out of the folder is ignored. */
void place_remove(int root, const char *name);

#endif
