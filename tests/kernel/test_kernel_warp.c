/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kernel_warp.c -- maps, blurs and JPEG artefacts: every instruction set against C, a part of the result against
 * the whole.
 */
#include <math.h>

#include "transform/kernel.h"

#include "twins.h"

/* An image of its own memory. */
static struct image some_image(int32_t w, int32_t h, int channels)
{
    const size_t stride = (size_t)w * (size_t)channels + (size_t)below(20);
    uint8_t *px = input(stride * (size_t)h);
    if (below(3) == 0) /* flat in one channel */
        for (size_t i = 0; i < stride * (size_t)h; i += (size_t)channels)
            px[i] = 255;
    return (struct image){.px = px, .stride = stride, .w = w, .h = h, .channels = channels};
}

static double number(double low, double high)
{
    return rng_between(&rng, low, high);
}

static enum filter some_filter(void)
{
    static const enum filter filters[] = {FILTER_NEAREST, FILTER_BILINEAR, FILTER_BICUBIC};
    return filters[below(3)];
}

static bool some_perspective(struct warp *w, int32_t in_w, int32_t in_h)
{
    const int32_t across = 1 + in_w / 2, down = 1 + in_h / 2;
    const int32_t to[4][2] = {{below(across), below(down)},
                              {in_w - 1 - below(across), below(down)},
                              {in_w - 1 - below(across), in_h - 1 - below(down)},
                              {below(across), in_h - 1 - below(down)}};
    return warp_perspective(w, in_w, in_h, some_filter(), to);
}

/* Angles, shears and scales of all kinds; also those that change nothing, or next to nothing. */
static bool some_warp(struct warp *w, int32_t in_w, int32_t in_h)
{
    const double center[2] = {number(-9, in_w + 9), number(-9, in_h + 9)};
    const double turn = below(4) == 0 ? 90.0 * below(5) : below(9) == 0 ? 1e-9 : number(-400, 400);
    const int kind = below(3);
    if (kind == 0)
        return some_perspective(w, in_w, in_h);
    if (kind == 1)
        return warp_rotate(w, in_w, in_h, some_filter(), turn, below(2), below(2) ? center : NULL);
    const struct warp_turn t = {.degrees = below(2) ? 0.0 : turn,
                                .translate = {below(2 * in_w) - in_w, below(2) ? below(in_h) : 0},
                                .scale = below(2) ? 1.0 : number(0.05, 4.0),
                                .shear = {below(2) ? 0.0 : number(-60, 60), below(2) ? 0.0 : number(-60, 60)},
                                .center = below(2) ? center : NULL};
    warp_affine(w, in_w, in_h, some_filter(), &t);
    return true;
}

/* The part `need` of the result, from no more of the input than it takes. */
static void warp_part(const struct kernels *k, const struct warp *w, const struct image *in, struct rect need,
                      uint8_t *dst)
{
    const struct rect from = warp_needs(w, need);
    const size_t channels = (size_t)in->channels, line = (size_t)from.w * channels;
    uint8_t *px = malloc(line * (size_t)from.h + IMAGE_SLACK);
    for (int32_t y = 0; y < from.h; y++)
        memcpy(px + (size_t)y * line, in->px + (size_t)(from.y + y) * in->stride + (size_t)from.x * channels, line);
    void *table = malloc(warp_table(w) + 1);
    const struct image part = {.px = px, .stride = line, .w = from.w, .h = from.h, .channels = in->channels};
    const struct warp_source s = {.warp = w, .table = table, .in = part, .from = from};
    warp_begin(w, table);
    for (int32_t y = 0; y < need.h; y++)
        warp_line(k, &s, need.x, need.y + y, need.w, dst + (size_t)y * (size_t)need.w * channels);
    free(table);
    free(px);
}

/* Whether bilinear and bicubic pixels are those of warp_pixel(). */
static bool by_definition(const struct warp *w, const struct image *in, const uint8_t *got)
{
    const struct warp_source s = {.warp = w, .in = *in, .from = {0, 0, in->w, in->h}};
    uint8_t px[3];
    for (int32_t i = 0; i < w->w * w->h && w->filter != FILTER_NEAREST; i++, got += in->channels) {
        warp_pixel(&s, i % w->w, i / w->w, px);
        if (memcmp(px, got, (size_t)in->channels) != 0)
            return false;
    }
    return true;
}

