/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif.h -- the orientation of an image, from EXIF or else from XMP.
 */
#ifndef EXIF_H
#define EXIF_H

#include <stddef.h>
#include <stdint.h>

/* Blocks of metadata as found in a file; NULL: none. */
struct exif {
    const uint8_t *tiff; /* with or without "Exif\0\0" before it */
    size_t tiff_bytes;
    const uint8_t *xmp;
    size_t xmp_bytes;
};

/* 1 to 8; 1 if neither contains a readable orientation. */
int exif_orientation(const struct exif *x);

#endif
