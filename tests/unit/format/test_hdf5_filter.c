/* SPDX-License-Identifier: Apache-2.0 */
/* test_hdf5_filter.c -- undoes HDF5's filters: single ones, pipelines, damaged and truncated chunks. */
#include "format/hdf5_filter.h"

#include "format/hdf5_codec.h"
#include "format/hdf5_view.h"
#include "test.h"

static void lzf(void)
{
    /* "abc", then 9 bytes from 3 back, then 264 from 1 back: 7 + 255 + 2. */
    const uint8_t in[] = {2, 'a', 'b', 'c', 7 << 5, 0, 2, 7 << 5, 255, 0};
    uint8_t out[3 + 9 + 264];
    CHECK_EQ(hdf5_lzf(in, sizeof in, out, sizeof out), sizeof out);
    CHECK(memcmp(out, "abcabcabcabc", 12) == 0);
    CHECK(out[sizeof out - 1] == 'c' && out[12] == 'c');
    CHECK_EQ(hdf5_lzf(in, 0, out, sizeof out), 0);
    CHECK_EQ(hdf5_lzf(in, sizeof in, out, sizeof out - 1), -1);
    CHECK_EQ(hdf5_lzf(in, sizeof in - 1, out, sizeof out), -1);
    CHECK_EQ(hdf5_lzf(in, 2, out, sizeof out), -1);
    const uint8_t before[] = {0, 'a', 1 << 5, 1};
    CHECK_EQ(hdf5_lzf(before, sizeof before, out, sizeof out), -1); /* back to before the beginning */
}

static void unshuffle(void)
{
    enum { MOST = 1000 };
    uint8_t in[MOST], out[MOST + 8];
    for (size_t i = 0; i < MOST; i++)
        in[i] = (uint8_t)(i * 37 + i / 256);
    for (size_t item = 1; item < 18; item++)
        for (size_t n = 0; n < MOST; n += 1 + n / 8) {
            memset(out, 0xee, sizeof out);
            hdf5_unshuffle(in, n, item, out);
            bool same = true;
            const size_t items = n / item;
            for (size_t i = 0; i < items * item; i++)
                same &= out[i] == in[i % item * items + i / item];
            for (size_t i = items * item; i < n; i++)
                same &= out[i] == in[i];
            CHECK(same && out[n] == 0xee);
        }
}

/* A pipeline run on bytes. */
static const char *run(const struct hdf5_filters *f, uint32_t mask, const uint8_t *in, size_t n, uint8_t *to,
                       size_t bytes)
{
    struct hdf5_scratch w = {0};
    if (buf_reserve(&w.in, n + 1))
        return HDF5_NO_MEMORY;
    memcpy(w.in.data, in, n);
    const char *why = hdf5_unfilter(f, mask, &w, n, to, bytes);
    hdf5_scratch_done(&w);
    return why;
}

static void checksum(void)
{
    const struct hdf5_filters f = {.n = 1, .of = {{.id = HDF5_FLETCHER32}}};
    uint8_t in[7 + 4] = "abcdefg", out[11];
    CHECK_EQ(hdf5_fletcher32((const uint8_t *)"", 0), 0);
    CHECK_EQ(hdf5_fletcher32((const uint8_t *)"\1\2", 2), 0x01020102);
    const uint32_t sum = hdf5_fletcher32(in, 7);
    for (int i = 0; i < 4; i++)
        in[7 + i] = (uint8_t)(sum >> 8 * i);
    CHECK(run(&f, 0, in, 11, out, 7) == NULL);
    CHECK(memcmp(out, "abcdefg", 7) == 0);
    CHECK(run(&f, 1, in, 11, out, 11) == NULL); /* left out: the bytes are the chunk */
    const uint8_t old[4] = {in[8], in[7], in[10], in[9]};
    memcpy(in + 7, old, 4);
    CHECK(run(&f, 0, in, 11, out, 7) == NULL);
    in[3] ^= 1;
    CHECK(run(&f, 0, in, 11, out, 7) != NULL);
    CHECK(run(&f, 0, in, 3, out, 7) != NULL);
}

/* 24 bytes as lzf: 8 x 'A', 8 x 'B', 8 x 'C', which are 8 elements of 3 bytes when unshuffled. */
static const uint8_t compressed[] = {0, 'A', 5 << 5, 0, 0, 'B', 5 << 5, 0, 0, 'C', 5 << 5, 0};

