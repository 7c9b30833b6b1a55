/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_baseline.c -- a crop of a plain baseline JPEG.
 *
 * libjpeg decodes a scan from its start in whole rows of MCUs. It reads some bytes ahead, and complains if there are
 * none. A damaged file must get the same verdict here. So this decoder reads everything that libjpeg would have
 * decoded, down to the end of the last MCU row, either now or when the checkpoints were made. What libjpeg might see
 * differently is left to libjpeg.
 */
#include "decode/jpeg_baseline.h"

#include <stdlib.h>

#include "decode/jpeg_groups.h"
#include "decode/jpeg_strip.h"
#include "decode/jpeg_walk.h"

struct jpeg_baseline {
    struct jpeg_kernels kernels;
    struct huff_store *tables;
    struct jpeg_checkpoints checkpoints;
    struct buf blob; /* new checkpoints as bytes; empty: nothing new */
};

struct jpeg_baseline *jpeg_baseline_new(stk_cpu cpu)
{
    struct jpeg_baseline *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    jpeg_kernels_fill(&b->kernels, cpu);
    b->tables = huff_store_new();
    if (!b->tables) {
        jpeg_baseline_free(b);
        return NULL;
    }
    return b;
}

void jpeg_baseline_free(struct jpeg_baseline *b)
{
    if (!b)
        return;
    huff_store_free(b->tables);
    jpeg_checkpoints_done(&b->checkpoints);
    buf_done(&b->blob);
    free(b);
}

size_t jpeg_baseline_scratch(const struct rect *crop)
{
    return jpeg_strip_scratch(crop);
}

static bool read_frame(struct jpeg_frame *f, const struct image_job *job)
{
    const struct head *h = job->head;
    return !(h->odd & CODEC_HELD) && jpeg_frame_read(f, job->bytes, job->n) && f->w == h->w && f->h == h->h &&
           f->n_components == h->channels;
}

/* The same places, moved by some MCUs. */
static struct jpeg_blocks later(const struct jpeg_frame *f, const struct jpeg_blocks *b, int32_t mcus)
{
    struct jpeg_blocks out = *b;
    for (int i = 0; i < f->n_components; i++)
        for (int v = 0; v < f->component[i].v; v++) {
            const ptrdiff_t blocks = (ptrdiff_t)mcus * f->component[i].h;
            out.coef[i][v] += blocks * JPEG_BLOCK;
            out.last[i][v] += blocks;
        }
    return out;
}

/* Reads within one group at a time if there are checkpoints. */
static bool give(void *user, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to)
{
    struct jpeg_walk *w = user;
    if (!w->checkpoints)
        return jpeg_walk_read(w, y, x, n, to);
    for (int32_t done = 0, k; done < n; done += k) {
        const int32_t in_group = CHECKPOINT_EVERY - (x + done) % CHECKPOINT_EVERY;
        const struct jpeg_blocks moved = later(w->scan.frame, to, done);
        k = n - done < in_group ? n - done : in_group;
        if (!jpeg_walk_read(w, y, x + done, k, &moved))
            return false;
    }
    return true;
}

/* Pixels, or the coefficients that a device makes them from. */
static bool make(const struct jpeg_baseline *b, const struct jpeg_frame *f, const struct jpeg_need *need,
                 const struct jpeg_giver *from, const struct image_job *job, struct image *out)
{
    return job->region ? dct_region_write(job->region, f, need, from, b->kernels.dct_encode)
                       : jpeg_strip_run(f, &job->crop, &b->kernels, from, job->arena, out);
}

static bool decode(struct jpeg_baseline *b, const struct jpeg_frame *f, const struct image_job *job, struct image *out)
{
    if (job->region && !job->region->coefficients)
        return false;
    const size_t used = job->region ? 0 : job->arena->used;
    struct jpeg_frame small = *f;
    if (job->shrink > 1)
        jpeg_frame_shrink(&small, job->shrink);
    const struct jpeg_need need = jpeg_frame_need(&small, &job->crop, job->whole);
    if (job->ranges && !jpeg_checkpoints_within(&b->checkpoints, f, &need, job->n, job->ranges))
        return false;
    struct jpeg_walk w;
    const struct jpeg_giver from = {.give = give, .user = &w, .sparse = true};
    if (jpeg_walk_begin(&w, f, b->tables, job->bytes, job->n, job->checkpoints_wanted ? &b->checkpoints : NULL) &&
        make(b, &small, &need, &from, job, out) && jpeg_walk_finish(&w, need.end, job->whole))
        return true;
    if (!job->region)
        job->arena->used = used;
    return false;
}

/* Makes the missing checkpoints, unless the file is damaged after those that are known. */
static void complete(struct jpeg_baseline *b, const struct jpeg_frame *f, const struct image_job *job)
{
    struct jpeg_checkpoints *c = &b->checkpoints;
    const int32_t n = c->n;
    struct jpeg_walk w;
    if (!job->checkpoints_complete || job->ranges || f->restart || n > c->across * f->mcus_y)
        return;
    if (!jpeg_walk_begin(&w, f, b->tables, job->bytes, job->n, c) || !jpeg_walk_finish(&w, f->mcus_y, false))
        c->n = n;
}

