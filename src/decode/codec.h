/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h -- what an image format provides: one table of functions per format.
 *
 * decode.c chooses the table by the first bytes. A codec works in the coordinates of the image as stored; decode.c
 * turns the image upright.
 */
#ifndef CODEC_H
#define CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/sample.h"
#include "base/size.h"
#include "decode/dct_region.h"

/* A bit of head.odd above the public STK_ODD_*: the codec's library holds the whole image while it decodes. */
enum { CODEC_HELD = 1 << 24 };

/* One image to decode. */
struct image_job {
    const uint8_t *bytes;
    size_t n;
    const struct head *head;
    struct rect crop; /* in stored coordinates; within the image, not empty */
    int shrink;       /* 2, 4 or 8: decode at 1/shrink of the size; crop refers to the smaller image */
    bool whole;       /* check the whole file, including what comes after the crop */
    bool reference;   /* use only the format's library */
    bool indices;     /* as in struct want; rows stay as wide as with 3 channels */
    /* The checkpoints of an earlier decode of this file, or NULL; and whether new ones are wanted. */
    const uint8_t *checkpoints;
    size_t checkpoint_bytes;
    bool checkpoints_wanted;
    bool checkpoints_complete;   /* down to the end of the file, beyond what the crop takes */
    const struct ranges *ranges; /* as in struct want: read nothing else of the file */
    struct arena *arena;
    struct dct_region *region; /* gets coefficients or codes; NULL: pixels are wanted */
};

struct codec {
    stk_format format;
    bool (*match)(const uint8_t *bytes, size_t n);
    /* Fills *out. The orientation is the file's. */
    int (*head)(const uint8_t *bytes, size_t n, struct head *out, stk_error *e);
    /* Bytes of arena, and of the library's heap, that pixels() takes for this crop; SIZE_MAX on overflow. */
    size_t (*scratch)(const struct head *h, const struct rect *crop, bool whole);
    size_t (*foreign)(const struct head *h, const struct rect *crop, bool whole);
    /* Decodes the crop into the arena, with 3 channels. `state` is what open() returned to this thread. */
    int (*pixels)(void *state, const struct image_job *job, struct image *out, int *warnings, stk_error *e);
    /* DCT images (dct_image.h); all four may be NULL. to_dct appends the DCT image of the whole image, or returns
     * false if it has none. from_dct appends an image with the same coefficients. dct_head reads the original's head
     * from a DCT image. dct_pixels decodes a crop; job->bytes is a DCT image. */
    bool (*to_dct)(void *state, const struct image_job *job, struct buf *out);
    int (*from_dct)(const uint8_t *bytes, size_t n, struct buf *out, stk_error *e);
    int (*dct_head)(const uint8_t *bytes, size_t n, struct head *out, stk_error *e);
    int (*dct_pixels)(void *state, const struct image_job *job, struct image *out, stk_error *e);
    /* Fills job->region, from a file or from a DCT image. Returns false if that is not possible. May be NULL. */
    bool (*region)(void *state, const struct image_job *job, bool dct);
    /* Appends the same image in one scan with the same coefficients, and verifies them; returns false if that is not
     * possible. May be NULL. */
    bool (*rewrite)(void *state, const struct image_job *job, struct buf *out);
    /* The checkpoints that the last image added; NULL: none. May be NULL. */
    const uint8_t *(*checkpoints)(void *state, size_t *n);
    /* From checkpoints alone: the head (with the file's orientation; 0: unknown), and the ranges of the file that
     * pixels() reads for a crop. Ranges less than `apart` bytes apart are joined. Both return false if the
     * checkpoints do not say, and may be NULL. */
    bool (*checkpoint_head)(const uint8_t *checkpoints, size_t n, struct head *out);
    bool (*checkpoint_ranges)(const uint8_t *checkpoints, size_t n, const struct rect *crop, int shrink, size_t apart,
                              struct ranges *out);
    int (*encode)(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e);
    const char *(*version)(void);
    void *(*open)(stk_cpu cpu); /* open and close may be NULL: no state. open returns NULL if there is no memory. */
    void (*close)(void *state);
};

extern const struct codec codec_jpeg, codec_png, codec_webp;

static inline size_t rgb_bytes(int32_t w, int32_t h)
{
    return size_mul(size_mul((size_t)w, (size_t)h), 3);
}

/* Reports that the arena is smaller than scratch() asked for. */
int codec_no_arena(stk_error *e);

#endif
