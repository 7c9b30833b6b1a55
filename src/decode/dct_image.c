/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_image.c -- the layout of a DCT image, writing and reading it. All numbers are little-endian.
 *
 *     head      magic with the version (8 bytes); width, height, bytes of the whole, odd (see struct head) (4 each);
 *               sampling, channels, orientation, 0 (1 each); 4 unused
 *     tables    64 quantisers of 2 bytes for each component, in natural order
 *     index     offset of each chunk (4 bytes), and the end of the last one
 *     chunks    of DCT_CHUNK MCUs, row by row; the last of a row has what is left
 *     slack     DCT_SLACK zeros
 *
 * A chunk has the lengths of columns, small, bytes and words (2 bytes each), then the six streams of dct_block.h.
 * Blocks follow each other MCU by MCU, in the order of a scan.
 */
#include "decode/dct_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/size.h"

static const uint8_t magic[8] = {'S', 't', 'o', 'k', 'D', 'C', 'T', 1};

enum {
    HEAD = 32,
    TABLE = 2 * JPEG_BLOCK,
    LENGTHS = 8,  /* of a chunk's streams */
    PER_BLOCK = 3 /* dc and rows */
};

static int blocks_of(const struct jpeg_frame *f)
{
    int n = 0;
    for (int i = 0; i < f->n_components; i++)
        n += f->component[i].h * f->component[i].v;
    return n;
}

static int32_t chunks_x(const struct jpeg_frame *f)
{
    return (f->mcus_x + DCT_CHUNK - 1) / DCT_CHUNK;
}

static size_t chunks_of(const struct jpeg_frame *f)
{
    return (size_t)chunks_x(f) * (size_t)f->mcus_y;
}

/* The chunks that `need` takes, if they are cut from its first MCU on. */
static size_t chunks_in(const struct jpeg_need *n)
{
    return (size_t)((n->x1 - n->x0 + DCT_CHUNK - 1) / DCT_CHUNK) * (size_t)(n->y1 - n->y0);
}

/* The places of the blocks of MCU m. */
static void find_place(const struct jpeg_frame *f, const struct jpeg_blocks *in, struct dct_place *out, int m)
{
    for (int i = 0; i < f->n_components; i++) {
        const struct jpeg_component *c = &f->component[i];
        for (int v = 0; v < c->v; v++)
            for (int h = 0; h < c->h; h++, out++) {
                const size_t at = (size_t)(m * c->h + h);
                *out = (struct dct_place){in->coef[i][v] + JPEG_BLOCK * at, in->last[i][v] + at};
            }
    }
}

/* ------------------------------------------------------------------ writing */

