/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kernel_jpeg.c -- compares the JPEG kernels of every instruction set of this machine with their C versions.
 *
 *     test_kernel_jpeg [part of a case's name]
 *     test_kernel_jpeg --bench     nanoseconds per block and per pixel
 *
 * Covers jpeg_kernel_*.c and dct_block*.c. test_jpeg_kernel.c compares them with libjpeg-turbo.
 */
#include "decode/jpeg_kernel.h"

#include "twins.h"

static const int zigzag[JPEG_BLOCK] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                       12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                       35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                       58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* Coefficients up to a zigzag index: any 16 bits, or values as in images. */
static void some_block(int16_t *coef, int last, bool wild)
{
    memset(coef, 0, JPEG_BLOCK * sizeof *coef);
    for (int k = 0; k <= last; k++)
        if (k == last || below(3))
            coef[zigzag[k]] = (int16_t)(wild ? (int)rng_u32(&rng) % 32768 : below(61) - 30);
}

static void some_quantisers(uint16_t *q, bool wild)
{
    for (int i = 0; i < JPEG_BLOCK; i++)
        q[i] = (uint16_t)(wild ? below(65536) : 1 + below(20));
}

static void idct_one(size_t n, bool wild)
{
    static const int lasts[] = {0, 0, 1, 4, 9, 10, 14, 63};
    int16_t *coef = malloc(n * JPEG_BLOCK * sizeof *coef);
    uint8_t *last = malloc(n);
    uint16_t q[JPEG_BLOCK];
    some_quantisers(q, wild);
    const int kinds = 1 + below(8);
    for (size_t i = 0; i < n; i++) {
        last[i] = (uint8_t)lasts[below(kinds)];
        some_block(coef + i * JPEG_BLOCK, last[i], wild);
    }
    struct jpeg_kernels c, k;
    jpeg_kernels_fill(&c, STK_CPU_C);
    const size_t stride = 8 * n + (size_t)below(70), off = (size_t)below(33);
    for (int s = 1; s < n_sets; s++) {
        jpeg_kernels_fill(&k, sets[s]);
        struct output x = output_new(7 * stride + 8 * n, off), y = output_new(7 * stride + 8 * n, off);
        c.idct(x.at, stride, coef, last, n, q);
        k.idct(y.at, stride, coef, last, n, q);
        char what[80];
        snprintf(what, sizeof what, "idct of %zu %sblocks", n, wild ? "wild " : "");
        CHECK(agree(&x, &y, what, s));
    }
    free(coef);
    free(last);
}

static void idct(void)
{
    for (size_t n = 1; n <= 40; n++)
        for (int i = 0; i < 20; i++)
            idct_one(n, i % 2);
    for (int i = 0; i < 50; i++)
        idct_one(1 + (size_t)below(600), i % 2);
}

static const char *const sampling_names[JPEG_SAMPLINGS] = {"grey", "4:4:4", "4:2:2", "4:2:0", "4:4:0"};

/* Rows of samples that end with the last one that w pixels need. */
struct row_memory {
    uint8_t *p[5];
    struct jpeg_row row;
};

static struct row_memory some_row(enum jpeg_sampling s, size_t w)
{
    const size_t before = s == JPEG_422 || s == JPEG_420, chroma = before ? (w + 1) / 2 + 2 : w;
    struct row_memory m = {.p[0] = input(w)};
    for (int i = 1; i < 5; i++)
        m.p[i] = input(chroma);
    m.row = (struct jpeg_row){m.p[0], m.p[1] + before, m.p[2] + before, m.p[3] + before, m.p[4] + before, below(2)};
    return m;
}

static void row_memory_done(struct row_memory *m)
{
    for (int i = 0; i < 5; i++)
        free(m->p[i]);
}

static void rows(void)
{
    struct jpeg_kernels c, k;
    jpeg_kernels_fill(&c, STK_CPU_C);
    for (int s = 1; s < n_sets; s++) {
        jpeg_kernels_fill(&k, sets[s]);
        for (int t = 0; t < JPEG_SAMPLINGS; t++)
            for (size_t w = 1; w <= 300; w++) {
                struct row_memory m = some_row((enum jpeg_sampling)t, w);
                const size_t off = (size_t)below(33);
                struct output x = output_new(3 * w, off), y = output_new(3 * w, off);
                c.row[t](x.at, &m.row, w);
                k.row[t](y.at, &m.row, w);
                char what[80];
                snprintf(what, sizeof what, "a row of %zu, %s", w, sampling_names[t]);
                CHECK(agree(&x, &y, what, s));
                row_memory_done(&m);
            }
    }
}

/* All 2^16 pairs of chroma, because the vector versions compute colours differently from C. */
static void all_colours(void)
{
    enum { W = 65536 };
    uint8_t *y = malloc(W + IMAGE_SLACK), *cb = malloc(W + IMAGE_SLACK), *cr = malloc(W + IMAGE_SLACK);
    for (int i = 0; i < W; i++) {
        y[i] = 128;
        cb[i] = (uint8_t)i;
        cr[i] = (uint8_t)(i >> 8);
    }
    struct jpeg_kernels c, k;
    jpeg_kernels_fill(&c, STK_CPU_C);
    for (int s = 1; s < n_sets; s++) {
        jpeg_kernels_fill(&k, sets[s]);
        struct output a = output_new((size_t)3 * W, 0), b = output_new((size_t)3 * W, 0);
        const struct jpeg_row r = {.y = y, .cb = cb, .cr = cr};
        c.row[JPEG_444](a.at, &r, W);
        k.row[JPEG_444](b.at, &r, W);
        CHECK(agree(&a, &b, "all colours", s));
    }
    free(y);
    free(cb);
    free(cr);
}

/* ------------------------------------------------------------------ DCT images */

enum { BLOCKS = 40, STREAM = BLOCKS * 128 + DCT_SLACK, N_STREAMS = 6 };

/* The streams of some blocks, each in separate memory. */
struct streams {
    uint8_t *p[N_STREAMS];
    size_t n[N_STREAMS];
};

static struct streams streams_of(dct_encode_fn *encode, const int16_t *coef)
{
    struct streams s;
    for (int i = 0; i < N_STREAMS; i++)
        s.p[i] = malloc(STREAM);
    struct dct_out o = {s.p[0], s.p[1], s.p[2], s.p[3], s.p[4], s.p[5]};
    for (int i = 0; i < BLOCKS; i++)
        encode(&o, coef + i * JPEG_BLOCK);
    uint8_t *const ends[N_STREAMS] = {o.dc, o.rows, o.columns, o.small, o.bytes, o.words};
    for (int i = 0; i < N_STREAMS; i++)
        s.n[i] = (size_t)(ends[i] - s.p[i]);
    return s;
}

static void streams_done(struct streams *s)
{
    for (int i = 0; i < N_STREAMS; i++)
        free(s->p[i]);
}

static bool decoded(dct_decode_fn *decode, const struct streams *s, int16_t *coef, uint8_t *last)
{
    struct dct_place to[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        to[i] = (struct dct_place){coef + i * JPEG_BLOCK, last + i};
    struct dct_in in = {.dc = s->p[0],
                        .rows = s->p[1],
                        .columns = s->p[2],
                        .small = s->p[3],
                        .bytes = s->p[4],
                        .words = s->p[5],
                        .columns_end = s->p[2] + s->n[2],
                        .small_end = s->p[3] + s->n[3],
                        .bytes_end = s->p[4] + s->n[4],
                        .words_end = s->p[5] + s->n[5]};
    return decode(&in, to, BLOCKS) && in.columns == in.columns_end && in.small == in.small_end &&
           in.bytes == in.bytes_end && in.words == in.words_end;
}

/* Mostly small values, some that take a byte, a few that take two; or all as wide as possible. */
static void some_coefficients(int16_t *coef, bool wild)
{
    for (int i = 0; i < BLOCKS; i++) {
        const int last = below(3) ? below(64) : 0;
        for (int k = 0; k < JPEG_BLOCK; k++) {
            const int wide = below(40), size = wild ? 65536 : wide == 0 ? 4096 : wide < 8 ? 256 : 16;
            coef[i * JPEG_BLOCK + k] = (int16_t)(k <= last && below(3) ? below(size) - size / 2 : 0);
        }
    }
}

static void dct_images(void)
{
    static int16_t coef[BLOCKS * JPEG_BLOCK], back[BLOCKS * JPEG_BLOCK];
    uint8_t last[BLOCKS], c_last[BLOCKS];
    for (int round = 0; round < 300; round++) {
        some_coefficients(coef, round % 5 == 0);
        struct streams c = streams_of(dct_encode_c, coef);
        CHECK(decoded(dct_decode_c, &c, back, c_last) && memcmp(coef, back, sizeof coef) == 0);
        for (int s = 1; s < n_sets; s++) {
            struct jpeg_kernels k;
            jpeg_kernels_fill(&k, sets[s]);
            struct streams t = streams_of(k.dct_encode, coef);
            for (int i = 0; i < N_STREAMS; i++)
                CHECK(t.n[i] == c.n[i] && memcmp(t.p[i], c.p[i], c.n[i]) == 0);
            CHECK(decoded(k.dct_decode, &c, back, last) && memcmp(coef, back, sizeof coef) == 0);
            CHECK(memcmp(last, c_last, sizeof last) == 0);
            streams_done(&t);
        }
        streams_done(&c);
    }
}

/* Random streams: the same verdict, and the same blocks if the verdict is good. */
static void broken_dct_images(void)
{
    static int16_t coef[BLOCKS * JPEG_BLOCK], other[BLOCKS * JPEG_BLOCK];
    uint8_t last[BLOCKS], c_last[BLOCKS];
    for (int round = 0; round < 3000; round++) {
        struct streams s;
        for (int i = 0; i < N_STREAMS; i++) {
            s.n[i] = i < 2 ? (size_t)BLOCKS * 2 : (size_t)below(i < 3 ? 400 : 2000);
            s.p[i] = malloc(s.n[i] + DCT_SLACK);
            const int sparse = below(3);
            for (size_t k = 0; k < s.n[i] + DCT_SLACK; k++)
                s.p[i][k] = (uint8_t)(sparse == 0 ? rng_u32(&rng) : sparse == 1 ? 1u << below(8) : 0x33);
        }
        const bool good = decoded(dct_decode_c, &s, coef, c_last);
        for (int t = 1; t < n_sets; t++) {
            struct jpeg_kernels k;
            jpeg_kernels_fill(&k, sets[t]);
            CHECK_EQ(decoded(k.dct_decode, &s, other, last), good);
            CHECK(!good || (memcmp(coef, other, sizeof coef) == 0 && memcmp(last, c_last, sizeof last) == 0));
        }
        streams_done(&s);
    }
}

/* ------------------------------------------------------------------ --bench */

enum { ROUNDS = 2000 };

static double bench_idct(const struct jpeg_kernels *k, int last_index)
{
    enum { N = 60 };
    static int16_t coef[N * JPEG_BLOCK];
    static uint8_t last[N], out[8 * N * 8];
    uint16_t q[JPEG_BLOCK];
    some_quantisers(q, false);
    for (int i = 0; i < N; i++) {
        last[i] = (uint8_t)(last_index < 0 ? (int[]){0, 5, 20}[below(3)] : last_index);
        some_block(coef + i * JPEG_BLOCK, last[i], false);
    }
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t before = now_ns();
        k->idct(out, 8 * N, coef, last, N, q);
        const uint64_t t = now_ns() - before;
        best = t < best ? t : best;
    }
    return (double)best / N;
}

static double bench_row(const struct jpeg_kernels *k, enum jpeg_sampling s)
{
    enum { W = 500 };
    static uint8_t rgb[3 * W];
    struct row_memory m = some_row(s, W);
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t before = now_ns();
        k->row[s](rgb, &m.row, W);
        const uint64_t t = now_ns() - before;
        best = t < best ? t : best;
    }
    row_memory_done(&m);
    return (double)best / W;
}

