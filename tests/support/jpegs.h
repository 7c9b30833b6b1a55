/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpegs.h -- shared by the tests of our JPEG decoder: JPEGs of all kinds made by libjpeg, and what libjpeg returns for
 * each.
 */
#ifndef JPEGS_H
#define JPEGS_H

#include "support/images.h"

#include <jpeglib.h>

#include "decode/jpeg_baseline.h"

struct jpeg_spec {
    int32_t w, h;
    int across, down; /* luma samples to one of chroma; 0: grey */
    int quality, restart;
    bool optimise;
    uint32_t seed; /* of the content */
    bool progressive;
};

static inline struct jpeg_spec jpeg_spec_random(uint32_t *seed, int32_t max_side)
{
    static const int samplings[][2] = {{0, 0}, {1, 1}, {2, 1}, {2, 2}, {1, 2}};
    const uint32_t kind = noise(seed) % 5, narrow = noise(seed) % 4;
    return (struct jpeg_spec){
        .w = 1 + (int32_t)(noise(seed) % (uint32_t)(narrow == 0 ? 20 : max_side)),
        .h = 1 + (int32_t)(noise(seed) % (uint32_t)(narrow == 1 ? 20 : max_side)),
        .across = samplings[kind][0],
        .down = samplings[kind][1],
        .quality = 1 + (int)(noise(seed) % 100),
        .restart = noise(seed) % 3 ? 0 : 1 + (int)(noise(seed) % 20),
        .optimise = noise(seed) % 2,
        .seed = noise(seed),
    };
}

/* Smooth in some places, noisy in others. */
static inline struct test_image jpeg_content(const struct jpeg_spec *s)
{
    struct test_image p = test_image_make(s->w, s->h, s->across ? 3 : 1, s->seed);
    uint32_t seed = s->seed;
    const uint32_t wild = noise(&seed) % 4;
    for (size_t i = 0; wild == 0 && i < (size_t)p.w * (size_t)p.h * (size_t)p.channels; i++)
        p.px[i] = (uint8_t)(noise(&seed) >> 3);
    for (size_t i = 0; wild == 1 && i < (size_t)p.w * (size_t)p.h * (size_t)p.channels; i++)
        p.px[i] = (uint8_t)(p.px[i] / 16 + 100);
    return p;
}

/* The caller frees it. */
static inline unsigned char *jpeg_made(const struct jpeg_spec *s, size_t *n)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    struct test_image p = jpeg_content(s);
    unsigned char *out = NULL;
    unsigned long size = 0;
    c.err = jpeg_std_error(&err);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &size);
    c.image_width = (JDIMENSION)p.w;
    c.image_height = (JDIMENSION)p.h;
    c.input_components = p.channels;
    c.in_color_space = p.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, s->quality, TRUE);
    if (s->across) {
        c.comp_info[0].h_samp_factor = s->across;
        c.comp_info[0].v_samp_factor = s->down;
    } else {
        c.comp_info[0].h_samp_factor = 1 + (int)(s->seed % 2);
        c.comp_info[0].v_samp_factor = 1 + (int)(s->seed / 2 % 2);
    }
    c.optimize_coding = s->optimise;
    c.restart_interval = (unsigned)s->restart;
    if (s->progressive)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = p.px + (size_t)c.next_scanline * (size_t)p.w * (size_t)p.channels;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    test_image_done(&p);
    *n = size;
    return out;
}

/* Two decoders, and how often they were used. */
struct jpegs {
    struct decoder *decoder;
    struct jpeg_baseline *own;
    struct arena theirs, ours;
    struct buf *checkpoints; /* not NULL: lent and kept */
    bool complete;           /* down to the end of the file */
    int64_t images, by_us, different;
};

static inline bool jpegs_init(struct jpegs *j, stk_cpu cpu)
{
    *j = (struct jpegs){0};
    j->own = jpeg_baseline_new(cpu);
    return j->own && decoder_new(&j->decoder, cpu, NULL) == STK_OK;
}

static inline void jpegs_done(struct jpegs *j)
{
    decoder_free(j->decoder);
    jpeg_baseline_free(j->own);
    arena_done(&j->theirs);
    arena_done(&j->ours);
}

static inline bool same_pixels(const struct image *a, const struct image *b)
{
    bool same = a->w == b->w && a->h == b->h && a->channels == 3 && b->channels == 3;
    for (int32_t y = 0; same && y < a->h; y++)
        same = memcmp(a->px + (size_t)y * a->stride, b->px + (size_t)y * b->stride, (size_t)a->w * 3) == 0;
    return same;
}

/* What libjpeg returns for a crop. */
static inline int jpegs_reference(struct jpegs *j, const uint8_t *bytes, size_t n, const struct head *h,
                                  const struct rect *crop, bool whole, struct image *im, int *warnings, stk_error *e)
{
    const struct want want = {.crop = *crop, .whole = whole, .reference = true};
    if (arena_reserve(&j->theirs, decode_scratch(h, &want)))
        return STK_ENOMEM;
    return decode_pixels(j->decoder, bytes, n, h, &want, &j->theirs, im, warnings, e);
}

static inline void jpegs_differ(struct jpegs *j, const char *name, const struct rect *c, const char *what)
{
    if (j->different++ < 5)
        printf("%s: crop %dx%d at %d,%d: %s\n", name, c->w, c->h, c->x, c->y, what);
}

/* New checkpoints replace the old ones. */
static inline void jpegs_keep_checkpoints(struct jpegs *j)
{
    size_t n;
    const uint8_t *made = jpeg_baseline_checkpoints(j->own, &n);
    CHECK(j->checkpoints || !made);
    if (made) {
        j->checkpoints->len = 0;
        CHECK_EQ(buf_add(j->checkpoints, made, n), 0);
    }
}

/* Decodes a crop both ways. Returns whether our decoder took it, which it may do only if libjpeg reports nothing. */
static inline bool jpegs_compare(struct jpegs *j, const uint8_t *bytes, size_t n, const struct rect *crop, bool whole,
                                 const char *name)
{
    const struct decode_limits limits = {.max_pixels = 256000000, .no_exif = true};
    struct head h;
    struct image theirs, ours;
    int warnings = 0;
    if (decode_head(bytes, n, &limits, &h, NULL) != STK_OK || h.format != STK_JPEG)
        return false;
    const struct rect all = {0, 0, h.w, h.h};
    const struct rect *c = crop->w ? crop : &all;
    if (arena_reserve(&j->ours, jpeg_baseline_scratch(c)))
        return false;
    const struct image_job job = {.bytes = bytes,
                                  .n = n,
                                  .head = &h,
                                  .crop = *c,
                                  .whole = whole || c->y + c->h == h.h, /* as decode.c asks */
                                  .checkpoints = j->checkpoints ? j->checkpoints->data : NULL,
                                  .checkpoint_bytes = j->checkpoints ? j->checkpoints->len : 0,
                                  .checkpoints_wanted = j->checkpoints != NULL,
                                  .checkpoints_complete = j->complete,
                                  .arena = &j->ours};
    j->images++;
    if (!jpeg_baseline_pixels(j->own, &job, &ours)) {
        CHECK_EQ(j->ours.used, 0);
        return false;
    }
    j->by_us++;
    jpegs_keep_checkpoints(j);
    const int rc = jpegs_reference(j, bytes, n, &h, c, whole, &theirs, &warnings, NULL);
    if (rc != STK_OK || warnings != 0)
        jpegs_differ(j, name, c, "libjpeg complains of it");
    else if (!same_pixels(&ours, &theirs))
        jpegs_differ(j, name, c, "other pixels");
    return true;
}

#endif
