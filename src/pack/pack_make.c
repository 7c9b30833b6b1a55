/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_make.c -- turns a sample of the source into the fields that are written.
 *
 * The image comes first, then the label as "cls", then the other fields: text as NAME.txt, JSON as NAME.json, bytes
 * under their own name, numbers as NAME.npy.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "format/npy.h"
#include "pack/packer.h"
#include "source/field.h"

struct packed_field *packer_field(struct packed *out, const char *name, const void *bytes, size_t n)
{
    if (out->n_fields == PACKED_FIELDS || n > SIZE_MAX / 2 - out->bytes.len ||
        buf_reserve(&out->bytes, out->bytes.len + n))
        return NULL;
    struct packed_field *f = &out->fields[out->n_fields++];
    *f = (struct packed_field){.at = out->bytes.len, .n = n, .kind = STK_BYTES};
    snprintf(f->name, sizeof f->name, "%s", name);
    if (bytes && n > 0)
        memcpy(out->bytes.data + f->at, bytes, n);
    out->bytes.len += n;
    return f;
}

static int add_label(struct packed *out, stk_error *e)
{
    char text[24];
    const int n = snprintf(text, sizeof text, "%" PRId64, out->label);
    struct packed_field *f = packer_field(out, "cls", text, (size_t)n);
    if (!f)
        return error_nomem(e, "pack", (size_t)n);
    f->kind = STK_INT;
    return STK_OK;
}

struct packed_field *packer_numbers(struct packed *out, const char *name, stk_dtype dtype, int ndim,
                                    const int64_t *shape, const void *bytes, size_t n)
{
    struct buf head = {0};
    struct packed_field *f = NULL;
    if (npy_write_head(&head, dtype, ndim, shape) == 0)
        f = packer_field(out, name, NULL, size_add(head.len, n));
    if (f) {
        memcpy(out->bytes.data + f->at, head.data, head.len);
        if (bytes && n > 0)
            memcpy(out->bytes.data + f->at + head.len, bytes, n);
        f->kind = STK_TENSOR;
        f->dtype = dtype;
        f->ndim = ndim;
        memcpy(f->shape, shape, (size_t)ndim * sizeof *shape);
        f->head_bytes = head.len;
    }
    buf_done(&head);
    return f;
}

/* Adds a field that the source copies. */
static int add_copied(struct packer *p, struct desk *d, int f, struct packed *out, stk_error *e)
{
    const struct field *of = source_field_at(p->source, out->sample, f);
    struct packed_field *to = packer_numbers(out, p->plain[f], of->dtype, of->ndim, of->shape, NULL, of->bytes);
    if (!to)
        return error_nomem(e, "pack", of->bytes);
    out->bytes_in += (int64_t)of->bytes;
    return source_copy(p->source, &d->reading, out->sample, f, out->bytes.data + to->at + to->head_bytes, e);
}

/* Adds numbers with the type and shape that the field has in a batch. */
static int add_stored(struct packer *p, const struct cell *c, int f, struct packed *out, stk_error *e)
{
    const struct field *of = source_field_at(p->source, out->sample, f);
    const struct packed_field *to = packer_numbers(out, p->plain[f], of->dtype, of->ndim, of->shape, NULL, of->bytes);
    return to ? field_store(of, c, out->bytes.data + to->at + to->head_bytes, e) : error_nomem(e, "pack", of->bytes);
}

/* Adds a flat run of numbers with the shape that it has in a batch. */
static int add_run(struct packer *p, const struct cell *c, int f, struct packed *out, stk_error *e)
{
    const struct field *of = source_field_at(p->source, out->sample, f);
    struct ragged_row run = {0};
    int rc = field_ragged_row(of, c, &run, e);
    if (rc == STK_OK && !packer_numbers(out, p->plain[f], of->dtype, of->ndim, run.shape, run.data, run.n))
        rc = error_nomem(e, "pack", run.n);
    ragged_row_done(&run);
    return rc;
}

static bool is_number(stk_kind k)
{
    return k == STK_INT || k == STK_FLOAT || k == STK_TENSOR;
}

/* Adds a field that was read into a cell. A field that the sample lacks is left out, unless it has a fill value. */
static int add_cell(struct packer *p, const struct cell *c, int f, struct packed *out, stk_error *e)
{
    const struct field *of = source_field_at(p->source, out->sample, f);
    const bool fixed = of->kind == FIELD_TENSOR;
    out->bytes_in += (int64_t)c->n;
    if (!c->bytes)
        return is_number(of->what) && fixed && of->has_fill ? add_stored(p, c, f, out, e) : STK_OK;
    if (c->dtype == of->dtype && c->ndim == of->ndim)
        return packer_numbers(out, p->plain[f], c->dtype, c->ndim, c->shape, c->bytes, c->n)
                   ? STK_OK
                   : error_nomem(e, "pack", c->n);
    if (c->dtype || (is_number(of->what) && !packer_stays(p, of)))
        return fixed ? add_stored(p, c, f, out, e) : add_run(p, c, f, out, e);
    struct packed_field *to = packer_field(out, p->plain[f], c->bytes, c->n);
    if (!to)
        return error_nomem(e, "pack", c->n);
    to->kind = of->what;
    return STK_OK;
}

