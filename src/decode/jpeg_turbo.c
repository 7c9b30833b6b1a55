/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_turbo.c -- JPEG through libjpeg-turbo: the pixels and coefficients of images of every kind.
 *
 * A crop is decoded by skipping the rows above it, decoding only the columns it needs, and stopping after its last row.
 * libjpeg-turbo's fancy upsampling uses neighbouring samples. At the edge of a cropped or skipped region it invents
 * them. So if chroma is subsampled, one more iMCU is decoded on every side and thrown away: the result equals the same
 * crop of the whole image bit for bit. Images of several scans are not cropped. Their time goes into the scans, and
 * block smoothing, which libjpeg applies to unfinished images, is not exact in crops.
 *
 * Damage is judged as in Pillow: it is an error if the bytes end before the last row that is needed. Everything else
 * that libjpeg can handle is a warning.
 *
 * The decompressor is created anew for every image, which takes 1 or 2 µs of a thousand. In libjpeg tables outlive an
 * image, and an image without tables would be decoded with those of the image before.
 */
#include "decode/jpeg_turbo.h"

#ifdef HAVE_JPEG

#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "base/error.h"
#include "decode/cmyk.h"
#include "decode/jpeg_turbo_inner.h"

static const char stage[] = "decode";

enum {
    IMCU_MAX = 4 * DCTSIZE,     /* largest sampling factor */
    ROWS = 16,                  /* read at a time */
    MANY_SCANS = 50,            /* no encoder makes more */
    FOREIGN_FIXED = 256 * 1024, /* tables, pools and the like */
};
static const int64_t max_scan_work = 20000000000; /* samples times scans, if there are many: seconds */

struct jpeg_turbo *jpeg_turbo_new(void)
{
    return calloc(1, sizeof(struct jpeg_turbo));
}

void jpeg_turbo_free(struct jpeg_turbo *j)
{
    free(j);
}

/* ------------------------------------------------------------------ libjpeg's hooks */

static void on_error(j_common_ptr c)
{
    struct jpeg_turbo *j = c->client_data;
    longjmp(j->jump, 1);
}

void jpeg_turbo_no_message(j_common_ptr c)
{
    (void)c;
}

static void on_trace(j_common_ptr c, int level)
{
    if (level < 0)
        c->err->num_warnings++;
}

static void on_source(j_decompress_ptr c)
{
    (void)c;
}

/* After the last row, a missing end is forgiven. */
static boolean on_empty(j_decompress_ptr c)
{
    struct jpeg_turbo *j = c->client_data;
    if (j->rows_done)
        return FALSE;
    j->at_end = true;
    longjmp(j->jump, 1);
}

static void on_skip(j_decompress_ptr c, long n)
{
    if (n <= 0)
        return;
    struct jpeg_source_mgr *src = c->src;
    const size_t k = (size_t)n < src->bytes_in_buffer ? (size_t)n : src->bytes_in_buffer;
    src->next_input_byte += k;
    src->bytes_in_buffer -= k;
}

/* A file with a few bytes per scan can ask for hours of work. */
static void on_progress(j_common_ptr c)
{
    struct jpeg_turbo *j = c->client_data;
    const int64_t samples = (int64_t)j->c.image_width * j->c.image_height * j->c.num_components;
    if (j->c.input_scan_number > MANY_SCANS && samples * j->c.input_scan_number > max_scan_work) {
        j->too_many_scans = true;
        longjmp(j->jump, 1);
    }
}

/* ------------------------------------------------------------------ memory */

static size_t round_up(int32_t v, size_t to)
{
    return ((size_t)v + to - 1) / to * to;
}

size_t jpeg_turbo_scratch(const struct head *h, const struct rect *crop)
{
    /* A margin on either side, and the alignment to the left. */
    const size_t part = (size_t)crop->w + 3 * IMCU_MAX, full = (size_t)h->w;
    const size_t w = h->odd & CODEC_HELD || part > full ? full : part;
    return size_add(arena_cost(size_mul(w * 3, (size_t)crop->h)), arena_cost(w * 4));
}

/* All coefficients if there are several scans; else some rows of iMCUs in several buffers. */
size_t jpeg_turbo_foreign(const struct head *h)
{
    const size_t row = (size_t)h->channels * round_up(h->w, IMCU_MAX);
    size_t n = size_add(FOREIGN_FIXED, size_mul(row, 4 * IMCU_MAX));
    if (h->odd & CODEC_HELD)
        n = size_add(size_add(n, JPEG_DCT_MOST), size_mul(row * sizeof(JCOEF), round_up(h->h, IMCU_MAX)));
    return n;
}

