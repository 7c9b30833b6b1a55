/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_frame.h -- what the markers of a plain baseline JPEG say, and what of it a crop takes.
 *
 * Only the usual is read: one scan of Huffman codes, 8 bits, grey or YCbCr in 4:4:4, 4:2:2, 4:2:0 or 4:4:0, all tables
 * there. Everything else, and all that libjpeg would as much as warn about, is libjpeg's.
 */
#ifndef JPEG_FRAME_H
#define JPEG_FRAME_H

#include "base/sample.h"
#include "decode/jpeg_kernel.h"

enum { JPEG_COMPONENTS = 3 };

struct jpeg_component {
    int h, v;               /* blocks of an MCU, across and down */
    int side;               /* samples of a block, across and down: 8, or fewer of a picture that is shrunk */
    int wide, high;         /* times that each of them counts */
    uint16_t q[JPEG_BLOCK]; /* natural order */
    const uint8_t *dc, *ac; /* tables as in the file: 16 counts, then the symbols */
};

struct jpeg_frame {
    int32_t w, h;
    enum jpeg_sampling sampling;
    int n_components;
    int mcu_w, mcu_h; /* pixels */
    int32_t mcus_x, mcus_y;
    int together; /* MCU rows that libjpeg decodes in one go */
    int restart;  /* MCUs between restart markers; 0: there are none */
    size_t scan;  /* where the coded bytes begin */
    struct jpeg_component component[JPEG_COMPONENTS];
};

/* false: not ours. The frame points into the bytes. */
bool jpeg_frame_read(struct jpeg_frame *f, const uint8_t *bytes, size_t n);

/* Natural order of zigzag order. */
extern const uint8_t jpeg_zigzag[JPEG_BLOCK];

/* Sizes in MCUs from w, h, n_components and sampling; false when there is no such picture for the kernels. */
bool jpeg_frame_measure(struct jpeg_frame *f);

/* The same picture at a half, a quarter or an eighth (2, 4, 8) of its size, as libjpeg would decode it: sizes are
 * rounded up; where a bigger part of chroma's blocks makes up for its fewer blocks, or its samples count twice, it is
 * as 4:4:4. */
void jpeg_frame_shrink(struct jpeg_frame *f, int by);

static inline bool jpeg_frame_halves_columns(const struct jpeg_frame *f)
{
    return f->sampling == JPEG_422 || f->sampling == JPEG_420;
}
static inline bool jpeg_frame_halves_rows(const struct jpeg_frame *f)
{
    return f->sampling == JPEG_420 || f->sampling == JPEG_440;
}

/* MCUs whose pixels a crop takes, columns x0 to x1, rows y0 to y1, and the row at which libjpeg would stop decoding. */
struct jpeg_need {
    int32_t x0, x1, y0, y1, end;
};
struct jpeg_need jpeg_frame_need(const struct jpeg_frame *f, const struct rect *crop, bool whole);

#endif
