/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h -- how the folder of caches is laid out.
 *
 *     CACHE_DIR/data/0123456789abcdef/source                    the data set's name, for people
 *     CACHE_DIR/data/0123456789abcdef/KIND.VARIANT.PID.TIME.*   segments
 *     CACHE_DIR/index/0123456789abcdef                          indexes, which the source stage keeps
 */
#ifndef FOLDER_H
#define FOLDER_H

#include <stdint.h>

#include "stoker.h"

/* The data set's own folder, made when it is not there: a descriptor, or -1 with *why the errno. */
int folder_open(const char *cache_dir, const char *source, int *why);
/* Bytes of everything below CACHE_DIR/data. */
int64_t folder_bytes(const char *cache_dir);
/* How much may be kept below dir when nobody says; and what is to stay free on its disk. */
int64_t folder_share(int dir, int64_t held, int64_t *spare);
/* Bytes that are free on the disk of dir; -1 when that is not known. */
int64_t folder_free(int dir);

/* What there is, one call per data set and kind; return non-zero to stop. 0, or the errno. */
int folder_list(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user);
/* Deletes what is of a kind and a source (NULL: any); adds the bytes to *bytes. 0, or the errno. */
int folder_clear(const char *cache_dir, const char *kind, const char *source, int64_t *bytes);

#endif
