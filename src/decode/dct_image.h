/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_image.h -- a DCT image: all coefficients of a JPEG without its Huffman codes.
 *
 * It decodes to the same pixels in a fraction of the time, and is about one and a half times as large.
 *
 *     dct_image_write(&buf, &frame, &head, &giver, encode)     from any source of coefficients
 *
 *     dct_image_open(&image, bytes, n)                         checks everything before the chunks
 *     dct_walk_begin(&walk, &image, decode)
 *     jpeg_strip_run(&image.frame, crop, kernels, &(struct jpeg_giver){.give = dct_walk_give, .user = &walk}, ...)
 *
 * Reading stays within the bytes, whatever they are. A damaged DCT image is refused or gives wrong pixels, so code
 * that stores one must also store a checksum. dct_image.c describes the layout. Other versions are refused.
 */
#ifndef DCT_IMAGE_H
#define DCT_IMAGE_H

#include "base/buf.h"
#include "decode/dct_block.h"
#include "decode/dct_region.h"
#include "decode/jpeg_strip.h"

enum {
    DCT_CHUNK = 8,                    /* MCUs */
    DCT_CHUNK_BLOCKS = DCT_CHUNK * 6, /* at most */
};

/* Appends to out. Returns false if there is no memory or the giver fails; out is then unchanged. */
bool dct_image_write(struct buf *out, const struct jpeg_frame *f, const struct head *h, const struct jpeg_giver *from,
                     dct_encode_fn *encode);

struct dct_image {
    struct jpeg_frame frame;
    struct head head; /* of the JPEG */
    const uint8_t *bytes, *index;
    size_t n;
    int blocks; /* per MCU */
};

/* Returns false if the bytes are not a DCT image or damaged. p points into the bytes. */
bool dct_image_open(struct dct_image *p, const uint8_t *bytes, size_t n);

/* A position in a DCT image. */
struct dct_walk {
    const struct dct_image *image;
    dct_decode_fn *decode;
    int32_t y, x, end; /* the next MCU, and the first of the next chunk of its row */
    struct dct_in in;
    const struct jpeg_blocks *known; /* the blocks that `places` point into */
    struct dct_place places[JPEG_AT_ONCE_BLOCKS], nowhere[DCT_CHUNK_BLOCKS];
    int16_t waste[JPEG_BLOCK];
    uint8_t waste_last;
};

void dct_walk_begin(struct dct_walk *w, const struct dct_image *p, dct_decode_fn *decode);
/* A jpeg_giver.give; always called with the same blocks. */
bool dct_walk_give(void *walk, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to);

/* The coefficients of some MCUs: from any source of coefficients, or copied, up to the ends of chunks. Returns false if
 * they do not fit (p->used is 0), the giver fails, or the DCT image is damaged. */
bool dct_region_write(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                      const struct jpeg_giver *from, dct_encode_fn *encode);
bool dct_region_copy(struct dct_region *p, const struct dct_image *image, const struct jpeg_need *need);

/*
 * A DCT image as a file of its own (.dct): magic, a checksum of the rest, the DCT image. The checksum is verified every
 * time the head is read, because a damaged DCT image may decode to wrong pixels without an error.
 */
enum { DCT_FILE_HEAD = 16 };

bool dct_image_is_file(const uint8_t *bytes, size_t n);
int dct_image_check_file(const uint8_t *bytes, size_t n, stk_error *e);
/* Appends an empty head to out; returns -1 if there is no memory. */
int dct_image_begin_file(struct buf *out);
/* Fills in the head at `begin`, once the DCT image has been appended to it. */
void dct_image_end_file(struct buf *out, size_t begin);

#endif
