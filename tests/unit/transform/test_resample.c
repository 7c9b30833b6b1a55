/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_resample.c -- coefficient tables: sums, windows, parts of a whole, extremes.
 */
#include "transform/resample.h"

#include <math.h>

#include "base/rng.h"
#include "test.h"

struct table {
    struct taps t;
    double *weights;
};

static struct table table_new(const struct axis *a, struct reach out, struct reach in, bool reverse)
{
    struct table b = {.t = {.groups = resample_groups(a, out)}};
    const size_t n = ((size_t)out.n + TAPS_ROUND - 1) / TAPS_ROUND * TAPS_ROUND;
    b.t.first = malloc(n * sizeof *b.t.first);
    b.t.c = malloc(n * (size_t)b.t.groups * 4 * sizeof *b.t.c);
    b.weights = malloc((size_t)b.t.groups * 4 * sizeof *b.weights);
    resample_fill(&b.t, a, out, in, reverse, b.weights);
    return b;
}

static void table_free(struct table *b)
{
    free(b->t.first);
    free(b->t.c);
    free(b->weights);
}

/* Weight of the whole image's input i in output o. */
static int32_t weight(const struct table *b, int32_t o, int32_t i, int32_t lo)
{
    const int32_t k = i - lo - b->t.first[o];
    return k < 0 || k >= 4 * b->t.groups ? 0 : b->t.c[(size_t)o * 4 * (size_t)b->t.groups + (size_t)k];
}

static const char *const filter_names[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};

static void by_hand(void)
{
    const struct axis half = resample_axis(FILTER_BOX, true, 4, 2);
    struct table b = table_new(&half, (struct reach){0, 2}, (struct reach){0, 4}, false);
    CHECK_EQ(b.t.groups, 1);
    CHECK_EQ(b.t.first[0], 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(weight(&b, 0, i, 0), i < 2 ? 1 << 21 : 0);
        CHECK_EQ(weight(&b, 1, i, 0), i < 2 ? 0 : 1 << 21);
    }
    table_free(&b);

    /* 2 to 4 bilinear: centres at 0.25, 0.75, 1.25, 1.75 */
    const struct axis twice = resample_axis(FILTER_BILINEAR, true, 2, 4);
    b = table_new(&twice, (struct reach){0, 4}, (struct reach){0, 2}, false);
    static const int32_t left[4] = {1 << 22, 3 << 20, 1 << 20, 0};
    for (int o = 0; o < 4; o++) {
        CHECK_EQ(weight(&b, o, 0, 0), left[o]);
        CHECK_EQ(weight(&b, o, 1, 0), (1 << 22) - left[o]);
    }
    table_free(&b);
}

static void nearest_picks_one(void)
{
    const struct axis a = resample_axis(FILTER_NEAREST, true, 10, 4);
    struct table b = table_new(&a, (struct reach){0, 4}, (struct reach){0, 10}, false);
    static const int32_t picks[4] = {1, 3, 6, 8};
    for (int o = 0; o < 4; o++)
        for (int i = 0; i < 10; i++)
            CHECK_EQ(weight(&b, o, i, 0), i == picks[o] ? 1 << 22 : 0);
    table_free(&b);
}

/* Sizes of all kinds, the same in every run. */
static void sizes_of(int k, int32_t *in, int32_t *out)
{
    struct rng r;
    rng_init(&r, &(struct draw){.sample = (uint64_t)k}, "test", 0);
    const uint64_t top = 1u << (1 + rng_below(&r, 10));
    *in = (int32_t)rng_below(&r, top) + 1;
    *out = (int32_t)rng_below(&r, top) + 1;
}

