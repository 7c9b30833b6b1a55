/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kernel_png.c -- compares every PNG kernel of every instruction set of this machine with its C version, and plain
 * C with a filter that the test contains.
 *
 *     STOKER_SEED=17 test_kernel_png   repeats a run with the same data
 *
 * Covers png_kernel.c and png_kernel_*.c.
 */
#include "decode/png_kernel.h"

#include "base/cpu.h"
#include "base/rng.h"
#include "test.h"

enum { GUARD = 64, POISON = 0xd7 };

static struct rng rng;
static uint64_t seed;
static stk_cpu sets[3] = {STK_CPU_C};
static int n_sets = 1;

static int below(int n)
{
    return (int)rng_below(&rng, (uint64_t)n);
}

/* Bytes that are random, extreme, or all equal. */
static void fill(uint8_t *p, size_t n)
{
    const int kind = below(4);
    const uint8_t same = (uint8_t)below(256);
    for (size_t i = 0; i < n; i++)
        p[i] = kind == 0 ? same : kind == 1 ? (uint8_t)(below(2) * 255) : (uint8_t)rng_u32(&rng);
}

static const char *words(const char *what, size_t a, int b, int set)
{
    static char text[120];
    snprintf(text, sizeof text, "seed %" PRIu64 ": %s %zu, %d on %s", seed, what, a, b, cpu_name(sets[set]));
    return text;
}

static void must(bool truth, const char *what)
{
    if (!truth)
        printf("%s\n", what);
    CHECK(truth);
}

/* ------------------------------------------------------------------ filters */

/* Filters a row: the inverse of what is tested, as the standard defines it. */
static void filter(uint8_t *to, const uint8_t *row, const uint8_t *above, size_t n, size_t step, int kind)
{
    to[0] = (uint8_t)kind;
    for (size_t i = 0; i < n; i++) {
        const int a = i < step ? 0 : row[i - step], b = above[i], c = i < step ? 0 : above[i - step];
        const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
        const int nearest = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
        const int guesses[FILTERS] = {0, a, b, (a + b) / 2, nearest};
        to[i + 1] = (uint8_t)(row[i] - guesses[kind]);
    }
}

/* Filters random rows, and undoes the filters with every set of kernels. */
static void undo(size_t step, size_t w, int rows)
{
    const size_t n = step * w, stride = (n + UNFILTER_PAD + 63) / 64 * 64;
    const size_t all = UNFILTER_PAD + (size_t)(rows + 1) * stride;
    uint8_t *pixels = malloc(all), *out = malloc(all), *filtered = malloc((size_t)rows * (n + 1) + UNFILTER_PAD);
    fill(pixels, all);
    const int kind = below(FILTERS + 2);
    for (int y = 0; y < rows; y++) {
        const uint8_t *row = pixels + UNFILTER_PAD + (size_t)(y + 1) * stride;
        filter(filtered + (size_t)y * (n + 1), row, row - stride, n, step, kind < FILTERS ? kind : below(FILTERS));
    }
    for (int s = 0; s < n_sets; s++) {
        struct png_kernels k;
        png_kernels_fill(&k, sets[s]);
        memset(out, POISON, all);
        memcpy(out + UNFILTER_PAD, pixels + UNFILTER_PAD, n);
        k.unfilter[step](out + UNFILTER_PAD + stride, stride, filtered, n, rows);
        bool good = true;
        for (int y = 0; y < rows; y++) {
            const size_t at = UNFILTER_PAD + (size_t)(y + 1) * stride;
            good &= memcmp(out + at, pixels + at, n) == 0;
        }
        must(good, words("unfilter bytes", n, (int)step, s));
    }
    free(pixels);
    free(out);
    free(filtered);
}

static void filters(void)
{
    static const size_t steps[] = {1, 2, 3, 4, 6, 8};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        for (size_t w = 1; w < 150; w++)
            for (int rows = 1; rows <= UNFILTER_ROWS; rows++)
                undo(steps[i], w, rows);
}

/* ------------------------------------------------------------------ sums */

static void sums(void)
{
    struct png_kernels c, k;
    png_kernels_fill(&c, STK_CPU_C);
    CHECK_EQ(c.adler(1, (const uint8_t *)"Wikipedia", 9), 0x11e60398);
    uint8_t *p = malloc(40000);
    for (int s = 0; s < n_sets; s++) {
        png_kernels_fill(&k, sets[s]);
        for (size_t n = 0; n < 40000; n += n < 300 ? 1 : 997) {
            fill(p, n);
            const uint32_t begin = (uint32_t)below(65521) << 16 | (uint32_t)below(65521);
            uint8_t *end = malloc(n ? n : 1); /* so that the sanitizer reports reads past the end */
            memcpy(end, p, n);
            must(k.adler(begin, end, n) == c.adler(begin, end, n), words("adler", n, 0, s));
            free(end);
        }
        memset(p, 255, 40000);
        must(k.adler(0xfff0fff0, p, 40000) == c.adler(0xfff0fff0, p, 40000), words("adler", 40000, 255, s));
    }
    free(p);
}

/* ------------------------------------------------------------------ pixels */

typedef void line_fn(uint8_t *dst, const uint8_t *src, size_t n);

static void line(line_fn *c, line_fn *k, size_t n, size_t from, const char *what, int set)
{
    uint8_t *src = malloc(n * from), *x = malloc(n * 3 + GUARD), *y = malloc(n * 3 + GUARD);
    fill(src, n * from);
    memset(x, POISON, n * 3 + GUARD);
    memset(y, POISON, n * 3 + GUARD);
    c(x, src, n);
    k(y, src, n);
    must(memcmp(x, y, n * 3 + GUARD) == 0, words(what, n, 0, set));
    free(src);
    free(x);
    free(y);
}

static void lines(void)
{
    struct png_kernels c, k;
    png_kernels_fill(&c, STK_CPU_C);
    for (int s = 1; s < n_sets; s++) {
        png_kernels_fill(&k, sets[s]);
        for (size_t n = 1; n <= 200; n++) {
            line(c.drop_alpha, k.drop_alpha, n, 4, "drop_alpha", s);
            line(c.spread_grey, k.spread_grey, n, 1, "spread_grey", s);
        }
    }
}

int main(int argc, char **argv)
{
    const char *given = getenv("STOKER_SEED");
    seed = given ? strtoull(given, NULL, 10) : now_ns() % 1000000;
    rng_init(&rng, &(struct draw){.seed = seed}, "test_kernel_png", 0);
    for (stk_cpu c = STK_CPU_AVX2; c <= STK_CPU_AVX512; c++) {
        stk_cpu has;
        if (cpu_choose(c, &has, NULL) == STK_OK)
            sets[n_sets++] = has;
    }
    printf("seed %" PRIu64 ", %d sets of kernels\n", seed, n_sets);
    TESTS(T(filters), T(sums), T(lines))
}
