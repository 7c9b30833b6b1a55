/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h -- the columns of a source, and how they become the fields of a batch.
 *
 * A column is what the container stores under a name ("jpg", "image/encoded"). Its kind is detected from the values. A
 * field is what the caller gets. By default the first image becomes "image", then the label "label", then the other
 * columns follow under their own names. Otherwise `fields` lists them:
 *
 *     [name =] column [: kind] [? default]
 *
 *     pixels=jpg, cls:int                      names, and how to read the stored value
 *     x:float32(28,28)                         numbers of this type and shape: parsed from text, or copied from bytes
 *     ids:int64(*)   ids:int64(*) pad=-1       any number of values: values and offsets; or padded, with lengths
 *     caption:text ? ""                        a default for samples without the column
 *     mask:mask   mask:mask(int32)             a mask of the image, and its type in batches
 *     bbox:boxes(xywh)   bbox:boxes(cxcywh, relative)   boxes; relative: as shares of the image's width and height
 *     points:keypoints(17,3)   area:each:float32        one entry for every box, of this shape
 */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "base/sample.h"

struct source;

struct column {
    char name[COLUMN_NAME];
    stk_kind kind;             /* INT, FLOAT: one number; TENSOR: dtype and shape; others: bytes */
    stk_dtype dtype;           /* of the stored numbers */
    int ndim;                  /* of one sample */
    int64_t shape[FIELD_DIMS]; /* -1: varies between samples */
    bool text;                 /* all values are stored as text, whatever their kind */
    bool label;                /* the container's label */
    bool implied;              /* follows from another column; becomes a field only on request */
    bool whole;                /* all bytes of a sample, in a container without columns */
    enum follow follow;        /* as in struct field; NONE: only if `fields` says so */
    enum box_format box_format;
    bool relative;
    bool classes;        /* one class index for every box */
    const char *refused; /* why it cannot be a field unless `fields` gives a type; NULL: it can */
};

struct columns {
    struct column *items;
    int n, room;
    bool incomplete; /* samples may have columns that scanning did not find */
    bool declared;   /* a pack lists its fields, even those without any value */
    bool labels;     /* the source knows labels without reading them; a label column stands for them */
};

/* Returns 0, or -1: out of memory. */
int columns_add(struct columns *c, const struct column *one);
/* Guesses the kind of a value from its name ("cls", "caption.txt") and its first bytes. */
stk_kind columns_guess(const char *name, const uint8_t *bytes, size_t n);
/* Takes another sample of a column of npy files into account. The first sets type and shape; dimensions that differ
 * become -1. */
void columns_merge_npy(struct column *c, const uint8_t *bytes, size_t n);
void columns_done(struct columns *c);

/* Whether values are stored as binary numbers. */
bool columns_hold_numbers(const struct column *c);
/* Whether the values have the type and shape of pixels: uint8, height x width x (1 or 3). */
bool columns_hold_pixels(const struct column *c);
/* The default field name of a column: the first 63 bytes of its name. Names that every batch has get the prefix "my_",
 * as in "my_key". */
void columns_field_name(char to[FIELD_NAME], const char *column);
/* Adds columns that `fields` declares with a kind although scanning did not find them: if the columns are incomplete
 * and the field has a default, or if a pack declares its fields. */
int columns_add_declared(struct columns *c, const char *fields, stk_error *e);
/* Sets the fields of s as `fields` says; NULL: all columns. A field's `column` is the index of its column. */
int columns_bind(struct source *s, const struct columns *c, const char *fields, stk_error *e);

/* ------------------------------------------------------------------ between columns*.c */

struct field_text;

/* Makes f a field of numbers, ragged if a dimension is -1. */
int columns_make_tensor(struct field *f, stk_dtype t, int ndim, const int64_t *shape, stk_error *e);
/* Makes f a ragged field of bytes. */
void columns_make_run(struct field *f);
/* Makes f a field that follows the image. */
int columns_follow(struct field *f, const struct column *c, const struct field_text *t, stk_error *e);

#endif
