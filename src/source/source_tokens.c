/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tokens.c -- files of tokens, split into sequences:
 *
 *     tokens:train-*.bin?dtype=uint16&length=1024&stride=1024&offset=0
 *
 * Sequence i of a file has its tokens i * stride .. i * stride + length - 1. An incomplete sequence at the end is
 * ignored. length=1025&stride=1024 adds to every sequence the token that follows it, for next-token targets.
 * One-dimensional npy files are recognised by their first bytes.
 */
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "source/query.h"
#include "source/source_npy.h"

struct cut {
    int64_t length, stride, offset;
};

static int cut_of(const char *query, struct cut *c, stk_error *e)
{
    static const char *const known[] = {"dtype", "length", "stride", "offset", NULL};
    *c = (struct cut){.length = 1024};
    int rc = query_check(query, known, e);
    if (rc == STK_OK)
        rc = query_number(query, "length", 1, INT32_MAX, &c->length, e);
    c->stride = c->length;
    if (rc == STK_OK)
        rc = query_number(query, "stride", 1, INT32_MAX, &c->stride, e);
    if (rc == STK_OK)
        rc = query_number(query, "offset", 0, INT64_MAX / 2, &c->offset, e);
    return rc;
}

static bool is_npy(const char *path)
{
    uint8_t first[6];
    return io_peek(AT_FDCWD, path, first, sizeof first) == 6 && memcmp(first, "\x93NUMPY", 6) == 0;
}

/* Describes the tokens of a file as rows. */
static int tokens_of(const char *path, const char *query, const struct cut *c, struct rows_array *a, stk_error *e)
{
    *a = (struct rows_array){.at = c->offset};
    if (!is_npy(path)) {
        int64_t bytes = 0;
        int rc = source_raw_type(query, "uint16", a, e);
        if (rc == STK_OK)
            rc = source_raw_bytes(path, &bytes, e);
        if (rc == STK_OK)
            a->n = bytes > c->offset ? (bytes - c->offset) / (int64_t)dtype_bytes(a->dtype) : 0;
        return rc;
    }
    struct npy h;
    int rc = source_npy_head(path, &h, e);
    if (rc == STK_OK)
        rc = source_npy_rows(&h, a, e);
    if (rc == STK_OK && h.ndim != 1)
        rc = error_set(e, STK_EUSAGE, "open", "has %d dimensions; tokens need one", h.ndim);
    if (rc == STK_OK && (query_get(query, "dtype", (char[QUERY_TEXT]){0}, QUERY_TEXT) || c->offset))
        rc = error_set(e, STK_EUSAGE, "open",
                       "is an npy file, which already defines dtype and offset; remove them from the query");
    return rc;
}

static int add(struct source *s, const char *path, const char *query, const struct cut *c, stk_error *e)
{
    struct rows_array a;
    const int rc = tokens_of(path, query, c, &a, e);
    if (rc != STK_OK)
        return rc;
    if (a.dtype < STK_UINT8 || a.dtype > STK_UINT64)
        return error_set(e, STK_EUSAGE, "open", "has tokens of type %s; an integer type is needed",
                         dtype_name(a.dtype));
    a.name = "tokens";
    a.path = path;
    a.ndim = 1;
    a.shape = &c->length;
    a.step = c->stride * (int64_t)dtype_bytes(a.dtype);
    a.n = a.n < c->length ? 0 : (a.n - c->length) / c->stride + 1;
    return rows_add(s, &a, e);
}

int source_tokens_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                       stk_error *e)
{
    struct cut c;
    int rc = cut_of(query, &c, e);
    if (rc == STK_OK)
        rc = rows_open(s, "token files", "sequence", e);
    for (uint32_t i = 0; i < paths->n && rc == STK_OK; i++) {
        rc = add(s, names_at(paths, i), query, &c, e);
        if (rc != STK_OK)
            error_at(e, names_at(paths, i), -1);
    }
    return rc == STK_OK ? rows_finish(s, o, e) : rc;
}
