/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_jpeg.c -- JPEG: plain, undamaged files by a decoder of our own, all others through libjpeg-turbo.
 */
#include "decode/codec.h"

#ifdef HAVE_JPEG

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "decode/jpeg_baseline.h"
#include "decode/jpeg_checkpoints.h"
#include "decode/jpeg_head.h"
#include "decode/jpeg_lossless.h"
#include "decode/jpeg_turbo.h"

static const char stage[] = "decode";

enum {
    DCT_FILE_MOST = 512 * 1024, /* bytes of a file of several scans, to have checkpoints */
    IDENTITY_BYTES = 4096       /* first bytes of a file, which identify it together with its size */
};

/* One thread's. */
struct state {
    struct jpeg_baseline *baseline;
    struct jpeg_turbo *turbo;
    bool own;               /* baseline decoded the last image */
    struct buf checkpoints; /* of the last image, if it has several scans; empty: none */
};

static void jpeg_close(void *state)
{
    struct state *s = state;
    jpeg_baseline_free(s->baseline);
    jpeg_turbo_free(s->turbo);
    buf_done(&s->checkpoints);
    free(s);
}

static void *jpeg_open(stk_cpu cpu)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->baseline = jpeg_baseline_new(cpu);
    s->turbo = jpeg_turbo_new();
    if (!s->baseline || !s->turbo) {
        jpeg_close(s);
        return NULL;
    }
    return s;
}

static bool is_lossless(const struct head *h)
{
    return h->odd & STK_ODD_LOSSLESS && !(h->odd & STK_ODD_ARITHMETIC);
}

/* The decoders run one after the other, in the same memory. */
static size_t jpeg_scratch(const struct head *h, const struct rect *crop, bool whole)
{
    (void)whole;
    if (is_lossless(h))
        return jpeg_lossless_scratch(h, crop);
    const size_t turbo = jpeg_turbo_scratch(h, crop), own = jpeg_baseline_scratch(crop);
    return turbo > own ? turbo : own;
}

static size_t jpeg_foreign(const struct head *h, const struct rect *crop, bool whole)
{
    (void)crop;
    (void)whole;
    return jpeg_turbo_foreign(h);
}

/* ------------------------------------------------------------------ DCT images */

/* Images of several scans also have one, if they are complete: libjpeg holds their coefficients. */
static bool to_dct(void *state, const struct image_job *job, struct buf *out)
{
    const struct state *s = state;
    const struct head *h = job->head;
    if (h->bits != 8 || (h->channels != 1 && h->channels != 3) || h->odd & STK_ODD_LOSSLESS)
        return false;
    return jpeg_baseline_to_dct(s->baseline, job, out) ||
           (h->odd & CODEC_HELD && jpeg_turbo_to_dct(s->turbo, s->baseline, job, out));
}

static int dct_head(const uint8_t *bytes, size_t n, struct head *out, stk_error *e)
{
    struct dct_image d;
    if (!dct_image_open(&d, bytes, n))
        return error_set(e, STK_EDATA, stage, "is a DCT image that is damaged or of another version; pack it again");
    *out = d.head;
    return STK_OK;
}

static int dct_pixels(void *state, const struct image_job *job, struct image *out, stk_error *e)
{
    const struct state *s = state;
    struct dct_image d;
    if (!dct_image_open(&d, job->bytes, job->n) || d.frame.w != job->head->w || d.frame.h != job->head->h ||
        !jpeg_baseline_from_dct(s->baseline, &d, job, out))
        return error_set(e, STK_EDATA, stage, "is a damaged DCT image");
    return STK_OK;
}

static bool jpeg_region(void *state, const struct image_job *job, bool dct)
{
    struct state *s = state;
    struct dct_image d;
    s->own = false;
    s->checkpoints.len = 0;
    if (dct)
        return dct_image_open(&d, job->bytes, job->n) && d.frame.w == job->head->w && d.frame.h == job->head->h &&
               jpeg_baseline_dct_region(&d, job);
    s->own = job->head->bits == 8 && !is_lossless(job->head) && jpeg_baseline_pixels(s->baseline, job, NULL);
    return s->own;
}

/* ------------------------------------------------------------------ checkpoints of several scans
 *
 * A file of several scans has no bit at which a crop starts. Its checkpoints are its DCT image, after a checksum that
 * covers the image and identifies the file.
 */

static uint64_t checksum(const struct image_job *job, const uint8_t *dct, size_t n)
{
    const size_t head = job->n < IDENTITY_BYTES ? job->n : IDENTITY_BYTES;
    return hash_bytes(dct, n, hash_mix(hash_bytes(job->bytes, head, 0), job->n));
}

