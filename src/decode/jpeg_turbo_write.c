/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_turbo_write.c -- JPEG through libjpeg-turbo: writing pixels, and the coefficients of a JPEG or a DCT image.
 */
#include "decode/jpeg_turbo.h"

#ifdef HAVE_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "base/error.h"
#include "base/hash.h"
#include "decode/jpeg_turbo_inner.h"

/* ------------------------------------------------------------------ pixels */

struct writer {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    struct jpeg_destination_mgr dest;
    struct buf out;
    jmp_buf jump;
};

static void on_error(j_common_ptr c)
{
    struct writer *w = c->client_data;
    longjmp(w->jump, 1);
}

/* Doubles the buffer, and keeps what is written. */
static boolean on_full(j_compress_ptr c)
{
    struct writer *w = c->client_data;
    const size_t used = w->out.cap;
    if (buf_reserve(&w->out, used ? 2 * used : 1 << 16))
        ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
    w->dest.next_output_byte = w->out.data + used;
    w->dest.free_in_buffer = w->out.cap - used;
    return TRUE;
}

static void on_begin(j_compress_ptr c)
{
    on_full(c);
}

static void on_finish(j_compress_ptr c)
{
    struct writer *w = c->client_data;
    w->out.len = w->out.cap - w->dest.free_in_buffer;
}

static int explain(struct writer *w, int code, stk_error *e)
{
    char words[JMSG_LENGTH_MAX];
    w->err.format_message((j_common_ptr)&w->c, words);
    const bool memory = w->err.msg_code == JERR_OUT_OF_MEMORY;
    return error_set(e, memory ? STK_ENOMEM : code, "encode", "JPEG: %s", words);
}

static void set_options(struct writer *w, const struct image *im, const stk_encode_options *o)
{
    w->c.image_width = (JDIMENSION)im->w;
    w->c.image_height = (JDIMENSION)im->h;
    w->c.input_components = im->channels;
    w->c.in_color_space = im->channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGB;
    jpeg_set_defaults(&w->c);
    jpeg_set_quality(&w->c, o->quality ? o->quality : 90, TRUE);
    w->c.comp_info[0].h_samp_factor = w->c.comp_info[0].v_samp_factor = o->subsample && im->channels == 3 ? 2 : 1;
    w->c.optimize_coding = TRUE;
    if (o->progressive)
        jpeg_simple_progression(&w->c);
}

static int write_pixels(struct writer *w, const struct image *im, const stk_encode_options *o, stk_error *e)
{
    if (setjmp(w->jump))
        return explain(w, STK_EUSAGE, e);
    jpeg_create_compress(&w->c);
    w->c.dest = &w->dest;
    set_options(w, im, o);
    jpeg_start_compress(&w->c, TRUE);
    while (w->c.next_scanline < w->c.image_height) {
        JSAMPROW row = im->px + im->stride * w->c.next_scanline;
        jpeg_write_scanlines(&w->c, &row, 1);
    }
    jpeg_finish_compress(&w->c);
    return STK_OK;
}

static void begin(struct writer *w)
{
    *w = (struct writer){
        .dest = {.init_destination = on_begin, .empty_output_buffer = on_full, .term_destination = on_finish}};
    w->c.err = jpeg_std_error(&w->err);
    w->err.error_exit = on_error;
    w->err.output_message = jpeg_turbo_no_message;
    w->c.client_data = w;
}

int jpeg_turbo_encode(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e)
{
    struct writer w;
    begin(&w);
    const int rc = write_pixels(&w, im, o, e);
    jpeg_destroy_compress(&w.c);
    if (rc != STK_OK)
        buf_done(&w.out);
    *out = w.out.data;
    *n = w.out.len;
    return rc;
}

/* ------------------------------------------------------------------ coefficients */

/* Copies all markers except those that the writer makes itself. */
static void copy_markers(struct jpeg_turbo *j, struct writer *w)
{
    for (jpeg_saved_marker_ptr m = j->c.marker_list; m; m = m->next) {
        const bool jfif = m->marker == JPEG_APP0 && m->data_length >= 5 && memcmp(m->data, "JFIF", 5) == 0;
        const bool adobe = m->marker == JPEG_APP0 + 14 && m->data_length >= 5 && memcmp(m->data, "Adobe", 5) == 0;
        if (!(jfif && w->c.write_JFIF_header) && !(adobe && w->c.write_Adobe_marker))
            jpeg_write_marker(&w->c, m->marker, m->data, m->data_length);
    }
}

