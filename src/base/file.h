/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h -- reading and writing at a place in a file, whole or not at all.
 */
#ifndef FILE_H
#define FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether all n bytes from `at` were read; false where the file ends before, or cannot be read. */
bool file_read_at(int fd, void *to, size_t n, int64_t at);
/* 0, or the errno. */
int file_write_at(int fd, const void *from, size_t n, int64_t at);
enum file_owner { FILE_OWN, FILE_ANY };
/* The whole of a file that is this user's own, or anybody's, and has at least `least` bytes, from malloc; NULL: there
 * is none. */
void *file_load(const char *path, enum file_owner whose, size_t least, size_t *bytes);
/* Writes a file, and the folders above it, under another name first: it is there whole, or as it was. 0, or the errno.
 */
int file_replace(const char *path, const void *from, size_t n);
/* Makes a folder and those above it, for this user alone; 0, or the errno. What is there already is no error. */
int file_make_folders(const char *path);

#endif
