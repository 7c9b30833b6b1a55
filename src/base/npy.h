/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h -- NumPy's file format: what the header says, and numbers brought into this machine's form.
 *
 *     struct npy h;
 *     if (npy_parse(p, n, file_bytes, &h, &why)) ...   why: what is wrong, in words
 *     npy_unpack(&h, p + h.at, to);
 */
#ifndef NPY_H
#define NPY_H

#include "base/sample.h"

/* A header of plain numbers is shorter; a longer one is refused unread. */
enum { NPY_HEAD = 65536 + 12, NPY_DIMS = FIELD_DIMS + 1 };

struct npy {
    stk_dtype dtype;
    bool swapped; /* not in this machine's order of bytes */
    bool fortran; /* the first index runs fastest; never set where that makes no difference */
    int ndim;
    int64_t shape[NPY_DIMS];
    size_t at;    /* where the numbers begin */
    size_t bytes; /* of the numbers */
};

/* p: the first n bytes of a file of `total` bytes, at least NPY_HEAD of them or all. 0; or -1 and the reason, which
 * is a constant. Structures, objects, text, complex numbers and headers that promise more than the file has are
 * refused. */
int npy_parse(const uint8_t *p, size_t n, uint64_t total, struct npy *out, const char **why);

/* What a type is called: "float32", or as NumPy's arrays say it: "<f4". false: no type that is known here. */
bool npy_type(const char *text, size_t n, stk_dtype *dtype, bool *swapped);

/* The order of bytes of n numbers, in place. */
void npy_swap(void *p, size_t n, size_t item);
/* All numbers, dense, the last index running fastest, in this machine's order. to has room for h->bytes. */
void npy_unpack(const struct npy *h, const uint8_t *from, void *to);

#endif