static void pipelines(void)
{
    const struct hdf5_filters f = {.n = 3,
                                   .of = {{.id = HDF5_SHUFFLE, .item = 3}, {.id = HDF5_LZF}, {.id = HDF5_FLETCHER32}}};
    uint8_t in[sizeof compressed + 4], out[24];
    memcpy(in, compressed, sizeof compressed);
    const uint32_t sum = hdf5_fletcher32(in, sizeof compressed);
    for (int i = 0; i < 4; i++)
        in[sizeof compressed + (size_t)i] = (uint8_t)(sum >> 8 * i);
    CHECK(run(&f, 0, in, sizeof in, out, 24) == NULL);
    CHECK(memcmp(out, "ABCABCABCABCABCABCABCABC", 24) == 0);
    CHECK(run(&f, 1, in, sizeof in, out, 24) == NULL);
    CHECK(memcmp(out, "AAAAAAAABBBBBBBBCCCCCCCC", 24) == 0);
    CHECK(run(&f, 4, compressed, sizeof compressed, out, 24) == NULL);
    CHECK(memcmp(out, "ABCABC", 6) == 0);
    CHECK(run(&f, 6, (const uint8_t *)"AABBCC", 6, out, 6) == NULL);
    CHECK(memcmp(out, "ABCABC", 6) == 0);
    CHECK(run(&f, 0, in, sizeof in, out, 23) != NULL);
    CHECK(run(&f, 7, in, sizeof in, out, 24) != NULL);
    for (size_t n = 0; n < sizeof compressed; n++)
        CHECK(run(&f, 4, compressed, n, out, 24) != NULL);
}

static void gzip(void)
{
    static const uint8_t stream[] = {0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8,
                                     0x40, 0x27, 0xb9, 0x00, 0x70, 0xbe, 0x08, 0xbb};
    const struct hdf5_filters f = {.n = 1, .of = {{.id = HDF5_DEFLATE}}};
    uint8_t out[24];
    if (!gunzip_here())
        SKIP("there is no zlib in this build");
    CHECK(run(&f, 0, stream, sizeof stream, out, 24) == NULL);
    CHECK(memcmp(out, "hello hello hello hello\n", 24) == 0);
    CHECK(run(&f, 0, stream, sizeof stream, out, 23) != NULL);
    for (size_t n = 0; n < sizeof stream; n++)
        CHECK(run(&f, 0, stream, n, out, 24) != NULL);
}

/* ------------------------------------------------------------------ filters with parameters */

/* Chunks as libhdf5 wrote them. */
static const uint32_t szip_values[] = {169, 8, 16, 64};
static const uint8_t szip_in[] = {128, 0,  0,   0,   16,  0, 89,  16, 60,  0, 246, 2,  3,   224, 4,
                                  28,  39, 254, 255, 174, 4, 144, 0,  128, 4, 0,   37, 239, 247};
static const int16_t szip_out[64] = {5, 5, 6, 4, 7, 7,   7,  7,  7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
                                     7, 7, 7, 7, 7, 7,   7,  7,  7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
                                     7, 7, 7, 7, 9, 900, -5, 40, 3, 2, 1, 0, 1, 0, 1, 0, 2, 1, 0, 1};
static const uint32_t scale_values[20] = {2, 0, 6, 0, 2, 1, 1, 1, 7};
static const uint8_t scale_in[] = {4, 0, 0, 0, 8, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 241, 48, 0};
static const uint8_t scale_out[] = {0, 100, 0, 107, 0, 7, 0, 101, 0, 103, 0, 100};
static const uint32_t real_values[20] = {0, 2, 3, 1, 4, 0, 0, 1};
static const uint8_t real_in[] = {10, 0, 0, 0, 8, 102, 102, 70, 192, 0,   0, 0, 0,
                                  0,  0, 0, 0, 0, 0,   0,   0,  108, 227, 0, 0};
static const float real_out[] = {1.25F, 2.5F, -3.1F};
static const uint32_t nbit_values[] = {8, 0, 4, 1, 2, 1, 5, 3};
static const uint8_t nbit_in[] = {15, 159, 0};
static const uint8_t nbit_out[] = {0, 1 << 3, 0, 30 << 3, 0, 15 << 3, 0, 16 << 3};
/* A structure of 8 bytes: at 1 a number of 3 bits, at 2 an array of two arrays of 2 bytes, at 6 two bytes as they are.
 */
static const uint32_t structure[] = {26, 0, 2, 3, 8, 3, 1, 1, 1, 0, 3, 1, 2, 2, 4, 2, 2, 1, 1, 0, 8, 0, 6, 4, 2, 0};

static const struct coded {
    int id;
    const uint32_t *values;
    size_t n_values;
    const uint8_t *in;
    size_t n;
    const void *out;
    size_t bytes;
} coded[] = {
    {HDF5_SZIP, szip_values, 4, szip_in, sizeof szip_in, szip_out, sizeof szip_out},
    {HDF5_SCALE_OFFSET, scale_values, 20, scale_in, sizeof scale_in, scale_out, sizeof scale_out},
    {HDF5_SCALE_OFFSET, real_values, 20, real_in, sizeof real_in, real_out, sizeof real_out},
    {HDF5_NBIT, nbit_values, 8, nbit_in, sizeof nbit_in, nbit_out, sizeof nbit_out},
};
enum { CODED = sizeof coded / sizeof coded[0], ROOM = 256 };