/* Reads all coefficients, and hashes everything that pixels are made of. Returns NULL if coefficients are missing. */
static jvirt_barray_ptr *read_hashed(struct jpeg_turbo *j, const struct image_job *job, uint64_t *hash)
{
    jvirt_barray_ptr *arrays = jpeg_turbo_coefficients(j, job);
    *hash = hash_mix(j->c.image_width, j->c.image_height);
    for (int i = 0; arrays && i < j->c.num_components; i++) {
        const jpeg_component_info *k = &j->c.comp_info[i];
        *hash = hash_mix(*hash, (uint64_t)(k->h_samp_factor * 8 + k->v_samp_factor));
        *hash = hash_bytes(k->quant_table->quantval, sizeof k->quant_table->quantval, *hash);
        for (JDIMENSION y = 0; y < k->height_in_blocks; y++) {
            JBLOCKARRAY row = j->c.mem->access_virt_barray((j_common_ptr)&j->c, arrays[i], y, 1, FALSE);
            *hash = hash_bytes(row[0], k->width_in_blocks * sizeof(JBLOCK), *hash);
        }
    }
    return arrays;
}

static bool write_coefficients(struct jpeg_turbo *j, struct writer *w, const struct image_job *job, uint64_t *hash)
{
    if (setjmp(j->jump) || setjmp(w->jump))
        return false;
    jvirt_barray_ptr *arrays = read_hashed(j, job, hash);
    if (!arrays)
        return false;
    jpeg_create_compress(&w->c);
    w->c.dest = &w->dest;
    jpeg_copy_critical_parameters(&j->c, &w->c);
    w->c.optimize_coding = TRUE;
    w->c.arith_code = FALSE;
    jpeg_write_coefficients(&w->c, arrays);
    copy_markers(j, w);
    jpeg_finish_compress(&w->c);
    return true;
}

static bool read_back(struct jpeg_turbo *j, const struct image_job *job, uint64_t *hash)
{
    jpeg_turbo_begin(j, job);
    return !setjmp(j->jump) && read_hashed(j, job, hash);
}

bool jpeg_turbo_rewrite(struct jpeg_turbo *j, const struct image_job *job, struct buf *out)
{
    struct writer w;
    uint64_t was = 0, is = 1;
    begin(&w);
    jpeg_turbo_begin(j, job);
    j->markers = true;
    bool good = write_coefficients(j, &w, job, &was);
    jpeg_destroy_decompress(&j->c);
    jpeg_destroy_compress(&w.c);
    if (good) {
        const struct image_job made = {.bytes = w.out.data, .n = w.out.len, .head = job->head};
        good = read_back(j, &made, &is) && was == is && buf_add(out, made.bytes, made.n) == 0;
        jpeg_destroy_decompress(&j->c);
    }
    buf_done(&w.out);
    return good;
}

/* ------------------------------------------------------------------ DCT images */

/* A few MCUs on their way from a DCT image to libjpeg. */
struct passage {
    struct dct_walk walk;
    struct jpeg_blocks blocks;
    int16_t coef[JPEG_AT_ONCE_BLOCKS * JPEG_BLOCK];
    uint8_t last[JPEG_AT_ONCE_BLOCKS];
};

/* Components with equal quantisers share a table. */
static void set_quantisers(struct writer *w, const struct jpeg_frame *f, int i)
{
    int t = 0;
    while (t < i && memcmp(f->component[t].q, f->component[i].q, sizeof f->component[i].q) != 0)
        t++;
    w->c.comp_info[i].quant_tbl_no = t;
    if (!w->c.quant_tbl_ptrs[t])
        w->c.quant_tbl_ptrs[t] = jpeg_alloc_quant_table((j_common_ptr)&w->c);
    memcpy(w->c.quant_tbl_ptrs[t]->quantval, f->component[i].q, sizeof f->component[i].q);
}

