/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_filter.c -- undoes the filters of a chunk.
 *
 * Filters are undone from the last to the first. Each writes to one of two buffers in turn, the last one to the
 * destination. A checksum is removed in place.
 */
#include "format/hdf5_filter.h"

#include <string.h>

#include "base/bytes.h"
#include "base/size.h"
#include "format/hdf5_codec.h"
#include "format/hdf5_view.h"

enum { HEAD_MOST = 32 }; /* bytes that a filter may add to a chunk that it cannot compress */

void hdf5_scratch_done(struct hdf5_scratch *w)
{
    buf_done(&w->in);
    buf_done(&w->turn[0]);
    buf_done(&w->turn[1]);
    buf_done(&w->whole);
    buf_done(&w->block);
    buf_done(&w->row);
    gunzip_free(w->gunzip);
    w->gunzip = NULL;
}

size_t hdf5_scratch_bytes(const struct hdf5_scratch *w)
{
    return w->in.cap + w->turn[0].cap + w->turn[1].cap + w->whole.cap + w->block.cap + w->row.cap;
}

/* ------------------------------------------------------------------ which filters there are */

const char HDF5_FILTER_UNKNOWN[] = "is compressed with a filter that Stoker does not read";

/* Filters whose decoders need parameters. */
static const struct codec {
    int id;
    bool (*known)(const uint32_t *values, size_t n);
    hdf5_codec *decode;
    const char *damaged;
} codecs[] = {
    {HDF5_SZIP, hdf5_szip_known, hdf5_szip, "its szip stream is damaged, or longer than the chunk"},
    {HDF5_NBIT, hdf5_nbit_known, hdf5_nbit, "its nbit data is damaged, or longer than the chunk"},
    {HDF5_SCALE_OFFSET, hdf5_scale_offset_known, hdf5_scale_offset,
     "its scaleoffset data is damaged, or longer than the chunk"},
};

static const struct codec *codec_of(int id)
{
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (codecs[i].id == id)
            return &codecs[i];
    return NULL;
}

const char *hdf5_filter_name(int id)
{
    static const char *const names[] = {NULL, "gzip", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"};
    return id >= 0 && id < (int)(sizeof names / sizeof names[0]) ? names[id] : id == HDF5_LZF ? "lzf" : NULL;
}

void hdf5_filters_done(struct hdf5_filters *f)
{
    buf_done(&f->values);
    f->n = 0;
}

static const uint32_t *values_of(const struct hdf5_filters *f, int i)
{
    return (const uint32_t *)(const void *)f->values.data + f->of[i].first;
}

static const char *keep_values(struct hdf5_filters *f, int i, const uint8_t *values, size_t n)
{
    f->of[i].first = f->values.len / sizeof(uint32_t);
    f->of[i].count = n;
    for (size_t k = 0; k < n; k++) {
        const uint32_t x = le32(values + 4 * k);
        if (buf_add(&f->values, &x, sizeof x))
            return HDF5_NO_MEMORY;
    }
    return NULL;
}

const char *hdf5_filters_add(struct hdf5_filters *f, int id, const uint8_t *values, size_t n)
{
    const struct codec *codec = codec_of(id);
    if (f->n == HDF5_FILTERS || n > HDF5_VALUES_MOST)
        return "is compressed with more filters than Stoker reads (8)";
    const int i = f->n++;
    f->of[i].id = id;
    f->of[i].item = n > 0 ? le32(values) : 0;
    if (codec && n > 0) {
        const char *why = keep_values(f, i, values, n);
        return why || codec->known(values_of(f, i), n) ? why : HDF5_FILTER_UNKNOWN;
    }
    const bool known =
        id == HDF5_SHUFFLE || id == HDF5_FLETCHER32 || id == HDF5_LZF || (id == HDF5_DEFLATE && gunzip_here());
    return known ? NULL : HDF5_FILTER_UNKNOWN;
}

/* ------------------------------------------------------------------ the filters */

/* A control byte below 32 is followed by that many literal bytes plus one. Any other is a length and a distance back.
 */
int64_t hdf5_lzf(const uint8_t *in, size_t n, uint8_t *out, size_t room)
{
    const uint8_t *const end = in + n;
    size_t at = 0;
    while (in < end) {
        const unsigned control = *in++;
        if (control < 32) {
            const size_t run = control + 1;
            if ((size_t)(end - in) < run || room - at < run)
                return -1;
            memcpy(out + at, in, run);
            in += run;
            at += run;
            continue;
        }
        size_t run = control >> 5;
        if (end - in < 1 + (run == 7))
            return -1;
        if (run == 7)
            run += *in++;
        run += 2;
        const size_t back = ((size_t)(control & 31) << 8) + *in++ + 1;
        if (back > at || room - at < run)
            return -1;
        for (size_t i = 0; i < run; i++, at++) /* source and destination may overlap */
            out[at] = out[at - back];
    }
    return (int64_t)at;
}

static void unshuffle_2(const uint8_t *restrict in, size_t n, uint8_t *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = in[i];
        out[2 * i + 1] = in[n + i];
    }
}

static void unshuffle_4(const uint8_t *restrict in, size_t n, uint8_t *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[4 * i] = in[i];
        out[4 * i + 1] = in[n + i];
        out[4 * i + 2] = in[2 * n + i];
        out[4 * i + 3] = in[3 * n + i];
    }
}

