/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c -- reads and writes npy files. The header is the text of a Python dict:
 *
 *     \x93NUMPY  major minor  length  {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }  spaces  \n
 *
 * The parser accepts only what a header may contain: three keys with a string, a boolean and a tuple of integers.
 */
#include "format/npy.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

struct text {
    const char *p, *end;
    const char *why;
};

/* ------------------------------------------------------------------ types */

static const struct {
    const char *numpy;
    stk_dtype dtype;
} types[] = {
    {"b1", STK_BOOL},   {"i1", STK_INT8},    {"u1", STK_UINT8},   {"i2", STK_INT16},
    {"u2", STK_UINT16}, {"i4", STK_INT32},   {"u4", STK_UINT32},  {"i8", STK_INT64},
    {"u8", STK_UINT64}, {"f2", STK_FLOAT16}, {"f4", STK_FLOAT32}, {"f8", STK_FLOAT64},
};

static bool machine_is_big(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

bool npy_type(const char *text, size_t n, stk_dtype *dtype, bool *swapped)
{
    *swapped = false;
    for (int t = STK_FLOAT32; t <= STK_BOOL; t++)
        if (strlen(dtype_name((stk_dtype)t)) == n && memcmp(dtype_name((stk_dtype)t), text, n) == 0)
            return *dtype = (stk_dtype)t, true;
    const char order = n == 3 ? text[0] : '=';
    if (n < 2 || n > 3 || !strchr("<>=|", order))
        return false;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (memcmp(types[i].numpy, text + n - 2, 2) == 0) {
            *dtype = types[i].dtype;
            *swapped = dtype_bytes(*dtype) > 1 && order == (machine_is_big() ? '<' : '>');
            return true;
        }
    return false;
}

/* Why numbers of this type are refused. */
static const char *refusal(char kind)
{
    switch (kind) {
    case 'O':
        return "contains Python objects, which Stoker does not unpickle; save an array of numbers";
    case 'V':
        return "contains structures or raw bytes (V); Stoker reads plain numbers";
    case 'U':
    case 'S':
    case 'a':
        return "contains text of fixed width (U or S); Stoker reads plain numbers";
    case 'c':
        return "contains complex numbers; Stoker reads real ones";
    case 'M':
    case 'm':
        return "contains dates or times (M or m); Stoker reads plain numbers";
    default:
        return "its header has an unknown type";
    }
}

/* ------------------------------------------------------------------ the dict */

static bool fails(struct text *t, const char *why)
{
    if (!t->why)
        t->why = why;
    return false;
}

static void spaces(struct text *t)
{
    while (t->p < t->end && (*t->p == ' ' || *t->p == '\n' || *t->p == '\t' || *t->p == '\r'))
        t->p++;
}

static bool sees(struct text *t, char c)
{
    spaces(t);
    return t->p < t->end && *t->p == c;
}

static bool takes(struct text *t, char c)
{
    const bool there = sees(t, c);
    t->p += there;
    return there;
}

static bool takes_word(struct text *t, const char *word)
{
    const size_t n = strlen(word);
    spaces(t);
    if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0)
        return false;
    t->p += n;
    return true;
}

/* A string without escapes; points into the text. */
static bool string(struct text *t, const char **s, size_t *n)
{
    spaces(t);
    const char quote = t->p < t->end ? *t->p : 0;
    if (quote != '\'' && quote != '"')
        return fails(t, "its header is not a dict with three keys");
    const char *close = memchr(t->p + 1, quote, (size_t)(t->end - t->p - 1));
    if (!close)
        return fails(t, "its header ends inside a string");
    *s = t->p + 1;
    *n = (size_t)(close - *s);
    t->p = close + 1;
    return true;
}

static bool descr(struct text *t, struct npy *h)
{
    const char *s;
    size_t n;
    if (sees(t, '['))
        return fails(t, "contains structures (a type with named fields); Stoker reads plain numbers");
    if (!string(t, &s, &n))
        return false;
    if (npy_type(s, n, &h->dtype, &h->swapped))
        return true;
    const size_t mark = n > 0 && strchr("<>=|", s[0]) ? 1 : 0;
    return fails(t, refusal(n > mark ? s[mark] : 0));
}

static bool truth(struct text *t, bool *value)
{
    *value = takes_word(t, "True");
    return *value || takes_word(t, "False") || fails(t, "the fortran_order in its header is neither True nor False");
}

