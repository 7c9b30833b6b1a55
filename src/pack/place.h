/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h -- writes files below a folder under names that may be hostile: no name leads out of the folder.
 *
 * Every folder of a name is opened without following links. A file is complete or absent. If it already exists with the
 * same bytes, it stays. If it exists with other bytes, that is an error, unless the caller wants it replaced.
 */
#ifndef PLACE_H
#define PLACE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "stoker.h"

/* The content of a file: bytes in memory, or a range of another file. */
struct content {
    const uint8_t *bytes; /* NULL: n bytes from `at` in fd */
    int fd;
    int64_t at, n;
};

/* Creates a folder, with its parents, and opens it. Sets *made if it did not exist. -1: see errno. */
int place_root(const char *path, bool *made);
/* Opens a folder below root for readdir(), without following a link. NULL: see errno. */
DIR *place_list(int root, const char *name);

/* At this age, a temporary file is certainly abandoned. For folders into which other processes may write. */
enum { PLACE_OLD_S = 24 * 60 * 60 };

/* Removes incomplete files that are older than age_s seconds. 0: all of them; only if no other process writes there. */
void place_sweep(int root, int64_t age_s);
int place_file(int root, const char *name, const struct content *c, bool force, stk_error *e);
/* Removes a file, and then the folders above it that are empty. Ignores a name that leads out of the folder. */
void place_remove(int root, const char *name);

#endif
