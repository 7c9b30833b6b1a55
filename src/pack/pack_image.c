/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_image.c -- packs the image of a sample: its bytes unchanged, the same coefficients in another order, or new
 * pixels, encoded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "format/npy.h"
#include "loader.h"
#include "pack/packer.h"

enum { SUBSAMPLED = 95 }; /* below this quality, chroma has half the size, as in everyday photos */

static const char *const suffixes[] = {
    [STK_FORMAT_UNKNOWN] = "bin", [STK_JPEG] = "jpg", [STK_PNG] = "png", [STK_WEBP] = "webp"};

/* The name of an image field: the suffix that the source has, or that of the format. */
static const char *field_name(const struct packer *p, int64_t sample, stk_format format, char *buf, size_t n)
{
    const char *own = packer_suffix(p, sample, buf, n);
    return own ? own : suffixes[format];
}

static void set_image(struct packed *out, struct packed_field *f, stk_format format, int32_t w, int32_t h)
{
    out->image = (int)(f - out->fields);
    out->format = format;
    out->w = w;
    out->h = h;
    out->channels = 3;
    f->kind = STK_IMAGE;
}

/* ------------------------------------------------------------------ bytes as they are */

/* Takes over the memory of the reading where possible, instead of copying it. */
static struct packed_field *take_bytes(struct desk *d, const char *name, struct packed *out)
{
    struct reading *r = &d->reading;
    if (out->bytes.len > 0 || d->lent || r->bytes != r->file.data)
        return packer_field(out, name, r->bytes, r->n_bytes);
    const struct buf file = r->file;
    r->file = out->bytes;
    r->file.len = 0;
    out->bytes = file;
    out->bytes.len = 0;
    return packer_field(out, name, NULL, r->n_bytes);
}

static int bytes_as_they_are(const struct packer *p, struct desk *d, const struct head *h, struct packed *out,
                             stk_error *e)
{
    char own[16];
    struct packed_field *f =
        take_bytes(d, h->dct ? "dct" : field_name(p, out->sample, h->format, own, sizeof own), out);
    if (!f)
        return error_nomem(e, "pack", d->reading.n_bytes);
    set_image(out, f, h->format, head_width(h), head_height(h));
    return STK_OK;
}

/* ------------------------------------------------------------------ pixels */

/* Computes the size that --resize gives an image. False: the size stays. */
static bool resized(const stk_pack_options *how, int32_t w, int32_t h, int32_t *to_w, int32_t *to_h)
{
    const int32_t few = w < h ? w : h, many = w < h ? h : w;
    const int32_t from = how->resize_short ? few : many, to = how->resize_short ? how->resize_short : how->resize_long;
    if (to == 0 || from <= to)
        return false;
    const int64_t other = (int64_t)to * (how->resize_short ? many : few) / from; /* as torchvision rounds */
    const int32_t side = other < 1 ? 1 : (int32_t)other;
    const bool wide = (how->resize_short != 0) == (w < h); /* whether `to` is the width */
    *to_w = wide ? to : side;
    *to_h = wide ? side : to;
    return true;
}

/* Makes the plan for an image of this size: resize, then the ops. */
static int plan_for(const struct packer *p, int32_t w, int32_t h, struct plan **out, stk_error *e)
{
    char first[128] = "";
    int32_t to_w, to_h;
    struct buf text = {0};
    const char *ops = p->options.ops ? p->options.ops : "";
    const bool more = ops[strspn(ops, " \t\n")] != 0;
    if (resized(&p->how, w, h, &to_w, &to_h))
        snprintf(first, sizeof first, "Resize((%d, %d))%s", (int)to_h, (int)to_w, more ? " | " : "");
    if (buf_printf(&text, "%s%s", first, more ? ops : ""))
        return error_nomem(e, "pack", strlen(ops));
    const struct plan_options o = {.ops = (const char *)text.data,
                                   .dtype = STK_UINT8,
                                   .layout = STK_NHWC,
                                   .fidelity = STK_EXACT,
                                   .cpu = p->options.cpu,
                                   .fixed_w = w,
                                   .fixed_h = h};
    const int rc = plan_new(out, &o, e);
    buf_done(&text);
    return rc;
}

static bool changes(const struct job *j, int32_t w, int32_t h)
{
    const struct rect c = j->want.crop;
    return j->n_steps > 0 || j->flip_x || j->flip_y || j->channels != 3 || c.x || c.y || c.w != w || c.h != h ||
           j->w != w || j->h != h;
}

