/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_columns.c -- the names of fields in the pack, and the columns of arrays.
 *
 * Names that differ in the source differ in the pack. A name that must change gets a number if the new name is taken.
 * stoker.json records the original names, so that readers of the pack see them.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/image_file.h"
#include "base/text.h"
#include "pack/packer.h"
#include "source/columns.h"
#include "source/field.h"
#include "source/fields_text.h"

bool packer_into_arrays(const struct packer *p)
{
    return p->how.to == STK_TO_HDF5 || p->how.to == STK_TO_NPY;
}

static bool into_files(const struct packer *p)
{
    return p->how.to == STK_TO_TAR || p->how.to == STK_TO_FOLDER;
}

static bool is_image(const struct field *f)
{
    return f->kind == FIELD_ENCODED || f->kind == FIELD_PIXELS;
}

bool packer_labels(const struct packer *p)
{
    for (int i = 0; i < source_n_fields(p->source); i++)
        if (source_is_label(source_field(p->source, i)))
            return true;
    return false;
}

static bool has_image(const struct packer *p)
{
    for (int i = 0; i < source_n_fields(p->source); i++)
        if (is_image(source_field(p->source, i)))
            return true;
    return false;
}

/* ------------------------------------------------------------------ names */

/* Replaces characters that would end a name, or lead to another folder, by '_'. */
static void make_plain(char *name, const char *others)
{
    for (char *c = name; *c; c++)
        if (*c == '/' || *c == ' ' || (unsigned char)*c < 0x20 || *c == 0x7f || strchr(others, *c))
            *c = '_';
}

/* Whether one of the n names is the same. Ignores case, as some file systems do. */
static bool is_taken(const char *name, const char *names, size_t step, int n)
{
    for (int i = 0; i < n; i++)
        if (strcasecmp(names + (size_t)i * step, name) == 0)
            return true;
    return false;
}

bool packer_stays(const struct packer *p, const struct field *f)
{
    return source_has_keys(p->source) && (f->what == STK_BYTES || columns_guess(f->name, NULL, 0) == f->what);
}

/* The suffix from which readers know the type of a field. "": the name already does. */
static const char *suffix_for(const struct packer *p, const struct field *f)
{
    const char *suffix = f->what == STK_TEXT    ? ".txt"
                         : f->what == STK_JSON  ? ".json"
                         : f->what == STK_BYTES ? ""
                                                : ".npy";
    const char *dot = strrchr(f->name, '.'), *last = dot ? dot + 1 : f->name;
    return packer_stays(p, f) || (suffix[0] && strcmp(last, suffix + 1) == 0) ? "" : suffix;
}

/* Whether a name is reserved for the image or the label. Samples with keys keep the names of their files. */
static bool is_own(const struct packer *p, const char *name)
{
    char file[PACKED_NAME + 1];
    snprintf(file, sizeof file, ".%s", name);
    const bool image = !strchr(name, '.') && image_file_suffix(file, strlen(file));
    return strcmp(name, "cls") == 0 || (strcmp(name, "image") == 0 && has_image(p)) ||
           (strcmp(name, "label") == 0 && packer_labels(p)) || (strcmp(name, "dct") == 0 && p->how.as == STK_AS_DCT) ||
           (p->suffix && strcmp(name, p->suffix) == 0) || (image && !source_has_keys(p->source));
}

/* Readers of a tar change field names to lower case. WebDataset reserves names that begin with "__". */
static void make_field_plain(char *name)
{
    make_plain(name, "");
    for (char *c = name; *c; c++)
        *c = text_lower(*c);
    if (name[0] == '.' || (name[0] == '_' && name[1] == '_'))
        name[0] = name[0] == '.' ? '_' : 'x';
}

/* Chooses the names of fields after a key. A reader takes at most FIELD_NAME - 1 bytes. In a folder, no name may look
 * like an image. */
static void name_files(struct packer *p)
{
    for (int i = 0; i < source_n_fields(p->source); i++) {
        const struct field *f = source_field(p->source, i);
        char *name = p->plain[i], base[FIELD_NAME], end[24];
        const bool hide = p->how.to == STK_TO_FOLDER && image_file_suffix(f->name, strlen(f->name));
        const char *suffix = hide ? ".bin" : suffix_for(p, f);
        memcpy(base, f->name, sizeof base);
        make_field_plain(base);
        snprintf(end, sizeof end, "%s", suffix);
        for (int k = 2;; k++) {
            snprintf(name, PACKED_NAME, "%.*s%s", (int)(FIELD_NAME - 1 - strlen(end)), base, end);
            if (is_image(f) || source_is_label(f) || !(is_taken(name, p->plain[0], PACKED_NAME, i) || is_own(p, name)))
                break;
            snprintf(end, sizeof end, "_%d%s", k, suffix);
        }
    }
}

static bool is_column_taken(const struct packer *p, const char *name)
{
    static const char own[][8] = {"images", "labels", "keys", "classes", "stoker"};
    const size_t n = strlen(name);
    const bool offsets = n > 8 && strcasecmp(name + n - 8, ".offsets") == 0; /* the offsets of another column */
    return offsets || is_taken(name, own[0], sizeof own[0], sizeof own / sizeof own[0]) ||
           is_taken(name, p->columns[0].name, sizeof p->columns[0], p->n_columns);
}

