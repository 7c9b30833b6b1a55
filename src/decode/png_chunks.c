/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_chunks.c -- walks the chunks of a PNG.
 *
 *     signature, then chunks: length, name, data, checksum
 *
 * Only what pixels and orientation need is read. As in Pillow, chunks may come in any order, and unknown ones are
 * skipped. Checksums are verified where a flipped bit would silently change pixels. A wrong one is an error for IHDR
 * and PLTE, and a warning for IDAT.
 */
#include "decode/png_chunks.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"

static const char stage[] = "decode";

enum { SIGNATURE_BYTES = 8, CHUNK_HEAD = 8, CHUNK_FRAME = 12, IHDR_BYTES = 13 };

struct chunk {
    const uint8_t *at; /* at its length */
    const uint8_t *name, *data;
    size_t n;
};

bool png_signature(const uint8_t *p, size_t n)
{
    return n >= SIGNATURE_BYTES && memcmp(p, "\x89PNG\r\n\x1a\n", SIGNATURE_BYTES) == 0;
}

static bool is(const struct chunk *c, const char *name)
{
    return memcmp(c->name, name, 4) == 0;
}

static bool named(const uint8_t *p)
{
    for (int i = 0; i < 4; i++) {
        const uint8_t c = p[i] | 0x20;
        if (!((c >= 'a' && c <= 'z') || (p[i] >= '0' && p[i] <= '9') || p[i] == '_'))
            return false;
    }
    return true;
}

enum chunk_state { CHUNK_WHOLE, CHUNK_CUT, CHUNK_NONE };

static enum chunk_state chunk_at(const uint8_t *p, size_t n, size_t at, struct chunk *c)
{
    if (at > n || n - at < CHUNK_HEAD || !named(p + at + 4))
        return CHUNK_NONE;
    *c = (struct chunk){p + at, p + at + 4, p + at + CHUNK_HEAD, be32(p + at)};
    return n - at - CHUNK_HEAD < c->n ? CHUNK_CUT : CHUNK_WHOLE;
}

static bool checksum_right(const struct chunk *c, const uint8_t *end)
{
    return (size_t)(end - c->data) - c->n >= 4 &&
           be32(c->data + c->n) == crc32_choose(STK_CPU_DEFAULT)->of(c->name, 4 + c->n);
}

static int samples_of(int colour, int bits)
{
    switch (colour) {
    case PNG_GREY:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 ? 1 : 0;
    case PNG_INDEXED:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8 ? 1 : 0;
    case PNG_RGB:
        return bits == 8 || bits == 16 ? 3 : 0;
    case PNG_GREY_ALPHA:
        return bits == 8 || bits == 16 ? 2 : 0;
    case PNG_RGBA:
        return bits == 8 || bits == 16 ? 4 : 0;
    default:
        return 0;
    }
}

static int header(const struct chunk *c, struct png_chunks *out, stk_error *e)
{
    if (c->n < IHDR_BYTES)
        return error_set(e, STK_EDATA, stage, "its header (IHDR) has only %zu bytes; it must have 13", c->n);
    const uint8_t *p = c->data;
    if (be32(p) > INT32_MAX || be32(p + 4) > INT32_MAX)
        return error_set(e, STK_EDATA, stage, "its header gives %ux%u pixels; a side of a PNG is at most 2147483647",
                         be32(p), be32(p + 4));
    out->w = (int32_t)be32(p);
    out->h = (int32_t)be32(p + 4);
    out->bits = p[8];
    out->colour = p[9];
    out->interlaced = p[12] != 0;
    out->samples = samples_of(out->colour, out->bits);
    if (out->samples == 0)
        return error_set(e, STK_EDATA, stage, "has colour type %d with %d bits, which PNG does not define", out->colour,
                         out->bits);
    if (p[11] != 0)
        return error_set(e, STK_EDATA, stage, "has filter method %d, which PNG does not define", p[11]);
    return STK_OK;
}

/* ------------------------------------------------------------------ texts */

/* What follows the next 0 byte; NULL: there is none. */
static const uint8_t *past_zero(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *z = p && p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
    return z ? z + 1 : NULL;
}

static struct png_string *slot_of(const struct chunk *c, struct png_chunks *out)
{
    static const char raw[] = "Raw profile type exif", xmp[] = "XML:com.adobe.xmp", exif[] = "exif";
    if (c->n >= sizeof raw && memcmp(c->data, raw, sizeof raw) == 0)
        return &out->raw_exif;
    if (c->n >= sizeof xmp && memcmp(c->data, xmp, sizeof xmp) == 0)
        return &out->xmp;
    if (is(c, "tEXt") && c->n >= sizeof exif && memcmp(c->data, exif, sizeof exif) == 0)
        return &out->exif;
    return NULL;
}

