/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jpeg_kernel.c -- compares the JPEG kernels of every instruction set with libjpeg-turbo.
 *
 * Generated coefficients are written into a file without a DCT and decoded by libjpeg-turbo, then by the kernels.
 * Covers jpeg_kernel_*.c.
 */
#include "decode/jpeg_kernel.h"

#include "base/cpu.h"
#include "base/rng.h"
#include "test.h"

#ifdef HAVE_JPEG
#include <jpeglib.h>

enum { COMPONENTS = 3, PAD = 64 };

static const int across[JPEG_SAMPLINGS] = {1, 1, 2, 2, 1}, down[JPEG_SAMPLINGS] = {1, 1, 1, 2, 2};
static const int zigzag[JPEG_BLOCK] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                       12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                       35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                       58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

static struct rng rng;

static int below(int n)
{
    return (int)rng_below(&rng, (uint64_t)n);
}

/* The coefficients of one component, and the samples made from them. */
struct component {
    int w, h;               /* samples that affect the image */
    int blocks_w, blocks_h; /* of the whole image, all MCUs */
    int16_t *coef;
    uint8_t *last;
    uint16_t q[JPEG_BLOCK];
    uint8_t *plane; /* of blocks_w * 8 columns, PAD on either side */
};

struct made {
    enum jpeg_sampling sampling;
    int w, h, n;
    struct component c[COMPONENTS];
};

static size_t stride_of(const struct component *c)
{
    return (size_t)c->blocks_w * 8 + 2 * PAD;
}

/* Wild coefficients, and their quantisers, are as large as a file can hold. */
static void make_block(int16_t *coef, uint8_t *last, int *dc, bool wild)
{
    static const int lasts[] = {0, 1, 2, 5, 9, 10, 14, 20, 35, 63};
    const int end = lasts[below(10)], size = wild ? 1 << below(11) : 1 << below(6);
    *dc += wild ? below(1001) - 500 : below(81) - 40;
    if (*dc < -1000 || *dc > 1000)
        *dc = 0;
    coef[0] = (int16_t)*dc;
    *last = (uint8_t)end;
    for (int k = 1; k <= end; k++)
        if (k == end || below(2))
            coef[zigzag[k]] = (int16_t)(below(2 * size - 1) - size + 1);
    if (below(8) == 0) /* only of the first row */
        for (int k = 8; k < JPEG_BLOCK; k++)
            coef[k] = 0;
}

static void make_component(struct component *c, int w, int h, int mcus_w, int mcus_h, int nw, int nh, bool wild)
{
    *c = (struct component){.w = w, .h = h, .blocks_w = mcus_w * nw, .blocks_h = mcus_h * nh};
    const size_t n = (size_t)c->blocks_w * (size_t)c->blocks_h;
    c->coef = calloc(n, JPEG_BLOCK * sizeof *c->coef);
    c->last = malloc(n);
    c->plane = calloc(stride_of(c), (size_t)c->blocks_h * 8);
    const int coarse = wild ? 1 << below(17) : 1 + below(30);
    for (int i = 0; i < JPEG_BLOCK; i++)
        c->q[i] = (uint16_t)(1 + below(coarse > 65535 ? 65535 : coarse));
    int dc = 0;
    for (size_t i = 0; i < n; i++)
        make_block(c->coef + i * JPEG_BLOCK, c->last + i, &dc, wild);
}

static void make(struct made *m, enum jpeg_sampling s, int w, int h, bool wild)
{
    *m = (struct made){.sampling = s, .w = w, .h = h, .n = s == JPEG_GREY ? 1 : 3};
    const int a = across[s], d = down[s], mcus_w = (w + 8 * a - 1) / (8 * a), mcus_h = (h + 8 * d - 1) / (8 * d);
    make_component(&m->c[0], w, h, mcus_w, mcus_h, a, d, wild);
    for (int i = 1; i < m->n; i++)
        make_component(&m->c[i], (w + a - 1) / a, (h + d - 1) / d, mcus_w, mcus_h, 1, 1, wild);
}

static void made_done(struct made *m)
{
    for (int i = 0; i < m->n; i++) {
        free(m->c[i].coef);
        free(m->c[i].last);
        free(m->c[i].plane);
    }
}

/* ------------------------------------------------------------------ libjpeg-turbo's way */

static void describe(struct jpeg_compress_struct *c, const struct made *m)
{
    c->image_width = (JDIMENSION)m->w;
    c->image_height = (JDIMENSION)m->h;
    c->input_components = m->n;
    c->in_color_space = m->n == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg_set_defaults(c);
    for (int i = 0; i < m->n; i++) {
        if (!c->quant_tbl_ptrs[i])
            c->quant_tbl_ptrs[i] = jpeg_alloc_quant_table((j_common_ptr)c);
        memcpy(c->quant_tbl_ptrs[i]->quantval, m->c[i].q, sizeof m->c[i].q);
        c->quant_tbl_ptrs[i]->sent_table = FALSE;
        c->comp_info[i].quant_tbl_no = i;
        c->comp_info[i].h_samp_factor = i == 0 ? across[m->sampling] : 1;
        c->comp_info[i].v_samp_factor = i == 0 ? down[m->sampling] : 1;
    }
    c->optimize_coding = TRUE;
}

static void copy_blocks(struct jpeg_compress_struct *c, jvirt_barray_ptr to, const struct component *from)
{
    for (int y = 0; y < from->blocks_h; y++) {
        JBLOCKARRAY rows = c->mem->access_virt_barray((j_common_ptr)c, to, (JDIMENSION)y, 1, TRUE);
        const size_t bytes = (size_t)from->blocks_w * JPEG_BLOCK * sizeof *from->coef;
        memcpy(rows[0], from->coef + (size_t)y * (size_t)from->blocks_w * JPEG_BLOCK, bytes);
    }
}

