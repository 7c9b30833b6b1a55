/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_trip.h -- what becomes of pixels when they are saved as JPEG and read again.
 *
 * The pixels are those of libjpeg-turbo with its defaults, which Pillow and torchvision use: chroma at half of the
 * size, the accurate integer DCT, smooth upsampling. Its entropy coding loses nothing, so it is left out.
 */
#ifndef JPEG_TRIP_H
#define JPEG_TRIP_H

#include "base/sample.h"

struct kernels;

/* The quantiser of one kind of component: its values, and how to divide by eight times them. */
struct trip_table {
    int32_t value[64];
    uint32_t round[64], factor[64]; /* x / value is (x + round) * factor >> shift */
    uint32_t shift[64];
};

/* A plane with whole blocks. */
struct trip_plane {
    uint8_t *px;
    size_t stride;
    int32_t w, h;           /* whole blocks */
    int32_t real_w, real_h; /* of the image */
};

struct trip {
    struct trip_table table[2]; /* luma, chroma */
    struct trip_plane plane[3];
    int channels;
    uint8_t *lines[4]; /* lines of chroma at full width */
};

/* Bytes of memory for an image; SIZE_MAX on overflow. */
size_t trip_room(int32_t w, int32_t h, int channels);
/* Does it all, except for the colours; quality is 1 to 100. */
void trip_begin(const struct kernels *k, struct trip *t, const struct image *in, int quality, void *room);
/* Writes line y, n pixels from x on. */
void trip_line(const struct kernels *k, const struct trip *t, int32_t y, int32_t x, int32_t n, uint8_t *dst);

/* The inner loops: for the table of kernels. */
struct trip_kernels {
    /* n blocks of 8 x 8 samples, side by side, to quantised coefficients and back. */
    void (*blocks)(uint8_t *px, size_t stride, int32_t n, const struct trip_table *t);
    void (*split)(uint8_t *luma, uint8_t *cb, uint8_t *cr, const uint8_t *p, int32_t w);
    void (*halve)(uint8_t *dst, const uint8_t *a, const uint8_t *b, int32_t n);
    void (*widen)(uint8_t *dst, const uint8_t *near, const uint8_t *far, int32_t n);
    void (*join)(uint8_t *dst, const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, int32_t n);
};

#endif
