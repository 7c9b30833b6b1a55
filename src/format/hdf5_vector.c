/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_vector.c -- reads indexes of chunks that are arrays, as HDF5's "latest" format writes them.
 *
 * The index of a chunk counts the chunks of the dataset at its maximum size. A fixed array is one block, divided into
 * pages if it is long. An extensible array starts with some elements in the index block. Further elements are in data
 * blocks, whose size doubles every other time. The index block has the addresses of the first ones; super blocks have
 * those of the others:
 *
 *     index block:  elements | data blocks | super blocks
 *                                  |             +-> data blocks -> (pages) -> elements
 *                                  +-> elements
 */
#include <string.h>

#include "format/hdf5_index.h"

struct vector {
    const struct hdf5_view *v;
    struct hdf5_chunks *c;
    int order[HDF5_DIMS];    /* dimensions, the one that varies slowest first */
    int64_t most[HDF5_DIMS]; /* chunks along order[k] at its maximum size; for the first, at its current size */
    int64_t needed;          /* elements that belong to this dataset */
    int item;                /* bytes of an element */
    bool filtered;           /* an element also has the size and mask of the chunk */
    struct buf block;
};

enum { CHECKSUM = 4 };

/* The unlimited dimension comes first. false: too many elements to read. */
static bool number(struct vector *x)
{
    int slowest = 0, n = 1;
    for (int d = 0; d < x->c->ndim; d++)
        slowest = x->c->most[d] < 0 ? d : slowest;
    x->order[0] = slowest;
    for (int d = 0; d < x->c->ndim; d++)
        if (d != slowest)
            x->order[n++] = d;
    x->needed = 1;
    for (int k = 0; k < n; k++) {
        const int d = x->order[k];
        const int64_t most = x->c->most[d], chunk = x->c->chunk[d];
        x->most[k] = k == 0 ? x->c->grid[d] : most / chunk + (most % chunk != 0);
        if (x->most[k] < x->c->grid[d] || x->most[k] > HDF5_CHUNKS_MOST || (x->needed *= x->most[k]) > HDF5_CHUNKS_MOST)
            return false;
    }
    return true;
}

/* The chunk of element i; -1: outside the current size of the dataset. */
static int64_t chunk_of(const struct vector *x, int64_t i)
{
    int64_t at[HDF5_DIMS], number = 0;
    for (int k = x->c->ndim - 1; k >= 0; k--) {
        at[x->order[k]] = k > 0 ? i % x->most[k] : i;
        i /= x->most[k];
    }
    for (int d = 0; d < x->c->ndim; d++) {
        if (at[d] >= x->c->grid[d])
            return -1;
        number = number * x->c->grid[d] + at[d];
    }
    return number;
}

static bool take(struct vector *x, int64_t i, const uint8_t *p)
{
    const int o = x->v->offset_bytes, width = x->item - o - 4;
    const int64_t at = hdf5_address(x->v, p), chunk = i < x->needed && at >= 0 ? chunk_of(x, i) : -1;
    if (chunk < 0)
        return true;
    const int64_t bytes = x->filtered ? hdf5_number(p + o, width) : x->c->chunk_bytes;
    const int64_t mask = x->filtered ? hdf5_number(p + o + width, 4) : 0;
    return hdf5_chunks_put(x->v, x->c, chunk, at, bytes, (uint32_t)mask);
}

/* Reads n elements at `at`; the first is element i. */
static const char *take_all(struct vector *x, int64_t i, int64_t at, int64_t n)
{
    if (i >= x->needed)
        return NULL;
    n = n < x->needed - i ? n : x->needed - i;
    const size_t bytes = (size_t)n * (size_t)x->item;
    if (buf_reserve(&x->block, bytes))
        return HDF5_NO_MEMORY;
    if (!hdf5_view_read(x->v, at, x->block.data, bytes))
        return HDF5_CUT;
    for (int64_t k = 0; k < n; k++)
        if (!take(x, i + k, x->block.data + k * x->item))
            return HDF5_INDEX_DAMAGED;
    return NULL;
}

