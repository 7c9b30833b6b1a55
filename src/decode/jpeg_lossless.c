/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_lossless.c -- lossless JPEG (ITU T.81, annex H) of 8 bits, with Huffman codes.
 *
 * A sample is predicted from its neighbours to the left, above and above left. The difference to the prediction is
 * coded as DC differences are. The differences of a row of MCUs are decoded first, then added up, component by
 * component:
 *
 *     codes --decode_row--> diff --add_up--> plane of each component --store--> pixels of the crop
 *
 * Every bit is needed to get to the next one. So a crop saves only the rows below it, and nothing if components come in
 * separate scans. As in libjpeg-turbo 3, components with fewer samples are repeated, not interpolated, colours are not
 * converted, and YCbCr and YCCK are refused.
 */
#include "decode/jpeg_lossless.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "decode/cmyk.h"
#include "decode/jpeg_head.h"
#include "decode/jpeg_huff.h"

static const char stage[] = "decode";

enum { COMPONENTS = 4, FACTOR_MAX = 4, MCU_MAX = 10, SIDE_MAX = 65500, CODE_MAX = 16, DIFFERENCE_MAX = 16 };

struct table {
    bool valid;
    struct huff_codes codes; /* the symbols are the bits of differences */
};

struct component {
    uint8_t id, table;
    int32_t h, v;      /* sampling factors */
    int32_t w, rows;   /* samples */
    int32_t across;    /* w, rounded up to MCUs */
    int32_t *diff;     /* v rows */
    uint16_t *above;   /* the row above, before it is shifted */
    uint8_t *plane;    /* w x rows */
    bool fresh, there; /* its next row has none above; a scan contained it */
};

struct bits {
    const uint8_t *p, *end;
    uint64_t next;  /* the next bit is the highest */
    int n, made_up; /* bits, and how many of them are not in the file */
    bool bad;       /* a code was not in its table; stays set */
};

struct lossless {
    const uint8_t *bytes;
    size_t size, at;
    struct table tables[4];
    struct component of[COMPONENTS], *scan[COMPONENTS];
    int n, n_scan;
    int32_t w, h, most_h, most_v;
    int32_t predictor, shift, restart;
    bool jfif, adobe, several; /* several: scans */
    int transform;
    struct bits in;
    const char *wrong; /* what is wrong; NULL: nothing so far */
};

static bool fail(struct lossless *c, const char *words)
{
    c->wrong = words;
    return false;
}

/* ------------------------------------------------------------------ markers */

static bool read_tables(struct lossless *c, const uint8_t *p, size_t n)
{
    const uint8_t *spec;
    bool good;
    while ((good = huff_next_table(&p, &n, &spec)) && spec) {
        if (spec[0] >= 4) /* for AC coefficients */
            continue;
        struct table *t = &c->tables[spec[0]];
        t->valid = huff_codes_make(&t->codes, spec + 1);
        for (const uint8_t *symbol = spec + 1 + CODE_MAX; symbol < p; symbol++)
            t->valid &= *symbol <= DIFFERENCE_MAX;
    }
    return good || fail(c, "a Huffman table is damaged");
}

static bool read_frame(struct lossless *c, const uint8_t *p, size_t n)
{
    if (c->n || n < 6 || n != 6 + 3 * (size_t)p[5] || p[0] != 8 || p[5] > COMPONENTS)
        return fail(c, "its frame header is damaged, or it has two");
    c->h = be16(p + 1);
    c->w = be16(p + 3);
    c->n = p[5];
    c->most_h = c->most_v = 1;
    for (int i = 0; i < c->n; i++) {
        struct component *k = &c->of[i];
        const uint8_t *s = p + 6 + 3 * i;
        *k = (struct component){.id = s[0], .h = s[1] >> 4, .v = s[1] & 15};
        if (k->h < 1 || k->h > FACTOR_MAX || k->v < 1 || k->v > FACTOR_MAX)
            return fail(c, "a sampling factor is not within 1 to 4");
        c->most_h = k->h > c->most_h ? k->h : c->most_h;
        c->most_v = k->v > c->most_v ? k->v : c->most_v;
    }
    return c->w <= SIDE_MAX && c->h <= SIDE_MAX ? true : fail(c, "a side is longer than 65500 pixels");
}

