/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_file.h -- recognises files of images without decoding them.
 */
#ifndef IMAGE_FILE_H
#define IMAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The suffixes of torchvision's ImageFolder and two more of JPEG. Case does not matter. */
#define IMAGE_FILE_SUFFIXES ".jpg .jpeg .jpe .jfif .png .webp .bmp .ppm .pgm .tif .tiff"

bool image_file_suffix(const char *name, size_t n);
/* Whether two suffixes mean the same format, as "JPEG" and "jpg" do. */
bool image_file_same(const char *a, const char *b);

enum { IMAGE_FILE_MAGIC = 16 };
/* Recognises JPEG, PNG and WebP by their first IMAGE_FILE_MAGIC bytes. */
bool image_file_magic(const uint8_t *p, size_t n);

/* The size of the image that starts here; anything may follow it. 0: it does not end within n bytes. */
size_t image_file_end(const uint8_t *p, size_t n);

/* Files and folders that the operating system creates: dot files, Thumbs.db, __MACOSX, ... */
bool image_file_junk(const char *name);

#endif
