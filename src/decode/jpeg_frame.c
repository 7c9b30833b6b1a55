/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_frame.c -- reads the markers of a plain baseline JPEG.
 *
 * In doubt it returns false, and libjpeg decides on the verdict, the message and the pixels. So it accepts only what
 * libjpeg certainly reads in the same way: no garbage between markers, no missing table, no warning.
 */
#include "decode/jpeg_frame.h"

#include <string.h>

#include "base/bytes.h"
#include "decode/jpeg_head.h"
#include "decode/jpeg_huff.h"

enum { SLOTS = 4, MAX_SIDE = 65500 };

struct reader {
    struct jpeg_frame *f;
    const uint8_t *quant[SLOTS]; /* from their first byte: precision and slot */
    const uint8_t *codes[2][SLOTS];
    const uint8_t *frame; /* the segment of SOF, without its length */
    bool jfif, adobe;
    int transform; /* what the Adobe marker says about the colours */
};

const uint8_t jpeg_zigzag[JPEG_BLOCK] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                         12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                         35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                         58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* ------------------------------------------------------------------ segments; false: left to libjpeg */

static bool read_quant(struct reader *r, const uint8_t *s, size_t n)
{
    while (n > 0) {
        const size_t bytes = 1 + (s[0] >> 4 ? 2 : 1) * (size_t)JPEG_BLOCK;
        if ((s[0] & 15) >= SLOTS || n < bytes)
            return false;
        r->quant[s[0] & 15] = s;
        s += bytes;
        n -= bytes;
    }
    return true;
}

static bool read_codes(struct reader *r, const uint8_t *s, size_t n)
{
    const uint8_t *t;
    bool good;
    while ((good = huff_next_table(&s, &n, &t)) && t)
        r->codes[t[0] >> 4][t[0] & 3] = t + 1;
    return good;
}

static bool read_frame(struct reader *r, const uint8_t *s, size_t n)
{
    struct jpeg_frame *f = r->f;
    if (r->frame || n < 6 || s[0] != 8 || n != 6 + 3 * (size_t)s[5])
        return false;
    r->frame = s;
    f->h = be16(s + 1);
    f->w = be16(s + 3);
    f->n_components = s[5];
    return f->n_components == 1 || f->n_components == JPEG_COMPONENTS;
}

static bool read_jfif(struct reader *r, const uint8_t *s, size_t n)
{
    if (n < 14 || memcmp(s, "JFIF", 5) != 0)
        return true;
    r->jfif = true;
    return s[5] == 1; /* libjpeg warns about any other major version */
}

static bool read_adobe(struct reader *r, const uint8_t *s, size_t n)
{
    if (n >= 12 && memcmp(s, "Adobe", 5) == 0) {
        r->adobe = true;
        r->transform = s[11];
    }
    return true;
}

static bool read_segment(struct reader *r, int marker, const uint8_t *s, size_t n)
{
    switch (marker) {
    case DQT:
        return read_quant(r, s, n);
    case DHT:
        return read_codes(r, s, n);
    case SOF0:
    case SOF1:
        return read_frame(r, s, n);
    case DRI:
        r->f->restart = n == 2 ? be16(s) : 0;
        return n == 2;
    case APP0:
        return read_jfif(r, s, n);
    case APP14:
        return read_adobe(r, s, n);
    default:
        return (marker > APP0 && marker <= APP15) || marker == COM;
    }
}

/* ------------------------------------------------------------------ the frame */

/* Whether libjpeg takes the colours for grey or YCbCr. */
static bool is_luma_chroma(const struct reader *r)
{
    const uint8_t *s = r->frame + 6;
    if (r->f->n_components == 1 || r->jfif)
        return true;
    if (r->adobe)
        return r->transform == 1;
    return !(s[0] == 'R' && s[3] == 'G' && s[6] == 'B');
}

static bool find_sampling(const struct reader *r)
{
    struct jpeg_frame *f = r->f;
    const uint8_t *s = r->frame + 6;
    f->sampling = JPEG_GREY;
    f->together = 1;
    if (f->n_components == 1) { /* in a scan of one component an MCU is a block */
        f->together = s[1] & 15;
        return s[1] >> 4 >= 1 && s[1] >> 4 <= 4 && f->together >= 1 && f->together <= 4;
    }
    if (s[4] != 0x11 || s[7] != 0x11)
        return false;
    switch (s[1]) {
    case 0x11:
        f->sampling = JPEG_444;
        return true;
    case 0x21:
        f->sampling = JPEG_422;
        return true;
    case 0x22:
        f->sampling = JPEG_420;
        return true;
    case 0x12:
        f->sampling = JPEG_440;
        return true;
    default:
        return false;
    }
}

bool jpeg_frame_measure(struct jpeg_frame *f)
{
    const bool halved = f->sampling == JPEG_422 || f->sampling == JPEG_420;
    f->component[0].h = halved ? 2 : 1;
    f->component[0].v = f->sampling == JPEG_420 || f->sampling == JPEG_440 ? 2 : 1;
    for (int i = 1; i < f->n_components; i++)
        f->component[i].h = f->component[i].v = 1;
    for (int i = 0; i < f->n_components; i++) {
        f->component[i].side = 8;
        f->component[i].wide = f->component[i].high = 1;
    }
    f->mcu_w = 8 * f->component[0].h;
    f->mcu_h = 8 * f->component[0].v;
    f->mcus_x = (f->w + f->mcu_w - 1) / f->mcu_w;
    f->mcus_y = (f->h + f->mcu_h - 1) / f->mcu_h;
    return f->w > (halved ? 4 : 0) && f->h > 0 && f->w <= MAX_SIDE && f->h <= MAX_SIDE;
}

