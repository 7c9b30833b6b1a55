/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h -- reads and writes whole files. Writing uses a temporary name and a rename, so no reader sees half a file.
 */
#ifndef FILE_H
#define FILE_H

#include <stddef.h>

#include "stoker.h"

/* Returns STK_OK, or an error with *e filled. */
int file_write(const char *path, const void *bytes, size_t n, stk_error *e);
/* Reads a file of at most about max bytes, and appends a 0. The caller frees *out. */
int file_read(const char *path, size_t max, char **out, size_t *n, stk_error *e);
int file_error(stk_error *e, const char *path, const char *what, int os_error);

#endif
