/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c -- the types of elements.
 */
#include "base/sample.h"

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
