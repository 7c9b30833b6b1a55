/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_arrays.c -- the code that the HDF5 and npy targets share.
 */
#include "pack/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct target_arrays_cell target_arrays_cell(const struct target *t, const struct packed *p, int column)
{
    if (t->o.columns[column].key)
        return (struct target_arrays_cell){p->key.data, p->key.len};
    const struct packed_field *f = &p->fields[column];
    return (struct target_arrays_cell){packed_bytes(p, f) + f->head_bytes, f->n - f->head_bytes};
}

struct target_column *target_arrays_columns(const struct target *t, const struct packed *p)
{
    const size_t n = (size_t)t->o.n_columns;
    struct target_column *made = malloc(n * sizeof *made + 1);
    for (size_t i = 0; made && i < n; i++) {
        struct target_column *c = &made[i];
        *c = t->o.columns[i];
        if (c->kind != STK_IMAGE)
            continue;
        const struct packed_field *f = &p->fields[i];
        c->dtype = STK_UINT8;
        c->ragged = f->dtype == STK_DTYPE_DEFAULT;
        c->ndim = c->ragged ? 0 : f->ndim;
        memcpy(c->shape, f->shape, sizeof c->shape);
    }
    return made;
}

int target_arrays_check(const struct target *t, const struct target_column *columns, const struct packed *p,
                        stk_error *e)
{
    for (int i = 0; i < t->o.n_columns; i++) {
        const struct target_column *c = &columns[i];
        const struct packed_field *f = &p->fields[i];
        if (c->kind != STK_IMAGE || (c->ragged && f->dtype == STK_DTYPE_DEFAULT) ||
            (!c->ragged && f->ndim == c->ndim && memcmp(f->shape, c->shape, (size_t)c->ndim * sizeof *c->shape) == 0))
            continue;
        return error_set(
            e, STK_EUSAGE, "pack",
            "has %lld x %lld pixels, but the samples before it have %lld x %lld; raw images must have one size",
            (long long)f->shape[1], (long long)f->shape[0], (long long)c->shape[1], (long long)c->shape[0]);
    }
    return STK_OK;
}
