/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_checkpoints.c -- checkpoints in memory and as bytes.
 *
 * The bytes are little-endian: a head of fixed size; for every checkpoint its distance in bits from the one before and
 * the changes of the predictors, seven bits to a byte; and a checksum of all of it. They take about 2 % of a photo.
 *
 *      0  "SJP2"
 *      4  u16  MCUs in a group
 *      6  u8   sampling, and 16 times the orientation
 *      7  u8   MCU rows in one go
 *      8  u64  bytes of the file
 *     16  u64  hash of the file up to the scan
 *     24  u32  where the scan starts
 *     28  u16  width
 *     30  u16  height
 *     32  u32  count of checkpoints
 *     36  u32  bytes that follow, without the checksum
 */
#include "decode/jpeg_checkpoints.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

enum {
    HEAD = 40,
    CHECKSUM = 8,
    CHECKPOINT_MOST = 10 + 3 * JPEG_COMPONENTS, /* bytes of a checkpoint, at most */
    BESIDE = 32                                 /* bytes read on either side of what is needed */
};

static const char magic[4] = "SJP2";

/* ------------------------------------------------------------------ in memory */

void jpeg_checkpoints_reset(struct jpeg_checkpoints *p, const struct jpeg_frame *f)
{
    p->n = 0;
    p->every = CHECKPOINT_EVERY;
    do {
        p->across = (f->mcus_x + p->every - 1) / p->every;
        if ((int64_t)p->across * f->mcus_y < CHECKPOINTS_MAX)
            return;
        p->every *= 2;
    } while (p->across > 1);
}

void jpeg_checkpoints_done(struct jpeg_checkpoints *p)
{
    free(p->at);
    *p = (struct jpeg_checkpoints){0};
}

static int reserve(struct jpeg_checkpoints *p, int32_t n)
{
    if (n <= p->cap)
        return 0;
    const int32_t cap = n < 512 ? 512 : 2 * n;
    struct jpeg_checkpoint *at = realloc(p->at, (size_t)cap * sizeof *at);
    if (!at)
        return -1;
    p->at = at;
    p->cap = cap;
    return 0;
}

int jpeg_checkpoints_add(struct jpeg_checkpoints *p, uint64_t bit, const int16_t *dc)
{
    if (reserve(p, p->n + 1))
        return -1;
    struct jpeg_checkpoint *to = &p->at[p->n++];
    to->bit = bit;
    memcpy(to->dc, dc, sizeof to->dc);
    return 0;
}

/* ------------------------------------------------------------------ writing */

/* Seven bits at a time, lowest first; the highest bit says that more follow. */
static uint8_t *put_number(uint8_t *to, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        *to++ = (uint8_t)(v | 128);
    *to++ = (uint8_t)v;
    return to;
}

/* Maps numbers near 0 of either sign to small unsigned ones. */
static uint16_t fold(int16_t v)
{
    return (uint16_t)((uint16_t)((uint16_t)v << 1) ^ (v < 0 ? 0xffff : 0));
}
static int16_t unfold(uint16_t v)
{
    return (int16_t)(uint16_t)(v >> 1 ^ (v & 1 ? 0xffff : 0));
}

static uint8_t *put_checkpoints(uint8_t *to, const struct jpeg_checkpoints *p, const struct jpeg_frame *f)
{
    struct jpeg_checkpoint last = {0};
    for (int32_t i = 0; i < p->n; i++) {
        const struct jpeg_checkpoint *at = &p->at[i];
        to = put_number(to, at->bit - last.bit);
        for (int c = 0; c < f->n_components; c++)
            to = put_number(to, fold((int16_t)(uint16_t)(at->dc[c] - last.dc[c])));
        last = *at;
    }
    return to;
}

