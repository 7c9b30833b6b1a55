/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_points.c -- checkpoints as numbers and as bytes.
 *
 * The bytes, little-endian: a head of fixed size, then for every point its distance in bits from the one before and the
 * changes of the predictors, seven bits to a byte, and a checksum of all. About 2 % of a photo.
 *
 *     0 "SJP1"   4 MCUs of a group (u16)   6 sampling (u8)   7 MCU rows in one go (u8)
 *     8 bytes of the file (u64)    16 hash of its bytes up to the scan (u64)    24 where the scan begins (u32)
 *    28 width (u16)   30 height (u16)   32 number of points (u32)   36 bytes that follow, without the checksum (u32)
 */
#include "decode/jpeg_points.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

enum {
    HEAD = 40,
    CHECKSUM = 8,
    POINT_MOST = 10 + 3 * JPEG_COMPONENTS, /* bytes of a point, at most */
    BEHIND = 32                            /* bytes that a decoder may look at behind those that it needs */
};

static const char magic[4] = "SJP1";

/* ------------------------------------------------------------------ numbers */

void jpeg_points_reset(struct jpeg_points *p, const struct jpeg_frame *f)
{
    p->n = 0;
    p->every = POINTS_EVERY;
    do {
        p->across = (f->mcus_x + p->every - 1) / p->every;
        if ((int64_t)p->across * f->mcus_y < POINTS_MAX)
            return;
        p->every *= 2;
    } while (p->across > 1);
}

void jpeg_points_done(struct jpeg_points *p)
{
    free(p->at);
    *p = (struct jpeg_points){0};
}

static int reserve(struct jpeg_points *p, int32_t n)
{
    if (n <= p->cap)
        return 0;
    const int32_t cap = n < 512 ? 512 : 2 * n;
    struct jpeg_point *at = realloc(p->at, (size_t)cap * sizeof *at);
    if (!at)
        return -1;
    p->at = at;
    p->cap = cap;
    return 0;
}

int jpeg_points_add(struct jpeg_points *p, uint64_t bit, const int16_t *dc)
{
    if (reserve(p, p->n + 1))
        return -1;
    struct jpeg_point *to = &p->at[p->n++];
    to->bit = bit;
    memcpy(to->dc, dc, sizeof to->dc);
    return 0;
}

/* ------------------------------------------------------------------ writing */

static void put_le(uint8_t *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

/* Seven bits at a time, the lowest first; the highest bit says that more follow. */
static uint8_t *put_number(uint8_t *to, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        *to++ = (uint8_t)(v | 128);
    *to++ = (uint8_t)v;
    return to;
}

/* Numbers near 0 of either sign become small ones. */
static uint16_t fold(int16_t v)
{
    return (uint16_t)((uint16_t)((uint16_t)v << 1) ^ (v < 0 ? 0xffff : 0));
}
static int16_t unfold(uint16_t v)
{
    return (int16_t)(uint16_t)(v >> 1 ^ (v & 1 ? 0xffff : 0));
}

static uint8_t *put_points(uint8_t *to, const struct jpeg_points *p, const struct jpeg_frame *f)
{
    struct jpeg_point last = {0};
    for (int32_t i = 0; i < p->n; i++) {
        const struct jpeg_point *at = &p->at[i];
        to = put_number(to, at->bit - last.bit);
        for (int c = 0; c < f->n_components; c++)
            to = put_number(to, fold((int16_t)(uint16_t)(at->dc[c] - last.dc[c])));
        last = *at;
    }
    return to;
}

int jpeg_points_write(const struct jpeg_points *p, const struct jpeg_frame *f, const uint8_t *file, size_t file_n,
                      struct buf *out)
{
    out->len = 0;
    if (buf_reserve(out, HEAD + (size_t)p->n * POINT_MOST + CHECKSUM))
        return -1;
    uint8_t *const head = out->data, *const end = put_points(head + HEAD, p, f);
    memcpy(head, magic, sizeof magic);
    put_le(head + 4, (uint64_t)p->every, 2);
    put_le(head + 6, (uint64_t)f->sampling, 1);
    put_le(head + 7, (uint64_t)f->together, 1);
    put_le(head + 8, file_n, 8);
    put_le(head + 16, hash_bytes(file, f->scan, 0), 8);
    put_le(head + 24, f->scan, 4);
    put_le(head + 28, (uint64_t)f->w, 2);
    put_le(head + 30, (uint64_t)f->h, 2);
    put_le(head + 32, (uint64_t)p->n, 4);
    put_le(head + 36, (uint64_t)(end - head - HEAD), 4);
    put_le(end, hash_bytes(head, (size_t)(end - head), 0), CHECKSUM);
    out->len = (size_t)(end - head) + CHECKSUM;
    return 0;
}

/* ------------------------------------------------------------------ reading */

struct bytes {
    const uint8_t *p, *end;
    bool bad;
};

static uint64_t take_number(struct bytes *b)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && b->p < b->end; shift += 7) {
        const uint8_t byte = *b->p++;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return v;
    }
    b->bad = true;
    return 0;
}

