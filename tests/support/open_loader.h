/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_loader.h -- opens loaders, and reads fields of their batches wherever they are.
 */
#ifndef OPEN_LOADER_H
#define OPEN_LOADER_H

#include "stoker.h"
#include "test.h"

/* Ends the test if the loader cannot be opened. */
static inline stk_loader *open_loader(const stk_options *o)
{
    stk_loader *l = NULL;
    stk_error e;
    if (stk_open(&l, o, &e) != STK_OK) {
        printf("cannot open: %s\n", e.text);
        exit(1);
    }
    return l;
}

static inline size_t field_bytes(const stk_array *a)
{
    static const size_t sizes[] = {4, 4, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 8, 1};
    size_t n = sizes[a->dtype];
    for (int i = 0; i < a->ndim; i++)
        n *= (size_t)a->shape[i];
    return n;
}

/* A field in host memory; free() it. */
static inline uint8_t *read_field(const stk_batch *b, const stk_array *a)
{
    uint8_t *to = malloc(field_bytes(a) + 1);
    stk_memory *m = stk_batch_retain_field(b, a->name);
    CHECK_EQ(stk_memory_read(m, to, field_bytes(a), NULL), STK_OK);
    stk_memory_release(m);
    return to;
}

#endif
