/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.h -- the memory and tools of one thread: reader, decoders, scratch memory, and its share of the budget.
 *
 *     desk_read(d, source, i, e)                  reads the sample; its memory is charged before it is allocated
 *     im = desk_image(d, source, i, f)            what was read of the image, or where the source has its pixels
 *     desk_head(&im, limits, e)                   size, format and orientation, from the first bytes
 *     desk_draw(&im, plan, draw, &job, e)         all random choices, and so the crop
 *     desk_decode(d, &im, &job.want, more, e)     reserves memory and decodes the crop, or copies pixels
 *     plan_run(plan, &job, &im.pixels, ...)       the ops
 *     desk_clear(d)                               after every sample, also a bad one
 *
 * Everything that makes an image takes these steps: the loader, its caches, scanning, browsing and packing.
 */
#ifndef DESK_H
#define DESK_H

#include "base/arena.h"
#include "base/budget.h"
#include "decode/decode.h"
#include "read/ahead.h"
#include "source/source.h"
#include "transform/plan.h"

struct desk {
    struct reading reading;
    struct decoder *decoder;
    struct buf spare; /* for coefficients or checkpoints of the file */
    struct buf held;  /* the image from a cache on disk, if the other fields are read before it is made */
    struct arena arena;
    struct budget *budget; /* shared by all desks; NULL: no limit */
    bool in_turn;
    bool refused;         /* the budget refused something for this sample */
    struct ahead *ahead;  /* may have read the sample already; NULL: nothing is read ahead */
    int64_t serial;       /* of the current row; -1: unknown */
    bool lent;            /* the bytes belong to ahead */
    bool all_read;        /* all fields of the sample were read */
    bool rest_only;       /* but not the image */
    struct ranges ranges; /* the ranges of the file that were read; none: all of it */
    size_t read;          /* bytes that were read */
};

/* The form of an image's bytes: a file; coefficients, as decode_to_dct() makes them; or pixels of the source.
 * DESK_READY: `pixels` has the whole image, and there is nothing to decode. */
enum desk_form { DESK_FILE, DESK_DCT, DESK_PIXELS, DESK_READY };

/* An image on its way from bytes to pixels. */
struct desk_image {
    enum desk_form form;
    bool apart;           /* DESK_FILE: not the file whose ranges were read */
    const uint8_t *bytes; /* DESK_PIXELS: as the source has them; NULL: desk_decode copies them */
    size_t n;
    const struct source *source; /* of DESK_PIXELS, with its sample and field */
    int64_t sample;
    int field;
    struct head head;
    struct image pixels; /* exactly the wanted crop */
    int warnings;        /* of the decoder, about damage in spite of which it could decode */
};

/* codecs: whether images are decoded here, and with which kernels. */
int desk_init(struct desk *d, int thread, struct budget *b, bool codecs, stk_cpu cpu, stk_error *e);
void desk_done(struct desk *d); /* accepts a zeroed or half-built desk */

/* Returns a buffer of n bytes, followed by zeros, that replaces the bytes of a file. NULL: the budget or the system
 * refuses it. */
uint8_t *desk_blank(struct desk *d, size_t n);
/* The same in addition to the bytes of the file. */
uint8_t *desk_hold(struct desk *d, size_t n);
/* An empty buffer for up to `most` bytes, while a codec allocates `foreign` bytes. NULL: refused. */
struct buf *desk_spare(struct desk *d, size_t most, size_t foreign);
int desk_read(struct desk *d, const struct source *s, int64_t i, stk_error *e);
/* The same without the image. */
int desk_read_rest(struct desk *d, const struct source *s, int64_t i, stk_error *e);
/* The label that the source knows, or that was read from a column; -1: none. */
int desk_label(const struct desk *d, const struct source *s, int64_t i, int64_t *label, stk_error *e);
/* Returns whether only some ranges of the file were read. If so, clears the desk, and the next desk_read reads the
 * whole file. */
bool desk_had_ranges(struct desk *d);

/* Field f of sample i. If it is encoded, the sample was read. */
struct desk_image desk_image(const struct desk *d, const struct source *s, int64_t i, int f);
int desk_head(struct desk_image *im, const struct decode_limits *limits, stk_error *e);
/* Reads the first bytes of an encoded image, which nearly always contain its head. If they do not, or `whole` is set,
 * reads the whole sample (d->all_read). */
int desk_read_head(struct desk *d, const struct source *s, int64_t i, bool whole, const struct decode_limits *limits,
                   struct desk_image *im, stk_error *e);
int desk_draw(const struct desk_image *im, const struct plan *p, const struct draw *d, struct job *out, stk_error *e);
/* Everything: the whole image, decoded to the end of the file. */
struct want desk_whole(const struct head *h);
/* Reserves memory for decoding, and `more` bytes of arena for what follows; then decodes. */
int desk_decode(struct desk *d, struct desk_image *im, const struct want *want, size_t more, stk_error *e);
/* Reserves scratch bytes in the arena, and charges `foreign` bytes that a codec allocates. STK_EDATA if they never fit.
 */
int desk_reserve(struct desk *d, size_t scratch, size_t foreign, stk_error *e);

void desk_clear(struct desk *d);
size_t desk_held(const struct desk *d);

/* A crop of an image, in the same memory. */
struct image image_crop(const struct image *im, struct rect c);

#endif