static struct component *find_component(struct lossless *c, uint8_t id)
{
    for (int i = 0; i < c->n; i++)
        if (c->of[i].id == id)
            return &c->of[i];
    return NULL;
}

static bool read_scan(struct lossless *c, const uint8_t *p, size_t n)
{
    if (n < 1 || p[0] < 1 || p[0] > COMPONENTS || n != 4 + 2 * (size_t)p[0])
        return fail(c, "a scan header is damaged");
    int samples = 0;
    c->n_scan = p[0];
    for (int i = 0; i < c->n_scan; i++) {
        struct component *k = find_component(c, p[1 + 2 * i]);
        for (int j = 0; j < i; j++)
            k = k == c->scan[j] ? NULL : k;
        if (!k || p[2 + 2 * i] >> 4 > 3 || !c->tables[p[2 + 2 * i] >> 4].valid)
            return fail(c, "a scan uses an unknown component, or a missing or invalid Huffman table");
        c->scan[i] = k;
        k->table = p[2 + 2 * i] >> 4;
        samples += k->h * k->v;
    }
    const uint8_t *how = p + 1 + 2 * c->n_scan;
    c->predictor = how[0];
    c->shift = how[2];
    if (how[0] < 1 || how[0] > 7 || how[1] != 0 || how[2] > 7)
        return fail(c, "a scan has an unknown predictor or point transform");
    return c->n_scan == 1 || samples <= MCU_MAX ? true : fail(c, "an MCU of a scan has more than 10 samples");
}

/* libjpeg skips these by their length, and takes a length below 2 for 2. */
static bool is_skipped(int marker)
{
    return (marker >= APP0 && marker <= APP15) || marker == COM || marker == DNL;
}

static bool read_segment(struct lossless *c, int marker, const uint8_t *p, size_t n)
{
    switch (marker) {
    case DHT:
        return read_tables(c, p, n);
    case SOF3:
        return read_frame(c, p, n);
    case SOS:
        return c->n ? read_scan(c, p, n) : fail(c, "a scan comes before the frame header");
    case DRI:
        c->restart = n == 2 ? be16(p) : 0;
        return n == 2 || fail(c, "a restart interval is damaged");
    case APP0:
        c->jfif |= n >= 14 && memcmp(p, "JFIF", 5) == 0;
        return true;
    case APP14:
        if (n >= 12 && memcmp(p, "Adobe", 5) == 0) {
            c->adobe = true;
            c->transform = p[11];
        }
        return true;
    default:
        return is_skipped(marker) || marker == DQT ? true : fail(c, "it has an unknown marker");
    }
}

/* The file ends without EOI. After a single scan all pixels are complete, so that is not an error. With several scans
 * libjpeg returns no pixel before EOI. Always returns false. */
static bool end_without_eoi(struct lossless *c)
{
    c->at = c->size;
    return c->several ? fail(c, "the file ends before its last scan") : false;
}

/* Passes the next marker, whatever comes before it, and returns it; EOI if there is none. */
static int next_marker(struct lossless *c)
{
    for (; c->size - c->at >= 2; c->at++)
        if (c->bytes[c->at] == 0xff && c->bytes[c->at + 1] != 0 && c->bytes[c->at + 1] != 0xff) {
            c->at += 2;
            return c->bytes[c->at - 1];
        }
    end_without_eoi(c);
    return EOI;
}

/* The file ends before the length of a marker. That is an error only if libjpeg rejects the marker itself. Always
 * returns false. */
