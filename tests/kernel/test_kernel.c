/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kernel.c -- compares every kernel of every instruction set of this machine with its C version.
 *
 *     test_kernel [part of a case's name]
 *     test_kernel --bench          microseconds per image
 *     STOKER_SEED=17 test_kernel   repeats a run with the same data
 *
 * Results are written between guard bands. Inputs end where the slack that kernels may read ends, so that the sanitizer
 * reports reads past it. Covers kernel_*.c.
 */
#include "transform/kernel.h"

#include "base/arena.h"
#include "base/cpu.h"
#include "transform/levels.h"
#include "transform/plan.h"
#include "twins.h"

/* A table of weights in the order of a set of kernels. */
struct table {
    struct taps t;
    double *weights;
};

static struct table table_new(const struct kernels *k, const struct axis *a, struct reach out, bool reverse)
{
    const struct reach in = resample_needs(a, out);
    struct table b = {.t = {.groups = resample_groups(a, out)}};
    const size_t n = ((size_t)out.n + TAPS_ROUND - 1) / TAPS_ROUND * TAPS_ROUND, groups = n * (size_t)b.t.groups;
    b.t.first = aligned_alloc(64, (n * sizeof *b.t.first + 63) / 64 * 64);
    b.t.c = aligned_alloc(64, (groups * 16 + 63) / 64 * 64);
    b.weights = malloc((size_t)b.t.groups * 4 * sizeof *b.weights);
    resample_fill(&b.t, a, out, in, reverse, b.weights);
    k->arrange_weights(b.t.c, groups);
    return b;
}

static void table_free(struct table *b)
{
    free(b->t.first);
    free(b->t.c);
    free(b->weights);
}

/* How much larger the input is than the output: from a hundredth to many times. */
static struct axis some_axis(int32_t out)
{
    static const double scales[] = {0.01, 0.3, 0.8, 1.29, 1.9, 2.5, 3.7, 5, 8, 13, 30};
    const double in = out * scales[below(11)] + below(3);
    return resample_axis((enum filter)below(FILTER_COUNT), below(5) != 0, in < 1 ? 1 : (int32_t)in, out);
}

static void across_one(int channels, int32_t out, int rows)
{
    const struct axis a = some_axis(out);
    const bool reverse = below(2);
    const struct reach all = {0, out};
    const struct reach in = resample_needs(&a, all);
    struct kernels c;
    kernels_fill(&c, STK_CPU_C);
    struct table tc = table_new(&c, &a, all, reverse);
    const size_t line = (size_t)in.n * (size_t)channels, stride = line + (size_t)below(40);
    const size_t to_line = (size_t)out * (size_t)channels, to = to_line + (size_t)below(40);
    uint8_t *src = input(stride * (size_t)(rows - 1) + line);
    for (int s = 1; s < n_sets; s++) {
        struct kernels k;
        kernels_fill(&k, sets[s]);
        struct table tk = table_new(&k, &a, all, reverse);
        const size_t n = to * (size_t)(rows - 1) + to_line, off = (size_t)below(33);
        struct output x = output_new(n, off), y = output_new(n, off);
        (channels == 3 ? c.across3 : c.across1)(x.at, to, src, stride, rows, &tc.t);
        (channels == 3 ? k.across3 : k.across1)(y.at, to, src, stride, rows, &tk.t);
        char what[120];
        snprintf(what, sizeof what, "across%d filter %d %d to %d, %d rows", channels, (int)a.filter, a.in, a.out, rows);
        CHECK(agree(&x, &y, what, s));
        table_free(&tk);
    }
    table_free(&tc);
    free(src);
}

static void across(void)
{
    for (int channels = 1; channels <= 3; channels += 2) {
        for (int32_t out = 1; out <= 70; out++)
            for (int k = 0; k < 6; k++)
                across_one(channels, out, 1 + below(9));
        for (int k = 0; k < 40; k++)
            across_one(channels, 1 + below(300), 1 + below(40));
    }
}

static void down_one(size_t n)
{
    const struct axis a = some_axis(1 + below(20));
    const struct reach all = {0, a.out};
    const struct reach in = resample_needs(&a, all);
    const size_t stride = n + (size_t)below(40);
    struct kernels c;
    kernels_fill(&c, STK_CPU_C);
    struct table tc = table_new(&c, &a, all, false);
    uint8_t *src = input(stride * (size_t)(in.n - 1) + n);
    for (int s = 1; s < n_sets; s++) {
        struct kernels k;
        kernels_fill(&k, sets[s]);
        struct table tk = table_new(&k, &a, all, false);
        for (int32_t i = 0; i < a.out; i++) {
            const size_t off = (size_t)below(33);
            struct output x = output_new(n, off), y = output_new(n, off);
            c.down(x.at, src, stride, n, &tc.t, i);
            k.down(y.at, src, stride, n, &tk.t, i);
            char what[120];
            snprintf(what, sizeof what, "down filter %d %d to %d, %zu bytes", (int)a.filter, a.in, a.out, n);
            CHECK(agree(&x, &y, what, s));
        }
        table_free(&tk);
    }
    table_free(&tc);
    free(src);
}

static void down(void)
{
    for (size_t n = 1; n <= 210; n++)
        for (int k = 0; k < 4; k++)
            down_one(n);
}

typedef void line_fn(uint8_t *dst, const uint8_t *src, int32_t w);

static void line_one(line_fn *c, line_fn *k, int32_t w, int from, int to, const char *what, int set)
{
    uint8_t *src = input((size_t)w * (size_t)from);
    const size_t n = (size_t)w * (size_t)to, off = (size_t)below(33);
    struct output x = output_new(n, off), y = output_new(n, off);
    c(x.at, src, w);
    k(y.at, src, w);
    CHECK(agree(&x, &y, what, set));
    free(src);
}

static void lines(void)
{
    struct kernels c, k;
    kernels_fill(&c, STK_CPU_C);
    for (int s = 1; s < n_sets; s++) {
        kernels_fill(&k, sets[s]);
        for (int32_t w = 1; w <= 300; w++) {
            line_one(c.grey, k.grey, w, 3, 1, "grey", s);
            line_one(c.mirror1, k.mirror1, w, 1, 1, "mirror1", s);
            line_one(c.mirror3, k.mirror3, w, 3, 3, "mirror3", s);
        }
    }
}

static const char *const shape_names[] = {"single", "planar", "interleaved"};
static const char *const dtype_names[] = {"u8", "f16", "bf16", "f32"};

/* Stores one row, with the ordinary or the streaming store. */
static void store_one(const struct kernels *k, const struct levels *v, int shape, int dtype, int32_t w, bool stream,
                      int set)
{
    struct kernels c;
    kernels_fill(&c, STK_CPU_C);
    const size_t bytes = dtype == STORE_U8 ? 1 : dtype == STORE_F32 ? 4 : 2;
    const size_t channels = shape == STORE_SINGLE ? 1 : 3;
    const size_t plane = shape == STORE_PLANAR ? (size_t)w * (stream ? 2 : 1) + (stream ? 0 : (size_t)below(30)) : 0;
    const size_t n = (shape == STORE_PLANAR ? 2 * plane + (size_t)w : (size_t)w * channels) * bytes;
    const size_t off = stream ? 0 : (size_t)below(16) * bytes;
    uint8_t *src = input((size_t)w * channels);
    struct output x = output_new(n, off), y = output_new(n, off);
    c.store[shape][dtype](x.at, plane, src, w, v);
    (stream ? k->stream : k->store)[shape][dtype](y.at, plane, src, w, v);
    k->fence();
    char what[80];
    snprintf(what, sizeof what, "%s %s %s, %d pixels", stream ? "stream" : "store", shape_names[shape],
             dtype_names[dtype], w);
    CHECK(agree(&x, &y, what, set));
    free(src);
}

/* Sums of random floats of all magnitudes. */
static void blend_one(const struct kernels *k, int dtype, size_t n, int set)
{
    struct kernels c;
    kernels_fill(&c, STK_CPU_C);
    const size_t bytes = dtype == STORE_F32 ? 4 : 2;
    uint8_t *src = input(n * bytes), *was = input(n * bytes);
    for (size_t i = bytes - 1; i < n * bytes; i += bytes) { /* keeps numbers finite */
        src[i] &= 0xbb;
        was[i] &= 0xbb;
    }
    struct output x = output_new(n * bytes, 0), y = output_new(n * bytes, 0);
    memcpy(x.at, was, n * bytes);
    memcpy(y.at, was, n * bytes);
    const float keep = (float)below(1000) / 999.0f;
    c.blend[dtype](x.at, src, n, keep, 1.0f - keep);
    k->blend[dtype](y.at, src, n, keep, 1.0f - keep);
    char what[80];
    snprintf(what, sizeof what, "blend %s, %zu values", dtype_names[dtype], n);
    CHECK(agree(&x, &y, what, set));
    free(src);
    free(was);
}

static void blend(void)
{
    for (int s = 1; s < n_sets; s++) {
        struct kernels k;
        kernels_fill(&k, sets[s]);
        for (int dtype = STORE_F16; dtype < STORE_DTYPES; dtype++)
            for (size_t n = 1; n <= 150; n++)
                blend_one(&k, dtype, n, s);
    }
}

/* Means and standard deviations of all kinds. Returns false if the arithmetic is not exact for them. */
static bool some_levels(struct levels *v, const struct kernels *k, int shape, int dtype)
{
    char text[200];
    if (below(2))
        snprintf(text, sizeof text, "CenterCrop(1) | Normalize(%s)", below(2) ? "imagenet" : "clip");
    else
        snprintf(text, sizeof text, "CenterCrop(1) | Normalize((0.%03d, 0.%03d, 0.%03d), (0.%03d1, 0.%03d1, %d))",
                 below(1000), below(1000), below(1000), below(1000), below(1000), 1 + below(100));
    struct ops ops;
    CHECK_EQ(ops_read(&ops, text, STK_FLOAT32, 0, 0, NULL), STK_OK);
    levels_init(v, &ops, (enum store_dtype)dtype);
    return levels_exact(v, k, (enum store_shape)shape, (enum store_dtype)dtype);
}

static void store(void)
{
    int exact = 0, all = 0;
    for (int s = 1; s < n_sets; s++) {
        struct kernels k;
        kernels_fill(&k, sets[s]);
        for (int shape = 0; shape < STORE_SHAPES; shape++)
            for (int dtype = 0; dtype < STORE_DTYPES; dtype++)
                for (int32_t w = 1; w <= 150; w++) {
                    struct levels v;
                    const bool good = some_levels(&v, &k, shape, dtype);
                    all++;
                    exact += good;
                    if (!good)
                        continue;
                    store_one(&k, &v, shape, dtype, w, false, s);
                    if (w % 64 == 0)
                        store_one(&k, &v, shape, dtype, w, true, s);
                }
    }
    if (all)
        printf("arithmetic exact for %d of %d random means and deviations\n", exact, all);
}

/* ------------------------------------------------------------------ --bench */

static double least(double a, double b)
{
    return a < b ? a : b;
}

struct bench_image {
    int32_t w, h;
    const char *ops;
    stk_dtype dtype;
};

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Times all of plan_run, with rows of a batch that no CPU cache holds. Returns the lower quartile, which other
 * processes disturb least. */
static double bench_plan(const struct bench_image *b, stk_cpu cpu)
{
    enum { ROWS = 64, ROUNDS = 7 };
    const struct plan_options o = {
        .ops = b->ops, .dtype = b->dtype, .layout = STK_NCHW, .fidelity = STK_EXACT, .cpu = cpu};
    struct plan *p = NULL;
    struct job j;
    if (plan_new(&p, &o, NULL) || plan_draw(p, &(struct draw){0}, b->w, b->h, &j, NULL))
        return 0;
    const struct rect c = j.want.crop;
    uint8_t *src = input((size_t)c.w * (size_t)c.h * 3);
    const struct image im = {.px = src, .stride = (size_t)c.w * 3, .w = c.w, .h = c.h, .channels = 3};
    struct arena a = {0};
    const size_t bytes = plan_row_bytes(p), batch = ROWS * bytes, scratch = plan_scratch(p, &j);
    uint8_t *rows = pages_new(batch);
    uint64_t times[ROWS * ROUNDS];
    if (!rows)
        return 0;
    memset(rows, 1, batch);
    for (size_t i = 0; i < ROWS * ROUNDS; i++) {
        const uint64_t before = now_ns();
        if (arena_reserve(&a, scratch) == 0)
            plan_run(p, &j, &im, &a, rows + i % ROWS * bytes, NULL);
        times[i] = now_ns() - before;
    }
    qsort(times, ROWS * ROUNDS, sizeof times[0], by_size);
    pages_free(rows, batch);
    arena_done(&a);
    free(src);
    plan_free(p);
    return (double)times[ROWS * ROUNDS / 4] / 1000.0;
}

/* The steps of resizing three channels to 224 x 224. */
static void bench_parts(stk_cpu cpu, int32_t in, enum filter filter)
{
    enum { OUT = 224, STRIDE = 704, ROUNDS = 300 };
    struct kernels k;
    kernels_fill(&k, cpu);
    const struct axis a = resample_axis(filter, true, in, OUT);
    const struct reach all = {0, OUT};
    uint8_t *src = input((size_t)in * (size_t)in * 3), *between = input(STRIDE * (size_t)in),
            *out = input(STRIDE * OUT);
    float *row = aligned_alloc(64, sizeof *row * 3 * OUT * OUT);
    struct ops ops;
    struct levels v;
    ops_read(&ops, "CenterCrop(8) | Normalize", STK_FLOAT32, 0, 0, NULL);
    levels_init(&v, &ops, STORE_F32);
    double t[4] = {1e9, 1e9, 1e9, 1e9};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t at[5];
        at[0] = now_ns();
        struct table b = table_new(&k, &a, all, false);
        at[1] = now_ns();
        k.across3(between, STRIDE, src, (size_t)in * 3, in, &b.t);
        at[2] = now_ns();
        for (int32_t y = 0; y < OUT; y++)
            k.down(out + (size_t)y * STRIDE, between, STRIDE, OUT * 3, &b.t, y);
        at[3] = now_ns();
        for (size_t y = 0; y < OUT; y++)
            k.store[STORE_PLANAR][STORE_F32](row + y * OUT, OUT * OUT, out + y * STRIDE, OUT, &v);
        at[4] = now_ns();
        for (int part = 0; part < 4; part++)
            t[part] = least(t[part], (double)(at[part + 1] - at[part]) / 1000.0);
        table_free(&b);
    }
    printf("  %-7s table %5.1f x2   across %7.1f   down %6.1f   store %5.1f\n", cpu_name(cpu), t[0], t[1], t[2], t[3]);
    free(src);
    free(between);
    free(out);
    free(row);
}

