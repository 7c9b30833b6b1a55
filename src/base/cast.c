/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast.c -- one plain loop per pair of types, which the compiler vectorises.
 */
#include "base/cast.h"

#include <string.h>

#define LOOP(name, type_a, type_b)                                                                                     \
    static void name(const uint8_t *from, size_t n, uint8_t *to)                                                       \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type_a a;                                                                                                  \
            memcpy(&a, from + i * sizeof a, sizeof a);                                                                 \
            const type_b b = (type_b)a;                                                                                \
            memcpy(to + i * sizeof b, &b, sizeof b);                                                                   \
        }                                                                                                              \
    }

LOOP(u8_f32, uint8_t, float)
LOOP(i8_f32, int8_t, float)
LOOP(u16_f32, uint16_t, float)
LOOP(i16_f32, int16_t, float)
LOOP(i32_f32, int32_t, float)
LOOP(i64_f32, int64_t, float)
LOOP(f64_f32, double, float)
LOOP(f32_f64, float, double)
LOOP(u8_i64, uint8_t, int64_t)
LOOP(u16_i64, uint16_t, int64_t)
LOOP(i32_i64, int32_t, int64_t)
LOOP(u32_i64, uint32_t, int64_t)
LOOP(u8_i32, uint8_t, int32_t)
LOOP(u16_i32, uint16_t, int32_t)

static const struct {
    stk_dtype a, b;
    void (*run)(const uint8_t *from, size_t n, uint8_t *to);
} loops[] = {
    {STK_UINT8, STK_FLOAT32, u8_f32},    {STK_INT8, STK_FLOAT32, i8_f32},     {STK_UINT16, STK_FLOAT32, u16_f32},
    {STK_INT16, STK_FLOAT32, i16_f32},   {STK_INT32, STK_FLOAT32, i32_f32},   {STK_INT64, STK_FLOAT32, i64_f32},
    {STK_FLOAT64, STK_FLOAT32, f64_f32}, {STK_FLOAT32, STK_FLOAT64, f32_f64}, {STK_UINT8, STK_INT64, u8_i64},
    {STK_UINT16, STK_INT64, u16_i64},    {STK_INT32, STK_INT64, i32_i64},     {STK_UINT32, STK_INT64, u32_i64},
    {STK_UINT8, STK_INT32, u8_i32},      {STK_UINT16, STK_INT32, u16_i32},
};

bool cast_many(const uint8_t *from, stk_dtype a, size_t n, uint8_t *to, stk_dtype b)
{
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
        if (loops[i].a == a && loops[i].b == b) {
            loops[i].run(from, n, to);
            return true;
        }
    return false;
}
