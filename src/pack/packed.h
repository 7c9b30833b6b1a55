/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed.h -- a sample ready to be written: its fields, by name, as bytes.
 */
#ifndef PACKED_H
#define PACKED_H

#include "base/buf.h"
#include "base/sample.h"

enum { PACKED_FIELDS = FIELD_MAX + 1, PACKED_NAME = FIELD_NAME + 8 };

struct packed_field {
    char name[PACKED_NAME];  /* as it is called in a tar: "jpg", "caption.txt" */
    char column[FIELD_NAME]; /* as the source calls it */
    stk_kind kind;
    stk_dtype dtype;           /* of numbers; 0: bytes */
    int ndim;                  /* of numbers */
    int64_t shape[FIELD_DIMS]; /* of numbers */
    size_t at, n;              /* in packed.bytes: as they stand in a tar */
    size_t numbers;            /* of it: what comes before the numbers (the head of an npy) */
};

struct packed {
    struct buf bytes; /* of all fields */
    struct packed_field fields[PACKED_FIELDS];
    int n_fields;
    int picture;       /* which of them; -1: none */
    stk_format format; /* of the picture; unknown: it is numbers */
    int32_t w, h;      /* 0: nobody looked */
    int channels;
    int64_t sample, label; /* label -1: none */
    int64_t bytes_in;      /* read for it */
    struct buf key;        /* as it stands in a tar, ended by 0 */
};

static inline const uint8_t *packed_bytes(const struct packed *p, const struct packed_field *f)
{
    return p->bytes.data + f->at;
}

#endif
