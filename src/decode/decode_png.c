/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_png.c -- PNG: plain images through png_fast.c, all others through libpng, which also judges damage.
 *
 * libpng only inflates, unfilters and de-interlaces. It is fed a header that we make, and then the file from its first
 * IDAT on. It returns rows as they are stored. So a damaged or hostile chunk never reaches it, and it accepts what
 * Pillow accepts.
 */
#include "decode/codec.h"

#ifdef HAVE_PNG

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "decode/exif.h"
#include "decode/png_chunks.h"
#include "decode/png_fast.h"
#include "decode/png_rows.h"

static const char stage[] = "decode";

enum {
    HEADER_BYTES = 25,          /* an IHDR chunk */
    TEXT_MAX = 1 << 20,         /* decompressed; the same limit as Pillow's */
    FOREIGN_FIXED = 128 * 1024, /* libpng's structs, zlib's window and tables */
    PASSES = 7,                 /* of an interlaced image */
    N_SPANS = 4,
    CHUNK_HEAD = 8,
};

static void put_be32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Bytes that libpng reads, one span after the other. */
struct span {
    const uint8_t *p;
    size_t n;
};

/* The target of libpng's errors, and their text. */
struct failure {
    jmp_buf jump;
    char words[128];
};

struct reader {
    struct failure failure;
    png_structp png;
    png_infop info;
    struct span spans[N_SPANS];
    int span;
    uint8_t header[HEADER_BYTES], cut_head[CHUNK_HEAD];
    size_t cut;       /* png_cut() */
    size_t chunk_max; /* decompressed; 0: no limit, for pixels */
    int warnings;
    bool at_end, no_memory;
};

/* ------------------------------------------------------------------ libpng's hooks */

static void on_error(png_structp png, png_const_charp words)
{
    struct failure *f = png_get_error_ptr(png);
    snprintf(f->words, sizeof f->words, "%s", words);
    longjmp(f->jump, 1);
}

static void on_warning(png_structp png, png_const_charp words)
{
    (void)words;
    struct reader *r = png_get_mem_ptr(png);
    r->warnings++;
}

static png_voidp on_malloc(png_structp png, size_t n)
{
    struct reader *r = png_get_mem_ptr(png);
    void *p = malloc(n);
    r->no_memory |= !p;
    return p;
}

static void on_free(png_structp png, png_voidp p)
{
    (void)png;
    free(p);
}

static void on_read(png_structp png, png_bytep out, size_t n)
{
    struct reader *r = png_get_io_ptr(png);
    while (n > 0) {
        struct span *s = &r->spans[r->span];
        const size_t k = n < s->n ? n : s->n;
        if (k == 0 && r->span + 1 == N_SPANS) {
            r->at_end = true;
            png_error(png, "end of file");
        }
        if (k == 0) {
            r->span++;
            continue;
        }
        memcpy(out, s->p, k);
        s->p += k;
        s->n -= k;
        out += k;
        n -= k;
    }
}

/* Makes an IHDR chunk. To libpng, indices are grey values. One extra row keeps libpng from looking for the end of
 * the stream, which many images lack. */
static void make_header(uint8_t *p, const struct png_chunks *c)
{
    static const uint8_t start[8] = {0, 0, 0, 13, 'I', 'H', 'D', 'R'};
    memset(p, 0, HEADER_BYTES);
    memcpy(p, start, sizeof start);
    put_be32(p + 8, (uint32_t)c->w);
    put_be32(p + 12, (uint32_t)c->h + (c->interlaced || c->h == INT32_MAX ? 0 : 1));
    p[16] = (uint8_t)c->bits;
    p[17] = c->colour == PNG_INDEXED ? PNG_GREY : (uint8_t)c->colour;
    p[20] = c->interlaced;
    put_be32(p + 21, crc32_choose(STK_CPU_DEFAULT)->of(p + 4, 17));
}

/* Any call of libpng may jump out, and so may this function. */
static void open_reader(struct reader *r)
{
    r->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r->failure, on_error, on_warning, r, on_malloc, on_free);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (!r->info) {
        r->no_memory = true;
        longjmp(r->failure.jump, 1);
    }
    png_set_read_fn(r->png, r, on_read);
    png_set_sig_bytes(r->png, 8);
    png_set_crc_action(r->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_user_limits(r->png, INT32_MAX, INT32_MAX);
    png_set_chunk_malloc_max(r->png, r->chunk_max);
    png_set_benign_errors(r->png, 1);
    png_set_option(r->png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON); /* many writers declare too small a window */
    png_read_info(r->png, r->info);
}