static int bench(void)
{
    static const struct bench_image images[] = {
        {290, 290, "Resize((224, 224)) | RandomHorizontalFlip(1) | Normalize", STK_FLOAT32},
        {290, 290, "Resize((224, 224)) | RandomHorizontalFlip(1) | Normalize", STK_BFLOAT16},
        {290, 290, "Resize((224, 224)) | RandomHorizontalFlip(1)", STK_UINT8},
        {500, 375, "Resize((224, 224)) | RandomHorizontalFlip(1) | Normalize", STK_FLOAT32},
        {150, 130, "Resize((224, 224)) | RandomHorizontalFlip(1) | Normalize", STK_FLOAT32},
        {290, 290, "Resize((224, 224), bicubic) | Normalize", STK_FLOAT32},
        {290, 290, "Resize((224, 224), lanczos) | Normalize", STK_FLOAT32},
        {500, 375, "Resize(256) | CenterCrop(224) | Normalize", STK_FLOAT32},
        {2000, 1500, "Resize(256) | CenterCrop(224) | Normalize", STK_FLOAT32},
        {32, 32, "RandomCrop(32, padding=4) | RandomHorizontalFlip(1) | Normalize", STK_FLOAT32},
    };
    printf("parts, microseconds: 290 x 290 to 224 x 224 bilinear, then 500 x 500, then lanczos\n");
    for (int s = 0; s < n_sets; s++)
        bench_parts(sets[s], 290, FILTER_BILINEAR);
    for (int s = 0; s < n_sets; s++)
        bench_parts(sets[s], 500, FILTER_BILINEAR);
    for (int s = 0; s < n_sets; s++)
        bench_parts(sets[s], 290, FILTER_LANCZOS);
    printf("whole, microseconds per image, into a batch that no cache holds\n");
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        printf("  %4d x %-4d %-9s %-64s", images[i].w, images[i].h, dtype_name(images[i].dtype), images[i].ops);
        for (int s = 0; s < n_sets; s++)
            printf("  %s %7.1f", cpu_name(sets[s]), bench_plan(&images[i], sets[s]));
        printf("\n");
    }
    return 0;
}

int main(int argc, char **argv)
{
    twins_begin("test_kernel");
    if (argc > 1 && strcmp(argv[1], "--bench") == 0)
        return bench();
    twins_say();
    TESTS(T(across), T(down), T(lines), T(store), T(blend))
}