int jpeg_checkpoints_write(const struct jpeg_checkpoints *p, const struct jpeg_frame *f, int orientation,
                           const uint8_t *file, size_t file_n, struct buf *out)
{
    out->len = 0;
    if (buf_reserve(out, HEAD + (size_t)p->n * CHECKPOINT_MOST + CHECKSUM))
        return -1;
    uint8_t *const head = out->data, *const end = put_checkpoints(head + HEAD, p, f);
    memcpy(head, magic, sizeof magic);
    le_put(head + 4, (uint64_t)p->every, 2);
    le_put(head + 6, (uint64_t)f->sampling | (uint64_t)orientation << 4, 1);
    le_put(head + 7, (uint64_t)f->together, 1);
    le_put(head + 8, file_n, 8);
    le_put(head + 16, hash_bytes(file, f->scan, 0), 8);
    le_put(head + 24, f->scan, 4);
    le_put(head + 28, (uint64_t)f->w, 2);
    le_put(head + 30, (uint64_t)f->h, 2);
    le_put(head + 32, (uint64_t)p->n, 4);
    le_put(head + 36, (uint64_t)(end - head - HEAD), 4);
    le_put(end, hash_bytes(head, (size_t)(end - head), 0), CHECKSUM);
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

/* Advances `at` to the next one. Returns false unless it is in order and within the scan. */
static bool next_checkpoint(struct bytes *b, const struct jpeg_frame *f, uint64_t file_n, struct jpeg_checkpoint *at)
{
    const uint64_t step = take_number(b);
    if (b->bad || step > file_n * 8 - at->bit)
        return false;
    at->bit += step;
    for (int c = 0; c < f->n_components; c++)
        at->dc[c] = (int16_t)(uint16_t)(at->dc[c] + unfold((uint16_t)take_number(b)));
    return !b->bad && at->bit >= f->scan * 8;
}

static bool take_checkpoints(struct jpeg_checkpoints *p, struct bytes *b, int32_t n, const struct jpeg_frame *f,
                             uint64_t file_n)
{
    struct jpeg_checkpoint at = {0};
    for (int32_t i = 0; i < n; i++) {
        if (!next_checkpoint(b, f, file_n, &at))
            return false;
        p->at[i] = at;
    }
    return b->p == b->end;
}

/* Whether the blob is complete and written by us. */
static bool is_sound(const uint8_t *blob, size_t n)
{
    return n >= HEAD + CHECKSUM && memcmp(blob, magic, sizeof magic) == 0 && le64(blob + 8) < UINT64_MAX / 8 &&
           le32(blob + 36) == n - HEAD - CHECKSUM && le64(blob + n - CHECKSUM) == hash_bytes(blob, n - CHECKSUM, 0);
}

static enum jpeg_sampling sampling_of(const uint8_t *blob)
{
    return blob[6] & 15;
}

/* Empties p and sets its groups. Returns the count of checkpoints in the blob, or -1 if they are not of this frame. */
static int32_t measure(struct jpeg_checkpoints *p, const uint8_t *blob, const struct jpeg_frame *f)
{
    const uint32_t count = le32(blob + 32);
    jpeg_checkpoints_reset(p, f);
    const bool fits = count <= (uint32_t)p->across * (uint32_t)f->mcus_y + 1 && count <= CHECKPOINTS_MAX;
    return fits && le16(blob + 4) == p->every ? (int32_t)count : -1;
}

static bool take_all(struct jpeg_checkpoints *p, const uint8_t *blob, size_t n, const struct jpeg_frame *f,
                     uint64_t file_n)
{
    const int32_t count = measure(p, blob, f);
    if (count < 0 || reserve(p, count))
        return false;
    struct bytes b = {blob + HEAD, blob + n - CHECKSUM, false};
    if (!take_checkpoints(p, &b, count, f, file_n))
        return false;
    p->n = count;
    return true;
}

bool jpeg_checkpoints_read(struct jpeg_checkpoints *p, const uint8_t *blob, size_t n, const struct jpeg_frame *f,
                           const uint8_t *file, size_t file_n)
{
    jpeg_checkpoints_reset(p, f);
    return is_sound(blob, n) && le64(blob + 8) == file_n && le32(blob + 24) == f->scan && le16(blob + 28) == f->w &&
           le16(blob + 30) == f->h && sampling_of(blob) == f->sampling && blob[7] == f->together &&
           le64(blob + 16) == hash_bytes(file, f->scan, 0) && take_all(p, blob, n, f, file_n);
}

/* ------------------------------------------------------------------ before the file is read */

/* The frame that a blob describes, as far as sizes go. */
static bool frame_of(struct jpeg_frame *f, const uint8_t *blob, size_t n)
{
    if (!is_sound(blob, n))
        return false;
    *f = (struct jpeg_frame){.w = le16(blob + 28),
                             .h = le16(blob + 30),
                             .sampling = sampling_of(blob),
                             .n_components = sampling_of(blob) == JPEG_GREY ? 1 : JPEG_COMPONENTS,
                             .together = blob[7],
                             .scan = le32(blob + 24)};
    return f->sampling < JPEG_SAMPLINGS && f->together > 0 && jpeg_frame_measure(f);
}

bool jpeg_checkpoints_head(const uint8_t *blob, size_t n, struct head *out)
{
    struct jpeg_frame f;
    if (!frame_of(&f, blob, n))
        return false;
    *out = (struct head){
        .format = STK_JPEG, .w = f.w, .h = f.h, .channels = f.n_components, .bits = 8, .orientation = blob[6] >> 4};
    return true;
}

/* The bytes read to decode from one bit to another. */
static struct byte_range stretch(uint64_t from, uint64_t to, uint64_t file_n)
{
    const uint64_t behind = to / 8 + BESIDE;
    return (struct byte_range){from / 8 > BESIDE ? from / 8 - BESIDE : 0, behind < file_n ? behind : file_n};
}

/* The first group that `need` takes in a row, and the first after those. */
static int32_t first_of(const struct jpeg_checkpoints *p, const struct jpeg_need *need, int32_t y)
{
    return y * p->across + need->x0 / p->every;
}
static int32_t behind_of(const struct jpeg_checkpoints *p, const struct jpeg_need *need, int32_t y)
{
    return y * p->across + (need->x1 - 1) / p->every + 1;
}

/* Joins r to the last range if it is close, or if there would be too many ranges. */
static void add_range(struct ranges *out, struct byte_range r, size_t apart)
{
    struct byte_range *last = out->n > 0 ? &out->at[out->n - 1] : NULL;
    if (last && (r.from < last->to + apart || out->n == RANGES_MAX))
        last->to = r.to > last->to ? r.to : last->to;
    else
        out->at[out->n++] = r;
}

/* The head of the file, and some groups of every MCU row. Goes through the checkpoints in order without storing
 * them. */
static bool ranges_of(const uint8_t *blob, size_t n, const struct jpeg_frame *f, const struct jpeg_need *need,
                      size_t apart, struct ranges *out)
{
    const uint64_t file_n = le64(blob + 8);
    struct bytes b = {blob + HEAD, blob + n - CHECKSUM, false};
    struct jpeg_checkpoints p = {0};
    struct jpeg_checkpoint at = {0};
    if (measure(&p, blob, f) <= need->end * p.across)
        return false;
    uint64_t from = 0;
    add_range(out, stretch(0, f->scan * 8, file_n), apart);
    for (int32_t i = 0, y = need->y0; y < need->y1; i++) {
        if (!next_checkpoint(&b, f, file_n, &at))
            return false;
        if (i == behind_of(&p, need, y)) {
            add_range(out, stretch(from, at.bit, file_n), apart);
            y++;
        }
        if (i == first_of(&p, need, y))
            from = at.bit;
    }
    return out->n > 1 || out->at[0].to < file_n;
}

bool jpeg_checkpoints_ranges(const uint8_t *blob, size_t n, const struct rect *crop, int shrink, size_t apart,
                             struct ranges *out)
{
    struct jpeg_frame f;
    out->n = 0;
    if (!frame_of(&f, blob, n))
        return false;
    struct jpeg_frame small = f;
    if (shrink > 1)
        jpeg_frame_shrink(&small, shrink);
    if (crop->x < 0 || crop->y < 0 || crop->w <= 0 || crop->h <= 0 || crop->w > small.w - crop->x ||
        crop->h > small.h - crop->y)
        return false;
    const struct jpeg_need need = jpeg_frame_need(&small, crop, false);
    return ranges_of(blob, n, &f, &need, apart, out);
}

static bool is_among(const struct ranges *ranges, struct byte_range r)
{
    for (int i = 0; i < ranges->n; i++)
        if (r.from >= ranges->at[i].from && r.to <= ranges->at[i].to)
            return true;
    return false;
}

bool jpeg_checkpoints_within(const struct jpeg_checkpoints *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                             size_t file_n, const struct ranges *ranges)
{
    bool within = need->end * p->across < p->n && is_among(ranges, stretch(0, f->scan * 8, file_n));
    for (int32_t y = need->y0; within && y < need->y1; y++)
        within = is_among(ranges, stretch(p->at[first_of(p, need, y)].bit, p->at[behind_of(p, need, y)].bit, file_n));
    return within;
}