static void close_reader(struct reader *r)
{
    png_destroy_read_struct(&r->png, &r->info, NULL);
}

/* ------------------------------------------------------------------ head */

static void take_text(struct reader *r, struct buf *out)
{
    if (setjmp(r->failure.jump))
        return;
    open_reader(r);
    png_textp text = NULL;
    if (png_get_text(r->png, r->info, &text, NULL) < 1 || !text[0].text)
        return;
    r->no_memory = buf_add(out, text[0].text, strlen(text[0].text)) != 0;
}

/* The text, decompressed into out if necessary; empty if it cannot be read. */
static struct span text_of(const struct png_string *t, struct buf *out)
{
    static const uint8_t end[12] = {0, 0, 0, 0, 0, 0, 0, 0, 'I', 'D', 'A', 'T'}; /* a checksum, the next chunk */
    static const struct png_chunks tiny = {.w = 1, .h = 1, .bits = 8};
    if (!t->chunk)
        return (struct span){t->p, t->n};
    struct reader r = {.spans = {{r.header, HEADER_BYTES}, {t->chunk, t->chunk_bytes}, {end, sizeof end}},
                       .chunk_max = TEXT_MAX};
    make_header(r.header, &tiny);
    take_text(&r, out);
    close_reader(&r);
    return (struct span){out->data, out->len};
}

static int orientation_of(const struct png_chunks *c)
{
    struct buf texts[3] = {{.max = TEXT_MAX}, {.max = TEXT_MAX}, {.max = TEXT_MAX}};
    struct span exif = {c->exif.p, c->exif.n};
    if (!exif.p && (c->raw_exif.p || c->raw_exif.chunk)) {
        const struct span raw = text_of(&c->raw_exif, &texts[0]);
        png_hex_profile(raw.p, raw.n, &texts[1]);
        exif = (struct span){texts[1].data, texts[1].len};
    }
    const struct span xmp = text_of(&c->xmp, &texts[2]);
    const struct exif found = {exif.p, exif.n, xmp.p, xmp.n};
    const int orientation = exif_orientation(&found);
    for (int i = 0; i < 3; i++)
        buf_done(&texts[i]);
    return orientation;
}

static int png_head(const uint8_t *bytes, size_t n, struct head *h, stk_error *e)
{
    struct png_chunks c;
    const int rc = png_chunks_read(bytes, n, true, &c, e);
    if (rc != STK_OK)
        return rc;
    h->w = c.w;
    h->h = c.h;
    h->channels = c.samples;
    h->bits = c.bits;
    h->orientation = orientation_of(&c);
    const bool grey = c.colour == PNG_GREY || c.colour == PNG_GREY_ALPHA;
    const bool alpha = c.colour == PNG_RGBA || c.colour == PNG_GREY_ALPHA || c.transparent;
    h->odd = (grey ? STK_ODD_GREY : 0u) | (alpha ? STK_ODD_ALPHA : 0u) |
             (c.colour == PNG_INDEXED ? STK_ODD_PALETTE : 0u) | (c.bits > 8 ? STK_ODD_DEEP : 0u) |
             (c.interlaced ? STK_ODD_INTERLACED : 0u) | (c.animated ? STK_ODD_ANIMATED : 0u) |
             (c.icc ? STK_ODD_ICC : 0u);
    return STK_OK;
}

/* ------------------------------------------------------------------ pixels */

static size_t row_bytes(int32_t w, int samples, int bits)
{
    const size_t n = size_mul((size_t)w, (size_t)(samples * bits));
    return n == SIZE_MAX ? n : n / 8 + (n % 8 != 0);
}

/* The larger need of the two ways to the pixels. */
static size_t png_scratch(const struct head *h, const struct rect *crop, bool whole)
{
    (void)whole;
    const size_t row = row_bytes(h->w, h->channels, h->bits);
    const size_t rows = arena_cost(h->odd & STK_ODD_INTERLACED ? size_mul(row, (size_t)h->h) : row);
    const size_t fast = png_fast_scratch(h, row);
    return size_add(rows > fast ? rows : fast, arena_cost(rgb_bytes(crop->w, crop->h)));
}

static size_t png_foreign(const struct head *h, const struct rect *crop, bool whole)
{
    (void)crop;
    (void)whole;
    return size_add(FOREIGN_FIXED, size_mul(row_bytes(h->w, h->channels, h->bits), 4));
}

