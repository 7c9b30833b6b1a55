/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture.h -- which files are taken for pictures before anything is decoded.
 */
#ifndef PICTURE_H
#define PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ImageFolder's suffixes and two more of JPEG's, in any case. */
#define PICTURE_SUFFIXES ".jpg .jpeg .jpe .jfif .png .webp .bmp .ppm .pgm .tif .tiff"

bool picture_suffix(const char *name, size_t n);
/* Whether two suffixes stand for one format: "JPEG" and "jpg" do. */
bool picture_same(const char *a, const char *b);

enum { PICTURE_MAGIC = 16 };
/* By the first bytes, of which PICTURE_MAGIC are enough: JPEG, PNG, WebP. */
bool picture_magic(const uint8_t *p, size_t n);

/* The bytes of the picture that begins here, whatever follows it; 0: it does not end within n bytes. */
size_t picture_end(const uint8_t *p, size_t n);

/* Files and folders that the system left there, not the user: dot files, Thumbs.db, __MACOSX, ... */
bool picture_junk(const char *name);

#endif