static void warp_one(int32_t in_w, int32_t in_h, int channels)
{
    struct warp w;
    if (!some_warp(&w, in_w, in_h))
        return;
    warp_choose(&w);
    for (int ch = 0; ch < 3; ch++)
        w.fill[ch] = (uint8_t)below(256);
    struct image im = some_image(in_w, in_h, channels);
    const struct rect all = {0, 0, w.w, w.h};
    const int32_t x = below(w.w), y = below(w.h);
    const struct rect some = {x, y, 1 + below(w.w - x), 1 + below(w.h - y)};
    const size_t n = (size_t)all.w * (size_t)all.h * (size_t)channels, line = (size_t)all.w * (size_t)channels;
    const size_t n_some = (size_t)some.w * (size_t)some.h * (size_t)channels;
    char what[120];
    snprintf(what, sizeof what, "warp way %d filter %d, %d x %d x %d", (int)w.way, (int)w.filter, in_w, in_h, channels);
    for (int s = 0; s < n_sets; s++) {
        struct kernels c, k;
        kernels_fill(&c, STK_CPU_C);
        kernels_fill(&k, sets[s]);
        const size_t off = (size_t)below(33);
        struct output whole = output_new(n, off), again = output_new(n, off);
        struct output cut = output_new(n_some, off), part = output_new(n_some, off);
        warp_part(&c, &w, &im, all, whole.at);
        CHECK(by_definition(&w, &im, whole.at));
        warp_part(&k, &w, &im, all, again.at);
        warp_part(&k, &w, &im, some, part.at);
        for (int32_t i = 0; i < some.h; i++)
            memcpy(cut.at + (size_t)i * (size_t)some.w * (size_t)channels,
                   whole.at + (size_t)(some.y + i) * line + (size_t)some.x * (size_t)channels,
                   (size_t)some.w * (size_t)channels);
        CHECK(agree(&cut, &part, what, s));
        CHECK(agree(&whole, &again, what, s));
    }
    free(im.px);
}

/* Fields of floats, and pixels along them. */
static void elastic_one(const struct kernels *c, const struct kernels *k, int32_t n, int set)
{
    const int32_t half = below(30), w = 2 + below(60), h = 2 + below(60);
    struct image im = some_image(w, h, 3);
    float *field = malloc(sizeof *field * (size_t)(2 * half + 1 + n)), weight[31], *x = malloc(sizeof *x * (size_t)n),
          *y = malloc(sizeof *y * (size_t)n);
    const float *rows[61];
    for (int32_t i = 0; i < 2 * half + 1 + n; i++)
        field[i] = (float)number(-1, 1);
    for (int32_t i = 0; i <= half; i++)
        weight[i] = (float)number(0, 1);
    for (int32_t i = 0; i < n; i++) {
        x[i] = below(4) ? (float)number(0, w - 1.001) : (float)below(w - 1);
        y[i] = below(4) ? (float)number(0, h - 1.001) : (float)below(h - 1);
    }
    for (int32_t i = 0; i <= 2 * half; i++)
        rows[i] = field + i;
    struct output a = output_new(sizeof(float) * (size_t)n, 4), b = output_new(sizeof(float) * (size_t)n, 4);
    c->gauss((float *)(void *)a.at, rows, (size_t)n, weight, half, 0.7f);
    k->gauss((float *)(void *)b.at, rows, (size_t)n, weight, half, 0.7f);
    CHECK(agree(&a, &b, "gauss", set));
    a = output_new(3 * (size_t)n, 1);
    b = output_new(3 * (size_t)n, 1);
    c->linear3(a.at, im.px, im.stride, x, y, n);
    k->linear3(b.at, im.px, im.stride, x, y, n);
    CHECK(agree(&a, &b, "linear3", set));
    free(im.px);
    free(field);
    free(x);
    free(y);
}

static void fields(void)
{
    struct kernels c, k;
    kernels_fill(&c, STK_CPU_C);
    for (int s = 1; s < n_sets; s++) {
        kernels_fill(&k, sets[s]);
        for (int32_t n = 1; n < 150; n++)
            elastic_one(&c, &k, n, s);
    }
}

static void warps(void)
{
    for (int i = 0; i < 600; i++)
        warp_one(1 + below(90), 1 + below(90), below(4) ? 3 : 1);
    for (int i = 0; i < 200; i++)
        warp_one(1 + below(5), 1 + below(5), below(4) ? 3 : 1);
    for (int i = 0; i < 4; i++)
        warp_one(200 + below(300), 200 + below(300), 3);
}

