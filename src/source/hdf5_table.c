/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_table.c -- HDF5 files as a table of samples and columns.
 *
 * The first file decides what the samples are. All other files must have the same columns.
 */
#include "source/hdf5_table.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/image_file.h"
#include "base/io.h"
#include "base/search.h"
#include "base/size.h"
#include "format/hdf5_type.h"
#include "format/npy.h"

enum { KEPT_BYTES = 64 << 20, IDLE_BYTES = 64 << 20, SHARE = 8, GROUPS_MOST = 1 << 24 };

void hdf5_table_done(struct hdf5_table *t)
{
    for (int k = 0; t->files && k < t->n_files; k++) {
        struct hdf5_file *f = &t->files[k];
        for (size_t i = 0; f->arrays && i < f->n_arrays; i++)
            hdf5_array_done(&f->arrays[i]);
        free(f->arrays);
        free(f->path);
        hdf5_names_done(&f->groups);
        if (f->view.fd >= 0)
            close(f->view.fd);
    }
    free(t->files);
    names_done(&t->names);
    columns_done(&t->columns);
    hdf5_rows_free(t->rows);
    *t = (struct hdf5_table){0};
}

int hdf5_table_fail(const struct hdf5_table *t, int c, const char *why, stk_error *e)
{
    if (why == HDF5_NO_MEMORY)
        return error_nomem(e, "read", 0);
    return error_set(e, STK_EDATA, "read", "%s: %s", names_at(&t->names, (uint32_t)c), why);
}

/* ------------------------------------------------------------------ values */

const struct hdf5_file *hdf5_table_file(const struct hdf5_table *t, int64_t i)
{
    return &t->files[search_last(&t->files->first, sizeof *t->files, t->n_files, i)];
}

const struct hdf5_array *hdf5_table_array(const struct hdf5_table *t, int64_t i, int c, int64_t *row)
{
    const struct hdf5_file *f = hdf5_table_file(t, i);
    const int64_t at = i - f->first;
    *row = t->groups ? 0 : at;
    const struct hdf5_array *a = &f->arrays[t->groups ? at * t->columns.n + c : c];
    return a->ndim > 0 ? a : NULL;
}

static bool is_indirect(const struct hdf5_array *a)
{
    return a->type == HDF5_VLEN || a->type == HDF5_VLEN_TEXT;
}

/* The length of a text without its padding. */
static size_t text_bytes(const struct hdf5_array *a, const uint8_t *p, size_t n)
{
    if (a->terminated)
        return strnlen((const char *)p, n);
    while (a->type == HDF5_TEXT && n > 0 && (p[n - 1] == 0 || (a->spaces && p[n - 1] == ' ')))
        n--;
    return n;
}

static const char *read_indirect(const struct hdf5_table *t, const struct hdf5_view *v, const struct hdf5_array *a,
                                 int64_t row, const struct hdf5_limits *limits, struct buf *b, size_t *begin, size_t *n)
{
    struct hdf5_far far;
    const char *why = hdf5_row_far(t->rows, v, a, row, limits->work, &far);
    *begin = *n = 0;
    if (why)
        return why;
    if (far.bytes > (uint64_t)limits->max_bytes)
        return "has more bytes than max_bytes allows";
    if (far.bytes == 0)
        return buf_reserve(b, IO_SLACK) ? HDF5_NO_MEMORY : NULL;
    *n = far.bytes;
    why = hdf5_heap_read(v, far.heap, far.object, far.bytes, IO_SLACK, b, begin);
    if (!why && a->swapped)
        npy_swap(b->data + *begin, *n / dtype_bytes(a->dtype), dtype_bytes(a->dtype));
    return why;
}

