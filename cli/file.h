/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h -- whole files: written by a temporary name and a rename, so that nobody ever sees half of one.
 */
#ifndef FILE_H
#define FILE_H

#include <stddef.h>

#include "stoker.h"

/* STK_OK, or STK_EIO / STK_ENOMEM with words. */
int file_write(const char *path, const void *bytes, size_t n, stk_error *e);
/* Reads at most max bytes and a 0 after them; free() gives them back. */
int file_read(const char *path, size_t max, char **out, size_t *n, stk_error *e);
int file_error(stk_error *e, const char *path, const char *what, int os_error);

#endif
