/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_frame.h -- what the markers of a plain baseline JPEG say, and which MCUs a crop takes.
 *
 * Only the usual is read: one scan of Huffman codes, 8 bits, grey or YCbCr in 4:4:4, 4:2:2, 4:2:0 or 4:4:0, with all
 * tables. Everything else, and everything that libjpeg would warn about, is left to libjpeg.
 */
#ifndef JPEG_FRAME_H
#define JPEG_FRAME_H

#include "base/sample.h"
#include "decode/jpeg_kernel.h"

enum { JPEG_COMPONENTS = 3 };

struct jpeg_component {
    int h, v;               /* blocks of an MCU, across and down */
    int side;               /* samples of a block, across and down: 8, or fewer if the image is shrunk */
    int wide, high;         /* how many times each of them is repeated */
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
    int restart;  /* MCUs between restart markers; 0: none */
    size_t scan;  /* where the coded bytes start */
    struct jpeg_component component[JPEG_COMPONENTS];
};

/* Returns false if the file is left to libjpeg. f points into the bytes. */
bool jpeg_frame_read(struct jpeg_frame *f, const uint8_t *bytes, size_t n);

/* From zigzag to natural order. */
extern const uint8_t jpeg_zigzag[JPEG_BLOCK];

/* Computes sizes in MCUs from w, h, n_components and sampling. Returns false if the kernels cannot decode such an
 * image. */
bool jpeg_frame_measure(struct jpeg_frame *f);

/* Makes f the same image at a half, a quarter or an eighth (2, 4, 8) of its size, as libjpeg would decode it. Sizes
 * are rounded up. Chroma becomes 4:4:4 if larger blocks make up for fewer of them, or if its samples are repeated. */
void jpeg_frame_shrink(struct jpeg_frame *f, int by);

static inline bool jpeg_frame_halves_columns(const struct jpeg_frame *f)
{
    return f->sampling == JPEG_422 || f->sampling == JPEG_420;
}
static inline bool jpeg_frame_halves_rows(const struct jpeg_frame *f)
{
    return f->sampling == JPEG_420 || f->sampling == JPEG_440;
}

/* The MCUs that a crop takes, columns x0 to x1 and rows y0 to y1, and the row at which libjpeg would stop decoding. */
struct jpeg_need {
    int32_t x0, x1, y0, y1, end;
};
struct jpeg_need jpeg_frame_need(const struct jpeg_frame *f, const struct rect *crop, bool whole);

#endif