static bool end_before_length(struct lossless *c, int marker)
{
    const bool known = is_skipped(marker) || marker == DHT || marker == DQT || marker == DRI || marker == SOS;
    return known ? end_without_eoi(c) : fail(c, "it has an unknown marker");
}

/* Moves to the data of the next scan. Returns false if there is none or something is wrong. */
static bool next_scan(struct lossless *c)
{
    for (int marker; (marker = next_marker(c)) != EOI;) {
        if (marker == TEM || (marker >= RST0 && marker < SOI)) /* these have no length */
            continue;
        const size_t left = c->size - c->at;
        if (left < 2)
            return end_before_length(c, marker);
        const size_t length = be16(c->bytes + c->at);
        if (length > left && is_skipped(marker))
            return end_without_eoi(c);
        if (length > left || (length < 2 && !is_skipped(marker)))
            return fail(c, "a marker is cut off, or has a wrong length");
        const size_t n = length < 2 ? 0 : length - 2;
        if (!read_segment(c, marker, c->bytes + c->at + 2, n))
            return false;
        c->at += 2 + n;
        if (marker == SOS)
            return true;
    }
    return false;
}

/* Whether libjpeg does not convert the colours. It takes others for YCbCr or YCCK. */
static bool plain_colours(const struct lossless *c)
{
    if (c->n == 1)
        return true;
    return (c->n == 3 || c->n == 4) && !(c->n == 3 && c->jfif) && !(c->adobe && c->transform != 0);
}

/* ------------------------------------------------------------------ differences */

static void refill(struct bits *b)
{
    while (b->n <= 56) {
        uint64_t byte = 0;
        if (b->end - b->p > (b->p < b->end && b->p[0] == 0xff) && (b->p[0] != 0xff || b->p[1] == 0)) {
            byte = b->p[0];
            b->p += byte == 0xff ? 2 : 1; /* FF is followed by a stuffed 0 */
        } else
            b->made_up += 8;
        b->next |= byte << (56 - b->n);
        b->n += 8;
    }
}

static void drop(struct bits *b, int n)
{
    b->next <<= n;
    b->n -= n;
}

/* Returns the next difference; 0, with b->bad set, if the next bits are not a code of the table. */
static int32_t difference(struct bits *b, const struct table *t)
{
    refill(b);
    const int code = huff_codes_find(&t->codes, b->next);
    if (code < 0) {
        b->bad = true;
        return 0;
    }
    const int size = code >> 8;
    drop(b, code & 255);
    if (size == 0)
        return 0;
    if (size == DIFFERENCE_MAX)
        return 32768;
    const int32_t v = (int32_t)(b->next >> (64 - size));
    drop(b, size);
    return v < 1 << (size - 1) ? v - (1 << size) + 1 : v;
}

/* Decodes one row of MCUs. y: for a component in a scan of its own, which of its rows in the group. */
static bool decode_row(struct lossless *c, int32_t y, int32_t mcus)
{
    for (int32_t x = 0; x < mcus; x++) {
        for (int i = 0; i < c->n_scan; i++) {
            const struct component *k = c->scan[i];
            const struct table *t = &c->tables[k->table];
            const int32_t h = c->n_scan == 1 ? 1 : k->h, v = c->n_scan == 1 ? 1 : k->v;
            for (int32_t j = 0; j < v; j++)
                for (int32_t s = 0; s < h; s++)
                    k->diff[(y + j) * k->across + x * h + s] = difference(&c->in, t);
        }
        if (c->in.bad || c->in.n < c->in.made_up)
            return fail(c, "its data is cut off or damaged");
    }
    return true;
}

static bool skip_restart(struct lossless *c, int number)
{
    struct bits *b = &c->in;
    if (b->end - b->p < 2 || b->p[0] != 0xff || b->p[1] != RST0 + number % 8)
        return fail(c, "a restart marker is missing");
    *b = (struct bits){.p = b->p + 2, .end = b->end};
    for (int i = 0; i < c->n; i++)
        c->of[i].fresh = true;
    return true;
}

