/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kernel_color.c -- kernels of point steps: every instruction set against C, and every colour through HSV.
 *
 *     test_kernel_color --bench          microseconds per image of 224 x 224
 */
#include "transform/kernel.h"
#include "twins.h"

enum { LONG = 700 };

static uint8_t tables[3][256];
static float factor;
static uint8_t shift, order[3];

static void draw_arguments(void)
{
    for (int i = 0; i < 3 * 256; i++)
        tables[i / 256][i % 256] = (uint8_t)below(256);
    factor = (float)rng_between(&rng, -0.5, 3.0);
    shift = (uint8_t)below(256);
    order[0] = (uint8_t)below(3);
    order[1] = (uint8_t)((order[0] + 1 + below(2)) % 3);
    order[2] = (uint8_t)(3 - order[0] - order[1]);
}

static void run(const struct kernels *k, int kind, uint8_t *dst, const uint8_t *src, int32_t w)
{
    const uint8_t(*t)[256] = (const uint8_t(*)[256])tables;
    switch (kind) {
    case 0:
        k->table1(dst, src, 3 * (size_t)w, t[0]);
        break;
    case 1:
        k->table3(dst, src, w, t);
        break;
    case 2:
        k->mix(dst, 0, src, 0, w, 1, factor);
        break;
    case 3:
        k->hue(dst, src, w, shift);
        break;
    case 4:
        k->grey3(dst, src, w);
        break;
    case 5:
        k->invert(dst, src, 3 * (size_t)w);
        break;
    default:
        k->permute(dst, src, w, order);
    }
}

static const char *const names[] = {"table1", "table3", "mix", "hue", "grey3", "invert", "permute"};
enum { KINDS = sizeof names / sizeof names[0] };

/* Into other memory, and in place. */
static void one_line(const struct kernels *c, const struct kernels *k, int kind, int32_t w, int set)
{
    const size_t n = 3 * (size_t)w, off = (size_t)below(33);
    uint8_t *src = input(n);
    for (int in_place = 0; in_place < 2; in_place++) {
        struct output x = output_new(n, off), y = output_new(n, off);
        run(c, kind, x.at, src, w);
        if (in_place) {
            memcpy(y.at, src, n);
            run(k, kind, y.at, y.at, w);
        } else {
            run(k, kind, y.at, src, w);
        }
        CHECK(agree(&x, &y, names[kind], set));
    }
    free(src);
}

static void points(void)
{
    struct kernels c, k;
    kernels_fill(&c, STK_CPU_C);
    for (int s = 1; s < n_sets; s++) {
        kernels_fill(&k, sets[s]);
        for (int kind = 0; kind < KINDS; kind++)
            for (int32_t w = 1; w < LONG; w += w < 140 ? 1 : 37) {
                draw_arguments();
                one_line(&c, &k, kind, w, s);
            }
    }
}

/* All colours, by one number that is added to the hue. */
static void every_colour(void)
{
    enum { W = 1 << 16 };
    struct kernels c, k;
    kernels_fill(&c, STK_CPU_C);
    uint8_t *src = input(3 * W), *a = malloc(3 * W), *b = malloc(3 * W);
    for (int s = 1; s < n_sets; s++) {
        kernels_fill(&k, sets[s]);
        shift = (uint8_t)below(256);
        for (int red = below(4); red < 256; red += 1 + below(8)) {
            for (int i = 0; i < W; i++) {
                src[3 * i] = (uint8_t)red;
                src[3 * i + 1] = (uint8_t)(i >> 8);
                src[3 * i + 2] = (uint8_t)i;
            }
            c.hue(a, src, W, shift);
            k.hue(b, src, W, shift);
            CHECK(memcmp(a, b, 3 * W) == 0);
        }
    }
    free(src);
    free(a);
    free(b);
}

/* Some rows. */
static void sharpen_one(const struct kernels *c, const struct kernels *k, size_t n, int set)
{
    const int32_t rows = 1 + below(4);
    const size_t step = below(2) ? 1 : 3, stride = n + 2 * step + (size_t)below(9), off = (size_t)below(33);
    const size_t pitch = n + (size_t)below(9), bytes = pitch * (size_t)(rows - 1) + n;
    uint8_t *src = input((size_t)(rows + 2) * stride);
    struct output x = output_new(bytes, off), y = output_new(bytes, off);
    draw_arguments();
    c->sharpen(x.at, pitch, src + stride + step, stride, step, n, rows, factor);
    k->sharpen(y.at, pitch, src + stride + step, stride, step, n, rows, factor);
    CHECK(agree(&x, &y, "sharpen", set));
    free(src);
}

