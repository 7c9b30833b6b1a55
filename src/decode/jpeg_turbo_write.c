/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_turbo_write.c -- JPEG through libjpeg-turbo: writing pixels, and writing the coefficients of another JPEG.
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

static int explain(struct writer *w, stk_error *e)
{
    char words[JMSG_LENGTH_MAX];
    w->err.format_message((j_common_ptr)&w->c, words);
    const bool memory = w->err.msg_code == JERR_OUT_OF_MEMORY;
    return error_set(e, memory ? STK_ENOMEM : STK_EUSAGE, "encode", "JPEG: %s", words);
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
        return explain(w, e);
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

#endif