/* Where pixels go: stored rows (one, or all if interlaced), and the crop. */
struct target {
    struct png_rows how;
    bool interlaced;
    uint8_t *rows, *px;
    size_t stride; /* of rows */
};

static bool rows_init(struct target *t, const struct image_job *job, const struct png_chunks *c)
{
    t->interlaced = c->interlaced;
    t->stride = row_bytes(c->w, c->samples, c->bits);
    t->rows = arena_alloc(job->arena, c->interlaced ? size_mul(t->stride, (size_t)c->h) : t->stride);
    return t->rows != NULL;
}

static void expand(const struct target *t, const struct rect *crop, const uint8_t *row, int32_t y)
{
    if (y >= crop->y && y < crop->y + crop->h)
        png_rows_expand(&t->how, row, crop, t->px + (size_t)(y - crop->y) * (size_t)crop->w * 3);
}

/* Reads row by row, and drops the rows above the crop. */
static void read_rows(struct reader *r, const struct image_job *job, const struct target *t)
{
    const int32_t end = job->whole ? job->head->h : job->crop.y + job->crop.h;
    for (int32_t y = 0; y < end; y++) {
        png_read_row(r->png, t->rows, NULL);
        expand(t, &job->crop, t->rows, y);
    }
}

/* Reads all seven passes; only the last may stop early. */
static void read_passes(struct reader *r, const struct image_job *job, const struct target *t)
{
    const int32_t last = job->crop.y + job->crop.h;
    png_set_interlace_handling(r->png);
    for (int pass = 0; pass < PASSES; pass++) {
        const int32_t end = job->whole || pass < PASSES - 1 ? job->head->h : last;
        for (int32_t y = 0; y < end; y++)
            png_read_row(r->png, t->rows + (size_t)y * t->stride, NULL);
    }
}

static int explain(const struct reader *r, size_t n, stk_error *e)
{
    if (r->no_memory)
        return error_set(e, STK_ENOMEM, stage, "no memory for libpng");
    if (r->at_end)
        return error_set(e, STK_EDATA, stage, "the file ends after %zu bytes, before its last row", n);
    return error_set(e, STK_EDATA, stage, "broken PNG: %s", r->failure.words);
}

/* If libpng fails after the last pass, only the end of the stream is missing. */
static int read_pixels(struct reader *r, const struct image_job *job, const struct target *t, stk_error *e)
{
    if (setjmp(r->failure.jump))
        return png_get_current_pass_number(r->png) == PASSES ? STK_OK : explain(r, job->n, e);
    open_reader(r);
    if (t->interlaced)
        read_passes(r, job, t);
    else
        read_rows(r, job, t);
    return STK_OK;
}

/* Feeds the file from its pixels on. If the file ends inside a chunk of pixels, that chunk gets a head with the
 * length that is there. libpng would not accept a part of it, and often it contains all pixels. */
static void feed(struct reader *r, const struct image_job *job, const struct png_chunks *c)
{
    r->cut = png_cut(job->bytes, job->n, c);
    const size_t end = r->cut ? r->cut : job->n;
    make_header(r->header, c);
    r->spans[0] = (struct span){r->header, HEADER_BYTES};
    r->spans[1] = (struct span){job->bytes + c->idat, end - c->idat};
    if (!r->cut)
        return;
    const size_t left = job->n - r->cut - CHUNK_HEAD;
    put_be32(r->cut_head, (uint32_t)left);
    memcpy(r->cut_head + 4, "IDAT", 4);
    r->spans[2] = (struct span){r->cut_head, CHUNK_HEAD};
    r->spans[3] = (struct span){job->bytes + r->cut + CHUNK_HEAD, left};
}

static int check_tail(const struct image_job *job, const struct png_chunks *c, stk_error *e)
{
    if (!job->whole || png_tail_whole(job->bytes, job->n, c))
        return STK_OK;
    return error_set(e, STK_EDATA, stage, "the file ends after %zu bytes, inside a chunk after its pixels", job->n);
}