/* Pages of elements, each with a checksum. A bit per page says whether it was written. */
static const char *take_pages(struct vector *x, int64_t i, int64_t at, int64_t n, int64_t page, const uint8_t *bits)
{
    const char *why = NULL;
    for (int64_t p = 0; p * page < n && !why; p++) {
        const int64_t some = n - p * page < page ? n - p * page : page;
        if (bits[p / 8] & 0x80 >> p % 8)
            why = take_all(x, i + p * page, at + p * (page * x->item + CHECKSUM), some);
    }
    return why;
}

static bool item_right(struct vector *x, int kind, int item)
{
    const int o = x->v->offset_bytes;
    x->filtered = kind == 1;
    x->item = item;
    return kind == 0 ? item == o : kind == 1 && item > o + 4 && item <= o + 12;
}

const char *hdf5_implicit_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c)
{
    struct vector x = {.v = v, .c = c};
    if (!number(&x))
        return HDF5_TOO_MANY;
    for (int64_t i = 0; i < x.needed; i++) {
        const int64_t chunk = chunk_of(&x, i);
        if (chunk >= 0 && !hdf5_chunks_put(v, c, chunk, at + i * c->chunk_bytes, c->chunk_bytes, 0))
            return HDF5_INDEX_DAMAGED;
    }
    return NULL;
}

/* ------------------------------------------------------------------ fixed */

/* "FADB", version, kind, header, a bit per page?, then elements, or a checksum and pages. */
static const char *fixed_block(struct vector *x, int64_t at, int64_t n, int page_bits)
{
    const int64_t page = (int64_t)1 << page_bits, pages = n / page + (n % page != 0);
    const int64_t head = 6 + x->v->offset_bytes, bytes = n > page ? pages / 8 + (pages % 8 != 0) : 0;
    if (n <= page)
        return take_all(x, 0, at + head, n);
    struct buf bits = {0};
    const char *why = HDF5_NO_MEMORY;
    if (buf_reserve(&bits, (size_t)bytes) == 0)
        why = hdf5_view_read(x->v, at + head, bits.data, (size_t)bytes)
                  ? take_pages(x, 0, at + head + bytes + CHECKSUM, n, page, bits.data)
                  : HDF5_CUT;
    buf_done(&bits);
    return why;
}

/* "FAHD", version, kind, size of an element, log2 of the size of a page, elements, data block, checksum. */
const char *hdf5_fixed_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c)
{
    struct vector x = {.v = v, .c = c};
    uint8_t head[8 + 8 + 8];
    if (!number(&x))
        return HDF5_TOO_MANY;
    if (!hdf5_view_read(v, at, head, 8 + (size_t)v->length_bytes + (size_t)v->offset_bytes))
        return HDF5_CUT;
    const int64_t n = hdf5_number(head + 8, v->length_bytes), block = hdf5_address(v, head + 8 + v->length_bytes);
    if (memcmp(head, "FAHD", 4) != 0 || !item_right(&x, head[5], head[6]) || head[7] > 32 || n < 0 ||
        n > HDF5_CHUNKS_MOST)
        return HDF5_INDEX_DAMAGED;
    const char *why = block < 0 ? NULL : fixed_block(&x, block, n, head[7]);
    buf_done(&x.block);
    return why;
}

/* ------------------------------------------------------------------ extensible */

struct extensible {
    struct vector x;
    int number_bytes; /* size of the index of an element, in blocks */
    int own;          /* elements in the index block */
    int least;        /* elements of the smallest data block */
    int direct;       /* data blocks in the index block */
    int64_t page;
};

/* Super block g: how many data blocks it has, and their elements. */
static int64_t group_blocks(int g)
{
    return (int64_t)1 << g / 2;
}
static int64_t group_elements(const struct extensible *e, int g)
{
    return e->least * ((int64_t)1 << (g + 1) / 2);
}

/* "EADB", version, kind, header, index of the first element, then elements, or a checksum and pages. */
static const char *data_block(struct extensible *e, int64_t i, int64_t at, int64_t n, const uint8_t *bits)
{
    const int64_t head = 6 + e->x.v->offset_bytes + e->number_bytes;
    if (at < 0)
        return NULL;
    if (n <= e->page)
        return take_all(&e->x, i, at + head, n);
    return bits ? take_pages(&e->x, i, at + head + CHECKSUM, n, e->page, bits) : HDF5_INDEX_DAMAGED;
}

/* "EASB", version, kind, header, index of the first element, a bit per page for each data block?, data blocks,
 * checksum.
 */