/* ------------------------------------------------------------------ decoding */

void jpeg_turbo_begin(struct jpeg_turbo *j, const struct image_job *job)
{
    memset(j, 0, sizeof *j);
    j->c.err = jpeg_std_error(&j->err);
    j->err.error_exit = on_error;
    j->err.output_message = jpeg_turbo_no_message;
    j->err.emit_message = on_trace;
    j->c.client_data = j;
    j->progress.progress_monitor = on_progress;
    j->src = (struct jpeg_source_mgr){.next_input_byte = job->bytes,
                                      .bytes_in_buffer = job->n,
                                      .init_source = on_source,
                                      .fill_input_buffer = on_empty,
                                      .skip_input_data = on_skip,
                                      .resync_to_restart = jpeg_resync_to_restart,
                                      .term_source = on_source};
}

/* From here to the end of run() any call of libjpeg may jump out. */
static void read_header(struct jpeg_turbo *j, const struct image_job *job)
{
    jpeg_create_decompress(&j->c);
    j->c.src = &j->src;
    j->c.progress = &j->progress;
    const size_t memory = jpeg_turbo_foreign(job->head);
    j->c.mem->max_memory_to_use = memory < LONG_MAX ? (long)memory : LONG_MAX;
    for (int i = 0; i < 16 && j->markers; i++)
        jpeg_save_markers(&j->c, JPEG_APP0 + i, 0xffff);
    if (j->markers)
        jpeg_save_markers(&j->c, JPEG_COM, 0xffff);
    while (jpeg_read_header(&j->c, FALSE) == JPEG_HEADER_TABLES_ONLY)
        ;
    j->c.out_color_space = j->c.num_components == 4 ? JCS_CMYK : JCS_EXT_RGB;
}

/* Whether the sizes are those that the scratch was computed from. */
static bool same_as_head(struct jpeg_turbo *j, const struct head *h)
{
    return j->c.image_width == (JDIMENSION)h->w && j->c.image_height == (JDIMENSION)h->h &&
           j->c.num_components == h->channels && (h->odd & CODEC_HELD || !jpeg_has_multiple_scans(&j->c));
}

/* The columns and rows that are decoded: the crop and its margin. */
struct area {
    JDIMENSION x, w, y;
};

static bool subsampled(const struct jpeg_turbo *j, bool rows)
{
    for (int i = 0; i < j->c.num_components; i++) {
        const jpeg_component_info *k = &j->c.comp_info[i];
        if (rows ? k->v_samp_factor < j->c.max_v_samp_factor : k->h_samp_factor < j->c.max_h_samp_factor)
            return true;
    }
    return false;
}

