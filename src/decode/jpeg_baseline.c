/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_baseline.c -- a crop of a plain baseline JPEG.
 *
 * libjpeg decodes a scan from its start, skips nothing, and whole rows of MCUs at least; it reads some bytes ahead and
 * complains when there are none. A damaged file must have the same verdict here: so all that it would have decoded is
 * gone through, to the end of the last MCU row, and what it might see differently is left to it.
 */
#include "decode/jpeg_baseline.h"

#include <stdlib.h>

#include "decode/jpeg_strip.h"

struct jpeg_baseline {
    struct jpeg_kernels kernels;
    struct huff_store *tables;
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
    free(b);
}

size_t jpeg_baseline_scratch(const struct rect *crop)
{
    return jpeg_strip_scratch(crop);
}

/* The scan, and how many of its MCUs are behind us. */
struct walk {
    struct jpeg_scan scan;
    int64_t at;
};

static bool walk_to(struct walk *w, int64_t mcu)
{
    const bool ok = jpeg_scan_skip(&w->scan, (int32_t)(mcu - w->at));
    w->at = mcu;
    return ok;
}

static bool give(void *user, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to)
{
    struct walk *w = user;
    const int64_t mcu = (int64_t)y * w->scan.frame->mcus_x + x;
    if (!walk_to(w, mcu) || !jpeg_scan_read(&w->scan, n, to))
        return false;
    w->at = mcu + n;
    return true;
}

/* To where libjpeg would have stopped, and what it would have seen there. */
static bool finish(struct walk *w, int32_t rows, bool whole)
{
    return walk_to(w, (int64_t)rows * w->scan.frame->mcus_x) && jpeg_scan_has_more(&w->scan) &&
           (!whole || jpeg_scan_is_over(&w->scan));
}

static bool read_frame(struct jpeg_frame *f, const struct picture_job *job)
{
    const struct head *h = job->head;
    return !(h->odd & CODEC_HELD) && jpeg_frame_read(f, job->bytes, job->n) && f->w == h->w && f->h == h->h &&
           f->n_components == h->channels;
}

bool jpeg_baseline_pixels(struct jpeg_baseline *b, const struct picture_job *job, struct image *out)
{
    const size_t used = job->arena->used;
    struct jpeg_frame f;
    struct walk w = {0};
    const struct jpeg_giver from = {give, &w};
    if (!read_frame(&f, job) || !jpeg_scan_begin(&w.scan, &f, b->tables, job->bytes, job->n))
        return false;
    const struct jpeg_need need = jpeg_frame_need(&f, &job->crop, job->whole);
    if (jpeg_strip_run(&f, &job->crop, &b->kernels, &from, job->arena, out) && finish(&w, need.end, job->whole))
        return true;
    job->arena->used = used;
    return false;
}

/* ------------------------------------------------------------------ packs */

bool jpeg_baseline_pack_from(struct jpeg_baseline *b, const struct jpeg_frame *f, const struct head *h,
                             const struct jpeg_giver *from, struct buf *out)
{
    return dct_pack_write(out, f, h, from, b->kernels.pack);
}

bool jpeg_baseline_pack(struct jpeg_baseline *b, const struct picture_job *job, struct buf *out)
{
    const size_t len = out->len;
    struct jpeg_frame f;
    struct walk w = {0};
    const struct jpeg_giver from = {give, &w};
    if (!read_frame(&f, job) || !jpeg_scan_begin(&w.scan, &f, b->tables, job->bytes, job->n))
        return false;
    if (jpeg_baseline_pack_from(b, &f, job->head, &from, out) && finish(&w, f.mcus_y, true))
        return true;
    out->len = len;
    return false;
}

bool jpeg_baseline_unpack(struct jpeg_baseline *b, const struct dct_pack *p, const struct rect *crop, struct arena *a,
                          struct image *out)
{
    struct dct_walk w;
    const struct jpeg_giver from = {dct_walk_give, &w};
    dct_walk_begin(&w, p, b->kernels.unpack);
    return jpeg_strip_run(&p->frame, crop, &b->kernels, &from, a, out);
}
