/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c -- element types, fields as the user describes them, and rows of ragged fields.
 */
#include "base/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [STK_FLOAT32] = {"float32", 4}, [STK_FLOAT16] = {"float16", 2}, [STK_BFLOAT16] = {"bfloat16", 2},
    [STK_UINT8] = {"uint8", 1},     [STK_INT8] = {"int8", 1},       [STK_INT16] = {"int16", 2},
    [STK_UINT16] = {"uint16", 2},   [STK_INT32] = {"int32", 4},     [STK_UINT32] = {"uint32", 4},
    [STK_INT64] = {"int64", 8},     [STK_UINT64] = {"uint64", 8},   [STK_FLOAT64] = {"float64", 8},
    [STK_BOOL] = {"bool", 1},
};

static int known(stk_dtype t)
{
    return (int)t > 0 && (size_t)t < sizeof types / sizeof types[0];
}

size_t dtype_bytes(stk_dtype t)
{
    return known(t) ? types[t].bytes : 0;
}

const char *dtype_name(stk_dtype t)
{
    return known(t) ? types[t].name : "unknown";
}

int field_of(struct field *f, const stk_array *a, stk_error *e)
{
    const char *name = a->name ? a->name : "";
    const stk_dtype type = a->dtype == STK_DTYPE_DEFAULT ? STK_FLOAT32 : a->dtype;
    const int length = snprintf(f->name, sizeof f->name, "%s", name);
    if (length < 1 || length >= FIELD_NAME)
        return error_set(e, STK_EUSAGE, "open", "the name of a field must have 1 to %d bytes", FIELD_NAME - 1);
    if (dtype_bytes(type) == 0 || a->ndim < 0 || a->ndim > FIELD_DIMS || (a->ndim > 0 && !a->shape))
        return error_set(e, STK_EUSAGE, "open", "the field %s needs a dtype and 0 to %d dimensions", name, FIELD_DIMS);
    f->dtype = type;
    f->ndim = a->ndim;
    f->bytes = dtype_bytes(type);
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] < 1 || f->bytes > SIZE_MAX / 4 / (size_t)a->shape[d])
            return error_set(e, STK_EUSAGE, "open",
                             "the field %s has a dimension of %lld, which is not positive or too large", name,
                             (long long)a->shape[d]);
        f->shape[d] = a->shape[d];
        f->bytes *= (size_t)a->shape[d];
    }
    return STK_OK;
}

int64_t dtype_integer(stk_dtype t, const void *p)
{
    union {
        int8_t i8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint8_t u8;
    } v = {.i64 = 0};
    memcpy(&v, p, dtype_bytes(t));
    switch (t) {
    case STK_INT8:
        return v.i8;
    case STK_INT16:
        return v.i16;
    case STK_UINT16:
        return v.u16;
    case STK_INT32:
        return v.i32;
    case STK_UINT32:
        return v.u32;
    case STK_INT64:
    case STK_UINT64:
        return v.i64;
    default:
        return v.u8; /* uint8, bool */
    }
}

bool field_is_flat(const struct field *f)
{
    for (int d = 1; d < f->ndim; d++)
        if (f->shape[d] < 0)
            return true;
    return false;
}

int ragged_row_reserve(struct ragged_row *p, size_t n)
{
    if (n <= p->cap)
        return 0;
    const size_t cap = n + n / 4 + 64;
    uint8_t *data = realloc(p->data, cap);
    if (!data)
        return -1;
    p->data = data;
    p->cap = cap;
    return 0;
}

void ragged_row_done(struct ragged_row *p)
{
    free(p->data);
    *p = (struct ragged_row){0};
}

int ragged_row_copy(struct ragged_row *to, const struct ragged_row *from)
{
    const size_t n = from ? from->n : 0;
    if (ragged_row_reserve(to, n))
        return -1;
    if (n > 0)
        memcpy(to->data, from->data, n);
    to->n = n;
    if (from)
        memcpy(to->shape, from->shape, sizeof to->shape);
    else
        memset(to->shape, 0, sizeof to->shape);
    return 0;
}