/* Rows with bytes between them, which stay. */
static void mix_rows(const struct kernels *c, const struct kernels *k, int32_t w, int set)
{
    const int32_t rows = 1 + below(4);
    const size_t line = 3 * (size_t)w, from = line + (size_t)below(9), to = line + (size_t)below(9);
    const size_t bytes = to * (size_t)(rows - 1) + line;
    uint8_t *src = input((size_t)rows * from);
    struct output x = output_new(bytes, 5), y = output_new(bytes, 5);
    draw_arguments();
    c->mix(x.at, to, src, from, w, rows, factor);
    k->mix(y.at, to, src, from, w, rows, factor);
    CHECK(agree(&x, &y, "mix", set));
    free(src);
}

static void about_one(const struct kernels *c, const struct kernels *k, int32_t w)
{
    uint8_t *src = input(3 * (size_t)w);
    struct kernel_range x = {0}, y;
    memset(x.low, 255, sizeof x.low);
    y = x;
    CHECK(c->sum(src, (size_t)w) == k->sum(src, (size_t)w));
    c->range(&x, src, (size_t)w);
    k->range(&y, src, (size_t)w);
    c->range(&x, src + 1, 2 * (size_t)w);
    k->range(&y, src + 1, 2 * (size_t)w);
    CHECK(memcmp(&x, &y, sizeof x) == 0);
    free(src);
}

static void mixtures_one(const struct kernels *c, const struct kernels *k, size_t n, int set)
{
    uint8_t *src = input(2 * n);
    float *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b);
    struct output x = output_new(n, 3), y = output_new(n, 3);
    draw_arguments();
    c->weigh(a, src, n, factor, true);
    k->weigh(b, src, n, factor, true);
    c->weigh(a, src + n, n, 0.3f, false);
    k->weigh(b, src + n, n, 0.3f, false);
    CHECK(memcmp(a, b, n * sizeof *a) == 0);
    c->settle(x.at, a, n);
    k->settle(y.at, b, n);
    CHECK(agree(&x, &y, "settle", set));
    free(src);
    free(a);
    free(b);
}

static void the_rest(void)
{
    struct kernels c, k;
    kernels_fill(&c, STK_CPU_C);
    for (int s = 1; s < n_sets; s++) {
        kernels_fill(&k, sets[s]);
        for (int32_t w = 1; w < LONG; w++) {
            sharpen_one(&c, &k, (size_t)w, s);
            mix_rows(&c, &k, 1 + below(300), s);
            about_one(&c, &k, w);
            mixtures_one(&c, &k, (size_t)w, s);
        }
        about_one(&c, &k, 100000);
    }
}

static void bench(void)
{
    enum { SIDE = 224, TIMES = 60 };
    const size_t line = 3 * SIDE;
    uint8_t *src = input(line * SIDE), *dst = malloc(line * SIDE + IMAGE_SLACK);
    draw_arguments();
    for (int s = 0; s < n_sets; s++) {
        struct kernels k;
        kernels_fill(&k, sets[s]);
        for (int kind = 0; kind < KINDS + 3; kind++) {
            uint64_t best = UINT64_MAX;
            struct kernel_range r = {0};
            uint64_t sum = 0;
            for (int t = 0; t < TIMES; t++) {
                const uint64_t since = now_ns();
                for (int32_t y = 0; y < SIDE; y++) {
                    if (kind < KINDS)
                        run(&k, kind, dst + (size_t)y * line, src + (size_t)y * line, SIDE);
                    else if (kind == KINDS && y == 1)
                        k.sharpen(dst + line, line, src + line, line, 3, line, SIDE - 2, 1.7f);
                    else if (kind == KINDS + 1)
                        sum += k.sum(src + (size_t)y * line, line);
                    else if (kind == KINDS + 2)
                        k.range(&r, src + (size_t)y * line, line);
                }
                const uint64_t took = now_ns() - since;
                best = took < best ? took : best;
            }
            printf("%-8s %-8s %7.1f us%s\n", cpu_name(sets[s]),
                   kind < KINDS        ? names[kind]
                   : kind == KINDS     ? "sharpen"
                   : kind == KINDS + 1 ? "sum"
                                       : "range",
                   (double)best / 1000, sum == 1 ? "!" : "");
        }
    }
    free(src);
    free(dst);
}

int main(int argc, char **argv)
{
    twins_begin("color");
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench();
        return 0;
    }
    twins_say();
    TESTS(T(points), T(every_colour), T(the_rest))
}