/* Later texts replace earlier ones. */
static void text(const struct chunk *c, struct png_chunks *out)
{
    struct png_string *slot = slot_of(c, out);
    if (!slot)
        return;
    const uint8_t *end = c->data + c->n, *p = past_zero(c->data, end);
    bool compressed = is(c, "zTXt");
    if (is(c, "iTXt") && end - p >= 2) {
        compressed = p[0] != 0;
        p = past_zero(past_zero(p + 2, end), end); /* language, translated key */
    }
    if (compressed)
        *slot = (struct png_string){.chunk = c->at, .chunk_bytes = c->n + CHUNK_HEAD};
    else if (p)
        *slot = (struct png_string){.p = p, .n = (size_t)(end - p)};
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void png_hex_profile(const uint8_t *p, size_t n, struct buf *out)
{
    const uint8_t *const end = p ? p + n : NULL;
    for (int lines = 0; lines < 3; lines++) {
        p = p && p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        p = p ? p + 1 : NULL;
    }
    int high = -1;
    for (; p && p < end; p++) {
        const int v = hex_digit(*p);
        if (v < 0)
            continue;
        const uint8_t byte = (uint8_t)(high * 16 + v);
        if (high >= 0 && buf_add(out, &byte, 1))
            return;
        high = high >= 0 ? -1 : v;
    }
}

/* Chunks that may also come after the pixels. */
static void metadata(const struct chunk *c, struct png_chunks *out)
{
    if (is(c, "eXIf"))
        out->exif = (struct png_string){.p = c->data, .n = c->n};
    else if (is(c, "tEXt") || is(c, "zTXt") || is(c, "iTXt"))
        text(c, out);
}

/* ------------------------------------------------------------------ the walk */

static int before_pixels(const struct chunk *c, const uint8_t *end, struct png_chunks *out, stk_error *e)
{
    const bool ihdr = is(c, "IHDR"), plte = is(c, "PLTE");
    if ((ihdr || plte) && !checksum_right(c, end))
        return error_set(e, STK_EDATA, stage, "the checksum of its %.4s chunk is wrong", (const char *)c->name);
    if (ihdr)
        return header(c, out, e);
    if (plte) {
        out->palette = c->data;
        out->palette_bytes = c->n;
    }
    out->transparent |= is(c, "tRNS");
    out->icc |= is(c, "iCCP");
    out->animated |= is(c, "acTL") && c->n >= 8 && be32(c->data) > 1;
    metadata(c, out);
    return STK_OK;
}

static bool is_end(const struct chunk *c, bool animated)
{
    return is(c, "IEND") || (animated && is(c, "fcTL"));
}

static void behind_pixels(const uint8_t *bytes, size_t n, struct png_chunks *out)
{
    struct chunk c;
    for (size_t at = out->idat; chunk_at(bytes, n, at, &c) == CHUNK_WHOLE && !is_end(&c, out->animated);
         at += c.n + CHUNK_FRAME)
        metadata(&c, out);
}

static int cut_off(size_t n, stk_error *e)
{
    return error_set(e, STK_EDATA, stage, "the file ends after %zu bytes, inside its header", n);
}

int png_chunks_read(const uint8_t *bytes, size_t n, bool all, struct png_chunks *out, stk_error *e)
{
    *out = (struct png_chunks){0};
    struct chunk c;
    for (size_t at = SIGNATURE_BYTES;; at += c.n + CHUNK_FRAME) {
        const enum chunk_state state = chunk_at(bytes, n, at, &c);
        if (state == CHUNK_NONE && at < n && n - at >= CHUNK_HEAD)
            return error_set(e, STK_EDATA, stage, "broken PNG: there is no chunk at byte %zu", at);
        if (state == CHUNK_NONE)
            return cut_off(n, e);
        if (is(&c, "IDAT")) {
            out->idat = at;
            break;
        }
        if (state == CHUNK_CUT)
            return cut_off(n, e);
        if (is(&c, "IEND"))
            return error_set(e, STK_EDATA, stage, "has no pixels (no IDAT chunk)");
        const int rc = before_pixels(&c, bytes + n, out, e);
        if (rc != STK_OK)
            return rc;
    }
    if (out->samples == 0)
        return error_set(e, STK_EDATA, stage, "has no header (no IHDR chunk)");
    if (all)
        behind_pixels(bytes, n, out);
    return STK_OK;
}

size_t png_cut(const uint8_t *bytes, size_t n, const struct png_chunks *info)
{
    struct chunk c;
    for (size_t at = info->idat;; at += c.n + CHUNK_FRAME) {
        const enum chunk_state state = chunk_at(bytes, n, at, &c);
        if (state == CHUNK_NONE || !is(&c, "IDAT"))
            return 0;
        if (state == CHUNK_CUT)
            return at;
    }
}

int png_wrong_sums(const uint8_t *bytes, size_t end, size_t n, const struct png_chunks *info)
{
    const struct crc32 *crc = crc32_choose(STK_CPU_DEFAULT);
    struct chunk c;
    int wrong = 0;
    for (size_t at = info->idat; at + CHUNK_HEAD < end; at += c.n + CHUNK_FRAME) {
        if (chunk_at(bytes, n, at, &c) != CHUNK_WHOLE || !is(&c, "IDAT") || n - at < c.n + CHUNK_FRAME)
            break;
        wrong += be32(c.data + c.n) != crc->of(c.name, 4 + c.n);
    }
    return wrong;
}

struct png_walk png_walk_begin(const uint8_t *bytes, size_t n, const struct png_chunks *info)
{
    return (struct png_walk){bytes, n, info->idat, false};
}

bool png_walk_next(struct png_walk *w, const uint8_t **p, size_t *n)
{
    struct chunk c;
    const enum chunk_state state = chunk_at(w->bytes, w->n, w->at, &c);
    if (w->odd || state == CHUNK_NONE || !is(&c, "IDAT"))
        return false;
    w->odd = state == CHUNK_CUT || w->n - w->at < c.n + CHUNK_FRAME || c.n > INT32_MAX;
    w->at += c.n + CHUNK_FRAME;
    *p = c.data;
    *n = c.n;
    return !w->odd;
}

bool png_tail_whole(const uint8_t *bytes, size_t n, const struct png_chunks *info)
{
    struct chunk c;
    for (size_t at = info->idat;; at += c.n + CHUNK_FRAME) {
        const enum chunk_state state = chunk_at(bytes, n, at, &c);
        if (state == CHUNK_NONE || is_end(&c, info->animated))
            return true;
        if (state == CHUNK_CUT)
            return false;
    }
}
