/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_make.c -- from a sample of the source to the fields that are written.
 *
 * The picture comes first, then "cls", the label, then the other fields: text as NAME.txt, JSON as NAME.json, bytes
 * under their own name, numbers as NAME.npy.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "pack/numpy.h"
#include "packer.h"
#include "source/picture.h"

struct packed_field *packer_field(struct packed *out, const char *name, const void *bytes, size_t n)
{
    if (out->n_fields == PACKED_FIELDS || n > SIZE_MAX / 2 - out->bytes.len ||
        buf_reserve(&out->bytes, out->bytes.len + n))
        return NULL;
    struct packed_field *f = &out->fields[out->n_fields++];
    *f = (struct packed_field){.at = out->bytes.len, .n = n, .kind = STK_BYTES};
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->column, sizeof f->column, "%.*s", (int)sizeof f->column - 1, name);
    if (bytes && n > 0)
        memcpy(out->bytes.data + f->at, bytes, n);
    out->bytes.len += n;
    return f;
}

static int no_memory(size_t n, stk_error *e)
{
    return error_nomem(e, "pack", n);
}

static int add_label(struct packed *out, stk_error *e)
{
    char text[24];
    const int n = snprintf(text, sizeof text, "%" PRId64, out->label);
    struct packed_field *f = packer_field(out, "cls", text, (size_t)n);
    if (!f)
        return no_memory((size_t)n, e);
    f->kind = STK_INT;
    snprintf(f->column, sizeof f->column, "label");
    return STK_OK;
}

/* A name that a tar can have behind its key. */
static void plain_name(const char *name, const char *suffix, char *to, size_t n)
{
    snprintf(to, n, "%s%s", name, suffix);
    for (char *p = to; *p; p++)
        if (*p == '/' || *p == ' ' || (unsigned char)*p < 0x20)
            *p = '_';
}

/* Numbers behind the head of an npy; what follows the head is for the caller to fill. */
static struct packed_field *add_numbers(struct packed *out, const char *name, stk_dtype dtype, int ndim,
                                        const int64_t *shape, const void *bytes, size_t n)
{
    char full[PACKED_NAME];
    struct buf head = {0};
    plain_name(name, ".npy", full, sizeof full);
    struct packed_field *f = NULL;
    if (numpy_head(&head, dtype, ndim, shape) == 0)
        f = packer_field(out, full, NULL, size_add(head.len, n));
    if (f) {
        memcpy(out->bytes.data + f->at, head.data, head.len);
        if (bytes && n > 0)
            memcpy(out->bytes.data + f->at + head.len, bytes, n);
        f->kind = STK_TENSOR;
        f->dtype = dtype;
        f->ndim = ndim;
        memcpy(f->shape, shape, (size_t)ndim * sizeof *shape);
        f->numbers = head.len;
        snprintf(f->column, sizeof f->column, "%s", name);
    }
    buf_done(&head);
    return f;
}

/* A field that the source copies. */
static int add_copied(struct packer *p, struct desk *d, const struct field *f, int number, struct packed *out,
                      stk_error *e)
{
    struct packed_field *to = add_numbers(out, f->name, f->dtype, f->ndim, f->shape, NULL, f->bytes);
    if (!to)
        return no_memory(f->bytes, e);
    out->bytes_in += (int64_t)f->bytes;
    return source_copy(p->source, &d->reading, out->sample, number, out->bytes.data + to->at + to->numbers, e);
}

static const char *suffix_of(stk_kind k)
{
    return k == STK_TEXT ? ".txt" : k == STK_JSON ? ".json" : "";
}

/* A field that was read into a cell; one that the sample has not is left out. Where samples have keys, names of
 * fields are what stands behind them already. */
static int add_cell(const struct packer *p, const struct field *f, const struct cell *c, struct packed *out,
                    stk_error *e)
{
    if (!c->bytes)
        return STK_OK;
    if (c->dtype)
        return add_numbers(out, f->name, c->dtype, c->ndim, c->shape, c->bytes, c->n) ? STK_OK : no_memory(c->n, e);
    char name[PACKED_NAME];
    plain_name(f->name, source_keyed(p->source) ? "" : suffix_of(f->what), name, sizeof name);
    struct packed_field *to = packer_field(out, name, c->bytes, c->n);
    if (!to)
        return no_memory(c->n, e);
    to->kind = f->what;
    snprintf(to->column, sizeof to->column, "%s", f->name);
    return STK_OK;
}

/* The label that the source knows. */
static bool is_label(const struct field *f)
{
    return f->label ||
           (f->column < 0 && f->kind == FIELD_TENSOR && f->what == STK_INT && strcmp(f->name, "label") == 0);
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

static int make_field(struct packer *p, struct desk *d, int f, struct packed *out, stk_error *e)
{
    const struct field *of = source_field_at(p->source, out->sample, f);
    if (of->kind == FIELD_ENCODED)
        return packer_picture(p, d, out, e);
    if (of->kind == FIELD_PIXELS)
        return packer_pixels(p, d, f, out, e);
    if (is_label(of))
        return out->label >= 0 ? add_label(out, e) : STK_OK;
    if (of->column >= 0)
        return add_cell(p, of, &d->reading.cells[f], out, e);
    return add_copied(p, d, of, f, out, e);
}

int packer_make(struct packer *p, struct desk *d, int64_t sample, struct packed *out, stk_error *e)
{
    const struct packed fresh = {.bytes = out->bytes, .key = out->key, .picture = -1, .sample = sample};
    *out = fresh;
    out->bytes.len = 0;
    int rc = STK_OK;
    d->reading.label = source_label(p->source, sample);
    if (is_read(p->source, sample))
        rc = desk_read(d, p->source, sample, e);
    out->label = d->reading.label;
    for (int f = 0; f < source_n_fields(p->source) && rc == STK_OK; f++)
        rc = make_field(p, d, f, out, e);
    desk_clear(d);
    return rc;
}

/* ------------------------------------------------------------------ keys */

/* Where the suffix of a picture begins in a name; 0: it has none. */
static size_t suffix_at(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && picture_suffix(name, strlen(name)) ? (size_t)(dot - name) + 1 : 0;
}

int packer_key(struct packer *p, struct packed *s, stk_error *e)
{
    char name[4096];
    s->key.len = 0;
    if (!p->names && !source_keyed(p->source))
        return buf_printf(&s->key, "%09" PRId64, s->sample) ? no_memory(16, e) : STK_OK;
    const size_t n = source_key(p->source, s->sample, name, sizeof name);
    if (n >= sizeof name)
        return error_set(e, STK_EDATA, "pack", "its name has more than %zu bytes", sizeof name);
    int rc;
    if (source_keyed(p->source) && source_packed(p->source))
        rc = buf_printf(&s->key, "%s", name) || keys_note(&p->keys, name);
    else
        rc = keys_make(&p->keys, name, source_keyed(p->source) ? n + 1 : suffix_at(name), &s->key);
    return rc ? no_memory(sizeof name, e) : STK_OK;
}