static int encode(const struct packer *p, stk_format format, const struct image *im, struct packed *out, stk_error *e)
{
    const int quality = p->how.quality ? p->how.quality : 90;
    const stk_encode_options o = {.format = format,
                                  .quality = quality,
                                  .subsample = quality < SUBSAMPLED,
                                  .lossless = format == STK_WEBP && quality == 100};
    void *bytes = NULL;
    size_t n = 0;
    const int rc = encode_pixels(im, &o, &bytes, &n, e);
    if (rc != STK_OK)
        return rc;
    char own[16];
    struct packed_field *f = packer_field(out, field_name(p, out->sample, format, own, sizeof own), bytes, n);
    free(bytes);
    if (!f)
        return error_nomem(e, "pack", n);
    set_image(out, f, format, im->w, im->h);
    out->channels = im->channels;
    return STK_OK;
}

static int add_raw(const struct image *im, struct packed *out, stk_error *e)
{
    const size_t row = (size_t)im->w * (size_t)im->channels, n = size_mul(row, (size_t)im->h);
    const int64_t shape[3] = {im->h, im->w, im->channels};
    struct packed_field *f = packer_numbers(out, "npy", STK_UINT8, 3, shape, NULL, n);
    if (!f)
        return error_nomem(e, "pack", n);
    uint8_t *to = out->bytes.data + f->at + f->head_bytes;
    for (int32_t y = 0; y < im->h; y++)
        memcpy(to + (size_t)y * row, im->px + (size_t)y * im->stride, row);
    set_image(out, f, STK_FORMAT_UNKNOWN, im->w, im->h);
    out->channels = im->channels;
    return STK_OK;
}

/* The format that an image of format `from` is packed with. Unknown: raw pixels. */
static stk_format format_for(const struct packer *p, stk_format from)
{
    static const stk_format formats[] = {
        [STK_AS_JPEG] = STK_JPEG, [STK_AS_WEBP] = STK_WEBP, [STK_AS_PNG] = STK_PNG, [STK_AS_RAW] = STK_FORMAT_UNKNOWN};
    return p->how.as == STK_AS_KEEP || p->how.as == STK_AS_DCT ? from : formats[p->how.as];
}

/* Decodes what the job needs, runs it, and encodes the result like an image of format `from`. */
static int make_pixels(const struct packer *p, struct desk *d, struct desk_image *im, const struct plan *plan,
                       const struct job *j, stk_format from, struct packed *out, stk_error *e)
{
    const size_t n = size_mul(size_mul((size_t)j->w, (size_t)j->h), (size_t)j->channels), run = plan_scratch(plan, j);
    const size_t more = run == 0 || n == SIZE_MAX ? SIZE_MAX : size_add(run, arena_cost(n));
    int rc = desk_decode(d, im, &j->want, more, e);
    if (rc != STK_OK)
        return rc;
    uint8_t *px = arena_alloc(&d->arena, n);
    if (!px)
        return error_set(e, STK_EBUG, "pack", "the arena is smaller than its reservation; please report this");
    rc = plan_run(plan, j, &im->pixels, &d->arena, px, e);
    const struct image made = {
        .px = px, .stride = (size_t)j->w * (size_t)j->channels, .w = j->w, .h = j->h, .channels = j->channels};
    if (rc != STK_OK)
        return rc;
    const stk_format format = format_for(p, from);
    return format == STK_FORMAT_UNKNOWN ? add_raw(&made, out, e) : encode(p, format, &made, out, e);
}

static bool wants_pixels(const struct packer *p)
{
    const char *ops = p->options.ops;
    return p->how.resize_short || p->how.resize_long || (ops && ops[strspn(ops, " \t\n")]);
}

static bool add_jpeg(const struct packer *p, const struct buf *made, const struct head *h, struct packed *out)
{
    char own[16];
    const char *name = field_name(p, out->sample, STK_JPEG, own, sizeof own);
    struct packed_field *f = packer_field(out, name, made->data, made->len);
    if (f)
        set_image(out, f, STK_JPEG, head_width(h), head_height(h));
    return f != NULL;
}

/* Writes the same coefficients in one scan. False: the image stays unchanged. */
static bool in_one_scan(const struct packer *p, struct desk *d, const struct head *h, struct packed *out)
{
    if (!(p->how.baseline || p->how.as == STK_AS_JPEG) || !(h->odd & (STK_ODD_PROGRESSIVE | STK_ODD_ARITHMETIC)))
        return false;
    const struct want want = desk_whole(h);
    struct buf *made = desk_spare(d, size_add(2 * d->reading.n_bytes, 1 << 20), size_mul(decode_foreign(h, &want), 2));
    return made && decode_rewrite(d->decoder, d->reading.bytes, d->reading.n_bytes, h, made) &&
           add_jpeg(p, made, h, out);
}

/* Turns a DCT image back into JPEG, which other readers understand, with the same coefficients. */
static int dct_to_jpeg(const struct packer *p, struct desk *d, const struct head *h, struct packed *out, stk_error *e)
{
    const size_t most = size_add(size_mul(d->reading.n_bytes, 2), 1 << 20);
    struct buf *made = desk_spare(d, most, decode_jpeg_foreign(h));
    if (!made)
        return error_nomem(e, "pack", most);
    const int rc = decode_dct_file_to_jpeg(d->reading.bytes, d->reading.n_bytes, made, e);
    if (rc != STK_OK)
        return rc;
    return add_jpeg(p, made, h, out) ? STK_OK : error_nomem(e, "pack", made->len);
}

