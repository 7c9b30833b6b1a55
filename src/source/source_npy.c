/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_npy.c -- npy files and raw binary files. The first dimension is the sample.
 *
 *     npy:x-*.npy                                   rows of all files, in order, as "image" or "data"
 *     npy:x.npy?label=y.npy                         further columns, from files in the same folder
 *     raw:x.bin?dtype=uint8&shape=32,32,3&offset=16&label=y.npy
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "base/text.h"
#include "format/npy.h"
#include "source/query.h"
#include "source/rows.h"
#include "source/source_npy.h"

/* ------------------------------------------------------------------ npy */

/* Reads the first bytes of a file, and its size. */
static int read_head(const char *path, struct buf *head, int64_t *bytes, stk_error *e)
{
    const int fd = open(path, IO_OPEN_FLAGS);
    if (fd < 0)
        return error_os(e, errno, "open", "cannot be opened");
    struct stat st;
    int rc = STK_OK;
    if (fstat(fd, &st) != 0)
        rc = error_os(e, errno, "open", "cannot be examined");
    else if (!S_ISREG(st.st_mode))
        rc = error_set(e, STK_EUSAGE, "open", "is not a regular file; name the file itself");
    else if (buf_reserve(head, NPY_HEAD))
        rc = error_nomem(e, "open", NPY_HEAD);
    if (rc == STK_OK) {
        const ssize_t got = io_pread(fd, head->data, NPY_HEAD, 0);
        if (got < 0)
            rc = error_os(e, errno, "open", "cannot be read");
        head->len = got < 0 ? 0 : (size_t)got;
        *bytes = (int64_t)st.st_size;
    }
    close(fd);
    return rc;
}

int source_npy_head(const char *path, struct npy *h, stk_error *e)
{
    struct buf head = {0};
    int64_t bytes = 0;
    const char *why = NULL;
    int rc = read_head(path, &head, &bytes, e);
    if (rc == STK_OK && npy_parse(head.data, head.len, (uint64_t)bytes, h, &why) != 0)
        rc = error_set(e, STK_EUSAGE, "open", "%s", why);
    buf_done(&head);
    if (rc != STK_OK)
        error_at(e, path, -1);
    return rc;
}

int source_npy_rows(const struct npy *h, struct rows_array *out, stk_error *e)
{
    if (h->ndim < 1)
        return error_set(e, STK_EUSAGE, "open", "contains a single number; the first dimension must be the samples");
    *out = (struct rows_array){.dtype = h->dtype, .swapped = h->swapped, .fortran = h->fortran};
    out->ndim = h->ndim - 1;
    out->shape = h->shape + 1;
    out->n = h->shape[0];
    out->at = (int64_t)h->at;
    out->step = out->n > 0 ? (int64_t)(h->bytes / (size_t)out->n) : 0;
    return STK_OK;
}

/* Finds "x.offsets.npy" next to "x.npy"; offsets has PATH_MAX bytes. false: there is none. */
static bool find_offsets(const char *path, char *offsets)
{
    if (!text_has_suffix(path, ".npy"))
        return false;
    const int length = snprintf(offsets, PATH_MAX, "%.*s.offsets.npy", (int)strlen(path) - 4, path);
    return length > 0 && length < PATH_MAX && access(offsets, F_OK) == 0;
}

/* Makes the array ragged: a sample has any number of rows. */
static int take_offsets(struct rows_array *a, const char *offsets, stk_error *e)
{
    struct npy h;
    const int rc = source_npy_head(offsets, &h, e);
    if (rc != STK_OK)
        return rc;
    if (h.ndim != 1 || h.dtype != STK_INT64 || h.swapped || h.shape[0] < 1 || a->fortran)
        return error_set(e, STK_EUSAGE, "open", "%.200s must have one int64 per sample and one for the end", offsets);
    a->n_values = a->n;
    a->n = h.shape[0] - 1;
    a->offsets = offsets;
    a->offsets_at = (int64_t)h.at;
    return STK_OK;
}

static int add_npy(struct source *s, const char *path, const char *name, bool ragged, stk_error *e)
{
    struct npy h;
    struct rows_array a;
    char offsets[PATH_MAX];
    int rc = source_npy_head(path, &h, e);
    if (rc == STK_OK)
        rc = source_npy_rows(&h, &a, e);
    if (rc == STK_OK && ragged && find_offsets(path, offsets))
        rc = take_offsets(&a, offsets, e);
    if (rc == STK_OK) {
        a.name = name;
        a.path = path;
        rc = rows_add(s, &a, e);
    }
    if (rc != STK_OK)
        error_at(e, path, -1);
    return rc;
}

/* Adds a file that the query names, relative to the folder of the first file. */
static int add_named(struct source *s, const char *first, const char *name, const char *file, stk_error *e)
{
    char path[PATH_MAX];
    const char *slash = strrchr(first, '/');
    const int folder = slash && file[0] != '/' ? (int)(slash - first) + 1 : 0;
    const int n = snprintf(path, sizeof path, "%.*s%s", folder, first, file);
    if (n < 0 || (size_t)n >= sizeof path)
        return error_set(e, STK_EUSAGE, "open", "the path of %.100s is longer than the system allows", file);
    return add_npy(s, path, name, true, e);
}

