/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cast.c -- many numbers at a time are cast as one by one.
 */
#include "base/cast.h"

#include "base/hash.h"
#include "source/field.h"
#include "test.h"

enum { N = 67 };

/* The text of a number goes the other way, number by number. */
static void each_pair(void)
{
    int pairs = 0;
    for (int a = STK_FLOAT32; a <= STK_BOOL; a++)
        for (int b = STK_FLOAT32; b <= STK_BOOL; b++) {
            uint8_t from[8 * N + 1], to[8 * N + 1], one[8];
            for (size_t i = 0; i < N; i++) {
                char text[32];
                snprintf(text, sizeof text, "%d", (int)(hash_mix(i, 7) % 128));
                memset(one, 0, sizeof one);
                if (field_number(text, strlen(text), (stk_dtype)a, one) == 0)
                    memcpy(from + 1 + i * dtype_bytes((stk_dtype)a), one, dtype_bytes((stk_dtype)a));
            }
            if (!cast_many(from + 1, (stk_dtype)a, N, to + 1, (stk_dtype)b))
                continue;
            pairs++;
            for (size_t i = 0; i < N; i++) {
                char text[32];
                snprintf(text, sizeof text, "%d", (int)(hash_mix(i, 7) % 128));
                CHECK_EQ(field_number(text, strlen(text), (stk_dtype)b, one), 0);
                CHECK(memcmp(one, to + 1 + i * dtype_bytes((stk_dtype)b), dtype_bytes((stk_dtype)b)) == 0);
            }
        }
    CHECK(pairs > 10);
}

static void ends_of_ranges(void)
{
    const uint32_t most = UINT32_MAX;
    const int8_t least = INT8_MIN;
    int64_t wide = 0;
    float f = 0;
    CHECK(cast_many((const uint8_t *)&most, STK_UINT32, 1, (uint8_t *)&wide, STK_INT64));
    CHECK_EQ(wide, 4294967295);
    CHECK(cast_many((const uint8_t *)&least, STK_INT8, 1, (uint8_t *)&f, STK_FLOAT32));
    CHECK(f == -128.0f);
    CHECK(!cast_many((const uint8_t *)&most, STK_UINT32, 1, (uint8_t *)&wide, STK_INT32));
    CHECK(!cast_many((const uint8_t *)&most, STK_FLOAT32, 1, (uint8_t *)&wide, STK_INT64));
}

int main(int argc, char **argv)
{
    TESTS(T(each_pair), T(ends_of_ranges))
}