static int32_t clamp(int32_t v, int32_t low, int32_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Call after jpeg_start_decompress. */
static struct area area_of(struct jpeg_turbo *j, const struct image_job *job)
{
    struct area s = {0, j->c.output_width, 0};
    if (jpeg_has_multiple_scans(&j->c) || job->head->odd & STK_ODD_LOSSLESS)
        return s;
    const struct rect *crop = &job->crop;
    const int32_t side = DCTSIZE / (job->shrink > 1 ? job->shrink : 1), w = (int32_t)j->c.output_width;
    const int32_t imcu_w = j->c.max_h_samp_factor * side, imcu_h = j->c.max_v_samp_factor * side;
    const int32_t beside = subsampled(j, false) ? imcu_w : 0, above = subsampled(j, true) ? imcu_h : 0;
    const int32_t left = clamp(crop->x - beside, 0, w), right = clamp(crop->x + crop->w + beside, 0, w);
    s.x = (JDIMENSION)left;
    s.w = (JDIMENSION)(right - left);
    if (s.w < j->c.output_width)
        jpeg_crop_scanline(&j->c, &s.x, &s.w);
    s.y = (JDIMENSION)clamp((crop->y - above) / imcu_h * imcu_h, 0, crop->y);
    if (s.y > 0)
        jpeg_skip_scanlines(&j->c, s.y);
    return s;
}

/* A stride of 0 discards rows. */
static void read_rows(struct jpeg_turbo *j, uint8_t *px, size_t stride, int32_t n)
{
    while (n > 0) {
        JSAMPROW rows[ROWS];
        const int32_t ask = n < ROWS ? n : ROWS;
        for (int32_t i = 0; i < ask; i++)
            rows[i] = px + stride * (size_t)i;
        const JDIMENSION got = jpeg_read_scanlines(&j->c, rows, (JDIMENSION)ask);
        if (got == 0)
            longjmp(j->jump, 1);
        px += stride * got;
        n -= (int32_t)got;
    }
}

static void read_cmyk(struct jpeg_turbo *j, uint8_t *inks, uint8_t *px, size_t w, int32_t n)
{
    for (int32_t y = 0; y < n; y++) {
        read_rows(j, inks, 0, 1);
        cmyk_to_rgb(inks, px + (size_t)y * w * 3, w);
    }
}

static void read_rest(struct jpeg_turbo *j, uint8_t *row)
{
    read_rows(j, row, 0, (int32_t)(j->c.output_height - j->c.output_scanline));
    j->rows_done = true;
    if (!jpeg_finish_decompress(&j->c))
        j->err.num_warnings++;
}

static int run(struct jpeg_turbo *j, const struct image_job *job, struct image *out, stk_error *e)
{
    read_header(j, job);
    if (!same_as_head(j, job->head))
        return error_set(e, STK_EDATA, stage, "has two frame headers that differ");
    if (job->shrink > 1)
        j->c.scale_denom = (unsigned)job->shrink;
    jpeg_start_decompress(&j->c);
    const struct rect *crop = &job->crop;
    const struct area s = area_of(j, job);
    const size_t stride = (size_t)s.w * 3;
    const bool cmyk = j->c.num_components == 4;
    uint8_t *px = arena_alloc(job->arena, stride * (size_t)crop->h);
    uint8_t *row = arena_alloc(job->arena, (size_t)s.w * 4);
    if (!px || !row)
        return codec_no_arena(e);
    read_rows(j, row, 0, crop->y - (int32_t)s.y);
    if (cmyk)
        read_cmyk(j, row, px, s.w, crop->h);
    else
        read_rows(j, px, stride, crop->h);
    if (job->whole)
        read_rest(j, row);
    *out = (struct image){
        .px = px + (size_t)(crop->x - (int32_t)s.x) * 3, .stride = stride, .w = crop->w, .h = crop->h, .channels = 3};
    return STK_OK;
}

static int explain(struct jpeg_turbo *j, const struct image_job *job, stk_error *e)
{
    if (j->at_end)
        return error_set(e, STK_EDATA, stage, "the file ends after %zu bytes, before its last row", job->n);
    if (j->too_many_scans)
        return error_set(
            e, STK_EDATA, stage,
            "has more than %d scans of %ux%u pixels; it is refused, because only a malicious file has so many",
            j->c.input_scan_number, j->c.image_width, j->c.image_height);
    if (j->err.msg_code == JERR_OUT_OF_MEMORY)
        return error_set(e, STK_ENOMEM, stage, "no memory for libjpeg");
    char words[JMSG_LENGTH_MAX];
    j->err.format_message((j_common_ptr)&j->c, words);
    const char *kind = job->head->odd & STK_ODD_LOSSLESS ? "lossless" : "broken";
    return error_set(e, STK_EDATA, stage, "%s JPEG: %s", kind, words);
}

static int run_guarded(struct jpeg_turbo *j, const struct image_job *job, struct image *out, stk_error *e)
{
    if (setjmp(j->jump))
        return explain(j, job, e);
    return run(j, job, out, e);
}

int jpeg_turbo_pixels(struct jpeg_turbo *j, const struct image_job *job, struct image *out, int *warnings, stk_error *e)
{
    jpeg_turbo_begin(j, job);
    const int rc = run_guarded(j, job, out, e);
    *warnings = (int)j->err.num_warnings;
    jpeg_destroy_decompress(&j->c);
    return rc;
}

/* ------------------------------------------------------------------ DCT images */

/* The coefficients that libjpeg has read. */
struct held {
    struct jpeg_turbo *j;
    const struct jpeg_frame *f;
    jvirt_barray_ptr *arrays;
};

static bool give_held(void *user, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to)
{
    const struct held *held = user;
    struct jpeg_decompress_struct *c = &held->j->c;
    if (setjmp(held->j->jump))
        return false;
    for (int i = 0; i < held->f->n_components; i++) {
        const struct jpeg_component *k = &held->f->component[i];
        for (int v = 0; v < k->v; v++) {
            JBLOCKARRAY row =
                c->mem->access_virt_barray((j_common_ptr)c, held->arrays[i], (JDIMENSION)(y * k->v + v), 1, FALSE);
            memcpy(to->coef[i][v], row[0] + x * k->h, (size_t)(n * k->h) * sizeof(JBLOCK));
            memset(to->last[i][v], JPEG_BLOCK - 1, (size_t)(n * k->h));
        }
    }
    return true;
}

/* Finds how much finer luma is than chroma; libjpeg upsamples by that alone. */
static bool find_sampling(const struct jpeg_decompress_struct *c, enum jpeg_sampling *out)
{
    const jpeg_component_info *k = c->comp_info;
    if (c->num_components == 1) {
        *out = JPEG_GREY;
        return c->jpeg_color_space == JCS_GRAYSCALE;
    }
    if (c->jpeg_color_space != JCS_YCbCr || k[1].h_samp_factor != k[2].h_samp_factor ||
        k[1].v_samp_factor != k[2].v_samp_factor)
        return false;
    static const enum jpeg_sampling samplings[2][2] = {{JPEG_444, JPEG_440}, {JPEG_422, JPEG_420}};
    for (int i = 0; i < 4; i++)
        if (k[0].h_samp_factor == (1 + i / 2) * k[1].h_samp_factor &&
            k[0].v_samp_factor == (1 + i % 2) * k[1].v_samp_factor) {
            *out = samplings[i / 2][i % 2];
            return true;
        }
    return false;
}

static bool frame_of(const struct jpeg_decompress_struct *c, struct jpeg_frame *f)
{
    *f = (struct jpeg_frame){
        .w = (int32_t)c->image_width, .h = (int32_t)c->image_height, .n_components = c->num_components};
    if (!find_sampling(c, &f->sampling) || !jpeg_frame_measure(f))
        return false;
    for (int i = 0; i < f->n_components; i++) {
        if (!c->comp_info[i].quant_table)
            return false;
        memcpy(f->component[i].q, c->comp_info[i].quant_table->quantval, sizeof f->component[i].q);
    }
    return true;
}

/* Whether all bits of the low frequencies were read; otherwise libjpeg smooths blocks. */
static bool is_complete(const struct jpeg_decompress_struct *c)
{
    for (int i = 0; c->coef_bits && i < c->num_components; i++)
        for (int k = 0; k < JPEG_BLOCK; k++)
            if (c->coef_bits[i][k] != 0)
                return false;
    return true;
}

jvirt_barray_ptr *jpeg_turbo_coefficients(struct jpeg_turbo *j, const struct image_job *job)
{
    read_header(j, job);
    if (!same_as_head(j, job->head))
        return NULL;
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&j->c);
    return j->err.num_warnings == 0 && is_complete(&j->c) ? arrays : NULL;
}

