/* SPDX-License-Identifier: Apache-2.0 */
/* test_hdf5_filter.c -- HDF5's filters undone: each by itself, in pipelines, damaged and cut. */
#include "source/hdf5_filter.h"

#include "source/hdf5_view.h"
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
    const struct hdf5_filters f = {1, {{HDF5_FLETCHER32, 0}}};
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
static const uint8_t packed[] = {0, 'A', 5 << 5, 0, 0, 'B', 5 << 5, 0, 0, 'C', 5 << 5, 0};

static void pipelines(void)
{
    const struct hdf5_filters f = {3, {{HDF5_SHUFFLE, 3}, {HDF5_LZF, 0}, {HDF5_FLETCHER32, 0}}};
    uint8_t in[sizeof packed + 4], out[24];
    memcpy(in, packed, sizeof packed);
    const uint32_t sum = hdf5_fletcher32(in, sizeof packed);
    for (int i = 0; i < 4; i++)
        in[sizeof packed + (size_t)i] = (uint8_t)(sum >> 8 * i);
    CHECK(run(&f, 0, in, sizeof in, out, 24) == NULL);
    CHECK(memcmp(out, "ABCABCABCABCABCABCABCABC", 24) == 0);
    CHECK(run(&f, 1, in, sizeof in, out, 24) == NULL);
    CHECK(memcmp(out, "AAAAAAAABBBBBBBBCCCCCCCC", 24) == 0);
    CHECK(run(&f, 4, packed, sizeof packed, out, 24) == NULL);
    CHECK(memcmp(out, "ABCABC", 6) == 0);
    CHECK(run(&f, 6, (const uint8_t *)"AABBCC", 6, out, 6) == NULL);
    CHECK(memcmp(out, "ABCABC", 6) == 0);
    CHECK(run(&f, 0, in, sizeof in, out, 23) != NULL);
    CHECK(run(&f, 7, in, sizeof in, out, 24) != NULL);
    for (size_t n = 0; n < sizeof packed; n++)
        CHECK(run(&f, 4, packed, n, out, 24) != NULL);
}

static void gzip(void)
{
    static const uint8_t stream[] = {0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8,
                                     0x40, 0x27, 0xb9, 0x00, 0x70, 0xbe, 0x08, 0xbb};
    const struct hdf5_filters f = {1, {{HDF5_DEFLATE, 0}}};
    uint8_t out[24];
    CHECK(hdf5_filter_here(HDF5_LZF) && !hdf5_filter_here(4) && !hdf5_filter_here(32001));
    if (!hdf5_filter_here(HDF5_DEFLATE))
        SKIP("there is no zlib in this build");
    CHECK(run(&f, 0, stream, sizeof stream, out, 24) == NULL);
    CHECK(memcmp(out, "hello hello hello hello\n", 24) == 0);
    CHECK(run(&f, 0, stream, sizeof stream, out, 23) != NULL);
    for (size_t n = 0; n < sizeof stream; n++)
        CHECK(run(&f, 0, stream, n, out, 24) != NULL);
}

int main(int argc, char **argv)
{
    TESTS(T(lzf), T(unshuffle), T(checksum), T(pipelines), T(gzip))
}
