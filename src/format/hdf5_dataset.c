/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_dataset.c -- reads the description of a dataset from the messages of its header.
 *
 * Messages come in any order, so all are read before they are combined. A type that has a name in the file has a header
 * of its own.
 */
#include "format/hdf5_dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/size.h"
#include "format/hdf5_type.h"

enum { FILL_MOST = 1 << 16 };

struct parsed {
    const struct hdf5_view *v;
    const char *member;     /* the one to read; NULL: none */
    struct names *members;  /* collects the names of all members; NULL: does not */
    struct hdf5_array type; /* what the type says; shape has the dimensions of an array type */
    const char *type_odd;   /* why it cannot be read */
    bool has_type, has_space, has_layout, null, external, too_many;
    int64_t named_type; /* header of the type; -1: it is in this header */
    int ndim;
    int64_t shape[HDF5_DIMS], most[HDF5_DIMS];
    struct hdf5_layout layout;
    const char *layout_odd;
    struct hdf5_filters filters;
    struct hdf5_odd odd;
    uint8_t *fill;
    size_t fill_bytes;
};

/* ------------------------------------------------------------------ messages */

/* Version, dimensions, flags; 5 bytes, or the kind; sizes, maximum sizes? */
static const char *take_space(struct parsed *p, struct hdf5_message *m)
{
    const int64_t version = hdf5_take(m, 1), n = hdf5_take(m, 1), flags = hdf5_take(m, 1);
    const size_t rest = version == 1 ? 5 : 1;
    if ((version != 1 && version != 2) || n < 0 || flags < 0 || !hdf5_has(m, rest))
        return HDF5_DAMAGED;
    p->null = version == 2 && m->p[0] == 2;
    hdf5_skip(m, rest);
    p->has_space = true;
    p->too_many = n > HDF5_DIMS;
    p->ndim = p->too_many ? 0 : (int)n;
    const int width = p->v->length_bytes;
    for (int d = 0; d < p->ndim; d++)
        if ((p->shape[d] = hdf5_take(m, width)) < 0 || p->shape[d] > INT64_MAX / 2)
            return HDF5_DAMAGED;
    for (int d = 0; d < p->ndim; d++)
        p->most[d] = flags & 1 ? (hdf5_has(m, (size_t)width) ? hdf5_take(m, width) : -1) : p->shape[d];
    return NULL;
}

/* Filters of a chunk: identifier (2), length of the name (2)?, flags (2), count of values (2), name, values (4 each).
 * Before version 2, names are padded to 8 bytes and values to an even count. */
static const char *take_filter(struct parsed *p, struct hdf5_message *m, bool old)
{
    const int64_t id = hdf5_take(m, 2), n_name = old || id >= 256 ? hdf5_take(m, 2) : 0;
    const int64_t flags = hdf5_take(m, 2), n = hdf5_take(m, 2);
    const char *name = (const char *)m->p;
    if (id < 0 || n_name < 0 || flags < 0 || n < 0 || !hdf5_has(m, (size_t)(n_name + 4 * (n + (old && n % 2)))))
        return HDF5_DAMAGED;
    hdf5_skip(m, (size_t)n_name);
    const char *why = hdf5_filters_add(&p->filters, (int)id, m->p, (size_t)n);
    hdf5_skip(m, 4 * (size_t)(n + (old && n % 2)));
    if (why != HDF5_FILTER_UNKNOWN)
        return why;
    if (!p->odd.why) {
        const char *known = hdf5_filter_name((int)id);
        p->odd.why = why;
        p->odd.filter = (int)id;
        snprintf(p->odd.name, sizeof p->odd.name, "%.*s", known ? 47 : (int)(n_name < 47 ? n_name : 47),
                 known ? known : name);
    }
    return NULL;
}

static const char *take_filters(struct parsed *p, struct hdf5_message *m)
{
    const int64_t version = hdf5_take(m, 1), n = hdf5_take(m, 1);
    if ((version != 1 && version != 2) || n < 0 || (version == 1 && !hdf5_has(m, 6)))
        return HDF5_DAMAGED;
    if (version == 1)
        hdf5_skip(m, 6);
    const char *why = NULL;
    for (int64_t i = 0; i < n && !why; i++)
        why = take_filter(p, m, version == 1);
    return why;
}

/* Size (4), and the value. */
static const char *keep_fill(struct parsed *p, struct hdf5_message *m)
{
    const int64_t n = hdf5_take(m, 4);
    if (n <= 0 || n > FILL_MOST || !hdf5_has(m, (size_t)n))
        return n == 0 || n == -1 ? NULL : HDF5_DAMAGED;
    free(p->fill);
    p->fill = malloc((size_t)n);
    if (!p->fill)
        return HDF5_NO_MEMORY;
    memcpy(p->fill, m->p, (size_t)n);
    p->fill_bytes = (size_t)n;
    return NULL;
}