static bool held_to_dct(struct jpeg_turbo *j, struct jpeg_baseline *b, const struct image_job *job, struct buf *out)
{
    if (setjmp(j->jump))
        return false;
    struct jpeg_frame f;
    struct held held = {.j = j, .f = &f, .arrays = jpeg_turbo_coefficients(j, job)};
    return held.arrays && frame_of(&j->c, &f) &&
           jpeg_baseline_dct_from(b, &f, job->head, &(struct jpeg_giver){.give = give_held, .user = &held}, out);
}

bool jpeg_turbo_to_dct(struct jpeg_turbo *j, struct jpeg_baseline *b, const struct image_job *job, struct buf *out)
{
    jpeg_turbo_begin(j, job);
    const bool good = held_to_dct(j, b, job, out);
    jpeg_destroy_decompress(&j->c);
    return good;
}

#define TEXT(x)   #x
#define QUOTED(x) TEXT(x)

/* The loaded library may be of another version than the headers, with the same ABI. It does not report its version,
 * but 3.0 has one message more than 2.1. */
const char *jpeg_turbo_version(void)
{
    enum { LAST_MESSAGE_OF_2 = 128, FIRST_NUMBER_OF_3 = 2001090 };
    struct jpeg_error_mgr err;
    jpeg_std_error(&err);
    const bool is_3 = err.last_jpeg_message > LAST_MESSAGE_OF_2;
    if (is_3 == (LIBJPEG_TURBO_VERSION_NUMBER >= FIRST_NUMBER_OF_3))
        return "libjpeg-turbo " QUOTED(LIBJPEG_TURBO_VERSION);
    return is_3 ? "libjpeg-turbo 3" : "libjpeg-turbo 2";
}

#endif
