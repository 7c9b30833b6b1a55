/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h -- what a picture format has to provide; one table per format, chosen by first bytes.
 *
 * A codec works in the coordinates of the picture as stored; decode.c turns it upright.
 */
#ifndef CODEC_H
#define CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/sample.h"
#include "base/size.h"

/* In head.odd, above the public STK_ODD_*: the codec's library has to hold all of the picture while it decodes. */
enum { CODEC_HELD = 1 << 24 };

/* One picture to decode. */
struct picture_job {
    const uint8_t *bytes;
    size_t n;
    const struct head *head;
    struct rect crop; /* as stored, within the picture, not empty */
    int shrink;       /* 2, 4 or 8: the crop is one of the picture at that fraction of its size; else of the picture */
    bool whole;       /* judge all of the file, also what lies behind the crop */
    bool reference;   /* by the format's library alone */
    /* The checkpoints of an earlier decode of this file, or NULL; and whether new ones are wanted. */
    const uint8_t *checkpoints;
    size_t checkpoint_bytes;
    bool checkpoints_wanted;
    const struct parts *parts; /* as in struct want: nothing else of the file may be looked at, nor judged by it */
    struct arena *arena;
};

struct codec {
    stk_format format;
    bool (*match)(const uint8_t *bytes, size_t n);
    /* All of *out; orientation as the file says. */
    int (*head)(const uint8_t *bytes, size_t n, struct head *out, stk_error *e);
    /* Arena and foreign heap that pixels() takes for this crop; SIZE_MAX when it overflows. */
    size_t (*scratch)(const struct head *h, const struct rect *crop, bool whole);
    size_t (*foreign)(const struct head *h, const struct rect *crop, bool whole);
    /* The crop, 3 channels, in the arena. state is what open() gave to this thread. */
    int (*pixels)(void *state, const struct picture_job *job, struct image *out, int *warnings, stk_error *e);
    /* All three may be missing. A DCT image of the whole picture, behind what out holds, that decodes to the same
     * pixels sooner (false: this one has none); the head of the picture that a DCT image is of; and the crop,
     * job->bytes being a DCT image. */
    bool (*to_dct)(void *state, const struct picture_job *job, struct buf *out);
    int (*dct_head)(const uint8_t *bytes, size_t n, struct head *out, stk_error *e);
    int (*dct_pixels)(void *state, const struct picture_job *job, struct image *out, stk_error *e);
    /* The same picture, behind what out holds, in one scan and with the same coefficients, which is proved; false: not
     * possible. May be missing. */
    bool (*rewrite)(void *state, const struct picture_job *job, struct buf *out);
    /* What the last picture has added to its checkpoints; NULL when nothing. May be missing. */
    const uint8_t *(*checkpoints)(void *state, size_t *n);
    /* From checkpoints alone: the head (orientation as the file says, 0: not known), and the parts of the file that
     * pixels() will take for a crop, one where they lie less than `apart` bytes apart. false: they do not say. Both may
     * be missing. */
    bool (*checkpoint_head)(const uint8_t *checkpoints, size_t n, struct head *out);
    bool (*checkpoint_parts)(const uint8_t *checkpoints, size_t n, const struct rect *crop, int shrink, size_t apart,
                             struct parts *out);
    int (*encode)(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e);
    const char *(*version)(void);
    void *(*open)(stk_cpu cpu); /* NULL: no memory. Both may be missing: no state. */
    void (*close)(void *state);
};

extern const struct codec codec_jpeg, codec_png, codec_webp;

/* Bytes of w x h RGB pixels. */
static inline size_t rgb_bytes(int32_t w, int32_t h)
{
    return size_mul(size_mul((size_t)w, (size_t)h), 3);
}

/* What a codec says when its stage was promised less arena than it takes. */
int codec_no_arena(stk_error *e);

#endif