static const char *super_block(struct extensible *e, int64_t i, int64_t at, int g)
{
    const int64_t o = e->x.v->offset_bytes, blocks = group_blocks(g), n = group_elements(e, g);
    const int64_t pages = n > e->page ? n / e->page : 0, bits = pages / 8 + (pages % 8 != 0);
    struct buf body = {0};
    const size_t bytes = (size_t)(blocks * (bits + o));
    const char *why = NULL;
    if (at < 0)
        return NULL;
    if (buf_reserve(&body, bytes))
        why = HDF5_NO_MEMORY;
    else if (!hdf5_view_read(e->x.v, at + 6 + o + e->number_bytes, body.data, bytes))
        why = HDF5_CUT;
    for (int64_t b = 0; b < blocks && !why && i + b * n < e->x.needed; b++)
        why = data_block(e, i + b * n, hdf5_address(e->x.v, body.data + blocks * bits + b * o), n,
                         pages ? body.data + b * bits : NULL);
    buf_done(&body);
    return why;
}

/* Reads what follows the elements of the index block: addresses of data blocks, then of super blocks. */
static const char *later_blocks(struct extensible *e, const uint8_t *addresses, int n_addresses)
{
    const char *why = NULL;
    int64_t i = e->own;
    int used = 0;
    for (int g = 0; i < e->x.needed && !why; g++) {
        const int64_t blocks = group_blocks(g), n = group_elements(e, g);
        const bool direct = used < e->direct;
        for (int64_t b = 0; b < (direct ? blocks : 1) && !why; b++, used++) {
            if (used >= n_addresses)
                return HDF5_INDEX_DAMAGED;
            const int64_t at = hdf5_address(e->x.v, addresses + used * e->x.v->offset_bytes);
            why = direct ? data_block(e, i + b * n, at, n, NULL) : super_block(e, i, at, g);
        }
        i += blocks * n;
    }
    return why;
}

/* "EAIB", version, kind, header, elements, data blocks, super blocks, checksum. */
static const char *index_block(struct extensible *e, int64_t at, int groups)
{
    const int64_t head = 6 + e->x.v->offset_bytes, elements = (int64_t)e->own * e->x.item;
    const int n = e->direct + groups;
    uint8_t addresses[(2 * 255 + 64) * 8];
    const char *why = take_all(&e->x, 0, at + head, e->own);
    if (why)
        return why;
    if (!hdf5_view_read(e->x.v, at + head + elements, addresses, (size_t)n * (size_t)e->x.v->offset_bytes))
        return HDF5_CUT;
    return later_blocks(e, addresses, n);
}

static int log_2(int n)
{
    int bits = 0;
    while (n >> (bits + 1))
        bits++;
    return bits;
}

static bool is_power(int n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* "EAHD", version, kind, size of an element, bits of an index, elements of the index block, of the smallest data block,
 * data blocks of the smallest super block, log2 of the size of a page, six statistics, index block, checksum. */
const char *hdf5_extensible_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c)
{
    struct extensible e = {.x = {.v = v, .c = c}};
    uint8_t head[12 + 6 * 8 + 8];
    const size_t figures = 6 * (size_t)v->length_bytes;
    if (!number(&e.x))
        return HDF5_TOO_MANY;
    if (!hdf5_view_read(v, at, head, 12 + figures + (size_t)v->offset_bytes))
        return HDF5_CUT;
    const int bits = head[7], least_group = head[10];
    if (memcmp(head, "EAHD", 4) != 0 || !item_right(&e.x, head[5], head[6]) || bits > 64 || head[11] > 32 ||
        !is_power(head[9]) || !is_power(least_group) || bits < log_2(head[9]))
        return HDF5_INDEX_DAMAGED;
    e.number_bytes = (bits + 7) / 8;
    e.own = head[8];
    e.least = head[9];
    e.direct = 2 * (least_group - 1);
    e.page = (int64_t)1 << head[11];
    const int64_t block = hdf5_address(v, head + 12 + figures);
    const int groups = 1 + bits - log_2(e.least) - 2 * log_2(least_group);
    const char *why = block < 0 ? NULL : groups < 0 ? HDF5_INDEX_DAMAGED : index_block(&e, block, groups);
    buf_done(&e.x.block);
    return why;
}
