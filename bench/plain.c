/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.c -- the plain path: libjpeg-turbo decodes the whole image, and the C kernels transform it.
 *
 * Upright colour JPEGs are decoded by libjpeg-turbo directly, without any code of ours, so that the comparison does not
 * change when our decoder does. Our decoder decodes the few others, as a whole.
 */
#include "plain.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"

#ifdef HAVE_JPEG
#include <jpeglib.h>

struct trouble {
    struct jpeg_error_mgr manager;
    jmp_buf out;
};

static void on_error(j_common_ptr info)
{
    longjmp(((struct trouble *)info->err)->out, 1);
}

static void on_message(j_common_ptr info)
{
    (void)info;
}

static bool libjpeg_takes(const struct head *h)
{
    return h->format == STK_JPEG && h->orientation == 1 && h->channels == 3;
}

static int libjpeg_whole(const uint8_t *bytes, size_t n, const struct image *out, stk_error *e)
{
    struct jpeg_decompress_struct info;
    struct trouble trouble;
    info.err = jpeg_std_error(&trouble.manager);
    trouble.manager.error_exit = on_error;
    trouble.manager.output_message = on_message;
    if (setjmp(trouble.out)) {
        jpeg_destroy_decompress(&info);
        return error_set(e, STK_EDATA, "decode", "libjpeg-turbo cannot decode it");
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes, (unsigned long)n);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = out->px + info.output_scanline * out->stride;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return STK_OK;
}
#else
static bool libjpeg_takes(const struct head *h)
{
    (void)h;
    return false;
}

static int libjpeg_whole(const uint8_t *bytes, size_t n, const struct image *out, stk_error *e)
{
    (void)bytes, (void)n, (void)out;
    return error_set(e, STK_EBUILD, "decode", "built without libjpeg-turbo");
}
#endif

int plain_open(struct plain *p, const char *folder, const char *ops, stk_layout layout, stk_error *e)
{
    *p = (struct plain){0};
    const struct source_options s = {.path = folder, .threads = 1, .cache_dir = "off", .max_bytes = INT64_C(1) << 30};
    const struct plan_options t = {
        .ops = ops, .dtype = STK_FLOAT32, .layout = layout, .fidelity = STK_EXACT, .cpu = STK_CPU_C};
    int rc = source_open(&p->source, &s, e);
    if (rc == STK_OK)
        rc = plan_new(&p->plan, &t, e);
    if (rc == STK_OK)
        rc = decoder_new(&p->decoder, STK_CPU_DEFAULT, e);
    if (rc != STK_OK)
        plain_close(p);
    return rc;
}

void plain_close(struct plain *p)
{
    decoder_free(p->decoder);
    plan_free(p->plan);
    source_close(p->source);
    buf_done(&p->reading.file);
    arena_done(&p->arena);
    *p = (struct plain){0};
}

static int decode_whole(struct plain *p, const struct head *h, struct image *out, stk_error *e)
{
    const struct reading *r = &p->reading;
    const struct want all = {.crop = {0, 0, head_width(h), head_height(h)}, .whole = true, .reference = true};
    if (!libjpeg_takes(h)) {
        int warnings;
        return decode_pixels(p->decoder, r->bytes, r->n_bytes, h, &all, &p->arena, out, &warnings, e);
    }
    *out = (struct image){.w = h->w, .h = h->h, .channels = 3, .stride = (size_t)h->w * 3};
    out->px = arena_alloc(&p->arena, out->stride * (size_t)h->h);
    return libjpeg_whole(r->bytes, r->n_bytes, out, e);
}

/* The part of a whole image that a job wants. */
static struct image part(const struct image *whole, const struct rect *r)
{
    struct image i = *whole;
    i.px += (size_t)r->y * i.stride + (size_t)r->x * 3;
    i.w = r->w;
    i.h = r->h;
    return i;
}

int plain_row(struct plain *p, int64_t sample, uint64_t epoch, void *row, stk_error *e)
{
    const struct decode_limits limits = {.max_pixels = 256000000};
    const struct draw draw = {.epoch = epoch, .sample = (uint64_t)sample};
    struct head h;
    struct job job;
    struct image whole;
    const uint64_t t0 = now_ns();
    int rc = source_read(p->source, &p->reading, sample, e);
    const uint64_t t1 = now_ns();
    if (rc == STK_OK)
        rc = decode_head(p->reading.bytes, p->reading.n_bytes, &limits, &h, e);
    if (rc == STK_OK)
        rc = plan_draw(p->plan, &draw, head_width(&h), head_height(&h), &job, e);
    if (rc != STK_OK)
        return rc;
    const struct want all = {.crop = {0, 0, head_width(&h), head_height(&h)}, .whole = true, .reference = true};
    const size_t pixels = arena_cost((size_t)h.w * (size_t)h.h * 3);
    if (arena_reserve(&p->arena, pixels + decode_scratch(&h, &all) + plan_scratch(p->plan, &job)) != 0)
        return error_nomem(e, "decode", pixels);
    rc = decode_whole(p, &h, &whole, e);
    const uint64_t t2 = now_ns();
    if (rc != STK_OK)
        return rc;
    const struct image wanted = part(&whole, &job.want.crop);
    rc = plan_run(p->plan, &job, &wanted, &p->arena, row, e);
    p->ns[PLAIN_READ] += t1 - t0;
    p->ns[PLAIN_DECODE] += t2 - t1;
    p->ns[PLAIN_TRANSFORM] += now_ns() - t2;
    p->read_bytes += (int64_t)p->reading.n_bytes;
    return rc;
}