/* In a pack, a column is named after its file. */
static void stem(const char *path, char *to, size_t n)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = strlen(name);
    snprintf(to, n, "%.*s", (int)(text_has_suffix(name, ".npy") ? length - 4 : length), name);
}

int source_npy_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e)
{
    char key[QUERY_TEXT], value[QUERY_TEXT];
    int rc = query_check(query, NULL, e);
    if (rc == STK_OK)
        rc = rows_open(s, "npy files", "row", e);
    for (uint32_t i = 0; i < paths->n && rc == STK_OK; i++) {
        char own[FIELD_NAME];
        stem(names_at(paths, i), own, sizeof own);
        rc = add_npy(s, names_at(paths, i), s->is_pack ? own : "data", s->is_pack, e);
    }
    for (int i = 0; rc == STK_OK && query_at(query, i, key, value); i++)
        rc = add_named(s, names_at(paths, 0), key, value, e);
    return rc == STK_OK ? rows_finish(s, o, e) : rc;
}

/* ------------------------------------------------------------------ raw binary */

int source_raw_type(const char *query, const char *otherwise, struct rows_array *out, stk_error *e)
{
    char text[QUERY_TEXT];
    if (!query_get(query, "dtype", text, sizeof text)) {
        if (!otherwise)
            return error_set(e, STK_EUSAGE, "open", "needs a type, as in raw:x.bin?dtype=uint8&shape=32,32,3");
        snprintf(text, sizeof text, "%s", otherwise);
    }
    if (!npy_type(text, strlen(text), &out->dtype, &out->swapped))
        return error_set(e, STK_EUSAGE, "open", "unknown type %.100s; use uint8, float32, >i2, ...", text);
    return STK_OK;
}

/* "32,32,3" */
static int raw_shape(const char *query, int64_t *shape, int *ndim, stk_error *e)
{
    char text[QUERY_TEXT], *p = text, *end;
    *ndim = 0;
    if (!query_get(query, "shape", text, sizeof text))
        return STK_OK;
    do {
        errno = 0;
        const long long v = strtoll(p, &end, 10);
        if (end == p || errno || v < 1 || *ndim == FIELD_DIMS || (*end && *end != ','))
            return error_set(e, STK_EUSAGE, "open", "shape must be up to %d integers, as in 32,32,3, not %.100s",
                             FIELD_DIMS, text);
        shape[(*ndim)++] = v;
        p = end + 1;
    } while (*end);
    return STK_OK;
}

int source_raw_bytes(const char *path, int64_t *bytes, stk_error *e)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return error_os(e, errno, "open", "cannot be examined");
    if (!S_ISREG(st.st_mode))
        return error_set(e, STK_EUSAGE, "open", "is not a regular file; name the file itself");
    *bytes = (int64_t)st.st_size;
    return STK_OK;
}

static int add_raw(struct source *s, const char *path, struct rows_array *a, stk_error *e)
{
    int64_t bytes = 0;
    const int rc = source_raw_bytes(path, &bytes, e);
    if (rc != STK_OK)
        return rc;
    const int64_t left = bytes - a->at;
    if (left < 0 || left % a->step != 0)
        return error_set(e, STK_EUSAGE, "open",
                         "has %lld bytes after byte %lld, which is not a multiple of the row size of %lld bytes",
                         (long long)(left < 0 ? 0 : left), (long long)a->at, (long long)a->step);
    a->n = left / a->step;
    a->path = path;
    return rows_add(s, a, e);
}

static int raw_row(const char *query, struct rows_array *a, int64_t *shape, stk_error *e)
{
    static const char *const known[] = {"dtype", "shape", "offset", "label", NULL};
    *a = (struct rows_array){.name = "data", .shape = shape};
    int rc = query_check(query, known, e);
    if (rc == STK_OK)
        rc = source_raw_type(query, NULL, a, e);
    if (rc == STK_OK)
        rc = raw_shape(query, shape, &a->ndim, e);
    if (rc == STK_OK)
        rc = query_number(query, "offset", 0, INT64_MAX / 2, &a->at, e);
    if (rc != STK_OK)
        return rc;
    a->step = (int64_t)dtype_bytes(a->dtype);
    for (int d = 0; d < a->ndim; d++) {
        if (shape[d] > INT64_MAX / 4 / a->step)
            return error_set(e, STK_EUSAGE, "open", "rows of this shape are larger than the address space");
        a->step *= shape[d];
    }
    return STK_OK;
}

int source_raw_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e)
{
    char label[QUERY_TEXT];
    int64_t shape[FIELD_DIMS];
    struct rows_array a;
    int rc = raw_row(query, &a, shape, e);
    if (rc == STK_OK)
        rc = rows_open(s, "raw binary files", "row", e);
    for (uint32_t i = 0; i < paths->n && rc == STK_OK; i++) {
        rc = add_raw(s, names_at(paths, i), &a, e);
        if (rc != STK_OK)
            error_at(e, names_at(paths, i), -1);
    }
    if (rc == STK_OK && query_get(query, "label", label, sizeof label))
        rc = add_named(s, names_at(paths, 0), "label", label, e);
    return rc == STK_OK ? rows_finish(s, o, e) : rc;
}
