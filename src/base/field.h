/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h -- what a source has read of a field becomes what the batch has of it.
 *
 * Numbers are cast to the field's type. Text is parsed. Other bytes are the text of one number, an npy file, or
 * binary numbers of the field's type.
 */
#ifndef FIELD_H
#define FIELD_H

#include "base/sample.h"

/* What a row has of a ragged field, in memory of its own that is used again. */
struct piece {
    uint8_t *data;
    size_t n, cap;             /* bytes */
    int64_t shape[FIELD_DIMS]; /* of the row */
};

/* Writes f->bytes bytes, for fields of a fixed shape. */
int field_store(const struct field *f, const struct cell *c, void *to, stk_error *e);
/* The same for ragged fields. */
int field_piece(const struct field *f, const struct cell *c, struct piece *to, stk_error *e);
/* Makes `to` a copy of another one; from NULL: empty. 0, or -1: no memory. */
int piece_copy(struct piece *to, const struct piece *from);
/* Room for n bytes; 0, or -1. */
int piece_reserve(struct piece *p, size_t n);
void piece_done(struct piece *p);

/* Whether a ragged field has more dimensions than the first that differ: then its values lie flat, and it has shapes.
 */
bool field_is_flat(const struct field *f);
/* A number as text, for one element of the type: 0, or -1 when it is none or does not fit. */
int field_number(const char *text, size_t n, stk_dtype t, uint8_t to[8]);

#endif