/* Version, then times (2) and whether there is a value; from version 3 on, flags for both. */
static const char *take_fill(struct parsed *p, struct hdf5_message *m)
{
    const int64_t version = hdf5_take(m, 1);
    if (version == 3)
        return hdf5_take(m, 1) & 0x20 ? keep_fill(p, m) : NULL;
    if (version != 1 && version != 2)
        return HDF5_DAMAGED;
    hdf5_take(m, 2);
    return hdf5_take(m, 1) == 1 ? keep_fill(p, m) : NULL;
}

/* A shared message: version, kind, 6 bytes before version 2, and the address of a header. */
static const char *take_shared(struct parsed *p, struct hdf5_message *m)
{
    const int64_t version = hdf5_take(m, 1), kind = hdf5_take(m, 1);
    if (version < 1 || version > 3 || (version == 1 && !hdf5_has(m, 6)))
        return HDF5_DAMAGED;
    if (version == 1)
        hdf5_skip(m, 6);
    if (m->type != HDF5_MESSAGE_TYPE || (version == 3 && kind != 2))
        return "has its description in a table of shared messages, which Stoker does not read";
    p->named_type = hdf5_take_address(p->v, m);
    return NULL;
}

static const char *list_members(struct parsed *p, struct hdf5_message m)
{
    struct hdf5_head t;
    struct hdf5_array dims = {0};
    struct hdf5_members w;
    struct hdf5_member f;
    uint32_t number;
    bool good = hdf5_head_take(&m, &t);
    while (good && t.kind == HDF5_CLASS_ARRAY)
        good = !hdf5_array_take(&t, &m, &dims) && hdf5_head_take(&m, &t);
    if (!good || t.kind != HDF5_CLASS_COMPOUND)
        return NULL;
    hdf5_members_begin(&w, &t, &m);
    while (hdf5_members_next(&w, &f) > 0)
        if (names_add(p->members, f.name, strlen(f.name), &number) < 0)
            return HDF5_NO_MEMORY;
    return NULL;
}

static const char *take_type(struct parsed *p, struct hdf5_message *m)
{
    if (p->members)
        return list_members(p, *m);
    p->has_type = true;
    p->type = (struct hdf5_array){0};
    p->type_odd = hdf5_type_parse(p->v, m, p->member, &p->type);
    return NULL;
}

static const char *take_message(void *user, struct hdf5_message *m)
{
    struct parsed *p = user;
    const bool known = m->type == HDF5_MESSAGE_SPACE || m->type == HDF5_MESSAGE_TYPE || m->type == HDF5_MESSAGE_FILL ||
                       m->type == HDF5_MESSAGE_FILTERS;
    if (known && (m->flags & HDF5_SHARED))
        return take_shared(p, m);
    switch (m->type) {
    case HDF5_MESSAGE_SPACE:
        return take_space(p, m);
    case HDF5_MESSAGE_TYPE:
        return take_type(p, m);
    case HDF5_MESSAGE_OLD_FILL:
        return p->fill ? NULL : keep_fill(p, m);
    case HDF5_MESSAGE_FILL:
        return take_fill(p, m);
    case HDF5_MESSAGE_EXTERNAL:
        p->external = true;
        return NULL;
    case HDF5_MESSAGE_FILTERS:
        return take_filters(p, m);
    case HDF5_MESSAGE_LAYOUT:
        p->has_layout = true;
        p->layout_odd = hdf5_layout_parse(p->v, m, &p->layout);
        return NULL;
    default:
        return NULL;
    }
}

static const char *take_named_type(void *user, struct hdf5_message *m)
{
    const bool is = m->type == HDF5_MESSAGE_TYPE && !(m->flags & HDF5_SHARED);
    return is ? take_type(user, m) : NULL;
}

/* ------------------------------------------------------------------ put together */

/* The dimensions of the dataset, followed by those of its elements. */
static const char *join_shape(struct parsed *p, struct hdf5_array *out)
{
    if (p->null)
        return "has no elements, and no shape";
    if (p->too_many || p->ndim + p->type.ndim > HDF5_DIMS)
        return "has more dimensions than can be read (9)";
    *out = p->type;
    out->ndim = p->ndim + p->type.ndim;
    memcpy(out->shape, p->shape, (size_t)p->ndim * sizeof p->shape[0]);
    memcpy(out->shape + p->ndim, p->type.shape, (size_t)p->type.ndim * sizeof p->shape[0]);
    out->filters = p->filters;
    p->filters = (struct hdf5_filters){0};
    out->edges_unfiltered = p->layout.edges_unfiltered;
    out->place = p->layout.place;
    out->at = p->layout.at;
    size_t row = out->element;
    for (int d = 1; d < p->ndim; d++)
        row = size_mul(row, (size_t)p->shape[d]);
    const size_t rows = p->ndim > 0 ? (size_t)p->shape[0] : 1,
                 number = out->form.odd ? dtype_bytes(out->dtype) : out->item;
    if (row > SIZE_MAX / 16 ||
        size_mul(row, rows ? rows : 1) > INT64_MAX / 16) /* numbers may grow when they are converted */
        return "is larger than a file can be";
    out->stored_bytes = row;
    out->row_bytes = row / out->stride * out->per * number;
    return NULL;
}