static bool wants_codes(const struct image_job *job)
{
    return job->region && job->region->codes;
}

/* Copies the coded bytes of the crop, if known checkpoints delimit them. */
static bool copy_codes(struct jpeg_baseline *b, const struct jpeg_frame *f, const struct image_job *job)
{
    const struct jpeg_need need = jpeg_frame_need(f, &job->crop, job->whole);
    return wants_codes(job) &&
           (!job->ranges || jpeg_checkpoints_within(&b->checkpoints, f, &need, job->n, job->ranges)) &&
           jpeg_scan_is_good(f) && jpeg_groups_write(job->region, f, &need, &b->checkpoints, job->bytes, job->n);
}

/* Copies the coded bytes of the whole scan. */
static bool copy_scan(const struct jpeg_frame *f, const struct image_job *job)
{
    const struct jpeg_need need = jpeg_frame_need(f, &job->crop, job->whole);
    return job->region && job->region->scan && !job->ranges && jpeg_scan_is_good(f) &&
           jpeg_scan_copy(job->region, f, &need, job->bytes, job->n);
}

/* The file's own orientation; 0: unknown, because it was to be ignored. */
static int orientation_of(const struct head *h)
{
    return h->odd & STK_ODD_ROTATED && h->orientation == 1 ? 0 : h->orientation;
}

/* Discards checkpoints that turn out wrong, and decodes without them if the whole file is there. */
static bool decode_with_checkpoints(struct jpeg_baseline *b, const struct jpeg_frame *f, const struct image_job *job,
                                    struct image *out)
{
    if (!jpeg_checkpoints_read(&b->checkpoints, job->checkpoints, job->checkpoint_bytes, f, job->bytes, job->n))
        jpeg_checkpoints_reset(&b->checkpoints, f);
    int32_t known = b->checkpoints.n;
    if (wants_codes(job))
        complete(b, f, job);
    bool ok = copy_codes(b, f, job) || decode(b, f, job, out);
    if (!ok && known > 0 && !job->ranges && !job->region) {
        jpeg_checkpoints_reset(&b->checkpoints, f);
        known = 0;
        ok = decode(b, f, job, out);
    }
    if (ok && !wants_codes(job))
        complete(b, f, job);
    if (ok && b->checkpoints.n > known &&
        jpeg_checkpoints_write(&b->checkpoints, f, orientation_of(job->head), job->bytes, job->n, &b->blob))
        b->blob.len = 0;
    return ok;
}

bool jpeg_baseline_pixels(struct jpeg_baseline *b, const struct image_job *job, struct image *out)
{
    struct jpeg_frame f;
    b->blob.len = 0;
    if (!read_frame(&f, job) || (job->ranges && !job->checkpoints_wanted))
        return false;
    if (copy_scan(&f, job))
        return true;
    return job->checkpoints_wanted ? decode_with_checkpoints(b, &f, job, out) : decode(b, &f, job, out);
}

const uint8_t *jpeg_baseline_checkpoints(const struct jpeg_baseline *b, size_t *n)
{
    *n = b->blob.len;
    return *n ? b->blob.data : NULL;
}

/* ------------------------------------------------------------------ DCT images */

bool jpeg_baseline_dct_from(struct jpeg_baseline *b, const struct jpeg_frame *f, const struct head *h,
                            const struct jpeg_giver *from, struct buf *out)
{
    return dct_image_write(out, f, h, from, b->kernels.dct_encode);
}

bool jpeg_baseline_to_dct(struct jpeg_baseline *b, const struct image_job *job, struct buf *out)
{
    const size_t len = out->len;
    struct jpeg_frame f;
    struct jpeg_walk w;
    const struct jpeg_giver from = {.give = give, .user = &w, .sparse = true};
    if (!read_frame(&f, job) || !jpeg_walk_begin(&w, &f, b->tables, job->bytes, job->n, NULL))
        return false;
    if (jpeg_baseline_dct_from(b, &f, job->head, &from, out) && jpeg_walk_finish(&w, f.mcus_y, true))
        return true;
    out->len = len;
    return false;
}

bool jpeg_baseline_dct_region(const struct dct_image *p, const struct image_job *job)
{
    const struct jpeg_need need = jpeg_frame_need(&p->frame, &job->crop, false);
    return dct_region_copy(job->region, p, &need);
}

bool jpeg_baseline_from_dct(struct jpeg_baseline *b, const struct dct_image *p, const struct image_job *job,
                            struct image *out)
{
    struct jpeg_frame f = p->frame;
    if (job->shrink > 1)
        jpeg_frame_shrink(&f, job->shrink);
    struct dct_walk w;
    const struct jpeg_giver from = {.give = dct_walk_give, .user = &w};
    dct_walk_begin(&w, p, b->kernels.dct_decode);
    return jpeg_strip_run(&f, &job->crop, &b->kernels, &from, job->arena, out);
}