void jpeg_frame_shrink(struct jpeg_frame *f, int by)
{
    const bool columns = jpeg_frame_halves_columns(f), rows = jpeg_frame_halves_rows(f);
    f->w = (f->w + by - 1) / by;
    f->h = (f->h + by - 1) / by;
    const bool plain = by == 8 || (columns && f->w <= 4); /* libjpeg does not interpolate so few samples */
    for (int i = 0; i < f->n_components; i++)
        f->component[i].side = 8 / by;
    for (int i = 1; i < f->n_components; i++) {
        if (columns && rows)
            f->component[i].side *= 2;
        else if (plain) {
            f->component[i].wide = columns ? 2 : 1;
            f->component[i].high = rows ? 2 : 1;
        }
    }
    if ((columns && rows) || (f->n_components > 1 && plain))
        f->sampling = JPEG_444;
    f->mcu_w /= by;
    f->mcu_h /= by;
}

static bool take_quant(struct jpeg_component *c, const uint8_t *s)
{
    if (!s)
        return false;
    const bool wide = s[0] >> 4;
    for (int i = 0; i < JPEG_BLOCK; i++)
        c->q[jpeg_zigzag[i]] = wide ? be16(s + 1 + 2 * i) : s[1 + i];
    return true;
}

/* Accepts all components in the order of the frame, in one scan from the first coefficient to the last. */
static bool read_scan(const struct reader *r, const uint8_t *s, size_t n)
{
    const size_t count = (size_t)r->f->n_components;
    if (n != 4 + 2 * count || s[0] != count || memcmp(s + 1 + 2 * count, "\0\x3f\0", 3) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct jpeg_component *c = &r->f->component[i];
        const uint8_t *in_frame = r->frame + 6 + 3 * i, *in_scan = s + 1 + 2 * i;
        for (size_t j = 0; j < i; j++)
            if (in_frame[0] == r->frame[6 + 3 * j])
                return false;
        if (in_frame[0] != in_scan[0] || in_frame[2] >= SLOTS || in_scan[1] & ~0x33)
            return false;
        c->dc = r->codes[0][in_scan[1] >> 4];
        c->ac = r->codes[1][in_scan[1] & 3];
        if (!c->dc || !c->ac || !take_quant(c, r->quant[in_frame[2]]))
            return false;
    }
    return true;
}

bool jpeg_frame_read(struct jpeg_frame *f, const uint8_t *bytes, size_t n)
{
    struct reader r = {.f = f};
    *f = (struct jpeg_frame){0};
    if (n < 4 || bytes[0] != 0xff || bytes[1] != SOI)
        return false;
    for (size_t at = 2; n - at >= 4 && bytes[at] == 0xff;) {
        const int marker = bytes[at + 1];
        if (marker == 0xff) { /* fill byte */
            at++;
            continue;
        }
        const size_t len = be16(bytes + at + 2);
        const uint8_t *s = bytes + at + 4;
        if (len < 2 || n - at - 2 < len)
            return false;
        at += 2 + len;
        f->scan = at;
        if (marker == SOS)
            return r.frame && is_luma_chroma(&r) && find_sampling(&r) && jpeg_frame_measure(f) &&
                   read_scan(&r, s, len - 2);
        if (!read_segment(&r, marker, s, len - 2))
            return false;
    }
    return false;
}

/* ------------------------------------------------------------------ crops */

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* The first and the last chroma sample that pixels `from` to `to` use, if two pixels share a sample. Fancy
 * upsampling also uses the neighbours. Kernels start at an even pixel. */
static int32_t first_shared(int32_t from)
{
    const int32_t s = from / 2;
    return s > 0 && from % 2 == 0 ? s - 1 : s;
}
static int32_t last_shared(int32_t to, int32_t size)
{
    return least((to + 1) / 2, (size + 1) / 2 - 1);
}

struct jpeg_need jpeg_frame_need(const struct jpeg_frame *f, const struct rect *crop, bool whole)
{
    const int32_t right = crop->x + crop->w - 1, bottom = crop->y + crop->h - 1;
    struct jpeg_need n = {
        .x0 = crop->x / f->mcu_w, .x1 = right / f->mcu_w + 1, .y0 = crop->y / f->mcu_h, .y1 = bottom / f->mcu_h + 1};
    const int side = f->component[f->n_components - 1].side;
    if (jpeg_frame_halves_columns(f)) {
        n.x0 = first_shared(crop->x & ~1) / side;
        n.x1 = last_shared(right, f->w) / side + 1;
    }
    n.end = least((n.y1 + f->together - 1) / f->together * f->together, f->mcus_y);
    if (jpeg_frame_halves_rows(f)) {
        n.y0 = first_shared(crop->y) / side;
        n.y1 = last_shared(bottom, f->h) / side + 1;
        /* libjpeg holds back the last two rows of an MCU row until it has the next one. */
        n.end = least((bottom + 2) / f->mcu_h + 1, f->mcus_y);
    }
    if (whole)
        n.end = f->mcus_y;
    return n;
}
