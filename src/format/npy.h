/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h -- reads and writes NumPy's npy format.
 *
 *     struct npy h;
 *     if (npy_parse(p, n, file_bytes, &h, &why)) ...   why: what is wrong
 *     npy_copy(&h, p + h.at, to);
 */
#ifndef NPY_H
#define NPY_H

#include "base/buf.h"
#include "base/sample.h"

/* Arrays of plain numbers have shorter headers; longer ones are refused unread. */
enum { NPY_HEAD = 65536 + 12, NPY_DIMS = FIELD_DIMS + 1 };

struct npy {
    stk_dtype dtype;
    bool swapped; /* not in this machine's byte order */
    bool fortran; /* the first index varies fastest; false if the order makes no difference */
    int ndim;
    int64_t shape[NPY_DIMS];
    size_t at;    /* offset of the numbers */
    size_t bytes; /* of the numbers */
};

/* p: the first n bytes of a file of `total` bytes; n is at least NPY_HEAD, or total. Returns 0, or -1 and the reason, a
 * constant. Refuses structures, objects, text, complex numbers, and headers that describe more than the file has. */
int npy_parse(const uint8_t *p, size_t n, uint64_t total, struct npy *out, const char **why);

/* Parses the name of a type: "float32", or "<f4" as in npy headers. false: unknown. */
bool npy_type(const char *text, size_t n, stk_dtype *dtype, bool *swapped);

/* Reverses the bytes of each of n numbers, in place. */
void npy_swap(void *p, size_t n, size_t item);
/* Copies all numbers in C order and in this machine's byte order. `to` has room for h->bytes. */
void npy_copy(const struct npy *h, const uint8_t *from, void *to);

/* Appends the header of an array in C order and in this machine's byte order. Its size is a multiple of 64 bytes and
 * does not depend on the number of rows. bfloat16, which NumPy lacks, becomes "<V2". 0, or -1: no memory. */
int npy_write_head(struct buf *out, stk_dtype dtype, int ndim, const int64_t *shape);

#endif