const char *hdf5_table_value(const struct hdf5_table *t, int64_t i, int c, const struct hdf5_limits *limits,
                             struct buf *b, const uint8_t **p, size_t *n)
{
    int64_t row;
    const struct hdf5_view *v = &hdf5_table_file(t, i)->view;
    const struct hdf5_array *a = hdf5_table_array(t, i, c, &row);
    size_t begin = 0;
    const char *why = NULL;
    *p = NULL;
    *n = 0;
    if (!a)
        return NULL;
    if (is_indirect(a)) {
        why = read_indirect(t, v, a, row, limits, b, &begin, n);
    } else {
        *n = a->row_bytes;
        if (*n > (uint64_t)limits->max_bytes)
            why = "has more bytes than max_bytes allows";
        else
            why = buf_reserve(b, *n + IO_SLACK) ? HDF5_NO_MEMORY : hdf5_row(t->rows, v, a, row, limits->work, b->data);
    }
    if (why)
        return why;
    *p = b->data + begin;
    memset(b->data + begin + *n, 0, IO_SLACK);
    if (hdf5_is_text(a))
        *n = text_bytes(a, *p, *n);
    b->len = begin + *n;
    return NULL;
}

/* Rows are as long as the longest image, so a row is read in growing steps until the image ends. */
const char *hdf5_table_image(const struct hdf5_table *t, int64_t i, int c, const struct hdf5_limits *limits,
                             struct buf *b, const uint8_t **p, size_t *n)
{
    enum { BEGIN = 128 << 10 };
    int64_t row;
    const struct hdf5_view *v = &hdf5_table_file(t, i)->view;
    const struct hdf5_array *a = hdf5_table_array(t, i, c, &row);
    const size_t all = a ? a->row_bytes : 0;
    if (all <= BEGIN || is_indirect(a) || a->place != HDF5_IN_ONE || !hdf5_is_dense(a) ||
        all > (uint64_t)limits->max_bytes)
        return hdf5_table_value(t, i, c, limits, b, p, n);
    *n = 0;
    for (size_t have = 0, want = BEGIN; *n == 0; have = want, want = all / 2 > want ? 2 * want : all) {
        if (buf_reserve(b, want + IO_SLACK))
            return HDF5_NO_MEMORY;
        if (!hdf5_view_read(v, a->at + row * (int64_t)all + (int64_t)have, b->data + have, want - have))
            return HDF5_CUT;
        *n = want == all ? all : image_file_end(b->data, want);
    }
    memset(b->data + *n, 0, IO_SLACK);
    b->len = *n;
    *p = b->data;
    return NULL;
}

int64_t hdf5_table_bytes(const struct hdf5_table *t, int64_t i, int c, size_t work)
{
    int64_t row;
    struct hdf5_far far;
    const struct hdf5_array *a = hdf5_table_array(t, i, c, &row);
    if (!a || !is_indirect(a))
        return a ? (int64_t)a->row_bytes : -1;
    const char *why = hdf5_row_far(t->rows, &hdf5_table_file(t, i)->view, a, row, work, &far);
    return why || far.bytes > INT64_MAX / 2 ? -1 : (int64_t)far.bytes;
}

/* ------------------------------------------------------------------ files */

/* Why an array cannot be a column; NULL: it can. */
static const char *why_no_column(const struct hdf5_array *a)
{
    if (a->type != HDF5_NUMBERS && a->row_bytes != a->item)
        return "has several texts or sequences per row; only one is supported";
    if (a->ndim == 0)
        return "is a single value; the first dimension must be the samples";
    return a->row_bytes == 0 ? "has empty rows" : NULL;
}

/* Reports a compound dataset, whose members are read one by one, and lists the members. */
static int name_members(const struct hdf5_view *v, int64_t header, const char *path, stk_error *e)
{
    struct names members = {0};
    struct buf list = {0};
    const char *why = hdf5_dataset_members(v, header, &members);
    bool full = why == HDF5_NO_MEMORY;
    for (uint32_t i = 0; i < members.n && !full; i++)
        full = buf_printf(&list, "%s%s", i ? ", " : "", names_at(&members, i));
    const int rc = full ? error_nomem(e, "open", 0)
                        : error_set(e, STK_EDATA, "open",
                                    "%.100s: is a compound dataset; name one of its members as %.100s.MEMBER: %.200s",
                                    path, path, list.len ? (const char *)list.data : "none");
    names_done(&members);
    buf_done(&list);
    return rc;
}

