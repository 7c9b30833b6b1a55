/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy_out.c -- writes the head of an npy.
 */
#include "format/npy_out.h"

#include <inttypes.h>
#include <string.h>

static const char *descr(stk_dtype t)
{
    static const char *const little[] = {
        [STK_FLOAT32] = "<f4", [STK_FLOAT16] = "<f2", [STK_BFLOAT16] = "<V2", [STK_UINT8] = "|u1",  [STK_INT8] = "|i1",
        [STK_INT16] = "<i2",   [STK_UINT16] = "<u2",  [STK_INT32] = "<i4",    [STK_UINT32] = "<u4", [STK_INT64] = "<i8",
        [STK_UINT64] = "<u8",  [STK_FLOAT64] = "<f8", [STK_BOOL] = "|b1",
    };
    return little[t] ? little[t] : "|u1";
}

static int add_shape(struct buf *out, int ndim, const int64_t *shape)
{
    int rc = buf_add_str(out, "(");
    for (int i = 0; i < ndim && rc == 0; i++)
        rc = buf_printf(out, "%s%" PRId64, i ? ", " : "", shape[i]);
    return rc || buf_add_str(out, ndim == 1 ? ",)" : ")") ? -1 : 0;
}

static int digits(int64_t n)
{
    int k = 1;
    for (; n > 9; n /= 10)
        k++;
    return k;
}

int npy_out_head(struct buf *out, stk_dtype dtype, int ndim, const int64_t *shape)
{
    enum { ALIGN = 64, LEAD = 10, DIGITS = 19 };
    const size_t start = out->len;
    static const char magic[LEAD] = "\x93NUMPY\x01";
    if (buf_add(out, magic, sizeof magic) ||
        buf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': ", descr(dtype)) ||
        add_shape(out, ndim, shape) || buf_printf(out, ", }%*s", ndim > 0 ? DIGITS - digits(shape[0]) : 0, ""))
        return -1;
    while ((out->len - start + 1) % ALIGN)
        if (buf_add_str(out, " "))
            return -1;
    if (buf_add_str(out, "\n"))
        return -1;
    const size_t n = out->len - start - LEAD;
    out->data[start + 8] = (uint8_t)(n & 0xff);
    out->data[start + 9] = (uint8_t)(n >> 8);
    return 0;
}
