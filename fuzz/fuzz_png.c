/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_png.c -- the fast path of PNG against libpng: verdict, messages, warnings and pixels must be the same.
 *
 * Input with the signature of PNG is a file; its checksums are corrected, so that the content is parsed. Any other
 * input says which kind of image to make, followed by its compressed stream. The stream's checksum is appended.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/crc32.h"
#include "base/hash.h"
#include "decode/decode.h"
#include "decode/inflate.h"
#include "decode/png_fast.h"
#include "fuzz.h"

enum { MAX_PIXELS = 1 << 18, MAX_INPUT = 1 << 15, MAX_BYTES = 1 << 18, CROPS = 4, MADE_HEAD = 5 };

#ifdef HAVE_PNG

/* ------------------------------------------------------------------ files */

static void put_be32(uint8_t *p, size_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Right sums for all chunks that are whole. */
static void repair(struct buf *b)
{
    for (size_t at = 8; at + 12 <= b->len;) {
        const size_t n = be32(b->data + at);
        if (n > b->len - at - 12)
            return;
        put_be32(b->data + at + 8 + n, crc32_choose(STK_CPU_DEFAULT)->of(b->data + at + 4, n + 4));
        at += n + 12;
    }
}

static void add_chunk(struct buf *b, const char *name, const uint8_t *p, size_t n)
{
    uint8_t head[8], sum[4];
    put_be32(head, n);
    memcpy(head + 4, name, 4);
    buf_add(b, head, 8);
    buf_add(b, p, n);
    put_be32(sum, crc32_choose(STK_CPU_DEFAULT)->of(b->data + b->len - n - 4, n + 4));
    buf_add(b, sum, 4);
}

struct pieces {
    const uint8_t *p;
    size_t n;
};

static bool all_at_once(void *user, const uint8_t **p, size_t *n)
{
    struct pieces *s = user;
    *p = s->p;
    *n = s->n;
    s->n = 0;
    return *n > 0;
}

/* The sum of what is in a stream, in place of the four bytes at its end. */
static void add_sum(uint8_t *p, size_t n)
{
    static struct inflate z;
    static uint8_t out[MAX_BYTES + INFLATE_SLACK];
    struct png_kernels k;
    struct pieces s = {p, n - 4};
    size_t at = 0;
    png_kernels_fill(&k, STK_CPU_C);
    inflate_begin(&z, all_at_once, &s);
    if (inflate_run(&z, out, &at, MAX_BYTES) == INFLATE_END)
        put_be32(p + n - 4, k.adler(1, out, at));
}

/* Of the first five bytes: width, height, kind, how it is divided into chunks. */
static void make(struct buf *b, const uint8_t *p, size_t n)
{
    static const uint8_t kinds[][2] = {{0, 8}, {2, 8}, {3, 8},  {4, 8},  {6, 8},
                                       {0, 1}, {3, 4}, {0, 16}, {2, 16}, {6, 16}};
    uint8_t ihdr[13] = {0};
    ihdr[3] = (uint8_t)(p[0] % 64 + 1);
    ihdr[7] = (uint8_t)(p[1] % 64 + 1);
    memcpy(ihdr + 8, &kinds[p[2] % 10][1], 1);
    memcpy(ihdr + 9, &kinds[p[2] % 10][0], 1);
    buf_add(b, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(b, "IHDR", ihdr, 13);
    struct buf stream = {0};
    buf_add(&stream, "\x78\x01", 2);
    buf_add(&stream, p + MADE_HEAD, n - MADE_HEAD);
    buf_add(&stream, "\0\0\0\0", 4);
    add_sum(stream.data, stream.len);
    for (size_t at = 0, step = (size_t)p[3] << (p[4] % 8); at < stream.len;) {
        const size_t left = stream.len - at, k = step && step < left ? step : left;
        add_chunk(b, "IDAT", stream.data + at, k);
        at += k;
    }
    add_chunk(b, "IEND", ihdr, 0);
    buf_done(&stream);
}

/* ------------------------------------------------------------------ both paths */

struct result {
    int rc, warnings;
    struct image image;
    stk_error e;
    struct arena arena;
};

static void decode(struct png_fast *f, const struct image_job *job, bool slow, struct result *r)
{
    struct image_job j = *job;
    const struct want w = {.crop = job->crop, .whole = job->whole};
    j.arena = &r->arena;
    r->warnings = 0;
    memset(&r->e, 0, sizeof r->e);
    require(arena_reserve(j.arena, decode_scratch(job->head, &w)) == 0);
    r->rc = slow ? png_slow_pixels(f, &j, &r->image, &r->warnings, &r->e)
                 : codec_png.pixels(f, &j, &r->image, &r->warnings, &r->e);
}

static void compare(const struct result *x, const struct result *y)
{
    require(x->rc == y->rc && x->warnings == y->warnings && strcmp(x->e.reason, y->e.reason) == 0);
    const struct image *p = &x->image, *q = &y->image;
    for (size_t i = 0; x->rc == STK_OK && i < (size_t)p->h; i++)
        require(memcmp(p->px + i * p->stride, q->px + i * q->stride, (size_t)p->w * 3) == 0);
}

/* Kept from input to input: in plain C, and with the best kernels of this machine. */
static struct png_fast *fast[2];
static struct result a, b;

static void open_both(void)
{
    stk_cpu best;
    require(cpu_choose(STK_CPU_DEFAULT, &best, NULL) == STK_OK);
    fast[0] = codec_png.open(STK_CPU_C);
    fast[1] = codec_png.open(best);
    require(fast[0] && fast[1]);
}

static void both(const uint8_t *data, size_t size)
{
    const struct decode_limits limits = {.max_pixels = MAX_PIXELS, .no_exif = true};
    struct head h;
    stk_error e;
    if (decode_head(data, size, &limits, &h, &e) != STK_OK || h.format != STK_PNG)
        return;
    if (!fast[0])
        open_both();
    for (uint64_t i = 0; i < CROPS; i++) {
        const struct rect all = {0, 0, h.w, h.h};
        const struct image_job job = {.bytes = data,
                                      .n = size,
                                      .head = &h,
                                      .crop = i < 2 ? all : some_crop(h.w, h.h, hash_bytes(data, size, i)),
                                      .whole = i == 1};
        decode(fast[0], &job, true, &a);
        for (int k = 0; k < 2; k++) {
            decode(fast[k], &job, false, &b);
            compare(&a, &b);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf file = {0};
    if (size > MAX_INPUT || size < 9)
        return 0;
    both(data, size);
    if (png_signature(data, size)) {
        require(buf_add(&file, data, size) == 0);
        repair(&file);
    } else {
        make(&file, data, size);
    }
    both(file.data, file.len);
    buf_done(&file);
    return 0;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)data;
    (void)size;
    require(1);
    return 0;
}

#endif