/* In blocks that fit into the L1 cache. */
static void unshuffle_any(const uint8_t *restrict in, size_t n, size_t item, uint8_t *restrict out)
{
    enum { BLOCK = 256 };
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t end = n - first < BLOCK ? n : first + BLOCK;
        for (size_t b = 0; b < item; b++)
            for (size_t i = first; i < end; i++)
                out[item * i + b] = in[b * n + i];
    }
}

void hdf5_unshuffle(const uint8_t *in, size_t n, size_t item, uint8_t *out)
{
    const size_t items = item > 1 ? n / item : 0, done = items * item;
    if (item == 2)
        unshuffle_2(in, items, out);
    else if (item == 4)
        unshuffle_4(in, items, out);
    else if (items > 0)
        unshuffle_any(in, items, item, out);
    memcpy(out + done, in + done, n - done); /* an incomplete last element is not shuffled */
}

/* Two sums of big-endian 16-bit words, reduced often enough not to overflow. */
uint32_t hdf5_fletcher32(const uint8_t *p, size_t n)
{
    uint32_t a = 0, b = 0;
    size_t words = n / 2;
    while (words > 0) {
        size_t run = words < 360 ? words : 360;
        for (words -= run; run > 0; run--, p += 2) {
            a += be16(p);
            b += a;
        }
        a = (a & 0xffff) + (a >> 16);
        b = (b & 0xffff) + (b >> 16);
    }
    if (n % 2) {
        a += (uint32_t)*p << 8;
        b += a;
        a = (a & 0xffff) + (a >> 16);
        b = (b & 0xffff) + (b >> 16);
    }
    a = (a & 0xffff) + (a >> 16);
    b = (b & 0xffff) + (b >> 16);
    return b << 16 | a;
}

/* Libraries before 1.6.3 swapped the bytes of both halves. */
static bool fletcher_right(const uint8_t *p, size_t n)
{
    const uint32_t is = hdf5_fletcher32(p, n), said = le32(p + n);
    return is == said || ((is & 0x00ff00ff) << 8 | (is >> 8 & 0x00ff00ff)) == said;
}

/* ------------------------------------------------------------------ the pipeline */

struct run {
    struct hdf5_scratch *w;
    const uint8_t *p; /* the current bytes */
    size_t n;
    uint8_t *to;
    size_t bytes;
    int turn;
};

static const char *inflate_to(struct run *r, uint8_t *out, size_t room)
{
    if (!r->w->gunzip)
        r->w->gunzip = gunzip_new(GUNZIP_ZLIB);
    if (!r->w->gunzip)
        return HDF5_NO_MEMORY;
    const int64_t made = gunzip_whole(r->w->gunzip, r->p, r->n, out, room);
    if (made < 0)
        return "its gzip stream is damaged, or longer than the chunk";
    r->n = (size_t)made;
    return NULL;
}

static const char *unlzf_to(struct run *r, uint8_t *out, size_t room)
{
    const int64_t made = hdf5_lzf(r->p, r->n, out, room);
    if (made < 0)
        return "its lzf stream is damaged, or longer than the chunk";
    r->n = (size_t)made;
    return NULL;
}

static const char *decode_to(struct run *r, const struct hdf5_filters *f, int i, uint8_t *out, size_t room)
{
    const struct codec *codec = codec_of(f->of[i].id);
    const int64_t made = codec->decode(values_of(f, i), f->of[i].count, r->p, r->n, out, room);
    if (made < 0)
        return codec->damaged;
    r->n = (size_t)made;
    return NULL;
}

static const char *unshuffle_to(struct run *r, size_t item, uint8_t *out, size_t room)
{
    if (r->n > room)
        return "its decompressed bytes are longer than the chunk";
    hdf5_unshuffle(r->p, r->n, item, out);
    return NULL;
}

static const char *check_sum(struct run *r)
{
    if (r->n < 4 || !fletcher_right(r->p, r->n - 4))
        return "its checksum (fletcher32) is wrong";
    r->n -= 4;
    return NULL;
}

/* Undoes filter i; `last`: it is the last one to undo. */
static const char *undo(struct run *r, const struct hdf5_filters *f, int i, bool last)
{
    if (f->of[i].id == HDF5_FLETCHER32)
        return check_sum(r);
    uint8_t *out = r->to;
    size_t room = r->bytes;
    if (!last) {
        struct buf *b = &r->w->turn[r->turn ^= 1];
        room = size_add(r->bytes, HEAD_MOST * HDF5_FILTERS); /* it may still contain checksums and headers */
        if (buf_reserve(b, room))
            return HDF5_NO_MEMORY;
        out = b->data;
    }
    const char *why = f->of[i].id == HDF5_DEFLATE   ? inflate_to(r, out, room)
                      : f->of[i].id == HDF5_LZF     ? unlzf_to(r, out, room)
                      : f->of[i].id == HDF5_SHUFFLE ? unshuffle_to(r, f->of[i].item, out, room)
                                                    : decode_to(r, f, i, out, room);
    r->p = out;
    return why;
}

const char *hdf5_unfilter(const struct hdf5_filters *f, uint32_t mask, struct hdf5_scratch *w, size_t n, uint8_t *to,
                          size_t bytes)
{
    struct run r = {.w = w, .p = w->in.data, .n = n, .to = to, .bytes = bytes};
    int first = 0;
    while (first < f->n && mask >> first & 1)
        first++;
    for (int i = f->n - 1; i >= first; i--) {
        const char *why = mask >> i & 1 ? NULL : undo(&r, f, i, i == first);
        if (why)
            return why;
    }
    if (r.n != bytes)
        return "its size differs from the size of a chunk";
    if (r.p != to)
        memcpy(to, r.p, bytes);
    return NULL;
}