static void name_column(const struct packer *p, const char *field, char *name)
{
    char base[FIELD_NAME];
    memcpy(base, field, sizeof base);
    make_plain(base, "&=?%\\\"");
    if (text_has_suffix(base, ".npy")) /* of numbers in a tar */
        *strrchr(base, '.') = 0;
    if (base[0] == '.')
        base[0] = '_';
    snprintf(name, FIELD_NAME, "%s", base);
    for (int k = 2; is_column_taken(p, name); k++)
        snprintf(name, FIELD_NAME, "%.50s_%d", base, k);
}

/* ------------------------------------------------------------------ columns */

/* Only the first dimension of a ragged field may vary: then its values can be stored one after the other. */
static int refuse_flat(const struct packer *p, const struct field *f, stk_error *e)
{
    static const char *const targets[] = {[STK_TO_TFRECORD] = "tfrecord", [STK_TO_HDF5] = "hdf5", [STK_TO_NPY] = "npy"};
    return error_set(e, STK_EUSAGE, "pack",
                     "the field %s varies from sample to sample in more than its first dimension, which %s cannot "
                     "store: pack to tar, or leave the field out (--fields)",
                     f->name, targets[p->how.to]);
}

static int add_column(struct packer *p, const struct field *f, stk_error *e)
{
    struct target_column c = {.kind = f->what, .dtype = f->dtype, .ndim = f->ndim};
    c.label = source_is_label(f);
    c.ragged = f->kind == FIELD_RAGGED;
    memcpy(c.shape, f->shape, sizeof c.shape);
    if (c.ragged) {
        c.ndim--;
        memmove(c.shape, c.shape + 1, sizeof c.shape - sizeof c.shape[0]);
    }
    if (is_image(f))
        c.kind = STK_IMAGE;
    if (f->dtype == STK_BFLOAT16 && p->how.to == STK_TO_NPY)
        return error_set(
            e, STK_EUSAGE, "pack",
            "the field %s is bfloat16, which npy cannot store: pack it as float32 (--fields \"%s:float32\")", f->name,
            f->name);
    if (c.kind == STK_IMAGE || c.label)
        snprintf(c.name, sizeof c.name, "%s", c.label ? "labels" : "images");
    else
        name_column(p, f->name, c.name);
    p->columns[p->n_columns++] = c;
    return STK_OK;
}

static int make_columns(struct packer *p, stk_error *e)
{
    int rc = STK_OK;
    for (int i = 0; i < source_n_fields(p->source) && rc == STK_OK; i++)
        rc = add_column(p, source_field(p->source, i), e);
    if (rc == STK_OK && packer_has_keys(p))
        p->columns[p->n_columns++] =
            (struct target_column){.name = "keys", .kind = STK_TEXT, .dtype = STK_UINT8, .key = true, .ragged = true};
    return rc;
}

/* ------------------------------------------------------------------ the fields of a pack */

/* The name of a field in the pack. */
static const char *written_name(const struct packer *p, int i)
{
    const struct field *f = source_field(p->source, i);
    if (packer_into_arrays(p))
        return p->columns[i].name;
    if (p->how.to == STK_TO_FOLDER && source_is_label(f) && source_n_classes(p->source) == 0)
        return "cls";
    if (into_files(p))
        return is_image(f) ? "image" : source_is_label(f) ? "label" : p->plain[i];
    return is_image(f) ? "image/encoded" : source_is_label(f) ? "image/class/label" : f->name;
}

/* The field as a reader of the pack sees it. In a file, a number is an npy. An Example stores some types as bytes; then
 * a single number gets a shape, or it would be read as text. */
static struct field read_back(const struct packer *p, const struct field *f)
{
    struct field back = *f;
    const bool as_bytes = f->dtype == STK_FLOAT64 || f->dtype == STK_FLOAT16 || f->dtype == STK_BFLOAT16;
    if (is_image(f))
        back.what = STK_IMAGE;
    if (into_files(p) && (f->what == STK_INT || f->what == STK_FLOAT) && !source_is_label(f) && !packer_stays(p, f))
        back.what = STK_TENSOR;
    if (p->how.to == STK_TO_TFRECORD && as_bytes && f->ndim == 0) {
        back.ndim = 1;
        back.shape[0] = 1;
    }
    return back;
}

static int write_fields(struct packer *p, stk_error *e)
{
    for (int i = 0; i < source_n_fields(p->source); i++) {
        const struct field f = read_back(p, source_field(p->source, i));
        if (fields_text_add(&p->fields, &f, written_name(p, i)))
            return error_nomem(e, "pack", p->fields.len);
    }
    return buf_add(&p->fields, "", 1) ? error_nomem(e, "pack", p->fields.len) : STK_OK;
}

int packer_columns(struct packer *p, stk_error *e)
{
    name_files(p);
    if (p->how.to == STK_TO_FOLDER && !has_image(p))
        return error_set(
            e, STK_EUSAGE, "pack",
            "the source has no images, and a folder contains only images and files next to them: pack to tar");
    if (into_files(p))
        return write_fields(p, e);
    for (int i = 0; i < source_n_fields(p->source); i++)
        if (source_field(p->source, i)->kind == FIELD_RAGGED && field_is_flat(source_field(p->source, i)))
            return refuse_flat(p, source_field(p->source, i), e);
    const int rc = packer_into_arrays(p) ? make_columns(p, e) : STK_OK;
    return rc == STK_OK ? write_fields(p, e) : rc;
}