/* Describes the image to libjpeg, and asks it for memory for all coefficients. */
static void set_frame(struct writer *w, const struct jpeg_frame *f, jvirt_barray_ptr *arrays)
{
    w->c.image_width = (JDIMENSION)f->w;
    w->c.image_height = (JDIMENSION)f->h;
    w->c.input_components = f->n_components;
    w->c.in_color_space = f->n_components == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg_set_defaults(&w->c);
    w->c.optimize_coding = TRUE;
    for (int i = 0; i < f->n_components; i++) {
        const struct jpeg_component *k = &f->component[i];
        w->c.comp_info[i].h_samp_factor = k->h;
        w->c.comp_info[i].v_samp_factor = k->v;
        set_quantisers(w, f, i);
        arrays[i] =
            w->c.mem->request_virt_barray((j_common_ptr)&w->c, JPOOL_IMAGE, FALSE, (JDIMENSION)(f->mcus_x * k->h),
                                          (JDIMENSION)(f->mcus_y * k->v), (JDIMENSION)k->v);
    }
}

/* An Exif block that contains only the orientation: TIFF head, one entry (tag, type, count, value), no more
 * directories. */
static void write_orientation(struct writer *w, int orientation)
{
    enum { VALUE = 24 };
    uint8_t exif[32] = "Exif\0\0II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0";
    exif[VALUE] = (uint8_t)orientation;
    jpeg_write_marker(&w->c, JPEG_APP0 + 1, exif, sizeof exif);
}

static bool copy_mcus(struct writer *w, struct passage *p, jvirt_barray_ptr *arrays, int32_t y, int32_t x, int32_t n)
{
    const struct jpeg_frame *f = &p->walk.image->frame;
    if (!dct_walk_give(&p->walk, y, x, n, &p->blocks))
        return false;
    for (int i = 0; i < f->n_components; i++) {
        const struct jpeg_component *k = &f->component[i];
        JBLOCKARRAY rows = w->c.mem->access_virt_barray((j_common_ptr)&w->c, arrays[i], (JDIMENSION)(y * k->v),
                                                        (JDIMENSION)k->v, TRUE);
        for (int v = 0; v < k->v; v++)
            memcpy(rows[v] + x * k->h, p->blocks.coef[i][v], (size_t)(n * k->h) * sizeof(JBLOCK));
    }
    return true;
}

static int damaged(stk_error *e)
{
    return error_set(e, STK_EDATA, "decode", "is a damaged DCT image");
}

static int write_dct(struct writer *w, struct passage *p, const struct dct_image *d, stk_error *e)
{
    const struct jpeg_frame *f = &d->frame;
    jvirt_barray_ptr arrays[JPEG_COMPONENTS];
    if (setjmp(w->jump))
        return explain(w, STK_EDATA, e);
    jpeg_create_compress(&w->c);
    w->c.dest = &w->dest;
    set_frame(w, f, arrays);
    jpeg_write_coefficients(&w->c, arrays);
    if (d->head.orientation != 1)
        write_orientation(w, d->head.orientation);
    for (int32_t y = 0; y < f->mcus_y; y++)
        for (int32_t x = 0; x < f->mcus_x; x += JPEG_AT_ONCE)
            if (!copy_mcus(w, p, arrays, y, x, f->mcus_x - x < JPEG_AT_ONCE ? f->mcus_x - x : JPEG_AT_ONCE))
                return damaged(e);
    jpeg_finish_compress(&w->c);
    return STK_OK;
}

int jpeg_turbo_from_dct(const uint8_t *bytes, size_t n, struct buf *out, stk_error *e)
{
    struct dct_image d;
    struct passage p;
    struct writer w;
    if (!dct_image_open(&d, bytes, n))
        return damaged(e);
    dct_walk_begin(&p.walk, &d, dct_decode_c);
    jpeg_strip_blocks(&p.blocks, &d.frame, JPEG_AT_ONCE, p.coef, p.last);
    begin(&w);
    int rc = write_dct(&w, &p, &d, e);
    jpeg_destroy_compress(&w.c);
    if (rc == STK_OK && buf_add(out, w.out.data, w.out.len))
        rc = error_nomem(e, "encode", w.out.len);
    buf_done(&w.out);
    return rc;
}

#endif