/* In order, and within the scan. */
static bool take_points(struct jpeg_points *p, struct bytes *b, int32_t n, const struct jpeg_frame *f, uint64_t file_n)
{
    struct jpeg_point at = {0};
    for (int32_t i = 0; i < n; i++) {
        const uint64_t step = take_number(b);
        if (b->bad || step > file_n * 8 - at.bit)
            return false;
        at.bit += step;
        for (int c = 0; c < f->n_components; c++)
            at.dc[c] = (int16_t)(uint16_t)(at.dc[c] + unfold((uint16_t)take_number(b)));
        if (b->bad || at.bit < f->scan * 8)
            return false;
        p->at[i] = at;
    }
    return b->p == b->end;
}

/* Whole, and of our making. */
static bool is_sound(const uint8_t *blob, size_t n)
{
    return n >= HEAD + CHECKSUM && memcmp(blob, magic, sizeof magic) == 0 && le64(blob + 8) < UINT64_MAX / 8 &&
           le32(blob + 36) == n - HEAD - CHECKSUM && le64(blob + n - CHECKSUM) == hash_bytes(blob, n - CHECKSUM, 0);
}

static bool take_all(struct jpeg_points *p, const uint8_t *blob, size_t n, const struct jpeg_frame *f, uint64_t file_n)
{
    const uint32_t count = le32(blob + 32);
    jpeg_points_reset(p, f);
    if (le16(blob + 4) != p->every || count > (uint32_t)p->across * (uint32_t)f->mcus_y + 1 || count > POINTS_MAX ||
        reserve(p, (int32_t)count))
        return false;
    struct bytes b = {blob + HEAD, blob + n - CHECKSUM, false};
    if (!take_points(p, &b, (int32_t)count, f, file_n))
        return false;
    p->n = (int32_t)count;
    return true;
}

bool jpeg_points_read(struct jpeg_points *p, const uint8_t *blob, size_t n, const struct jpeg_frame *f,
                      const uint8_t *file, size_t file_n)
{
    jpeg_points_reset(p, f);
    return is_sound(blob, n) && le64(blob + 8) == file_n && le32(blob + 24) == f->scan && le16(blob + 28) == f->w &&
           le16(blob + 30) == f->h && blob[6] == f->sampling && blob[7] == f->together &&
           le64(blob + 16) == hash_bytes(file, f->scan, 0) && take_all(p, blob, n, f, file_n);
}

/* ------------------------------------------------------------------ ranges */

/* The frame that a blob is about, as far as sizes go. */
static bool frame_of(struct jpeg_frame *f, const uint8_t *blob)
{
    *f = (struct jpeg_frame){.w = le16(blob + 28),
                             .h = le16(blob + 30),
                             .sampling = blob[6],
                             .n_components = blob[6] == JPEG_GREY ? 1 : JPEG_COMPONENTS,
                             .together = blob[7],
                             .scan = le32(blob + 24)};
    return blob[6] < JPEG_SAMPLINGS && f->together > 0 && jpeg_frame_measure(f);
}

static size_t add_range(struct byte_range *out, size_t n, size_t max, struct byte_range r)
{
    if (n > 0 && n <= max && r.from <= out[n - 1].to) {
        out[n - 1].to = r.to > out[n - 1].to ? r.to : out[n - 1].to;
        return n;
    }
    if (n < max)
        out[n] = r;
    return n + 1;
}

/* Of every MCU row the groups from the one that holds its first column to the one that holds its last. */
static size_t ranges_of(const struct jpeg_points *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                        uint64_t file_n, struct byte_range *out, size_t max)
{
    size_t n = add_range(out, 0, max, (struct byte_range){0, f->scan});
    for (int32_t y = need->y0; y < need->y1; y++) {
        const int32_t first = y * p->across + need->x0 / p->every;
        const int32_t behind = y * p->across + (need->x1 - 1) / p->every + 1;
        const uint64_t to = p->at[behind].bit / 8 + BEHIND;
        n = add_range(out, n, max, (struct byte_range){p->at[first].bit / 8, to < file_n ? to : file_n});
    }
    return n <= max ? n : 0;
}

size_t jpeg_points_ranges(const uint8_t *blob, size_t n, const struct rect *crop, struct byte_range *out, size_t max)
{
    struct jpeg_points p = {0};
    struct jpeg_frame f;
    size_t ranges = 0;
    if (is_sound(blob, n) && frame_of(&f, blob) && take_all(&p, blob, n, &f, le64(blob + 8)) && crop->x >= 0 &&
        crop->y >= 0 && crop->w > 0 && crop->h > 0 && crop->w <= f.w - crop->x && crop->h <= f.h - crop->y) {
        const struct jpeg_need need = jpeg_frame_need(&f, crop, false);
        if (need.end * p.across < p.n)
            ranges = ranges_of(&p, &f, &need, le64(blob + 8), out, max);
    }
    jpeg_points_done(&p);
    return ranges;
}