/* Weights sum to one, stay under 1.98 (three signed bytes), and belong to existing input. */
static void whole_tables(void)
{
    for (int k = 0; k < 600; k++) {
        int32_t in, out;
        sizes_of(k, &in, &out);
        const int f = k % FILTER_COUNT;
        const struct axis a = resample_axis((enum filter)f, k % 7 != 0, in, out);
        struct table b = table_new(&a, (struct reach){0, out}, (struct reach){0, in}, false);
        const int32_t width = 4 * b.t.groups;
        for (int32_t o = 0; o < out; o++) {
            int64_t sum = 0;
            CHECK(b.t.first[o] >= 0 && (b.t.first[o] + width <= in || (in < width && b.t.first[o] == 0)));
            for (int32_t i = 0; i < width; i++) {
                const int32_t c = b.t.c[(size_t)o * (size_t)width + (size_t)i];
                CHECK(abs(c) < 127 << 16);
                CHECK(c == 0 || b.t.first[o] + i < in);
                sum += c;
            }
            if (llabs(sum - (1 << RESAMPLE_BITS)) > width * (1 << (RESAMPLE_BITS - a.bits))) {
                printf("%s %d to %d output %d\n", filter_names[f], in, out, o);
                CHECK_EQ(sum, 1 << RESAMPLE_BITS);
            }
        }
        table_free(&b);
    }
}

/* A part of the output has the same weights as the whole, and needs exactly the inputs with a weight. */
static void parts_of_tables(void)
{
    for (int k = 0; k < 600; k++) {
        int32_t in, out;
        sizes_of(k, &in, &out);
        struct rng r;
        rng_init(&r, &(struct draw){.sample = (uint64_t)k}, "part", 0);
        const int32_t lo = (int32_t)rng_below(&r, (uint64_t)out), n = 1 + (int32_t)rng_below(&r, (uint64_t)(out - lo));
        const struct axis a = resample_axis((enum filter)(k % FILTER_COUNT), k % 5 != 0, in, out);
        const struct reach part = {lo, n}, from = resample_needs(&a, part);
        CHECK(from.lo >= 0 && from.n >= 1 && from.lo + from.n <= in);
        struct table whole = table_new(&a, (struct reach){0, out}, (struct reach){0, in}, false);
        struct table some = table_new(&a, part, from, false), back = table_new(&a, part, from, true);
        for (int32_t o = 0; o < n; o++)
            for (int32_t i = 0; i < in; i++) {
                const int32_t c = weight(&whole, lo + o, i, 0);
                CHECK(c == weight(&some, o, i, from.lo) && c == weight(&back, n - 1 - o, i, from.lo));
                CHECK(c == 0 || (i >= from.lo && i < from.lo + from.n));
            }
        table_free(&whole);
        table_free(&some);
        table_free(&back);
    }
}

static void extremes(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {1, 65536}, {65536, 1}, {100000, 1}, {3, 65536}, {16777216, 2}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int f = 0; f < FILTER_COUNT; f++) {
            const struct axis a = resample_axis((enum filter)f, true, sizes[k][0], sizes[k][1]);
            const struct reach out = {sizes[k][1] - 1, 1}, in = resample_needs(&a, out);
            struct table b = table_new(&a, out, in, false);
            CHECK(b.t.groups >= 1 && in.n >= 1 && in.lo + in.n <= sizes[k][0]);
            table_free(&b);
        }
}

/* Rounding errors of the running sum may move nearest past the last pixel. Then no pixel is used, as in Pillow. */
static void nearest_runs_out(void)
{
    for (int32_t in = 1; in < 200; in++)
        for (int32_t out = 1; out < 200; out++) {
            const struct axis a = resample_axis(FILTER_NEAREST, true, in, out);
            const struct reach last = {out - 1, 1}, from = resample_needs(&a, last);
            double x = (double)in / out * 0.5;
            for (int32_t i = 1; i < out; i++)
                x += (double)in / out;
            struct table b = table_new(&a, last, from, false);
            const int32_t sum = b.t.c[0] + b.t.c[1] + b.t.c[2] + b.t.c[3];
            CHECK_EQ(sum, x < in ? 1 << 22 : 0);
            table_free(&b);
        }
}

int main(int argc, char **argv)
{
    TESTS(T(by_hand), T(nearest_picks_one), T(whole_tables), T(parts_of_tables), T(extremes), T(nearest_runs_out))
}