/* A point of the input is where the map takes it from. */
static void points(void)
{
    for (int i = 0; i < 500; i++) {
        struct warp w;
        if (!some_warp(&w, 90, 70))
            continue;
        const double x = number(20, 60), y = number(20, 50), *a = w.a, d = a[6] * x + a[7] * y + 1.0;
        double to_x = (a[0] * x + a[1] * y + a[2]) / d, to_y = (a[3] * x + a[4] * y + a[5]) / d;
        const double area =
            a[0] * (a[4] - a[5] * a[7]) - a[1] * (a[3] - a[5] * a[6]) + a[2] * (a[3] * a[7] - a[4] * a[6]);
        if (!(fabs(d) > 0.05) || fabs(area) < 0.01 || !warp_point(&w, &to_x, &to_y)) /* nearly flat maps lose digits */
            continue;
        CHECK(fabs(to_x - x) < 1e-4 && fabs(to_y - y) < 1e-4);
    }
}

static void blur_one(int32_t w, int32_t h, int channels)
{
    const int32_t across = 1 + 2 * below((w < 40 ? w : 40)), down = 1 + 2 * below((h < 40 ? h : 40));
    struct blur b;
    blur_axis_init(&b.x, across, number(0.1, 8.0));
    blur_axis_init(&b.y, down, number(0.1, 8.0));
    struct image im = some_image(w, h, channels);
    const size_t line = (size_t)w * (size_t)channels, n = line * (size_t)h;
    void *room = malloc(blur_room(across, w, channels));
    const struct blur_source from = {.in = im, .from = {0, 0, w, h}, .w = w, .h = h, .n = w};
    for (int s = 1; s < n_sets; s++) {
        struct kernels k[2];
        kernels_fill(&k[0], STK_CPU_C);
        kernels_fill(&k[1], sets[s]);
        const size_t off = (size_t)below(33);
        struct output o[2] = {output_new(n, off), output_new(n, off)};
        for (int i = 0; i < 2; i++)
            for (int32_t y = 0; y < h; y++)
                blur_line(&k[i], &b, &from, y, room, o[i].at + (size_t)y * line);
        CHECK(agree(&o[0], &o[1], "blur", s));
    }
    free(room);
    free(im.px);
}

static void blurs(void)
{
    for (int i = 0; i < 300; i++)
        blur_one(1 + below(120), 1 + below(50), below(2) ? 3 : 1);
}

static void trip_one(int32_t w, int32_t h, int channels)
{
    struct image im = some_image(w, h, channels);
    const int quality = 1 + below(100);
    const size_t line = (size_t)w * (size_t)channels, n = line * (size_t)h;
    struct trip *t = malloc(sizeof *t + trip_room(w, h, channels));
    for (int s = 1; s < n_sets; s++) {
        struct output o[2] = {output_new(n, 0), output_new(n, 0)};
        for (int i = 0; i < 2; i++) {
            struct kernels k;
            kernels_fill(&k, i ? sets[s] : STK_CPU_C);
            trip_begin(&k, t, &im, quality, t + 1);
            for (int32_t y = 0; y < h; y++)
                trip_line(&k, t, y, 0, w, o[i].at + (size_t)y * line);
        }
        CHECK(agree(&o[0], &o[1], "trip", s));
    }
    free(t);
    free(im.px);
}

static void trips(void)
{
    for (int i = 0; i < 200; i++)
        trip_one(1 + below(80), 1 + below(60), below(3) ? 3 : 1);
}

static void noises(void)
{
    for (int i = 0; i < 50; i++) {
        struct kernels c, k;
        kernels_fill(&c, STK_CPU_C);
        const uint64_t seed_of = rng_u64(&rng), first = rng_u64(&rng) >> below(60);
        const size_t n = 1 + (size_t)below(700);
        const float mean = (float)number(-99, 99), sigma = (float)number(0, 200);
        uint8_t *src = input(n);
        float *field[2] = {malloc(n * sizeof(float)), malloc(n * sizeof(float))};
        for (int s = 1; s < n_sets; s++) {
            kernels_fill(&k, sets[s]);
            noise_uniform(field[0], seed_of, first, n);
            noise_field(field[1], seed_of, first, n, k.noise.uniform);
            CHECK(memcmp(field[0], field[1], n * sizeof(float)) == 0);
            noise_normal(field[0], seed_of, first, n);
            noise_field(field[1], seed_of, first, n, k.noise.normal);
            CHECK(memcmp(field[0], field[1], n * sizeof(float)) == 0);
            struct output x = output_new(n, 0), y = output_new(n, 0);
            c.noise.add(x.at, src, field[0], mean, sigma, n, i % 2);
            k.noise.add(y.at, src, field[0], mean, sigma, n, i % 2);
            CHECK(agree(&x, &y, "noise", s));
        }
        free(field[0]);
        free(field[1]);
        free(src);
    }
}

int main(int argc, char **argv)
{
    twins_begin("test_kernel_warp");
    twins_say();
    TESTS(T(warps), T(points), T(fields), T(blurs), T(trips), T(noises))
}