static bool whole_number(struct text *t, int64_t *value)
{
    spaces(t);
    const char *begin = t->p;
    int64_t v = 0;
    for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++) {
        if (v > (INT64_MAX - 9) / 10)
            return fails(t, "a dimension in its header is larger than any file");
        v = v * 10 + (*t->p - '0');
    }
    if (t->p == begin)
        return fails(t, "the shape in its header is not a tuple of integers");
    if (t->p < t->end && *t->p == 'L') /* as Python 2 wrote them */
        t->p++;
    *value = v;
    return true;
}

static bool shape(struct text *t, struct npy *h)
{
    if (!takes(t, '('))
        return fails(t, "the shape in its header is not a tuple of integers");
    h->ndim = 0;
    while (!takes(t, ')')) {
        if (h->ndim == NPY_DIMS)
            return fails(t, "has more than 9 dimensions");
        if (!whole_number(t, &h->shape[h->ndim]))
            return false;
        h->ndim++;
        if (!takes(t, ',') && !sees(t, ')'))
            return fails(t, "the shape in its header is not a tuple of integers");
    }
    return true;
}

enum { DESCR = 1, FORTRAN = 2, SHAPE = 4, ALL = 7 };

static int key(struct text *t)
{
    const char *s;
    size_t n;
    if (!string(t, &s, &n))
        return 0;
    if (n == 5 && memcmp(s, "descr", n) == 0)
        return DESCR;
    if (n == 13 && memcmp(s, "fortran_order", n) == 0)
        return FORTRAN;
    if (n == 5 && memcmp(s, "shape", n) == 0)
        return SHAPE;
    return fails(t, "its header has a key other than descr, fortran_order and shape");
}

static bool dict(struct text *t, struct npy *h)
{
    int seen = 0;
    if (!takes(t, '{'))
        return fails(t, "its header is not a dict with three keys");
    while (!takes(t, '}')) {
        const int k = key(t);
        if (k == 0 || !takes(t, ':'))
            return fails(t, "its header is not a dict with three keys");
        if (!(k == DESCR ? descr(t, h) : k == FORTRAN ? truth(t, &h->fortran) : shape(t, h)))
            return false;
        seen |= k;
        if (!takes(t, ',') && !sees(t, '}'))
            return fails(t, "its header is not a dict with three keys");
    }
    spaces(t);
    return (seen == ALL && t->p == t->end) || fails(t, "its header is not a dict with three keys");
}

/* ------------------------------------------------------------------ the whole */

/* Offset and length of the text. */
static const char *preamble(const uint8_t *p, size_t n, size_t *at, size_t *length)
{
    if (n < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return "is not an npy file: it does not start with \\x93NUMPY";
    if (p[6] < 1 || p[6] > 3)
        return "is an npy file of an unknown version; versions 1, 2 and 3 exist";
    *at = p[6] == 1 ? 10 : 12;
    if (n < *at)
        return "ends inside its header";
    *length = p[6] == 1 ? le16(p + 8) : le32(p + 8);
    if (*length > NPY_HEAD - 12)
        return "has a header of more than 64 KiB";
    return *length > n - *at ? "ends inside its header" : NULL;
}

/* The size of all numbers; SIZE_MAX: more than any file has. */
static size_t bytes_of(const struct npy *h)
{
    size_t bytes = dtype_bytes(h->dtype);
    bool empty = false;
    for (int d = 0; d < h->ndim; d++) {
        empty = empty || h->shape[d] == 0;
        if (h->shape[d] > 0)
            bytes = (uint64_t)h->shape[d] > (uint64_t)PTRDIFF_MAX / bytes ? SIZE_MAX : bytes * (size_t)h->shape[d];
        if (bytes == SIZE_MAX)
            return SIZE_MAX;
    }
    return empty ? 0 : bytes;
}

/* If at most one dimension is larger than 1, both orders are the same. */
static bool order_matters(const struct npy *h)
{
    int longer = 0;
    for (int d = 0; d < h->ndim; d++)
        longer += h->shape[d] > 1;
    return longer > 1;
}

int npy_parse(const uint8_t *p, size_t n, uint64_t total, struct npy *out, const char **why)
{
    size_t at = 0, length = 0;
    *out = (struct npy){0};
    *why = preamble(p, n, &at, &length);
    if (*why)
        return -1;
    struct text t = {(const char *)p + at, (const char *)p + at + length, NULL};
    if (!dict(&t, out)) {
        *why = t.why;
        return -1;
    }
    out->at = at + length;
    out->bytes = bytes_of(out);
    if (out->bytes == SIZE_MAX || out->bytes > total - out->at)
        *why = "its header describes more numbers than the file contains";
    out->fortran = out->fortran && order_matters(out);
    return *why ? -1 : 0;
}

/* ------------------------------------------------------------------ numbers */

static void swap_16(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t v = be16(p + 2 * i);
        p[2 * i] = (uint8_t)v;
        p[2 * i + 1] = (uint8_t)(v >> 8);
    }
}

