/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_levels.c -- bytes to floats: rounding to half precision, the tables, and the arithmetic that replaces them.
 */
#include "transform/levels.h"

#include <math.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "test.h"

static float float_of_half(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const float v = exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24);
    return h & 0x8000 ? -v : v;
}

static void halves_come_back(void)
{
    for (uint32_t h = 0; h < 0x10000; h++)
        if ((h & 0x7c00) != 0x7c00)
            CHECK_EQ(levels_f16(float_of_half((uint16_t)h)), h);
    CHECK_EQ(levels_f16(INFINITY), 0x7c00);
    CHECK_EQ(levels_f16(-INFINITY), 0xfc00);
    CHECK_EQ(levels_f16(65519.0f), 0x7bff);
    CHECK_EQ(levels_f16(65520.0f), 0x7c00);
    CHECK_EQ(levels_f16(1e30f), 0x7c00);
    CHECK_EQ(levels_f16(1e-30f), 0);
}

/* Values halfway between two neighbours round to the even one. A slightly larger or smaller value does not. */
static void halves_round_to_even(void)
{
    for (uint32_t h = 0; h < 0x7bff; h++) {
        const float a = float_of_half((uint16_t)h), b = float_of_half((uint16_t)(h + 1)), mid = a + (b - a) / 2;
        CHECK_EQ(levels_f16(mid), h & 1 ? h + 1 : h);
        CHECK_EQ(levels_f16(nextafterf(mid, a)), h);
        CHECK_EQ(levels_f16(nextafterf(mid, b)), h + 1);
    }
}

static void bfloats(void)
{
    CHECK_EQ(levels_bf16(1.0f), 0x3f80);
    CHECK_EQ(levels_bf16(-2.0f), 0xc000);
    CHECK_EQ(levels_bf16(1.0f + 0x1p-8f), 0x3f80); /* tie to even */
    CHECK_EQ(levels_bf16(1.0f + 0x3p-8f), 0x3f82);
    CHECK_EQ(levels_bf16(1.0f + 0x1.1p-8f), 0x3f81);
}

static float f32_at(const struct levels *v, int ch, int i)
{
    float x;
    memcpy(&x, &v->f32[ch][i], sizeof x);
    return x;
}

static void tables(void)
{
    struct ops ops;
    struct levels v;
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | Normalize", STK_FLOAT32, 0, 0, NULL), STK_OK);
    levels_init(&v, &ops, STORE_F32);
    CHECK(f32_at(&v, 0, 0) == (0.0f - 0.485f) / 0.229f);
    CHECK(f32_at(&v, 2, 255) == (1.0f - 0.406f) / 0.225f);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8)", STK_FLOAT32, 0, 0, NULL), STK_OK);
    levels_init(&v, &ops, STORE_F32);
    for (int i = 0; i < 256; i++)
        CHECK(f32_at(&v, 1, i) == (float)i / 255.0f);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | ToDtype(float32)", STK_FLOAT32, 0, 0, NULL), STK_OK);
    levels_init(&v, &ops, STORE_F32);
    CHECK(f32_at(&v, 1, 200) == 200.0f);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | ToDtype(float32, scale=True)", STK_FLOAT32, 0, 0, NULL), STK_OK);
    levels_init(&v, &ops, STORE_F32);
    CHECK(f32_at(&v, 1, 3) == 3.0f * (float)(1.0 / 255.0));
}

/* The usual means and standard deviations are computed, not looked up, on every instruction set. */
static void arithmetic_is_exact(void)
{
    static const char *const texts[] = {"CenterCrop(8)", "CenterCrop(8) | Normalize", "CenterCrop(8) | Normalize(clip)",
                                        "CenterCrop(8) | Normalize(half)",
                                        "CenterCrop(8) | ToDtype(float32, scale=True) | Normalize"};
    struct machine m;
    machine_look(&m);
    const stk_cpu sets[] = {STK_CPU_C, m.avx2 ? STK_CPU_AVX2 : STK_CPU_C, m.avx512 ? STK_CPU_AVX512 : STK_CPU_C};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
        for (int s = 0; s < 3; s++)
            for (int d = STORE_F16; d < STORE_DTYPES; d++)
                for (int shape = 0; shape < STORE_SHAPES; shape++) {
                    struct ops ops;
                    struct levels v;
                    struct kernels k;
                    CHECK_EQ(ops_read(&ops, texts[t], STK_FLOAT32, 0, 0, NULL), STK_OK);
                    levels_init(&v, &ops, (enum store_dtype)d);
                    kernels_fill(&k, sets[s]);
                    CHECK(levels_exact(&v, &k, (enum store_shape)shape, (enum store_dtype)d));
                }
}

int main(int argc, char **argv)
{
    TESTS(T(halves_come_back), T(halves_round_to_even), T(bfloats), T(tables), T(arithmetic_is_exact))
}
