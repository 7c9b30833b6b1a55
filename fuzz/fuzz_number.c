/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_number.c -- numbers written as text. The first byte chooses the type. The numbers fit the room that was
 * reported, and have the shape that was reported. Single numbers equal those of strtod.
 */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/number_list.h"
#include "fuzz.h"

static void one_number(const char *text, size_t n)
{
    struct number v;
    const size_t took = number_read(text, n, &v);
    require(took <= n);
    if (took == 0 || took > 2000)
        return;
    char *copy = strndup(text, took);
    char *end;
    const double d = strtod(copy, &end);
    require(*end == 0 && (d == v.d || (isnan(d) && isnan(v.d))));
    require(!v.whole || v.big || (double)v.i == v.d);
    free(copy);
}

static void list(const char *text, size_t n, stk_dtype t)
{
    struct number_list l;
    const size_t most = number_list_most(text, n);
    uint8_t *to = malloc(most * dtype_bytes(t) + 1);
    if (!number_list_read(text, n, t, to, (int64_t)most, &l)) {
        int64_t count = 1;
        for (int d = 0; d < l.ndim; d++)
            count *= l.shape[d];
        require(l.count <= (int64_t)most && (l.ndim < 0 || count == l.count));
    }
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size); /* of its own, so that a byte too many is seen */
    memcpy(text, data + 1, size - 1);
    one_number(text, size - 1);
    list(text, size - 1, (stk_dtype)(1 + data[0] % STK_BOOL));
    free(text);
    return 0;
}
