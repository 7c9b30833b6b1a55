/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h -- reads and writes whole blocks and whole files.
 */
#ifndef FILE_H
#define FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads n bytes from offset `at`. false: the file ends before, or cannot be read. */
bool file_read_at(int fd, void *to, size_t n, int64_t at);
/* 0, or the errno. */
int file_write_at(int fd, const void *from, size_t n, int64_t at);
enum file_owner { FILE_OWN, FILE_ANY };
/* Reads a whole file into memory from malloc. NULL: it does not exist, is not a regular file, has fewer than `least`
 * bytes, or (FILE_OWN) belongs to another user. */
void *file_load(const char *path, enum file_owner whose, size_t least, size_t *bytes);
/* Replaces a file, or creates it and the folders above it. The file is written under another name first, so it is never
 * incomplete. 0, or the errno. */
int file_replace(const char *path, const void *from, size_t n);
/* Creates a folder and those above it, for this user only. Existing ones are not an error. 0, or the errno. */
int file_make_folders(const char *path);

#endif