/* A pipeline of one filter with these parameters; NULL: it is not read. */
static bool one_filter(struct hdf5_filters *f, int id, const uint32_t *values, size_t n)
{
    uint8_t stored[4 * 64];
    for (size_t i = 0; i < 4 * n; i++)
        stored[i] = (uint8_t)(values[i / 4] >> 8 * (i % 4));
    return hdf5_filters_add(f, id, stored, n) == NULL;
}

/* Uses memory of exactly that size, so that the sanitizer reports writes past `bytes`. */
static const char *decode(const struct coded *c, const uint32_t *values, const uint8_t *in, size_t n, uint8_t *out)
{
    struct hdf5_filters f = {0};
    const char *why = HDF5_FILTER_UNKNOWN;
    memset(out, 0xee, ROOM);
    if (one_filter(&f, c->id, values, c->n_values))
        why = run(&f, 0, in, n, out, c->bytes);
    for (size_t i = c->bytes; i < ROOM; i++)
        CHECK(out[i] == 0xee);
    hdf5_filters_done(&f);
    return why;
}

static void coded_chunks(void)
{
    uint8_t out[ROOM];
    for (int i = 0; i < CODED; i++) {
        const struct coded *c = &coded[i];
        CHECK(decode(c, c->values, c->in, c->n, out) == NULL);
        CHECK(memcmp(out, c->out, c->bytes) == 0);
        CHECK(decode(c, c->values, c->in, c->n / 2, out) != NULL);
        for (size_t n = 0; n < c->n; n++)
            decode(c, c->values, c->in, n, out);
    }
}

static void coded_chunks_damaged(void)
{
    uint8_t out[ROOM], in[64];
    for (int i = 0; i < CODED; i++)
        for (size_t bit = 0; bit < 8 * coded[i].n; bit++) {
            memcpy(in, coded[i].in, coded[i].n);
            in[bit / 8] ^= (uint8_t)(1u << bit % 8);
            decode(&coded[i], coded[i].values, in, coded[i].n, out);
        }
}

static void parameters_damaged(void)
{
    static const uint32_t odd[] = {0, 1, 3, 9, 31, 64, 255, 4097, 0x80000000, UINT32_MAX};
    uint8_t out[ROOM];
    uint32_t values[32];
    for (int i = 0; i < CODED; i++)
        for (size_t k = 0; k < coded[i].n_values; k++)
            for (size_t x = 0; x < sizeof odd / sizeof odd[0]; x++) {
                memcpy(values, coded[i].values, coded[i].n_values * sizeof values[0]);
                values[k] = odd[x];
                decode(&coded[i], values, coded[i].in, coded[i].n, out);
            }
    for (int id = 0; id < 10; id++)
        for (size_t n = 0; n < 20; n++) {
            struct hdf5_filters f = {0};
            one_filter(&f, id, scale_values, n);
            hdf5_filters_done(&f);
        }
}

static void nbit_of_structures(void)
{
    struct hdf5_filters f = {0};
    uint8_t out[16];
    /* 101 | 1 2 3 4 | 9 8, twice: 51 bits each. */
    const uint8_t in[] = {0xa0, 0x20, 0x40, 0x60, 0x81, 0x21, 0x14, 0x04, 0x08, 0x0c, 0x10, 0x24, 0x20};
    const uint8_t want[] = {0, 5 << 1, 1, 2, 3, 4, 9, 8, 0, 5 << 1, 1, 2, 3, 4, 9, 8};
    CHECK(one_filter(&f, HDF5_NBIT, structure, 26));
    CHECK(run(&f, 0, in, sizeof in, out, sizeof out) == NULL);
    CHECK(memcmp(out, want, sizeof out) == 0);
    hdf5_filters_done(&f);
    uint32_t values[26];
    for (size_t k = 0; k < 26; k++) {
        memcpy(values, structure, sizeof values);
        values[k] += 7;
        if (one_filter(&f, HDF5_NBIT, values, 26))
            run(&f, 0, in, sizeof in, out, sizeof out);
        hdf5_filters_done(&f);
    }
}

int main(int argc, char **argv)
{
    TESTS(T(lzf), T(unshuffle), T(checksum), T(pipelines), T(gzip), T(coded_chunks), T(coded_chunks_damaged),
          T(parameters_damaged), T(nbit_of_structures))
}