static bool is_read(const struct source *s, int64_t sample)
{
    for (int f = 0; f < source_n_fields(s); f++) {
        const struct field *of = source_field_at(s, sample, f);
        if (of->kind == FIELD_ENCODED || of->column >= 0)
            return true;
    }
    return false;
}

/* Adds the label as a number of the requested type. */
static int add_label_row(struct packer *p, int f, struct packed *out, stk_error *e)
{
    const struct field *of = source_field_at(p->source, out->sample, f);
    const struct cell label = {.bytes = (const uint8_t *)&out->label, .n = sizeof out->label, .dtype = STK_INT64};
    const struct packed_field *to = packer_field(out, p->plain[f], NULL, of->bytes);
    return to ? field_store(of, &label, out->bytes.data + to->at, e) : error_nomem(e, "pack", of->bytes);
}

/* Adds a field as a row of its column. */
static int add_row(struct packer *p, struct desk *d, int f, struct packed *out, stk_error *e)
{
    const struct field *of = source_field_at(p->source, out->sample, f);
    const struct cell *c = &d->reading.cells[f];
    struct ragged_row row = {0};
    if (source_is_label(of))
        return add_label_row(p, f, out, e);
    if (of->column < 0)
        return add_copied(p, d, f, out, e);
    out->bytes_in += (int64_t)c->n;
    if (of->kind != FIELD_RAGGED)
        return add_stored(p, c, f, out, e);
    int rc = field_ragged_row(of, c, &row, e);
    if (rc == STK_OK && !packer_field(out, p->plain[f], row.data, row.n))
        rc = error_nomem(e, "pack", row.n);
    ragged_row_done(&row);
    return rc;
}

static int make_field(struct packer *p, struct desk *d, int f, struct packed *out, stk_error *e)
{
    const struct field *of = source_field_at(p->source, out->sample, f);
    if (of->kind == FIELD_ENCODED)
        return packer_image(p, d, f, out, e);
    if (of->kind == FIELD_PIXELS)
        return packer_pixels(p, d, f, out, e);
    if (packer_into_arrays(p))
        return add_row(p, d, f, out, e);
    if (source_is_label(of))
        return add_label(out, e);
    if (of->column >= 0)
        return add_cell(p, &d->reading.cells[f], f, out, e);
    return add_copied(p, d, f, out, e);
}

/* Renames the image if its new suffix is the name of another field. */
static void name_image(struct packed *out)
{
    for (int i = 0; out->image >= 0 && i < out->n_fields; i++) {
        struct packed_field *f = &out->fields[out->image];
        if (i != out->image && strcmp(out->fields[i].name, f->name) == 0) {
            char suffix[PACKED_NAME];
            memcpy(suffix, f->name, sizeof suffix);
            snprintf(f->name, sizeof f->name, "image.%.*s", PACKED_NAME - 8, suffix);
        }
    }
}

/* Readers take the first of several images, and unpacking takes the first file of a key. */
static void image_first(struct packed *out)
{
    if (out->image < 1)
        return;
    const struct packed_field image = out->fields[out->image];
    memmove(out->fields + 1, out->fields, (size_t)out->image * sizeof *out->fields);
    out->fields[0] = image;
    out->image = 0;
}

int packer_make(struct packer *p, struct desk *d, int64_t sample, struct packed *out, stk_error *e)
{
    const struct packed fresh = {.bytes = out->bytes, .key = out->key, .image = -1, .sample = sample};
    *out = fresh;
    out->bytes.len = 0;
    int rc = STK_OK, before = 0;
    d->reading.label = source_label(p->source, sample);
    if (is_read(p->source, sample))
        rc = desk_read(d, p->source, sample, e);
    if (rc == STK_OK)
        rc = desk_label(d, p->source, sample, &out->label, e);
    for (int f = 0; f < source_n_fields(p->source) && rc == STK_OK; f++)
        if ((rc = make_field(p, d, f, out, e)) == STK_OK && out->n_fields > before) {
            memcpy(out->fields[before].column, source_field(p->source, f)->name, FIELD_NAME);
            before = out->n_fields;
        }
    name_image(out);
    if (!packer_into_arrays(p))
        image_first(out);
    desk_clear(d);
    return rc;
}
