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

/* Writes f->bytes bytes, for fields of a fixed shape. */
int field_store(const struct field *f, const struct cell *c, void *to, stk_error *e);
/* For ragged fields. */
int field_ragged_row(const struct field *f, const struct cell *c, struct ragged_row *to, stk_error *e);
/* Parses one number and stores it as type t. 0, or -1: not a number, or out of range. */
int field_number(const char *text, size_t n, stk_dtype t, uint8_t to[8]);

#endif