/* Decodes images of all kinds, and judges damaged ones. */
static int decode(const struct image_job *job, const struct png_chunks *c, struct target *t, int *warnings,
                  stk_error *e)
{
    if (!rows_init(t, job, c))
        return codec_no_arena(e);
    struct reader r = {0};
    feed(&r, job, c);
    const int rc = read_pixels(&r, job, t, e);
    close_reader(&r);
    /* libpng verifies the checksum of a chunk after it has read all of it, but a crop may end before. Then a flipped
     * bit would silently change pixels. So we verify every chunk from which pixels were taken. */
    *warnings = r.warnings + png_wrong_sums(job->bytes, (size_t)(r.spans[1].p - job->bytes), job->n, c);
    const struct rect *crop = &job->crop;
    for (int32_t y = crop->y; rc == STK_OK && t->interlaced && y < crop->y + crop->h; y++)
        expand(t, crop, t->rows + (size_t)y * t->stride, y);
    const bool cut_needed = r.cut && r.span >= 2;
    return rc == STK_OK && !cut_needed ? check_tail(job, c, e) : rc;
}

static int pixels(struct png_fast *f, bool fast, const struct image_job *job, struct image *out, int *warnings,
                  stk_error *e)
{
    struct png_chunks c;
    const int rc = png_chunks_read(job->bytes, job->n, false, &c, e);
    if (rc != STK_OK)
        return rc;
    const struct rect *crop = &job->crop;
    struct target t = {.px = arena_alloc(job->arena, rgb_bytes(crop->w, crop->h))};
    if (!t.px)
        return codec_no_arena(e);
    if (job->indices && c.samples != 1)
        return error_set(e, STK_EBUG, stage, "a mask has one channel, not %d", c.samples);
    if (job->indices)
        png_rows_init_indices(&t.how, &c);
    else
        png_rows_init(&t.how, &c, png_fast_kernels(f));
    *out = (struct image){.px = t.px, .stride = (size_t)crop->w * 3, .w = crop->w, .h = crop->h, .channels = 3};
    if (fast && png_fast_pixels(f, job, &c, &t.how, t.px))
        return check_tail(job, &c, e);
    return decode(job, &c, &t, warnings, e);
}

static int png_pixels(void *state, const struct image_job *job, struct image *out, int *warnings, stk_error *e)
{
    return pixels(state, true, job, out, warnings, e);
}

int png_slow_pixels(struct png_fast *f, const struct image_job *job, struct image *out, int *warnings, stk_error *e)
{
    return pixels(f, false, job, out, warnings, e);
}

static void *png_open(stk_cpu cpu)
{
    return png_fast_new(cpu);
}

static void png_close(void *state)
{
    png_fast_free(state);
}

static bool png_match(const uint8_t *bytes, size_t n)
{
    return png_signature(bytes, n);
}

/* ------------------------------------------------------------------ encoding */

struct writer {
    struct failure failure;
    png_structp png;
    png_infop info;
    struct buf out;
};

static void on_write_warning(png_structp png, png_const_charp words)
{
    (void)png;
    (void)words;
}

static void on_write(png_structp png, png_bytep p, size_t n)
{
    struct writer *w = png_get_io_ptr(png);
    if (buf_add(&w->out, p, n))
        png_error(png, "no memory");
}

static void on_flush(png_structp png)
{
    (void)png;
}

static int write_pixels(struct writer *w, const struct image *im, stk_error *e)
{
    if (setjmp(w->failure.jump))
        return error_set(e, STK_ENOMEM, "encode", "PNG: %s", w->failure.words);
    w->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w->failure, on_error, on_write_warning);
    w->info = w->png ? png_create_info_struct(w->png) : NULL;
    if (!w->info)
        longjmp(w->failure.jump, 1);
    png_set_write_fn(w->png, w, on_write, on_flush);
    png_set_IHDR(w->png, w->info, (png_uint_32)im->w, (png_uint_32)im->h, 8, im->channels == 1 ? PNG_GREY : PNG_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
    png_write_info(w->png, w->info);
    for (int32_t y = 0; y < im->h; y++)
        png_write_row(w->png, im->px + im->stride * (size_t)y);
    png_write_end(w->png, NULL);
    return STK_OK;
}

static int png_encode(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e)
{
    (void)o;
    struct writer w = {.failure.words = "no memory"};
    const int rc = write_pixels(&w, im, e);
    png_destroy_write_struct(&w.png, &w.info);
    if (rc != STK_OK) {
        buf_done(&w.out);
        return rc;
    }
    *out = w.out.data;
    *n = w.out.len;
    return STK_OK;
}

static const char *png_version(void)
{
    return "libpng " PNG_LIBPNG_VER_STRING;
}

const struct codec codec_png = {
    .format = STK_PNG,
    .match = png_match,
    .head = png_head,
    .scratch = png_scratch,
    .foreign = png_foreign,
    .pixels = png_pixels,
    .encode = png_encode,
    .version = png_version,
    .open = png_open,
    .close = png_close,
};

#endif