/* ------------------------------------------------------------------ samples */

static int32_t predict(int32_t predictor, int32_t left, int32_t above, int32_t corner)
{
    switch (predictor) {
    case 1:
        return left;
    case 2:
        return above;
    case 3:
        return corner;
    case 4:
        return left + above - corner;
    case 5:
        return left + ((above - corner) >> 1);
    case 6:
        return above + ((left - corner) >> 1);
    default:
        return (left + above) >> 1;
    }
}

/* Makes a row from its differences. The first row, and the first after a restart, is predicted from the left; the
 * first column from above. */
static void add_up(const struct lossless *c, struct component *k, const int32_t *diff, uint8_t *to)
{
    int32_t left = k->fresh ? 1 << (7 - c->shift) : k->above[0], corner = left;
    for (int32_t x = 0; x < k->w; x++) {
        const int32_t above = k->above[x];
        const int32_t guess = k->fresh || x == 0 ? left : predict(c->predictor, left, above, corner);
        left = (guess + diff[x]) & 0xffff;
        corner = above;
        k->above[x] = (uint16_t)left;
        to[x] = (uint8_t)(left << c->shift);
    }
    k->fresh = false;
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Decodes the rows of MCUs that cover the same pixels in all components; several for a component in a scan of its
 * own. As in libjpeg, all are decoded before the first is added up, even with a restart in between. */
static bool decode_rows(struct lossless *c, int32_t group, int32_t *row, int32_t mcus)
{
    const bool alone = c->n_scan == 1;
    const int32_t rows = alone ? least(c->scan[0]->v, c->scan[0]->rows - *row) : 1;
    for (int32_t y = 0; y < rows; y++, ++*row) {
        const int32_t every = c->restart / mcus;
        if (every && *row > 0 && *row % every == 0 && !skip_restart(c, *row / every - 1))
            return false;
        if (!decode_row(c, y, mcus))
            return false;
    }
    for (int i = 0; i < c->n_scan; i++) {
        struct component *k = c->scan[i];
        const int32_t first = group * k->v, end = least(first + k->v, k->rows);
        for (int32_t y = first; y < end; y++)
            add_up(c, k, k->diff + (size_t)(y - first) * (size_t)k->across, k->plane + (size_t)y * (size_t)k->w);
    }
    return true;
}

/* Decodes down to row `end` of the image. */
static bool decode_scan(struct lossless *c, int32_t end)
{
    const int32_t mcus = c->n_scan == 1 ? c->scan[0]->w : (c->w + c->most_h - 1) / c->most_h;
    if (c->restart % mcus != 0)
        return fail(c, "its restart interval is not a whole number of rows");
    for (int i = 0; i < c->n; i++)
        c->of[i].fresh = true;
    for (int i = 0; i < c->n_scan; i++)
        c->scan[i]->there = true;
    c->in = (struct bits){.p = c->bytes + c->at, .end = c->bytes + c->size};
    int32_t row = 0;
    for (int32_t group = 0; group * c->most_v < end; group++)
        if (!decode_rows(c, group, &row, mcus))
            return false;
    c->at = (size_t)(c->in.p - c->bytes);
    return true;
}

static bool decode_scans(struct lossless *c, const struct image_job *job)
{
    const bool whole = job->whole || c->several;
    if (!decode_scan(c, whole ? c->h : job->crop.y + job->crop.h))
        return false;
    while (whole && next_scan(c))
        if (!c->several || !decode_scan(c, c->h))
            return c->several ? false : fail(c, "it has more scans than components");
    for (int i = 0; i < c->n; i++)
        if (!c->of[i].there)
            return fail(c, "a component has no scan");
    return c->wrong == NULL;
}

/* ------------------------------------------------------------------ pixels */

/* Writes a row of a component to the pixels of the crop. */
static void spread(const struct lossless *c, const struct component *k, const struct rect *crop, int32_t y, uint8_t *to,
                   size_t apart)
{
    const int32_t wide = c->most_h / k->h;
    const uint8_t *from = k->plane + (size_t)(y / (c->most_v / k->v)) * (size_t)k->w;
    for (int32_t x = crop->x; x < crop->x + crop->w; x++, to += apart)
        *to = from[x / wide];
}

static void store(const struct lossless *c, const struct rect *crop, int32_t y, uint8_t *inks, uint8_t *px)
{
    for (int i = 0; i < c->n; i++)
        spread(c, &c->of[i], crop, y, c->n == 4 ? inks + i : px + i, (size_t)(c->n == 4 ? 4 : 3));
    if (c->n == 4)
        cmyk_to_rgb(inks, px, (size_t)crop->w);
    for (int32_t x = 0; c->n == 1 && x < crop->w; x++)
        memset(px + 3 * (size_t)x, px[3 * (size_t)x], 3);
}

size_t jpeg_lossless_scratch(const struct head *h, const struct rect *crop)
{
    const size_t across = (size_t)h->w + FACTOR_MAX;
    const size_t one =
        size_add(arena_cost(size_mul((size_t)h->w, (size_t)h->h)),
                 arena_cost(across * FACTOR_MAX * sizeof(int32_t)) + arena_cost(across * sizeof(uint16_t)));
    return size_add(size_mul(one, COMPONENTS),
                    size_add(arena_cost(rgb_bytes(crop->w, crop->h)), arena_cost((size_t)crop->w * 4)));
}

/* Computes the sizes of the components, and allocates them. */
static bool lay_out(struct lossless *c, struct arena *a)
{
    for (int i = 0; i < c->n; i++) {
        struct component *k = &c->of[i];
        if (c->most_h % k->h || c->most_v % k->v)
            return fail(c, "its sampling factors do not divide each other");
        k->w = (c->w * k->h + c->most_h - 1) / c->most_h;
        k->rows = (c->h * k->v + c->most_v - 1) / c->most_v;
        k->across = (k->w + k->h - 1) / k->h * k->h;
        k->plane = arena_alloc(a, (size_t)k->w * (size_t)k->rows);
        k->diff = arena_alloc(a, (size_t)k->across * (size_t)k->v * sizeof *k->diff);
        k->above = arena_alloc(a, (size_t)k->across * sizeof *k->above);
        if (!k->plane || !k->diff || !k->above)
            return false;
        memset(k->above, 0, (size_t)k->across * sizeof *k->above);
    }
    return true;
}

int jpeg_lossless(const struct image_job *job, struct image *out, stk_error *e)
{
    const struct rect *crop = &job->crop;
    const struct head *h = job->head;
    const size_t stride = (size_t)crop->w * 3;
    struct lossless c = {.bytes = job->bytes, .size = job->n, .at = 2};
    bool good = next_scan(&c);
    if (good && (c.w != h->w || c.h != h->h || c.n != h->channels))
        good = fail(&c, "it has two frame headers that differ");
    if (good && !plain_colours(&c))
        good = fail(&c, "its colours are YCbCr or YCCK; only grey, RGB and CMYK are supported");
    c.several = c.n_scan < c.n;
    uint8_t *px = arena_alloc(job->arena, stride * (size_t)crop->h);
    uint8_t *inks = arena_alloc(job->arena, (size_t)crop->w * 4);
    good = good && lay_out(&c, job->arena);
    if (!px || !inks || (!good && !c.wrong && c.n_scan))
        return codec_no_arena(e);
    if (!good || !decode_scans(&c, job))
        return error_set(e, STK_EDATA, stage, "lossless JPEG: %s", c.wrong ? c.wrong : "it has no scan");
    for (int32_t y = 0; y < crop->h; y++)
        store(&c, crop, crop->y + y, inks, px + (size_t)y * stride);
    *out = (struct image){.px = px, .stride = stride, .w = crop->w, .h = crop->h, .channels = 3};
    return STK_OK;
}
