/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h -- what a source has of every sample, and which of it becomes the fields of a batch.
 *
 * A column is what the container has under a name ("jpg", "image/encoded"), its kind found by looking. A field is what
 * the caller gets: by default the first picture as "image", then the label as "label", then the other columns under
 * their own names; or as `fields` says, a list of
 *
 *     [name =] column [: kind] [? default]
 *
 *     pixels=jpg, cls:int                      names, and how to read what is stored
 *     x:float32(28,28)                         numbers of that type and shape: parsed from text, binary in other bytes
 *     ids:int64(*)   ids:int64(*) pad=-1       as many as there are: values and offsets; or padded, with lengths
 *     caption:text ? ""                        what stands where a sample has none
 */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "base/sample.h"

struct source;

struct column {
    char name[COLUMN_NAME];
    stk_kind kind;             /* INT, FLOAT: one number; TENSOR: of dtype and shape; the others are bytes */
    stk_dtype dtype;           /* of the numbers as stored */
    int ndim;                  /* of one sample */
    int64_t shape[FIELD_DIMS]; /* -1: differs from sample to sample */
    bool text;                 /* all values are written as text, whatever their kind */
    bool label;                /* is what the container calls its label */
    bool implied;              /* told by another column: only where it is asked for */
    bool whole;                /* all of a sample's bytes: the container has no columns */
    const char *refused;       /* why it can only be had as numbers of a type that is said; NULL: it is like others */
};

struct columns {
    struct column *of;
    int n, room;
    bool open;   /* samples may have more columns than were seen */
    bool told;   /* a pack says which fields there are, also where no sample has a value */
    bool labels; /* the source knows labels without reading: the column that is the label, or none, stands for them */
};

/* 0, or -1: no memory. */
int columns_add(struct columns *c, const struct column *one);
/* The kind that bytes under this name are likely to be: by the name ("cls", "caption.txt") and by how they begin. */
stk_kind columns_guess(const char *name, const uint8_t *bytes, size_t n);
/* Another sample of a column of npy files: type and shape are its own, or open where it differs from those before. */
void columns_see_npy(struct column *c, const uint8_t *bytes, size_t n);
void columns_done(struct columns *c);

/* Whether values are stored as numbers. */
bool columns_hold_numbers(const struct column *c);
/* What a column is called as a field where nobody says: the first 63 bytes of its own name, or "my_key" where every
 * batch has a "key". */
void columns_name(char to[FIELD_NAME], const char *column);
/* Adds columns that were not seen: where they are open and a field has a kind and a default for one, or are told. */
int columns_expect(struct columns *c, const char *fields, stk_error *e);
/* Makes the fields of s: as `fields` says; NULL: all columns. Every field's `column` is the number of its column. */
int columns_bind(struct source *s, const struct columns *c, const char *fields, stk_error *e);

#endif