/* Describes dataset `name` of the group at `at`, which is named `group`. Returns STK_ENOTFOUND, without setting *e, if
 * it does not exist. */
static int describe(const struct hdf5_table *t, struct hdf5_file *f, int64_t at, const char *group, const char *name,
                    struct hdf5_array *out, stk_error *e)
{
    struct hdf5_odd odd = {0};
    char path[PATH_MAX];
    int64_t header = -1;
    const char *member;
    const int n = snprintf(path, sizeof path, "%s%s%s%s", t->group, group, group[0] ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof path)
        return error_set(e, STK_EUSAGE, "open", "contains a name of more than %d bytes", PATH_MAX);
    odd.why = hdf5_find_dataset(&f->view, at, name, &header, &member);
    if (!odd.why && header < 0)
        return STK_ENOTFOUND;
    if (!odd.why)
        hdf5_describe(&f->view, header, member, t->groups, out, &odd);
    if (!odd.why)
        odd.why = why_no_column(out);
    if (!odd.why)
        return STK_OK;
    hdf5_array_done(out);
    *out = (struct hdf5_array){0};
    return odd.why == HDF5_STRUCTURE ? name_members(&f->view, header, path, e) : hdf5_refuse(path, &odd, e);
}

static int make_arrays(struct hdf5_file *f, size_t n, stk_error *e)
{
    f->arrays = calloc(n ? n : 1, sizeof *f->arrays);
    if (!f->arrays)
        return error_nomem(e, "open", size_mul(n, sizeof *f->arrays));
    f->n_arrays = n;
    return STK_OK;
}

/* Rows: one array per column, all of the same length. */
static int describe_rows(const struct hdf5_table *t, struct hdf5_file *f, stk_error *e)
{
    int rc = make_arrays(f, t->names.n, e);
    for (uint32_t c = 0; c < t->names.n && rc == STK_OK; c++) {
        const char *name = names_at(&t->names, c);
        rc = describe(t, f, f->group, "", name, &f->arrays[c], e);
        rc = rc == STK_ENOTFOUND ? hdf5_find_none(&f->view, f->group, name, e) : rc;
        const int64_t rows = f->arrays[c].shape[0];
        if (rc == STK_OK && c > 0 && rows != f->count)
            rc = error_set(e, STK_EUSAGE, "open", "%s has %lld rows, but %s has %lld", name, (long long)rows,
                           names_at(&t->names, 0), (long long)f->count);
        f->count = rows;
    }
    return rc;
}

/* Groups: a sample may lack a dataset, except for the very first sample. */
static int describe_groups(const struct hdf5_table *t, struct hdf5_file *f, stk_error *e)
{
    f->count = f->groups.names.n;
    int rc = f->count > GROUPS_MOST ? error_set(e, STK_EUSAGE, "open", "has more than %d groups", GROUPS_MOST)
                                    : make_arrays(f, (size_t)f->count * t->names.n, e);
    for (uint32_t i = 0; i < f->groups.names.n && rc == STK_OK; i++)
        for (uint32_t c = 0; c < t->names.n && rc == STK_OK; c++) {
            struct hdf5_array *a = &f->arrays[(size_t)i * t->names.n + c];
            const int64_t at = hdf5_names_at(&f->groups, i);
            const char *name = names_at(&t->names, c);
            rc = describe(t, f, at, names_at(&f->groups.names, i), name, a, e);
            if (rc == STK_ENOTFOUND && t->count + i == 0)
                rc = hdf5_find_none(&f->view, at, name, e);
            else if (rc == STK_EDATA || rc == STK_ENOTFOUND)
                rc = STK_OK;
        }
    return rc;
}

