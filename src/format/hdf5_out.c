/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_out.c -- writes an HDF5 file.
 *
 *     superblock | rows of column 0 | rows of column 1 | ... | heaps, as they fill | headers of datasets, of the group
 *
 * The maximum number of rows is known, so every column has its place from the start and its rows are contiguous. An
 * element of variable length is a reference; its bytes are in a heap. The headers come last, when the number of rows is
 * known. The superblock is written after them; before that, the file is not valid HDF5. Everything has the oldest
 * version that suffices, which every library reads. The file contains no times.
 */
#include "format/hdf5_out.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/size.h"

enum { FIRST_BLOCK = 96, HEAP = 4096, HEAP_HEAD = 16, BUFFER = 1 << 18, WORDS_MOST = 4000 };
enum { SPACE = 1, LINKS = 2, TYPE = 3, FILL = 5, LINK = 6, LAYOUT = 8, GROUP = 10, ATTRIBUTE = 12 }; /* messages */

static const uint8_t nowhere[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static int no_memory(size_t n, stk_error *e)
{
    return error_nomem(e, "write", n);
}

static int put_number(struct buf *b, uint64_t v, size_t bytes)
{
    uint8_t p[8];
    for (size_t i = 0; i < sizeof p; i++)
        p[i] = (uint8_t)(v >> 8 * i);
    return buf_add(b, p, bytes);
}

static int put_zeros(struct buf *b, size_t n)
{
    static const uint8_t zeros[64];
    int rc = 0;
    for (size_t k; n > 0 && rc == 0; n -= k) {
        k = n < sizeof zeros ? n : sizeof zeros;
        rc = buf_add(b, zeros, k);
    }
    return rc;
}

static size_t to_eight(size_t n)
{
    return size_add(n, 7) & ~(size_t)7;
}

static int pad(struct buf *b)
{
    return put_zeros(b, to_eight(b->len) - b->len);
}

static int write_out(const struct hdf5_out *o, struct buf *b, int64_t at, stk_error *e)
{
    const int why = b->len ? file_write_at(o->fd, b->data, b->len, at) : 0;
    b->len = 0;
    return why ? error_os(e, why, "write", "cannot write it") : STK_OK;
}

static int write_tail(struct hdf5_out *o, stk_error *e)
{
    const int64_t at = o->end;
    o->end += (int64_t)o->tail.len;
    return write_out(o, &o->tail, at, e);
}

/* ------------------------------------------------------------------ heaps */

/* "GCOL", version, 3 bytes, the size; objects; object 0 is the free space after them. */
static int close_heap(struct hdf5_out *o, stk_error *e)
{
    struct buf *t = &o->tail;
    const size_t used = HEAP_HEAD + o->heap.len, all = used < HEAP ? HEAP : used, left = all - used;
    if (o->heap.len == 0)
        return STK_OK;
    int rc = buf_add(t, "GCOL\1\0\0", 8) || put_number(t, all, 8) || buf_add(t, o->heap.data, o->heap.len);
    if (rc == 0 && left >= HEAP_HEAD)
        rc = put_zeros(t, 8) || put_number(t, left, 8) || put_zeros(t, left - HEAP_HEAD);
    else if (rc == 0)
        rc = put_zeros(t, left);
    o->heap.len = 0;
    o->in_heap = 0;
    if (rc)
        return no_memory(all, e);
    return t->len < BUFFER ? STK_OK : write_tail(o, e);
}

/* An object: index (2), references (2), 4 bytes, its size (8), its bytes. A reference to it has 16 bytes. */
static int put_object(struct hdf5_out *o, const void *bytes, size_t n, size_t items, struct buf *reference,
                      stk_error *e)
{
    if (n == 0)
        return put_zeros(reference, 16) ? no_memory(16, e) : STK_OK;
    int rc = STK_OK;
    if (items > UINT32_MAX)
        return error_set(e, STK_EDATA, "pack",
                         "has %zu elements, but HDF5 stores at most 4294967295 in a row of variable length", items);
    if (size_add(o->heap.len, to_eight(n)) > HEAP - 2 * HEAP_HEAD)
        rc = close_heap(o, e);
    if (rc != STK_OK)
        return rc;
    struct buf *h = &o->heap;
    const unsigned number = ++o->in_heap;
    if (put_number(h, number, 2) || put_zeros(h, 6) || put_number(h, n, 8) || buf_add(h, bytes, n) || pad(h) ||
        put_number(reference, items, 4) || put_number(reference, (uint64_t)o->end + o->tail.len, 8) ||
        put_number(reference, number, 4))
        return no_memory(n, e);
    return STK_OK;
}

/* ------------------------------------------------------------------ rows */

int hdf5_out_open(struct hdf5_out *o, int fd, int64_t most_rows, stk_error *e)
{
    *o = (struct hdf5_out){.fd = fd, .most_rows = most_rows, .end = FIRST_BLOCK};
    o->columns = calloc(HDF5_OUT_COLUMNS, sizeof *o->columns);
    return o->columns ? STK_OK : no_memory(HDF5_OUT_COLUMNS * sizeof *o->columns, e);
}

void hdf5_out_done(struct hdf5_out *o)
{
    for (int c = 0; c < o->n_columns; c++)
        buf_done(&o->columns[c].buffer);
    free(o->columns);
    buf_done(&o->tail);
    buf_done(&o->heap);
    *o = (struct hdf5_out){0};
}

int hdf5_out_column(struct hdf5_out *o, const struct hdf5_out_column *column, stk_error *e)
{
    if (o->n_columns == HDF5_OUT_COLUMNS)
        return error_set(e, STK_EBUG, "write", "more than %d columns", HDF5_OUT_COLUMNS);
    struct hdf5_out_column *c = &o->columns[o->n_columns];
    *c = *column;
    c->row_bytes = c->form == HDF5_OUT_FIXED ? dtype_bytes(c->dtype) : 16;
    for (int d = 0; d < c->ndim && c->form == HDF5_OUT_FIXED; d++)
        c->row_bytes = size_mul(c->row_bytes, (size_t)c->shape[d]);
    const size_t all = to_eight(size_mul(c->row_bytes, (size_t)o->most_rows));
    if (all > (size_t)INT64_MAX / (2 * HDF5_OUT_COLUMNS))
        return error_set(e, STK_EUSAGE, "write", "%s would be larger than a file can be", c->name);
    c->at = o->end;
    o->end += (int64_t)all;
    o->n_columns++;
    return STK_OK;
}

static int flush(const struct hdf5_out *o, struct hdf5_out_column *c, stk_error *e)
{
    return write_out(o, &c->buffer, c->at + c->rows * (int64_t)c->row_bytes - (int64_t)c->buffer.len, e);
}

int hdf5_out_row(struct hdf5_out *o, int number, const void *bytes, size_t n, stk_error *e)
{
    struct hdf5_out_column *c = &o->columns[number];
    int rc = STK_OK;
    if (c->form == HDF5_OUT_TEXT && n > 0 && memchr(bytes, 0, n))
        return error_set(e, STK_EDATA, "pack", "%s contains a zero byte, which ends text in HDF5; read it as %s:bytes",
                         c->name, c->name);
    if (c->form == HDF5_OUT_FIXED)
        rc = n != c->row_bytes ? error_set(e, STK_EBUG, "write", "%s has %zu bytes, not %zu", c->name, n, c->row_bytes)
             : buf_add(&c->buffer, bytes, n) ? no_memory(n, e)
                                             : STK_OK;
    else
        rc = put_object(o, bytes, n, c->form == HDF5_OUT_TEXT ? n : n / dtype_bytes(c->dtype), &c->buffer, e);
    if (rc != STK_OK)
        return rc;
    c->rows++;
    return c->buffer.len >= BUFFER ? flush(o, c, e) : STK_OK;
}

/* ------------------------------------------------------------------ types */

/* Class and version (1), bits (3), size (4), first bit (2), count of bits (2). */
static int put_integer(struct buf *b, uint8_t kind, uint8_t bits, size_t size)
{
    const uint8_t head[4] = {(uint8_t)(0x10 | kind), bits};
    return buf_add(b, head, sizeof head) || put_number(b, size, 4) || put_number(b, 0, 2) || put_number(b, 8 * size, 2);
}

/* The same, then first bit and count of the exponent, of the fraction, bias (4). */
static int put_float(struct buf *b, size_t size, uint8_t exponent, uint8_t fraction)
{
    const uint8_t head[4] = {0x11, 0x20, (uint8_t)(8 * size - 1)};
    const uint8_t parts[4] = {fraction, exponent, 0, fraction};
    return buf_add(b, head, sizeof head) || put_number(b, size, 4) || put_number(b, 0, 2) ||
           put_number(b, 8 * size, 2) || buf_add(b, parts, sizeof parts) ||
           put_number(b, (1u << (exponent - 1)) - 1, 4);
}

/* As h5py writes it: an enumeration of a byte. */
static int put_bool(struct buf *b)
{
    static const uint8_t head[8] = {0x18, 2, 0, 0, 1}, names[18] = "FALSE\0\0\0TRUE\0\0\0\0\0\1";
    return buf_add(b, head, sizeof head) || put_integer(b, 0, 8, 1) || buf_add(b, names, sizeof names);
}

static int put_element(struct buf *b, stk_dtype t)
{
    const bool is_signed = t == STK_INT8 || t == STK_INT16 || t == STK_INT32 || t == STK_INT64;
    switch (t) {
    case STK_FLOAT16:
        return put_float(b, 2, 5, 10);
    case STK_BFLOAT16:
        return put_float(b, 2, 8, 7);
    case STK_FLOAT32:
        return put_float(b, 4, 8, 23);
    case STK_FLOAT64:
        return put_float(b, 8, 11, 52);
    case STK_BOOL:
        return put_bool(b);
    default:
        return put_integer(b, 0, is_signed ? 8 : 0, dtype_bytes(t));
    }
}

/* Variable length: bits 0 to 3 mean text, 8 to 11 UTF-8. */
static int put_type(struct buf *b, enum hdf5_form form, stk_dtype t)
{
    static const uint8_t run[8] = {0x19, 0, 0, 0, 16}, text[8] = {0x19, 1, 1, 0, 16};
    if (form == HDF5_OUT_FIXED)
        return put_element(b, t);
    return buf_add(b, form == HDF5_OUT_TEXT ? text : run, 8) || put_element(b, form == HDF5_OUT_TEXT ? STK_UINT8 : t);
}

static int put_space(struct buf *b, int64_t rows, int ndim, const int64_t *shape)
{
    const uint8_t head[8] = {1, (uint8_t)(ndim + 1)};
    int rc = buf_add(b, head, sizeof head) || put_number(b, (uint64_t)rows, 8);
    for (int d = 0; d < ndim && rc == 0; d++)
        rc = put_number(b, (uint64_t)shape[d], 8);
    return rc;
}

/* ------------------------------------------------------------------ headers */

/* A header of version 1: messages, each with type (2), size (2), flags, 3 bytes. */
struct header {
    struct buf messages;
    size_t begun; /* offset of the last message */
    unsigned n;
    bool failed;
};

static struct buf *begin(struct header *h, int type)
{
    h->failed |= put_number(&h->messages, (uint64_t)type, 2) || put_zeros(&h->messages, 6);
    h->begun = h->messages.len;
    h->n++;
    return &h->messages;
}

static void end(struct header *h)
{
    h->failed = h->failed || pad(&h->messages);
    const size_t n = h->messages.len - h->begun;
    if (h->failed || (h->failed = n > UINT16_MAX))
        return;
    h->messages.data[h->begun - 6] = (uint8_t)n;
    h->messages.data[h->begun - 5] = (uint8_t)(n >> 8);
}

/* Version, 0, messages (2), references (4), size (4), 4 bytes; appended to tail. *at: its offset. */
static int finish(struct hdf5_out *o, struct header *h, int64_t *at, stk_error *e)
{
    struct buf *t = &o->tail;
    h->failed |= pad(t) != 0;
    *at = o->end + (int64_t)t->len;
    h->failed = h->failed || put_number(t, 1, 2) || put_number(t, h->n, 2) || put_number(t, 1, 4) ||
                put_number(t, h->messages.len, 4) || put_zeros(t, 4) || buf_add(t, h->messages.data, h->messages.len);
    const int rc = h->failed ? no_memory(h->messages.len, e) : STK_OK;
    buf_done(&h->messages);
    return rc;
}

/* Names as an attribute: version, 0, sizes of name, type and space (2 each), and these, padded; references. */
static int put_words(struct hdf5_out *o, struct header *h, const struct hdf5_out_column *c, stk_error *e)
{
    struct buf references = {0};
    struct buf *b;
    int rc = STK_OK;
    for (int i = 0; i < c->n_words && rc == STK_OK; i++)
        rc = put_object(o, c->words[i], strlen(c->words[i]), strlen(c->words[i]), &references, e);
    if (rc == STK_OK)
        rc = close_heap(o, e);
    b = begin(h, ATTRIBUTE);
    h->failed |= put_number(b, 1, 2) || put_number(b, 8, 2) || put_number(b, 20, 2) || put_number(b, 16, 2) ||
                 buf_add(b, "classes", 8) || put_type(b, HDF5_OUT_TEXT, STK_UINT8) || put_zeros(b, 4) ||
                 put_space(b, c->n_words, 0, NULL) || buf_add(b, references.data, references.len);
    end(h);
    buf_done(&references);
    return rc;
}

static int put_dataset(struct hdf5_out *o, struct hdf5_out_column *c, int64_t *at, stk_error *e)
{
    static const uint8_t fill[4] = {2, 2, 2, 0}, layout[2] = {3, 1}; /* no filters; contiguous */
    const uint64_t bytes = c->row_bytes * (uint64_t)c->rows;
    struct header h = {0};
    int rc = flush(o, c, e);
    struct buf *b = begin(&h, SPACE);
    h.failed |= put_space(b, c->rows, c->form == HDF5_OUT_FIXED ? c->ndim : 0, c->shape) != 0;
    end(&h);
    h.failed |= put_type(begin(&h, TYPE), c->form, c->dtype) != 0;
    end(&h);
    h.failed |= buf_add(begin(&h, FILL), fill, sizeof fill) != 0;
    end(&h);
    b = begin(&h, LAYOUT);
    h.failed |= buf_add(b, layout, sizeof layout) ||
                (bytes ? put_number(b, (uint64_t)c->at, 8) : buf_add(b, nowhere, 8)) || put_number(b, bytes, 8);
    end(&h);
    if (rc == STK_OK && c->words && c->n_words > 0 && c->n_words <= WORDS_MOST)
        rc = put_words(o, &h, c, e);
    const int made = finish(o, &h, at, e);
    return rc == STK_OK ? made : rc;
}

/* Names that do not fit into an attribute become a dataset. */
static int put_many_words(struct hdf5_out *o, const struct hdf5_out_column *of, stk_error *e)
{
    const struct hdf5_out_column words = {.name = "classes", .form = HDF5_OUT_TEXT};
    const char *const *word = of->words;
    const int n = of->n_words, number = o->n_columns;
    o->most_rows = n;
    int rc = close_heap(o, e);
    if (rc == STK_OK)
        rc = write_tail(o, e);
    if (rc == STK_OK)
        rc = hdf5_out_column(o, &words, e);
    for (int i = 0; i < n && rc == STK_OK; i++)
        rc = hdf5_out_row(o, number, word[i], strlen(word[i]), e);
    return rc;
}

/* The group: its header has a link to every dataset. */
static int put_group(struct hdf5_out *o, const int64_t *at, int64_t *group, stk_error *e)
{
    static const uint8_t version[2];
    struct header h = {0};
    struct buf *b = begin(&h, LINKS);
    h.failed |= buf_add(b, version, 2) || buf_add(b, nowhere, 8) || buf_add(b, nowhere, 8);
    end(&h);
    h.failed |= buf_add(begin(&h, GROUP), version, 2) != 0;
    end(&h);
    for (int c = 0; c < o->n_columns; c++) {
        const char *name = o->columns[c].name;
        const uint8_t head[4] = {1, 0x10, 1, (uint8_t)strlen(name)}; /* version, flags, UTF-8, length of the name */
        b = begin(&h, LINK);
        h.failed |= buf_add(b, head, sizeof head) || buf_add_str(b, name) || put_number(b, (uint64_t)at[c], 8);
        end(&h);
    }
    return finish(o, &h, group, e);
}

/* Magic, versions (5), sizes of addresses and of lengths, 0, two parameters of B-trees (2 each), flags (4); addresses:
 * base, free space, end, driver; the group: name, header, 24 bytes. */
static int put_first_block(struct hdf5_out *o, int64_t group, stk_error *e)
{
    static const uint8_t head[24] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n', 0, 0, 0, 0, 0, 8, 8, 0, 4, 0, 16};
    struct buf b = {0};
    int rc = STK_OK;
    if (buf_add(&b, head, sizeof head) || put_zeros(&b, 8) || buf_add(&b, nowhere, 8) ||
        put_number(&b, (uint64_t)o->end, 8) || buf_add(&b, nowhere, 8) || put_zeros(&b, 8) ||
        put_number(&b, (uint64_t)group, 8) || put_zeros(&b, 24))
        rc = no_memory(FIRST_BLOCK, e);
    if (rc == STK_OK)
        rc = write_out(o, &b, 0, e);
    buf_done(&b);
    return rc;
}

int hdf5_out_end(struct hdf5_out *o, stk_error *e)
{
    int64_t at[HDF5_OUT_COLUMNS], group = 0;
    int rc = STK_OK;
    for (int c = o->n_columns - 1; c >= 0 && rc == STK_OK; c--)
        if (o->columns[c].n_words > WORDS_MOST)
            rc = put_many_words(o, &o->columns[c], e);
    if (rc == STK_OK)
        rc = close_heap(o, e);
    for (int c = 0; c < o->n_columns && rc == STK_OK; c++)
        rc = put_dataset(o, &o->columns[c], &at[c], e);
    if (rc == STK_OK)
        rc = put_group(o, at, &group, e);
    if (rc == STK_OK)
        rc = write_tail(o, e);
    return rc == STK_OK ? put_first_block(o, group, e) : rc;
}