static const char *join_chunks(struct parsed *p, struct hdf5_array *out)
{
    struct hdf5_chunks *c = &out->chunks;
    const struct hdf5_layout *l = &p->layout;
    if (l->chunk_ndim != p->ndim)
        return HDF5_DAMAGED;
    c->ndim = p->ndim;
    size_t bytes = out->element;
    for (int d = 0; d < p->ndim; d++) {
        c->shape[d] = p->shape[d];
        c->most[d] = p->most[d];
        c->chunk[d] = l->chunk[d];
        bytes = size_mul(bytes, (size_t)c->chunk[d]);
    }
    if (bytes > UINT32_MAX)
        return "has chunks of more than 4 GiB";
    c->chunk_bytes = (uint32_t)bytes;
    c->filtered = out->filters.n > 0;
    const char *why = hdf5_chunks_init(c);
    return why ? why : hdf5_chunks_read(p->v, l, c);
}

static const char *join_bytes(struct parsed *p, struct hdf5_array *out)
{
    if (p->fill && p->fill_bytes == out->element && out->type != HDF5_VLEN && out->type != HDF5_VLEN_TEXT) {
        out->fill = p->fill;
        p->fill = NULL;
    }
    if (out->place == HDF5_IN_CHUNKS)
        return join_chunks(p, out);
    const int64_t rows = p->ndim > 0 ? p->shape[0] : 1;
    if (out->place == HDF5_IN_ONE && out->stored_bytes > 0 && p->layout.bytes / (int64_t)out->stored_bytes < rows)
        return "is shorter than its shape says";
    return NULL;
}

/* Makes the dataset one row: adds a first dimension of 1, also to the chunks. `ndim` does not count the dimensions of
 * its elements. */
static const char *make_whole(struct hdf5_array *a, int ndim)
{
    struct hdf5_chunks *c = &a->chunks;
    if (a->ndim == HDF5_DIMS)
        return "has more dimensions than a sample can have (8)";
    if (ndim > 0) {
        a->stored_bytes *= (size_t)a->shape[0];
        a->row_bytes *= (size_t)a->shape[0];
    }
    memmove(a->shape + 1, a->shape, (size_t)a->ndim * sizeof a->shape[0]);
    memmove(c->shape + 1, c->shape, (size_t)ndim * sizeof c->shape[0]);
    memmove(c->chunk + 1, c->chunk, (size_t)ndim * sizeof c->chunk[0]);
    memmove(c->grid + 1, c->grid, (size_t)ndim * sizeof c->grid[0]);
    a->shape[0] = c->shape[0] = c->chunk[0] = c->grid[0] = 1;
    c->ndim = ndim + 1;
    a->ndim++;
    return NULL;
}

static const char ELSEWHERE[] = "has its values in other files; give those files instead";

static const char *join(struct parsed *p, struct hdf5_array *out, struct hdf5_odd *odd)
{
    if (!p->has_type || !p->has_space || !p->has_layout)
        return HDF5_DAMAGED;
    const char *why = p->type_odd ? p->type_odd : join_shape(p, out);
    if (why)
        return why;
    if (!p->odd.why && (p->external || p->layout.place == HDF5_ELSEWHERE || p->layout_odd))
        p->odd.why = p->layout_odd ? p->layout_odd : ELSEWHERE;
    p->odd.shaped = p->odd.why;
    *odd = p->odd;
    return odd->why ? NULL : join_bytes(p, out);
}

/* Reads all messages of the header, and those of the type if it has its own header. */
static const char *take_all(struct parsed *p, int64_t header)
{
    const char *why = hdf5_messages(p->v, header, take_message, p);
    return why || p->named_type < 0 ? why : hdf5_messages(p->v, p->named_type, take_named_type, p);
}

static void parsed_done(struct parsed *p)
{
    free(p->fill);
    hdf5_filters_done(&p->filters);
}

const char *hdf5_dataset_members(const struct hdf5_view *v, int64_t header, struct names *out)
{
    struct parsed p = {.v = v, .named_type = -1, .members = out};
    const char *why = take_all(&p, header);
    parsed_done(&p);
    return why;
}

void hdf5_describe(const struct hdf5_view *v, int64_t header, const char *member, bool whole, struct hdf5_array *out,
                   struct hdf5_odd *odd)
{
    struct parsed p = {.v = v, .named_type = -1, .member = member};
    *out = (struct hdf5_array){0};
    *odd = (struct hdf5_odd){0};
    const char *why = take_all(&p, header);
    if (!why)
        why = join(&p, out, odd);
    if (!why && whole)
        why = make_whole(out, p.ndim);
    parsed_done(&p);
    if (!why)
        return;
    hdf5_array_done(out);
    *out = (struct hdf5_array){0};
    *odd = (struct hdf5_odd){.why = why};
}
