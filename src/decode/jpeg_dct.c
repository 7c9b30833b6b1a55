/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_dct.c -- DCT images as checkpoints on JPEG files of several scans.
 *
 * These have no checkpoints; a later crop is decoded from their DCT image. A checkpoint is a checksum, which is the
 * file's as well, and the DCT image.
 */
#include "decode/jpeg_dct.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"

enum {
    FILE_MOST = 512 * 1024, /* files of several scans whose DCT image is noted */
    HEAD_BYTES = 4096,      /* that tell one file from another, with its size */
};

int jpeg_dct_pixels(struct jpeg_baseline *b, const struct picture_job *job, struct image *out, stk_error *e)
{
    struct dct_image p;
    if (!dct_image_open(&p, job->bytes, job->n) || p.frame.w != job->head->w || p.frame.h != job->head->h ||
        !jpeg_baseline_from_dct(b, &p, job, out))
        return error_set(e, STK_EDATA, "decode", "a DCT image of this picture is damaged");
    return STK_OK;
}

int jpeg_dct_head(const uint8_t *bytes, size_t n, struct head *out, stk_error *e)
{
    struct dct_image p;
    if (!dct_image_open(&p, bytes, n))
        return error_set(e, STK_EDATA, "decode", "a DCT image is damaged, or of another version");
    *out = p.head;
    return STK_OK;
}

static uint64_t sum_of(const struct picture_job *job, const uint8_t *dct, size_t n)
{
    const size_t head = job->n < HEAD_BYTES ? job->n : HEAD_BYTES;
    return hash_bytes(dct, n, hash_mix(hash_bytes(job->bytes, head, 0), job->n));
}

static bool make_checkpoint(struct buf *checkpoint, const struct picture_job *job,
                            bool (*to_dct)(void *state, const struct picture_job *job, struct buf *out), void *state)
{
    uint64_t sum = 0;
    checkpoint->max = JPEG_DCT_MOST;
    if (job->n > FILE_MOST || buf_add(checkpoint, &sum, sizeof sum) != 0 || !to_dct(state, job, checkpoint)) {
        checkpoint->len = 0;
        return false;
    }
    sum = sum_of(job, checkpoint->data + sizeof sum, checkpoint->len - sizeof sum);
    memcpy(checkpoint->data, &sum, sizeof sum);
    return true;
}

static bool crop_of_checkpoint(struct jpeg_baseline *b, const struct picture_job *job, const uint8_t *checkpoint,
                               size_t n, struct image *out)
{
    uint64_t sum;
    if (n <= sizeof sum)
        return false;
    struct picture_job from_dct = *job;
    from_dct.bytes = checkpoint + sizeof sum;
    from_dct.n = n - sizeof sum;
    memcpy(&sum, checkpoint, sizeof sum);
    const size_t used = job->arena->used;
    if (sum == sum_of(job, from_dct.bytes, from_dct.n) && jpeg_dct_pixels(b, &from_dct, out, NULL) == STK_OK)
        return true;
    job->arena->used = used;
    return false;
}

bool jpeg_dct_checkpoint(struct jpeg_baseline *b, const struct picture_job *job,
                         bool (*to_dct)(void *state, const struct picture_job *job, struct buf *out), void *state,
                         struct buf *checkpoint, struct image *out)
{
    if (!(job->head->odd & CODEC_HELD) || !job->checkpoints_wanted)
        return false;
    if (job->checkpoints)
        return crop_of_checkpoint(b, job, job->checkpoints, job->checkpoint_bytes, out);
    return make_checkpoint(checkpoint, job, to_dct, state) &&
           crop_of_checkpoint(b, job, checkpoint->data, checkpoint->len, out);
}
