/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h -- the layout of the cache folder.
 *
 *     CACHE_DIR/data/0123456789abcdef/source                    the dataset's name, for people
 *     CACHE_DIR/data/0123456789abcdef/KIND.VARIANT.PID.TIME.*   volumes
 *     CACHE_DIR/index/0123456789abcdef                          indexes, which belong to src/source/
 */
#ifndef FOLDER_H
#define FOLDER_H

#include <stdint.h>

#include "stoker.h"

/* Opens the folder of a dataset, and creates it if necessary. Returns a descriptor, or -1 and the errno in *why. */
int folder_open(const char *cache_dir, const char *source, int *why);
/* Bytes of everything below CACHE_DIR/data. */
int64_t folder_bytes(const char *cache_dir);
/* The default limit for what is below dir; and how much must stay free on its disk. */
int64_t folder_share(int dir, int64_t held, int64_t *spare);
/* Bytes that are free on the disk of dir; -1: unknown. */
int64_t folder_free(int dir);

/* Calls each() for every dataset and kind, until it returns non-zero. Returns 0, or the errno. */
int folder_list(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user);
/* Deletes the entries of a kind and a source (NULL: any), and adds their size to *bytes. Returns 0, or the errno. */
int folder_clear(const char *cache_dir, const char *kind, const char *source, int64_t *bytes);

#endif