static int open_view(struct hdf5_view *v, const char *path, stk_error *e)
{
    struct stat st;
    v->fd = open(path, IO_OPEN_FLAGS);
    if (v->fd < 0 || fstat(v->fd, &st) != 0)
        return error_os(e, errno, "open", "cannot be opened");
    if (!S_ISREG(st.st_mode))
        return error_set(e, STK_EUSAGE, "open",
                         "is not a regular file; name the files of a folder with a pattern: FOLDER/*.h5");
    v->size = st.st_size;
    const char *why = hdf5_view_open(v);
    return why ? error_set(e, STK_EDATA, "open", "%s", why) : STK_OK;
}

static int open_file(struct hdf5_table *t, struct hdf5_file *f, const char *path, const struct source_options *o,
                     const char *query, stk_error *e)
{
    f->path = strdup(path);
    int rc = f->path ? open_view(&f->view, path, e) : error_nomem(e, "open", strlen(path));
    if (rc == STK_OK)
        rc = f == t->files ? hdf5_find(t, f, o, query, e) : hdf5_find_group(t, f, e);
    if (rc == STK_OK)
        rc = t->groups ? describe_groups(t, f, e) : describe_rows(t, f, e);
    if (rc != STK_OK)
        error_at(e, path, -1);
    f->first = t->count;
    t->count += f->count;
    return rc;
}

/* ------------------------------------------------------------------ columns */

/* Whether the first value that is not empty starts like an image. */
static bool looks_like_image(const struct hdf5_table *t, int c)
{
    enum { TRIED = 8 };
    const struct hdf5_limits limits = {INT32_MAX, t->work};
    struct buf b = {0};
    const uint8_t *p = NULL;
    size_t n = 0;
    for (int64_t i = 0; i < t->count && i < TRIED && n == 0; i++)
        if (hdf5_table_value(t, i, c, &limits, &b, &p, &n))
            n = 0;
    const bool is = n > 0 && image_file_magic(p, n);
    buf_done(&b);
    return is;
}

/* Sets a column from the first array. */
static void set_form(const struct hdf5_table *t, int c, const struct hdf5_array *a, struct column *out)
{
    out->kind = hdf5_is_text(a) ? STK_TEXT : a->type == HDF5_BLOCK ? STK_BYTES : STK_TENSOR;
    out->dtype = a->dtype;
    out->ndim = out->kind == STK_TENSOR ? a->ndim - 1 : 0;
    for (int d = 0; d < out->ndim; d++)
        out->shape[d] = a->shape[d + 1];
    if (a->type == HDF5_VLEN) {
        out->ndim = 1;
        out->shape[0] = -1;
    }
    if (hdf5_may_be_encoded(a) && looks_like_image(t, c)) {
        out->kind = STK_IMAGE;
        out->ndim = 0;
    }
}

/* Compares another array with the first. Dimensions that differ become -1. */
static int merge_form(const struct hdf5_array *first, const struct hdf5_array *a, struct column *out, stk_error *e)
{
    if (a->type != first->type || a->dtype != first->dtype || (out->kind != STK_IMAGE && a->ndim != first->ndim))
        return error_set(
            e, STK_EUSAGE, "open",
            "%s has different types or dimensions in different files or groups; name other datasets to read (?x=NAME)",
            out->name);
    for (int d = 0; d < out->ndim && a->type == HDF5_NUMBERS; d++)
        if (a->shape[d + 1] != out->shape[d])
            out->shape[d] = -1;
    return STK_OK;
}

static int form_column(struct hdf5_table *t, int c, stk_error *e)
{
    struct column *out = &t->columns.items[c];
    const struct hdf5_array *first = NULL;
    int rc = STK_OK;
    for (int k = 0; k < t->n_files; k++)
        for (size_t i = (size_t)c; i < t->files[k].n_arrays && rc == STK_OK; i += (size_t)t->columns.n) {
            const struct hdf5_array *a = &t->files[k].arrays[i];
            if (a->ndim > 0 && !first)
                set_form(t, c, first = a, out);
            else if (a->ndim > 0)
                rc = merge_form(first, a, out, e);
        }
    if (rc == STK_OK && !first)
        rc = error_set(e, STK_EUSAGE, "open", "has no readable %s", names_at(&t->names, (uint32_t)c));
    return rc;
}