/* Writes the coefficients of a JPEG as dct. False: the image stays unchanged. */
static bool as_dct(const struct packer *p, struct desk *d, const struct head *h, struct packed *out)
{
    if (p->how.as != STK_AS_DCT || h->format != STK_JPEG)
        return false;
    const struct want want = desk_whole(h);
    struct buf *made = desk_spare(d, size_add(size_mul(d->reading.n_bytes, 4), 64 << 10), decode_foreign(h, &want));
    if (!made || !decode_to_dct_file(d->decoder, d->reading.bytes, d->reading.n_bytes, h, made))
        return false;
    struct packed_field *f = packer_field(out, "dct", made->data, made->len);
    if (f)
        set_image(out, f, STK_JPEG, head_width(h), head_height(h));
    return f != NULL;
}

/* For an image that keeps its pixels and its format: it keeps its bytes, or at least its coefficients. */
static int keep_format(const struct packer *p, struct desk *d, const struct head *h, struct packed *out, stk_error *e)
{
    if (h->dct && p->how.as == STK_AS_JPEG)
        return dct_to_jpeg(p, d, h, out, e);
    return as_dct(p, d, h, out) || in_one_scan(p, d, h, out) ? STK_OK : bytes_as_they_are(p, d, h, out, e);
}

/* Makes the plan for an image whose head is known, and its job. */
static int draw_for(const struct packer *p, const struct desk_image *im, struct plan **plan, struct job *j,
                    stk_error *e)
{
    static const struct draw none; /* no op is random */
    const int rc = plan_for(p, head_width(&im->head), head_height(&im->head), plan, e);
    return rc == STK_OK ? desk_draw(im, *plan, &none, j, e) : rc;
}

int packer_size(const struct packer *p, int32_t *w, int32_t *h, stk_error *e)
{
    const struct desk_image im = {.head = {.w = *w, .h = *h, .orientation = 1}};
    struct plan *plan = NULL;
    struct job j;
    const int rc = draw_for(p, &im, &plan, &j, e);
    if (rc == STK_OK) {
        *w = j.w;
        *h = j.h;
    }
    plan_free(plan);
    return rc;
}

int packer_image(struct packer *p, struct desk *d, int f, struct packed *out, stk_error *e)
{
    const struct decode_limits limits = options_limits(&p->options);
    struct desk_image im = desk_image(d, p->source, out->sample, f);
    const struct head *h = &im.head;
    out->bytes_in += (int64_t)im.n;
    int rc = desk_head(&im, &limits, e);
    if (rc == STK_OK && h->dct && p->how.as == STK_AS_KEEP && p->how.to != STK_TO_TAR)
        return error_set(
            e, STK_EUSAGE, "pack",
            "contains the DCT coefficients of a JPEG, which only tar packs can hold; pack to tar, or turn it back "
            "into JPEG without loss (--as jpeg)");
    const bool same = p->how.as == STK_AS_KEEP || p->how.as == STK_AS_DCT;
    if (same && !wants_pixels(p)) /* also if it cannot be decoded */
        return keep_format(p, d, rc == STK_OK ? h : &(struct head){.orientation = 1}, out, e);
    struct plan *plan = NULL;
    struct job j;
    if (rc == STK_OK)
        rc = draw_for(p, &im, &plan, &j, e);
    const bool own = format_for(p, h->format) == h->format;
    if (rc == STK_OK && own && !changes(&j, head_width(h), head_height(h)))
        rc = keep_format(p, d, h, out, e);
    else if (rc == STK_OK)
        rc = make_pixels(p, d, &im, plan, &j, h->format, out, e);
    plan_free(plan);
    return rc;
}

int packer_pixels(struct packer *p, struct desk *d, int f, struct packed *out, stk_error *e)
{
    /* All images of a pack have one form: pixels stay raw unless other images of the source are encoded, or the target
     * takes only encoded images. */
    const bool raw =
        source_field(p->source, f)->kind == FIELD_PIXELS && p->how.to != STK_TO_TFRECORD && p->how.to != STK_TO_FOLDER;
    struct desk_image im = desk_image(d, p->source, out->sample, f);
    struct plan *plan = NULL;
    struct job j;
    int rc = desk_head(&im, NULL, e);
    if (rc == STK_OK)
        rc = draw_for(p, &im, &plan, &j, e);
    if (rc == STK_OK)
        rc = make_pixels(p, d, &im, plan, &j, raw ? STK_FORMAT_UNKNOWN : STK_PNG, out, e);
    out->bytes_in += (int64_t)im.n;
    plan_free(plan);
    return rc;
}
