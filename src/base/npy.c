/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c -- the header is a Python dict as text:
 *
 *     \x93NUMPY  major minor  length  {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }  spaces  \n
 *
 * It is read by a cursor over the text that knows exactly what a header may hold: three keys, a string, a truth
 * value, a tuple of whole numbers.
 */
#include "base/npy.h"

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

/* Why numbers of this kind are not taken. */
static const char *refusal(char kind)
{
    switch (kind) {
    case 'O':
        return "holds Python objects, which only unpickling could read";
    case 'V':
        return "holds structures or raw bytes (V); plain numbers are read";
    case 'U':
    case 'S':
    case 'a':
        return "holds text of fixed width (U or S); plain numbers are read";
    case 'c':
        return "holds complex numbers; real ones are read";
    case 'M':
    case 'm':
        return "holds dates or times (M or m); plain numbers are read";
    default:
        return "its header names a type that is not known";
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

/* A string without escapes, lent. */
static bool string(struct text *t, const char **s, size_t *n)
{
    spaces(t);
    const char quote = t->p < t->end ? *t->p : 0;
    if (quote != '\'' && quote != '"')
        return fails(t, "its header is no dict of three keys");
    const char *close = memchr(t->p + 1, quote, (size_t)(t->end - t->p - 1));
    if (!close)
        return fails(t, "its header ends within a string");
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
        return fails(t, "holds structures (a type of named fields); plain numbers are read");
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
    return *value || takes_word(t, "False") ||
           fails(t, "its header has a fortran_order that is neither True nor False");
}

static bool whole_number(struct text *t, int64_t *value)
{
    spaces(t);
    const char *begin = t->p;
    int64_t v = 0;
    for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++) {
        if (v > (INT64_MAX - 9) / 10)
            return fails(t, "its header has a dimension that no file could hold");
        v = v * 10 + (*t->p - '0');
    }
    if (t->p == begin)
        return fails(t, "its header has a shape that is no tuple of whole numbers");
    if (t->p < t->end && *t->p == 'L') /* as Python 2 wrote them */
        t->p++;
    *value = v;
    return true;
}

static bool shape(struct text *t, struct npy *h)
{
    if (!takes(t, '('))
        return fails(t, "its header has a shape that is no tuple of whole numbers");
    h->ndim = 0;
    while (!takes(t, ')')) {
        if (h->ndim == NPY_DIMS)
            return fails(t, "has more than 9 dimensions");
        if (!whole_number(t, &h->shape[h->ndim]))
            return false;
        h->ndim++;
        if (!takes(t, ',') && !sees(t, ')'))
            return fails(t, "its header has a shape that is no tuple of whole numbers");
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
    return fails(t, "its header has a key besides descr, fortran_order and shape");
}

static bool dict(struct text *t, struct npy *h)
{
    int seen = 0;
    if (!takes(t, '{'))
        return fails(t, "its header is no dict of three keys");
    while (!takes(t, '}')) {
        const int k = key(t);
        if (k == 0 || !takes(t, ':'))
            return fails(t, "its header is no dict of three keys");
        if (!(k == DESCR ? descr(t, h) : k == FORTRAN ? truth(t, &h->fortran) : shape(t, h)))
            return false;
        seen |= k;
        if (!takes(t, ',') && !sees(t, '}'))
            return fails(t, "its header is no dict of three keys");
    }
    spaces(t);
    return (seen == ALL && t->p == t->end) || fails(t, "its header is no dict of three keys");
}

/* ------------------------------------------------------------------ the whole */

/* Where the text begins, and how long it says it is. */
static const char *preamble(const uint8_t *p, size_t n, size_t *at, size_t *length)
{
    if (n < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return "is no npy file: it does not begin with \\x93NUMPY";
    if (p[6] < 1 || p[6] > 3)
        return "is an npy file of a version other than 1, 2 and 3";
    *at = p[6] == 1 ? 10 : 12;
    if (n < *at)
        return "ends within its header";
    *length = p[6] == 1 ? le16(p + 8) : le32(p + 8);
    if (*length > NPY_HEAD - 12)
        return "has a header of more than 64 KiB";
    return *length > n - *at ? "ends within its header" : NULL;
}

/* The bytes of all numbers; SIZE_MAX: more than any file has. */
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

/* One dimension besides those of 1 lies alike in both orders. */
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
        *why = "its header promises more numbers than the file has";
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

/* Goes through the numbers as they are to lie, and steps through them as they lie. */
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

void npy_unpack(const struct npy *h, const uint8_t *from, void *to)
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