/* Picks a column of pixels as the image: the one named "image", or else the first. An encoded image takes precedence.
 */
static void find_pixels(struct hdf5_table *t)
{
    int found = -1;
    for (int c = 0; c < t->columns.n; c++) {
        struct column *one = &t->columns.items[c];
        if (one->kind == STK_IMAGE)
            return;
        int64_t row;
        const struct hdf5_array *a = hdf5_table_array(t, 0, c, &row);
        bool fixed = true;
        for (int d = 0; d < one->ndim; d++)
            fixed &= one->shape[d] > 0 && one->shape[d] < INT32_MAX / 4;
        if (!a || !fixed || !hdf5_is_pixels(a, one->name))
            continue;
        if (found < 0 || strcmp(one->name, "image") == 0)
            found = c;
    }
    if (found < 0)
        return;
    struct column *one = &t->columns.items[found];
    one->kind = STK_IMAGE;
    if (one->ndim == 2)
        one->shape[2] = 1;
    one->ndim = 3;
}

/* Picks the first possible label; integers take precedence over text. */
static void find_label(struct hdf5_table *t)
{
    int found = -1;
    bool text = false;
    for (int c = 0; c < t->columns.n && (found < 0 || text); c++) {
        int64_t row;
        const struct hdf5_array *a = hdf5_table_array(t, 0, c, &row);
        if (!a || t->columns.items[c].kind == STK_IMAGE || !hdf5_is_label(a, t->columns.items[c].name) ||
            (found >= 0 && hdf5_is_text(a)))
            continue;
        found = c;
        text = hdf5_is_text(a);
    }
    if (found >= 0)
        t->columns.items[found].label = true;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Keeps decompressed chunks: enough for the largest chunk or for all, but at most an eighth of the memory limit. The
 * buffers that threads keep between rows may use as much. */
static void limit_rows(struct hdf5_table *t, const struct source_options *o)
{
    size_t all = 0, largest = 0, cost = 0;
    for (int k = 0; k < t->n_files; k++)
        for (size_t i = 0; i < t->files[k].n_arrays; i++) {
            const struct hdf5_array *a = &t->files[k].arrays[i];
            const size_t one = a->ndim > 0 && a->shape[0] > 0 ? hdf5_row_cost(a, 0) : 0;
            cost = one > cost ? one : cost;
            if (one == 0 || a->chunks.chunk[0] == 1)
                continue;
            all = size_add(all, size_mul(a->chunks.chunk_bytes, (size_t)a->chunks.n));
            largest = a->chunks.chunk_bytes > largest ? a->chunks.chunk_bytes : largest;
        }
    const size_t kept = least(all, largest > KEPT_BYTES ? largest : KEPT_BYTES);
    hdf5_rows_limit(t->rows, least(kept, t->work),
                    least(least(IDLE_BYTES, t->work), size_mul(cost, (size_t)o->threads)));
}

int hdf5_table_open(struct hdf5_table *t, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e)
{
    t->work = o->memory > 0 ? (size_t)o->memory / SHARE : SIZE_MAX;
    t->rows = hdf5_rows_new(least(KEPT_BYTES, t->work), least(IDLE_BYTES, t->work));
    t->files = calloc(paths->n, sizeof *t->files);
    if (!t->rows || !t->files)
        return error_nomem(e, "open", paths->n * sizeof *t->files);
    int rc = STK_OK;
    for (uint32_t i = 0; i < paths->n && rc == STK_OK; i++) {
        t->n_files++;
        t->files[i].view.fd = -1;
        rc = open_file(t, &t->files[i], names_at(paths, i), o, query, e);
    }
    if (rc == STK_OK && t->count < 1)
        rc = error_set(e, STK_EUSAGE, "open", "contains no samples");
    for (int c = 0; c < t->columns.n && rc == STK_OK; c++)
        rc = form_column(t, c, e);
    if (rc == STK_OK) {
        limit_rows(t, o);
        find_pixels(t);
        find_label(t);
    }
    return rc;
}
