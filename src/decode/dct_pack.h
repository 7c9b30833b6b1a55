/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_pack.h -- a pack: all coefficients of a JPEG without its Huffman codes. Decoding it takes a fraction of the time
 * and gives the same pixels; it is about one and a half times as large.
 *
 *     dct_pack_write(&buf, &frame, &head, &giver)     from whoever has the coefficients
 *
 *     dct_pack_open(&pack, bytes, n)                  proves all that is not behind the index of chunks
 *     dct_walk_begin(&walk, &pack, kernels)
 *     jpeg_strip_run(&pack.frame, crop, kernels, &(struct jpeg_giver){.give = dct_walk_give, .user = &walk}, ...)
 *
 * Whatever the bytes are, reading stays within them. A damaged pack is refused, or gives wrong pixels: whoever keeps
 * one keeps a checksum as well. The layout is described in dct_pack.c; a pack of another version is refused.
 */
#ifndef DCT_PACK_H
#define DCT_PACK_H

#include "base/buf.h"
#include "decode/dct_block.h"
#include "decode/jpeg_strip.h"

enum {
    DCT_CHUNK = 8,                    /* MCUs */
    DCT_CHUNK_BLOCKS = DCT_CHUNK * 6, /* at most */
};

/* What out holds already stays before it. false: no memory, or the giver could not; out is as it was. */
bool dct_pack_write(struct buf *out, const struct jpeg_frame *f, const struct head *h, const struct jpeg_giver *from,
                    dct_pack_fn *pack);

struct dct_pack {
    struct jpeg_frame frame;
    struct head head; /* of the JPEG */
    const uint8_t *bytes, *index;
    size_t n;
    int blocks; /* of an MCU */
};

/* false: it is none, or damaged. It points into the bytes. */
bool dct_pack_open(struct dct_pack *p, const uint8_t *bytes, size_t n);

/* Somewhere in a pack. */
struct dct_walk {
    const struct dct_pack *pack;
    dct_unpack_fn *unpack;
    int32_t y, x, end; /* the next MCU, and the first of the next chunk of its row */
    struct dct_in in;
    const struct jpeg_blocks *known; /* what places were made for */
    struct dct_place places[JPEG_AT_ONCE * 6], nowhere[DCT_CHUNK_BLOCKS];
    int16_t waste[JPEG_BLOCK];
    uint8_t waste_last;
};

void dct_walk_begin(struct dct_walk *w, const struct dct_pack *p, dct_unpack_fn *unpack);
/* As jpeg_giver.give, for a walk; always to the same blocks. */
bool dct_walk_give(void *walk, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to);

#endif