static double bench_dct(const struct jpeg_kernels *k)
{
    static int16_t coef[BLOCKS * JPEG_BLOCK];
    uint8_t last[BLOCKS];
    some_coefficients(coef, false);
    struct streams s = streams_of(k->dct_encode, coef);
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t before = now_ns();
        decoded(k->dct_decode, &s, coef, last);
        const uint64_t t = now_ns() - before;
        best = t < best ? t : best;
    }
    streams_done(&s);
    return (double)best / BLOCKS;
}

static int bench(void)
{
    printf("nanoseconds per block: one level, corner, full, mixed, DCT decoding; per pixel: by sampling\n");
    for (int s = 0; s < n_sets; s++) {
        struct jpeg_kernels k;
        jpeg_kernels_fill(&k, sets[s]);
        printf("  %-7s idct %6.1f %6.1f %6.1f %6.1f  dct %5.1f  ", cpu_name(sets[s]), bench_idct(&k, 0),
               bench_idct(&k, 9), bench_idct(&k, 63), bench_idct(&k, -1), bench_dct(&k));
        for (int t = 0; t < JPEG_SAMPLINGS; t++)
            printf(" %s %.3f", sampling_names[t], bench_row(&k, (enum jpeg_sampling)t));
        printf("\n");
    }
    return 0;
}

int main(int argc, char **argv)
{
    twins_begin("test_kernel_jpeg");
    if (argc > 1 && strcmp(argv[1], "--bench") == 0)
        return bench();
    twins_say();
    TESTS(T(idct), T(rows), T(all_colours), T(dct_images), T(broken_dct_images))
}