static void set_le16(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void set_le32(uint8_t *p, size_t v)
{
    set_le16(p, v);
    set_le16(p + 2, v >> 16);
}

/* Everything needed to write a chunk. */
struct writer {
    const struct jpeg_frame *f;
    dct_encode_fn *encode;
    struct buf *out;
    size_t start; /* of the DCT image in out */
    struct jpeg_blocks blocks;
    struct dct_place places[DCT_CHUNK_BLOCKS];
    int16_t coef[DCT_CHUNK_BLOCKS * JPEG_BLOCK];
    uint8_t last[DCT_CHUNK_BLOCKS];
    uint8_t dc[DCT_CHUNK_BLOCKS * 2], rows[DCT_CHUNK_BLOCKS];
    uint8_t columns[DCT_CHUNK_BLOCKS * DCT_MAX_COLUMNS + DCT_SLACK];
    uint8_t small[DCT_CHUNK_BLOCKS * DCT_MAX_SMALL + DCT_SLACK];
    uint8_t bytes[DCT_CHUNK_BLOCKS * DCT_MAX_BYTES + DCT_SLACK];
    uint8_t words[DCT_CHUNK_BLOCKS * DCT_MAX_WORDS + DCT_SLACK];
};

static void writer_places(struct writer *w)
{
    const struct jpeg_frame *f = w->f;
    jpeg_strip_blocks(&w->blocks, f, DCT_CHUNK, w->coef, w->last);
    for (int m = 0; m < DCT_CHUNK; m++)
        find_place(f, &w->blocks, w->places + m * blocks_of(f), m);
}

static bool add_stream(struct buf *out, const uint8_t *from, const uint8_t *end)
{
    return buf_add(out, from, (size_t)(end - from)) == 0;
}

static bool write_chunk(struct writer *w, int n)
{
    struct dct_out o = {w->dc, w->rows, w->columns, w->small, w->bytes, w->words};
    for (int i = 0; i < n; i++)
        w->encode(&o, w->places[i].coef);
    uint8_t lengths[LENGTHS];
    set_le16(lengths, (size_t)(o.columns - w->columns));
    set_le16(lengths + 2, (size_t)(o.small - w->small));
    set_le16(lengths + 4, (size_t)(o.bytes - w->bytes));
    set_le16(lengths + 6, (size_t)(o.words - w->words));
    return add_stream(w->out, lengths, lengths + LENGTHS) && add_stream(w->out, w->dc, o.dc) &&
           add_stream(w->out, w->rows, o.rows) && add_stream(w->out, w->columns, o.columns) &&
           add_stream(w->out, w->small, o.small) && add_stream(w->out, w->bytes, o.bytes) &&
           add_stream(w->out, w->words, o.words);
}

static bool write_head(struct writer *w, const struct head *h)
{
    const struct jpeg_frame *f = w->f;
    uint8_t head[HEAD] = {0};
    memcpy(head, magic, sizeof magic);
    set_le32(head + 8, (size_t)f->w);
    set_le32(head + 12, (size_t)f->h);
    set_le32(head + 20, h->odd);
    head[24] = (uint8_t)f->sampling;
    head[25] = (uint8_t)f->n_components;
    head[26] = (uint8_t)h->orientation;
    return buf_add(w->out, head, sizeof head) == 0;
}

static bool write_tables(struct writer *w)
{
    const struct jpeg_frame *f = w->f;
    for (int i = 0; i < f->n_components; i++) {
        uint8_t table[TABLE];
        for (size_t k = 0; k < JPEG_BLOCK; k++)
            set_le16(table + 2 * k, f->component[i].q[k]);
        if (buf_add(w->out, table, sizeof table))
            return false;
    }
    return true;
}

static bool write_chunks(struct writer *w, const struct jpeg_giver *from, const struct jpeg_need *need)
{
    const struct jpeg_frame *f = w->f;
    size_t index = w->out->len;
    if (buf_reserve(w->out, size_add(index, size_mul(chunks_in(need) + 1, 4))))
        return false;
    w->out->len += (chunks_in(need) + 1) * 4;
    for (int32_t y = need->y0; y < need->y1; y++)
        for (int32_t x = need->x0; x < need->x1; x += DCT_CHUNK, index += 4) {
            const int32_t left = need->x1 - x, n = left < DCT_CHUNK ? left : DCT_CHUNK;
            if (from->sparse)
                memset(w->coef, 0, (size_t)(DCT_CHUNK * blocks_of(f)) * JPEG_BLOCK * sizeof *w->coef);
            set_le32(w->out->data + index, w->out->len - w->start);
            if (!from->give(from->user, y, x, n, &w->blocks) || !write_chunk(w, n * blocks_of(f)))
                return false;
        }
    set_le32(w->out->data + index, w->out->len - w->start);
    return true;
}

static bool write_all(struct writer *w, const struct head *h, const struct jpeg_giver *from)
{
    static const uint8_t slack[DCT_SLACK];
    const struct jpeg_need all = {.x1 = w->f->mcus_x, .y1 = w->f->mcus_y};
    if (!write_head(w, h) || !write_tables(w) || !write_chunks(w, from, &all) || buf_add(w->out, slack, sizeof slack) ||
        w->out->len - w->start > UINT32_MAX)
        return false;
    set_le32(w->out->data + w->start + 16, w->out->len - w->start);
    return true;
}

static struct writer *writer_new(struct buf *out, const struct jpeg_frame *f, dct_encode_fn *encode)
{
    struct writer *w = malloc(sizeof *w);
    if (!w)
        return NULL;
    w->f = f;
    w->encode = encode;
    w->out = out;
    w->start = out->len;
    writer_places(w);
    return w;
}

bool dct_image_write(struct buf *out, const struct jpeg_frame *f, const struct head *h, const struct jpeg_giver *from,
                     dct_encode_fn *encode)
{
    struct writer *w = writer_new(out, f, encode);
    if (!w)
        return false;
    const bool good = write_all(w, h, from);
    if (!good)
        out->len = w->start;
    free(w);
    return good;
}

/* ------------------------------------------------------------------ reading */

static bool read_head(struct dct_image *p)
{
    const uint8_t *b = p->bytes;
    if (p->n < HEAD + DCT_SLACK || memcmp(b, magic, sizeof magic) != 0 || le32(b + 16) != p->n)
        return false;
    const uint32_t w = le32(b + 8), h = le32(b + 12);
    if (w == 0 || w > 65535 || h == 0 || h > 65535 || b[24] >= JPEG_SAMPLINGS || b[26] < 1 || b[26] > 8)
        return false;
    p->frame = (struct jpeg_frame){.w = (int32_t)w,
                                   .h = (int32_t)h,
                                   .sampling = (enum jpeg_sampling)b[24],
                                   .together = 1,
                                   .n_components = b[24] == JPEG_GREY ? 1 : JPEG_COMPONENTS};
    p->head = (struct head){.format = STK_JPEG,
                            .w = (int32_t)w,
                            .h = (int32_t)h,
                            .channels = b[25],
                            .bits = 8,
                            .orientation = b[26],
                            .odd = le32(b + 20)};
    return b[25] == p->frame.n_components && jpeg_frame_measure(&p->frame);
}

bool dct_image_open(struct dct_image *p, const uint8_t *bytes, size_t n)
{
    *p = (struct dct_image){.bytes = bytes, .n = n};
    if (!read_head(p))
        return false;
    struct jpeg_frame *f = &p->frame;
    p->blocks = blocks_of(f);
    const size_t tables = (size_t)f->n_components * TABLE, index = (chunks_of(f) + 1) * 4;
    const size_t blocks = (size_t)f->mcus_x * (size_t)f->mcus_y * (size_t)p->blocks;
    if (n - DCT_SLACK - HEAD < tables + index + chunks_of(f) * LENGTHS + blocks * PER_BLOCK)
        return false;
    for (int i = 0; i < f->n_components; i++)
        for (int k = 0; k < JPEG_BLOCK; k++)
            f->component[i].q[k] = le16(bytes + HEAD + i * TABLE + 2 * k);
    p->index = bytes + HEAD + tables;
    return true;
}

void dct_walk_begin(struct dct_walk *w, const struct dct_image *p, dct_decode_fn *decode)
{
    w->image = p;
    w->decode = decode;
    w->y = -1;
    w->known = NULL;
    for (int i = 0; i < DCT_CHUNK_BLOCKS; i++)
        w->nowhere[i] = (struct dct_place){w->waste, &w->waste_last};
}

/* Opens the streams of a chunk of n blocks, from `at` to `end`. */
static bool open_streams(struct dct_in *in, const uint8_t *at, const uint8_t *end, size_t n)
{
    const size_t columns = le16(at), small = le16(at + 2), bytes = le16(at + 4), words = le16(at + 6);
    if ((size_t)(end - at) != LENGTHS + n * PER_BLOCK + columns + small + bytes + words)
        return false;
    in->dc = at + LENGTHS;
    in->rows = in->dc + 2 * n;
    in->columns = in->rows + n;
    in->small = in->columns_end = in->columns + columns;
    in->bytes = in->small_end = in->small + small;
    in->words = in->bytes_end = in->bytes + bytes;
    in->words_end = in->words + words;
    return true;
}

/* Prefetches the next chunk of the row: the first bytes from memory are slow. */
static void prefetch(const struct dct_image *p, size_t at)
{
    enum { AHEAD = 1024, LINE = 64 };
    const size_t end = p->n - at < AHEAD ? p->n : at + AHEAD;
    for (; at < end; at += LINE)
        __builtin_prefetch(p->bytes + at);
}

/* Opens the chunk that contains MCU x of row y, at its start. */
static bool open_chunk(struct dct_walk *w, int32_t y, int32_t x)
{
    const struct dct_image *p = w->image;
    const struct jpeg_frame *f = &p->frame;
    const int32_t first = x / DCT_CHUNK * DCT_CHUNK, left = f->mcus_x - first, n = left < DCT_CHUNK ? left : DCT_CHUNK;
    const uint8_t *entry = p->index + 4 * ((size_t)y * (size_t)chunks_x(f) + (size_t)(x / DCT_CHUNK));
    const size_t at = le32(entry), end = le32(entry + 4), most = p->n - DCT_SLACK;
    w->y = -1;
    if (end > most || at > end || end - at < LENGTHS ||
        !open_streams(&w->in, p->bytes + at, p->bytes + end, (size_t)(n * p->blocks)))
        return false;
    prefetch(p, end);
    w->y = y;
    w->x = first;
    w->end = first + n;
    return true;
}

/* Decodes n MCUs of the open chunk. */
static bool take(struct dct_walk *w, const struct dct_place *to, int32_t n)
{
    w->x += n;
    return w->decode(&w->in, to, (size_t)(n * w->image->blocks));
}

bool dct_walk_give(void *walk, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to)
{
    struct dct_walk *w = walk;
    if (w->known != to) {
        for (int m = 0; m < JPEG_AT_ONCE; m++)
            find_place(&w->image->frame, to, w->places + m * w->image->blocks, m);
        w->known = to;
    }
    if ((w->y != y || w->x != x) && (!open_chunk(w, y, x) || !take(w, w->nowhere, x - w->x)))
        return false;
    for (int32_t done = 0; done < n;) {
        if (w->x == w->end && !open_chunk(w, y, w->x))
            return false;
        const int32_t left = w->end - w->x, k = left < n - done ? left : n - done;
        if (!take(w, w->places + done * w->image->blocks, k))
            return false;
        done += k;
    }
    return true;
}

/* ------------------------------------------------------------------ parts */

static void region_describe(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *n)
{
    p->used = 0;
    p->coded = false;
    p->every = 0;
    p->w = f->w;
    p->h = f->h;
    p->components = f->n_components;
    p->halves_columns = jpeg_frame_halves_columns(f);
    p->halves_rows = jpeg_frame_halves_rows(f);
    p->x = n->x0;
    p->y = n->y0;
    p->across = n->x1 - n->x0;
    p->down = n->y1 - n->y0;
}

bool dct_region_write(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                      const struct jpeg_giver *from, dct_encode_fn *encode)
{
    struct buf out = {.data = p->to, .cap = p->room, .max = p->room};
    struct writer *w = writer_new(&out, f, encode);
    region_describe(p, f, need);
    if (w && write_tables(w) && write_chunks(w, from, need))
        p->used = out.len;
    free(w);
    return p->used > 0;
}

/* Copies n chunks of a row, and adds their ends to the index. */
static bool copy_chunks(const struct dct_image *image, const struct jpeg_need *need, int32_t y, struct buf *out,
                        uint8_t **index)
{
    const size_t first = (size_t)y * (size_t)chunks_x(&image->frame) + (size_t)(need->x0 / DCT_CHUNK);
    const uint8_t *entry = image->index + 4 * first;
    const size_t begin = le32(entry), most = image->n - DCT_SLACK, base = out->len;
    size_t at = begin;
    for (int32_t x = need->x0; x < need->x1; x += DCT_CHUNK, entry += 4, *index += 4) {
        const int32_t left = need->x1 - x, n = left < DCT_CHUNK ? left : DCT_CHUNK;
        const size_t end = le32(entry + 4);
        struct dct_in in;
        if (end > most || at > end || end - at < LENGTHS ||
            !open_streams(&in, image->bytes + at, image->bytes + end, (size_t)(n * image->blocks)))
            return false;
        set_le32(*index, base + end - begin);
        at = end;
    }
    return buf_add(out, image->bytes + begin, at - begin) == 0;
}

bool dct_region_copy(struct dct_region *p, const struct dct_image *image, const struct jpeg_need *need)
{
    const struct jpeg_frame *f = &image->frame;
    struct jpeg_need whole = *need; /* chunks */
    whole.x0 = need->x0 / DCT_CHUNK * DCT_CHUNK;
    whole.x1 = (need->x1 + DCT_CHUNK - 1) / DCT_CHUNK * DCT_CHUNK;
    whole.x1 = whole.x1 < f->mcus_x ? whole.x1 : f->mcus_x;
    region_describe(p, f, &whole);
    struct buf out = {.data = p->to, .cap = p->room, .max = p->room};
    const size_t index = (chunks_in(&whole) + 1) * 4;
    if (buf_add(&out, image->bytes + HEAD, (size_t)f->n_components * TABLE) || buf_reserve(&out, out.len + index))
        return false;
    uint8_t *entry = out.data + out.len;
    out.len += index;
    set_le32(entry, out.len);
    entry += 4;
    for (int32_t y = whole.y0; y < whole.y1; y++)
        if (!copy_chunks(image, &whole, y, &out, &entry))
            return false;
    p->used = out.len;
    return true;
}

/* ------------------------------------------------------------------ files */

static const char file_magic[8] = "\x89stkDCT1";

bool dct_image_is_file(const uint8_t *bytes, size_t n)
{
    return n >= sizeof file_magic && memcmp(bytes, file_magic, sizeof file_magic) == 0;
}

int dct_image_check_file(const uint8_t *bytes, size_t n, stk_error *e)
{
    if (n < DCT_FILE_HEAD || le64(bytes + sizeof file_magic) != hash_bytes(bytes + DCT_FILE_HEAD, n - DCT_FILE_HEAD, 0))
        return error_set(e, STK_EDATA, "decode",
                         "is a damaged DCT file: its checksum does not match; pack the image again");
    return STK_OK;
}

int dct_image_begin_file(struct buf *out)
{
    static const uint8_t none[DCT_FILE_HEAD - sizeof file_magic];
    return buf_add(out, file_magic, sizeof file_magic) || buf_add(out, none, sizeof none) ? -1 : 0;
}

void dct_image_end_file(struct buf *out, size_t begin)
{
    const size_t at = begin + DCT_FILE_HEAD;
    const uint64_t sum = hash_bytes(out->data + at, out->len - at, 0);
    set_le32(out->data + begin + sizeof file_magic, (size_t)(sum & UINT32_MAX));
    set_le32(out->data + begin + sizeof file_magic + 4, (size_t)(sum >> 32));
}