static void swap_32(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t *q = p + 4 * i;
        const uint8_t a = q[0], b = q[1];
        q[0] = q[3];
        q[1] = q[2];
        q[2] = b;
        q[3] = a;
    }
}

static void swap_64(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 4; k++) {
            const uint8_t a = p[8 * i + k];
            p[8 * i + k] = p[8 * i + 7 - k];
            p[8 * i + 7 - k] = a;
        }
}

void npy_swap(void *p, size_t n, size_t item)
{
    if (item == 2)
        swap_16(p, n);
    else if (item == 4)
        swap_32(p, n);
    else if (item == 8)
        swap_64(p, n);
}

/* Walks over the result in order, and over the source by its strides. */
static void transpose(const struct npy *h, const uint8_t *from, uint8_t *to, size_t item)
{
    int64_t at[NPY_DIMS] = {0};
    size_t step[NPY_DIMS], offset = 0;
    for (int d = 0; d < h->ndim; d++)
        step[d] = d == 0 ? item : step[d - 1] * (size_t)h->shape[d - 1];
    for (size_t done = 0; done < h->bytes; done += item) {
        memcpy(to + done, from + offset, item);
        for (int d = h->ndim - 1; d >= 0; d--) {
            offset += step[d];
            if (++at[d] < h->shape[d])
                break;
            offset -= step[d] * (size_t)h->shape[d];
            at[d] = 0;
        }
    }
}

void npy_copy(const struct npy *h, const uint8_t *from, void *to)
{
    const size_t item = dtype_bytes(h->dtype);
    if (h->bytes == 0)
        return;
    if (h->fortran)
        transpose(h, from, to, item);
    else
        memcpy(to, from, h->bytes);
    if (h->swapped)
        npy_swap(to, h->bytes / item, item);
}

/* ------------------------------------------------------------------ writing */

static const char *descr_of(stk_dtype t)
{
    static const char *const little[] = {
        [STK_FLOAT32] = "<f4", [STK_FLOAT16] = "<f2", [STK_BFLOAT16] = "<V2", [STK_UINT8] = "|u1",  [STK_INT8] = "|i1",
        [STK_INT16] = "<i2",   [STK_UINT16] = "<u2",  [STK_INT32] = "<i4",    [STK_UINT32] = "<u4", [STK_INT64] = "<i8",
        [STK_UINT64] = "<u8",  [STK_FLOAT64] = "<f8", [STK_BOOL] = "|b1",
    };
    return little[t] ? little[t] : "|u1";
}

static int add_shape(struct buf *out, int ndim, const int64_t *shape)
{
    int rc = buf_add_str(out, "(");
    for (int i = 0; i < ndim && rc == 0; i++)
        rc = buf_printf(out, "%s%" PRId64, i ? ", " : "", shape[i]);
    return rc || buf_add_str(out, ndim == 1 ? ",)" : ")") ? -1 : 0;
}

static int digits_of(int64_t n)
{
    int k = 1;
    for (; n > 9; n /= 10)
        k++;
    return k;
}

int npy_write_head(struct buf *out, stk_dtype dtype, int ndim, const int64_t *shape)
{
    enum { ALIGN = 64, LEAD = 10, DIGITS = 19 };
    const size_t start = out->len;
    static const char magic[LEAD] = "\x93NUMPY\x01";
    if (buf_add(out, magic, sizeof magic) ||
        buf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': ", descr_of(dtype)) ||
        add_shape(out, ndim, shape) || buf_printf(out, ", }%*s", ndim > 0 ? DIGITS - digits_of(shape[0]) : 0, ""))
        return -1;
    while ((out->len - start + 1) % ALIGN)
        if (buf_add_str(out, " "))
            return -1;
    if (buf_add_str(out, "\n"))
        return -1;
    const size_t n = out->len - start - LEAD;
    out->data[start + 8] = (uint8_t)(n & 0xff);
    out->data[start + 9] = (uint8_t)(n >> 8);
    return 0;
}
