/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_note.c -- packs as checkpoints on JPEG files of several scans.
 *
 * These have no checkpoints; a later crop is decoded from their pack. A note is a checksum, which is the file's as
 * well, and the pack.
 */
#include "decode/jpeg_note.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"

enum {
    NOTED_MOST = 512 * 1024, /* files of several scans whose pack is noted */
    HEAD_BYTES = 4096,       /* that tell one file from another, with its size */
};

int jpeg_note_unpack(struct jpeg_baseline *b, const struct picture_job *job, struct image *out, stk_error *e)
{
    struct dct_pack p;
    if (!dct_pack_open(&p, job->bytes, job->n) || p.frame.w != job->head->w || p.frame.h != job->head->h ||
        !jpeg_baseline_unpack(b, &p, job, out))
        return error_set(e, STK_EDATA, "decode", "a pack of this picture is damaged");
    return STK_OK;
}

int jpeg_note_head(const uint8_t *bytes, size_t n, struct head *out, stk_error *e)
{
    struct dct_pack p;
    if (!dct_pack_open(&p, bytes, n))
        return error_set(e, STK_EDATA, "decode", "a pack is damaged, or of another version");
    *out = p.head;
    return STK_OK;
}

static uint64_t sum_of(const struct picture_job *job, const uint8_t *pack, size_t n)
{
    const size_t head = job->n < HEAD_BYTES ? job->n : HEAD_BYTES;
    return hash_bytes(pack, n, hash_mix(hash_bytes(job->bytes, head, 0), job->n));
}

static bool make_note(struct buf *note, const struct picture_job *job,
                      bool (*pack)(void *state, const struct picture_job *job, struct buf *out), void *state)
{
    uint64_t sum = 0;
    note->max = JPEG_NOTE_MOST;
    if (job->n > NOTED_MOST || buf_add(note, &sum, sizeof sum) != 0 || !pack(state, job, note)) {
        note->len = 0;
        return false;
    }
    sum = sum_of(job, note->data + sizeof sum, note->len - sizeof sum);
    memcpy(note->data, &sum, sizeof sum);
    return true;
}

static bool crop_of_note(struct jpeg_baseline *b, const struct picture_job *job, const uint8_t *note, size_t n,
                         struct image *out)
{
    uint64_t sum;
    if (n <= sizeof sum)
        return false;
    struct picture_job from_pack = *job;
    from_pack.bytes = note + sizeof sum;
    from_pack.n = n - sizeof sum;
    memcpy(&sum, note, sizeof sum);
    const size_t used = job->arena->used;
    if (sum == sum_of(job, from_pack.bytes, from_pack.n) && jpeg_note_unpack(b, &from_pack, out, NULL) == STK_OK)
        return true;
    job->arena->used = used;
    return false;
}

bool jpeg_note_pixels(struct jpeg_baseline *b, const struct picture_job *job,
                      bool (*pack)(void *state, const struct picture_job *job, struct buf *out), void *state,
                      struct buf *note, struct image *out)
{
    if (!(job->head->odd & CODEC_HELD) || !job->checkpoints_wanted)
        return false;
    if (job->checkpoints)
        return crop_of_note(b, job, job->checkpoints, job->checkpoint_bytes, out);
    return make_note(note, job, pack, state) && crop_of_note(b, job, note->data, note->len, out);
}