/* About coarse quantisers. */
static void quiet(j_common_ptr c, int level)
{
    (void)c;
    (void)level;
}

static unsigned char *write_file(const struct made *m, unsigned long *n)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    unsigned char *bytes = NULL;
    c.err = jpeg_std_error(&err);
    err.emit_message = quiet;
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, n);
    describe(&c, m);
    jvirt_barray_ptr arrays[COMPONENTS];
    for (int i = 0; i < m->n; i++)
        arrays[i] = c.mem->request_virt_barray((j_common_ptr)&c, JPOOL_IMAGE, TRUE, (JDIMENSION)m->c[i].blocks_w,
                                               (JDIMENSION)m->c[i].blocks_h, (JDIMENSION)c.comp_info[i].v_samp_factor);
    c.mem->realize_virt_arrays((j_common_ptr)&c);
    jpeg_write_coefficients(&c, arrays);
    for (int i = 0; i < m->n; i++)
        copy_blocks(&c, arrays[i], &m->c[i]);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return bytes;
}

static void decode_theirs(const struct made *m, uint8_t *rgb)
{
    unsigned long n = 0;
    unsigned char *bytes = write_file(m, &n);
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr err;
    d.err = jpeg_std_error(&err);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, bytes, n);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = JCS_EXT_RGB;
    jpeg_start_decompress(&d);
    while (d.output_scanline < d.output_height) {
        JSAMPROW row = rgb + (size_t)d.output_scanline * (size_t)m->w * 3;
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    free(bytes);
}

/* ------------------------------------------------------------------ ours */

static void fill_plane(const struct jpeg_kernels *k, struct component *c)
{
    const size_t stride = stride_of(c), n = (size_t)c->blocks_w;
    for (int y = 0; y < c->blocks_h; y++) {
        const size_t first = (size_t)y * n;
        k->idct(c->plane + PAD + (size_t)y * 8 * stride, stride, c->coef + first * JPEG_BLOCK, c->last + first, n,
                c->q);
    }
    for (int y = 0; y < c->h; y++) {
        uint8_t *row = c->plane + PAD + (size_t)y * stride;
        row[-1] = row[0];
        row[c->w] = row[c->w - 1];
    }
}

static const uint8_t *plane_row(const struct component *c, int y)
{
    const int at = y < 0 ? 0 : y >= c->h ? c->h - 1 : y;
    return c->plane + PAD + (size_t)at * stride_of(c);
}

static void decode_ours(const struct jpeg_kernels *k, struct made *m, uint8_t *rgb)
{
    for (int i = 0; i < m->n; i++)
        fill_plane(k, &m->c[i]);
    const int d = down[m->sampling];
    for (int y = 0; y < m->h; y++, rgb += 3 * (size_t)m->w) {
        const int near = y / d, other = y % 2 ? near + 1 : near - 1;
        struct jpeg_row r = {.y = plane_row(&m->c[0], y), .odd = y % 2};
        if (m->n == 3) {
            r.cb = plane_row(&m->c[1], near);
            r.cr = plane_row(&m->c[2], near);
            r.cb_other = plane_row(&m->c[1], other);
            r.cr_other = plane_row(&m->c[2], other);
        }
        k->row[m->sampling](rgb, &r, (size_t)m->w);
    }
}

/* ------------------------------------------------------------------ */

static void compare(enum jpeg_sampling s, int w, int h, bool wild)
{
    struct machine machine;
    machine_look(&machine);
    const bool have[] = {true, machine.avx2, machine.avx512};
    const stk_cpu sets[] = {STK_CPU_C, STK_CPU_AVX2, STK_CPU_AVX512};
    struct made m;
    make(&m, s, w, h, wild);
    const size_t n = (size_t)w * (size_t)h * 3;
    uint8_t *theirs = malloc(n), *ours = malloc(n);
    decode_theirs(&m, theirs);
    for (int i = 0; i < 3; i++) {
        if (!have[i])
            continue;
        struct jpeg_kernels k;
        jpeg_kernels_fill(&k, sets[i]);
        decode_ours(&k, &m, ours);
        const bool same = memcmp(ours, theirs, n) == 0;
        if (!same)
            printf("%s: sampling %d, %d x %d%s\n", cpu_name(sets[i]), (int)s, w, h, wild ? ", wild" : "");
        CHECK(same);
    }
    made_done(&m);
    free(theirs);
    free(ours);
}

static void images(bool wild)
{
    rng_init(&rng, &(struct draw){.seed = wild}, "test_jpeg_kernel", 0);
    for (int s = 0; s < JPEG_SAMPLINGS; s++) {
        for (int i = 0; i < 60; i++)
            compare((enum jpeg_sampling)s, 5 + below(200), 1 + below(60), wild);
        compare((enum jpeg_sampling)s, 1000, 500, wild);
    }
}

static void like_libjpeg_turbo(void)
{
    images(false);
}

static void like_libjpeg_turbo_when_wild(void)
{
#if defined(__x86_64__)
    images(true);
#else
    SKIP("what overflows differs between libjpeg-turbo's vector code for x86 and others");
#endif
}

int main(int argc, char **argv)
{
    TESTS(T(like_libjpeg_turbo), T(like_libjpeg_turbo_when_wild))
}

#else
static void like_libjpeg_turbo(void)
{
    SKIP("no libjpeg in this build");
}

int main(int argc, char **argv)
{
    TESTS(T(like_libjpeg_turbo))
}
#endif