static bool make_checkpoints(struct state *s, const struct image_job *job)
{
    struct buf *b = &s->checkpoints;
    uint64_t sum = 0;
    b->max = JPEG_DCT_MOST;
    if (job->n > DCT_FILE_MOST || buf_add(b, &sum, sizeof sum) != 0 || !to_dct(s, job, b)) {
        b->len = 0;
        return false;
    }
    sum = checksum(job, b->data + sizeof sum, b->len - sizeof sum);
    memcpy(b->data, &sum, sizeof sum);
    return true;
}

static bool crop_of_checkpoints(struct state *s, const struct image_job *job, const uint8_t *checkpoints, size_t n,
                                struct image *out)
{
    uint64_t sum;
    if (n <= sizeof sum)
        return false;
    struct image_job from_dct = *job;
    from_dct.bytes = checkpoints + sizeof sum;
    from_dct.n = n - sizeof sum;
    memcpy(&sum, checkpoints, sizeof sum);
    const size_t used = job->arena->used;
    if (sum == checksum(job, from_dct.bytes, from_dct.n) && dct_pixels(s, &from_dct, out, NULL) == STK_OK)
        return true;
    job->arena->used = used;
    return false;
}

/* Making the DCT image takes no longer than decoding, so the first crop is made from it as well. Returns false, with
 * the arena unchanged, if libjpeg has to decode the image. */
static bool pixels_by_checkpoints(struct state *s, const struct image_job *job, struct image *out)
{
    if (!(job->head->odd & CODEC_HELD) || !job->checkpoints_wanted)
        return false;
    if (job->checkpoints)
        return crop_of_checkpoints(s, job, job->checkpoints, job->checkpoint_bytes, out);
    return make_checkpoints(s, job) && crop_of_checkpoints(s, job, s->checkpoints.data, s->checkpoints.len, out);
}

/* ------------------------------------------------------------------ pixels */

static int jpeg_pixels(void *state, const struct image_job *job, struct image *out, int *warnings, stk_error *e)
{
    struct state *s = state;
    const struct head *h = job->head;
    s->own = false;
    s->checkpoints.len = 0;
    if (job->ranges) /* a failure on ranges of a file is not a verdict on the file */
        return jpeg_baseline_pixels(s->baseline, job, out)
                   ? STK_OK
                   : error_set(e, STK_EDATA, stage, "cannot be decoded from some ranges of its file; read all of it");
    if (h->bits != 8)
        return error_set(e, STK_EDATA, stage, "is a JPEG with %d bits per sample; only 8 are supported", h->bits);
    if (h->channels != 1 && h->channels != 3 && h->channels != 4)
        return error_set(e, STK_EDATA, stage,
                         "is a JPEG with %d components; only 1 (grey), 3 (colour) and 4 (CMYK) are supported",
                         h->channels);
    if (is_lossless(h))
        return jpeg_lossless(job, out, e);
    s->own = !job->reference && jpeg_baseline_pixels(s->baseline, job, out);
    if (s->own || pixels_by_checkpoints(s, job, out))
        return STK_OK;
    return jpeg_turbo_pixels(s->turbo, job, out, warnings, e);
}

static const uint8_t *new_checkpoints(void *state, size_t *n)
{
    const struct state *s = state;
    *n = s->checkpoints.len;
    return s->own ? jpeg_baseline_checkpoints(s->baseline, n) : *n ? s->checkpoints.data : NULL;
}

static bool jpeg_rewrite(void *state, const struct image_job *job, struct buf *out)
{
    const struct state *s = state;
    return jpeg_turbo_rewrite(s->turbo, job, out);
}

const struct codec codec_jpeg = {
    .format = STK_JPEG,
    .match = jpeg_match,
    .head = jpeg_head,
    .scratch = jpeg_scratch,
    .foreign = jpeg_foreign,
    .pixels = jpeg_pixels,
    .to_dct = to_dct,
    .from_dct = jpeg_turbo_from_dct,
    .dct_head = dct_head,
    .dct_pixels = dct_pixels,
    .region = jpeg_region,
    .rewrite = jpeg_rewrite,
    .checkpoints = new_checkpoints,
    .checkpoint_head = jpeg_checkpoints_head,
    .checkpoint_ranges = jpeg_checkpoints_ranges,
    .encode = jpeg_turbo_encode,
    .version = jpeg_turbo_version,
    .open = jpeg_open,
    .close = jpeg_close,
};

#endif
