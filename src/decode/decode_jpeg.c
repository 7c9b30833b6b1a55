/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_jpeg.c -- JPEG: what is plain and whole by a decoder of our own, all else through libjpeg-turbo.
 */
#include "decode/codec.h"

#ifdef HAVE_JPEG

#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "decode/jpeg_baseline.h"
#include "decode/jpeg_checkpoints.h"
#include "decode/jpeg_dct.h"
#include "decode/jpeg_head.h"
#include "decode/jpeg_lossless.h"
#include "decode/jpeg_turbo.h"

static const char stage[] = "decode";

/* One thread's. */
struct state {
    struct jpeg_baseline *baseline;
    struct jpeg_turbo *turbo;
    bool own; /* the last picture was decoded by baseline */
    struct buf
        checkpoint; /* on the last picture, where it has several scans: a checksum, then its DCT image; empty: none */
};

static void jpeg_close(void *state)
{
    struct state *s = state;
    jpeg_baseline_free(s->baseline);
    jpeg_turbo_free(s->turbo);
    buf_done(&s->checkpoint);
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

/* One after the other, in the same memory. */
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

/* Pictures of several scans have a DCT image as well, when they are complete: libjpeg holds their coefficients. */
static bool to_dct(void *state, const struct picture_job *job, struct buf *out)
{
    const struct state *s = state;
    const struct head *h = job->head;
    if (h->bits != 8 || (h->channels != 1 && h->channels != 3) || h->odd & STK_ODD_LOSSLESS)
        return false;
    return jpeg_baseline_to_dct(s->baseline, job, out) ||
           (h->odd & CODEC_HELD && jpeg_turbo_to_dct(s->turbo, s->baseline, job, out));
}

static int dct_pixels(void *state, const struct picture_job *job, struct image *out, stk_error *e)
{
    const struct state *s = state;
    return jpeg_dct_pixels(s->baseline, job, out, e);
}

static int jpeg_pixels(void *state, const struct picture_job *job, struct image *out, int *warnings, stk_error *e)
{
    struct state *s = state;
    const struct head *h = job->head;
    s->own = false;
    s->checkpoint.len = 0;
    if (job->parts) /* the rest of them is no verdict on the file */
        return jpeg_baseline_pixels(s->baseline, job, out)
                   ? STK_OK
                   : error_set(e, STK_EDATA, stage, "cannot be decoded from parts of its file");
    if (h->bits != 8)
        return error_set(e, STK_EDATA, stage, "is a JPEG of %d bits a sample; only 8 are supported", h->bits);
    if (h->channels != 1 && h->channels != 3 && h->channels != 4)
        return error_set(e, STK_EDATA, stage, "is a JPEG of %d components, neither grey, RGB nor CMYK", h->channels);
    if (is_lossless(h))
        return jpeg_lossless(job, out, e);
    s->own = !job->reference && jpeg_baseline_pixels(s->baseline, job, out);
    if (s->own || jpeg_dct_checkpoint(s->baseline, job, to_dct, s, &s->checkpoint, out))
        return STK_OK;
    return jpeg_turbo_pixels(s->turbo, job, out, warnings, e);
}

static const uint8_t *new_checkpoints(void *state, size_t *n)
{
    const struct state *s = state;
    *n = s->checkpoint.len;
    return s->own ? jpeg_baseline_checkpoints(s->baseline, n) : *n ? s->checkpoint.data : NULL;
}

static bool jpeg_rewrite(void *state, const struct picture_job *job, struct buf *out)
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
    .dct_head = jpeg_dct_head,
    .dct_pixels = dct_pixels,
    .rewrite = jpeg_rewrite,
    .checkpoints = new_checkpoints,
    .checkpoint_head = jpeg_checkpoints_head,
    .checkpoint_parts = jpeg_checkpoints_parts,
    .encode = jpeg_turbo_encode,
    .version = jpeg_turbo_version,
    .open = jpeg_open,
    .close = jpeg_close,
};

#endif
