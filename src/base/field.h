/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h -- converts what a source has read of a field to what the batch holds.
 *
 * Numbers are cast to the field's type. Text is parsed. Other bytes are read as the text of one number, as an npy file,
 * or as binary numbers of the field's type.
 */
#ifndef FIELD_H
#define FIELD_H

#include "base/sample.h"

/* One row of a ragged field. The memory is reused for the next row. */
struct ragged_row {
    uint8_t *data;
    size_t n, cap;             /* bytes */
    int64_t shape[FIELD_DIMS]; /* of the row */
};

/* Writes f->bytes bytes, for fields of a fixed shape. */
int field_store(const struct field *f, const struct cell *c, void *to, stk_error *e);
/* For ragged fields. */
int field_ragged_row(const struct field *f, const struct cell *c, struct ragged_row *to, stk_error *e);
/* Copies a row. If from is NULL, makes it empty. 0, or -1: no memory. */
int ragged_row_copy(struct ragged_row *to, const struct ragged_row *from);
/* Makes room for n bytes. 0, or -1: no memory. */
int ragged_row_reserve(struct ragged_row *p, size_t n);
void ragged_row_done(struct ragged_row *p);

/* Whether more dimensions than the first may differ between rows. Such a field is stored flat, with a shape per row. */
bool field_is_flat(const struct field *f);
/* Parses one number and stores it as type t. 0, or -1: not a number, or out of range. */
int field_number(const char *text, size_t n, stk_dtype t, uint8_t to[8]);

#endif
