/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_draft.c -- images that are decoded smaller: when, which part, and that nothing moves. Covers plan_draft.c
 * and the boxes of resample.c.
 */
#include "base/arena.h"
#include "test.h"
#include "transform/plan.h"

static struct plan *plan_of(const char *ops, stk_fidelity fidelity)
{
    const struct plan_options o = {
        .ops = ops, .dtype = STK_UINT8, .layout = STK_NHWC, .fidelity = fidelity, .cpu = STK_CPU_C};
    struct plan *p = NULL;
    CHECK_EQ(plan_new(&p, &o, NULL), STK_OK);
    return p;
}

/* By how much an image of w x h is shrunk. */
static int shrink_of(const char *ops, stk_fidelity fidelity, int32_t w, int32_t h, int most)
{
    struct plan *p = plan_of(ops, fidelity);
    struct job exact, j;
    CHECK_EQ(plan_draw(p, &(struct draw){0}, w, h, &exact, NULL), STK_OK);
    j = exact;
    plan_draft(p, &j, w, h, most);
    if (j.want.shrink == 0)
        CHECK(memcmp(&j.want.crop, &exact.want.crop, sizeof j.want.crop) == 0);
    else
        CHECK(j.want.crop.x >= 0 && j.want.crop.y >= 0 &&
              j.want.crop.x + j.want.crop.w <= (w + j.want.shrink - 1) / j.want.shrink &&
              j.want.crop.y + j.want.crop.h <= (h + j.want.shrink - 1) / j.want.shrink);
    plan_free(p);
    return j.want.shrink;
}

static void only_when_it_is_twice_as_large(void)
{
    CHECK_EQ(shrink_of("Resize((100, 100))", STK_DRAFT, 199, 300, 8), 0);
    CHECK_EQ(shrink_of("Resize((100, 100))", STK_DRAFT, 200, 300, 8), 2);
    CHECK_EQ(shrink_of("Resize((100, 100))", STK_DRAFT, 400, 400, 8), 4);
    CHECK_EQ(shrink_of("Resize((100, 100))", STK_DRAFT, 800, 801, 8), 8);
    CHECK_EQ(shrink_of("Resize((100, 100))", STK_DRAFT, 9000, 9000, 8), 8);
    CHECK_EQ(shrink_of("Resize((100, 100))", STK_DRAFT, 9000, 9000, 2), 2);
    CHECK_EQ(shrink_of("Resize((100, 100))", STK_DRAFT, 9000, 9000, 1), 0);
    CHECK_EQ(shrink_of("Resize((100, 100))", STK_EXACT, 9000, 9000, 8), 0);
}

static void only_before_a_soft_resize(void)
{
    CHECK_EQ(shrink_of("CenterCrop(100)", STK_DRAFT, 900, 900, 8), 0);
    CHECK_EQ(shrink_of("CenterCrop(500) | Resize((100, 100))", STK_DRAFT, 900, 900, 8), 4);
    CHECK_EQ(shrink_of("Resize((100, 100), nearest)", STK_DRAFT, 900, 900, 8), 0);
    CHECK_EQ(shrink_of("Resize((100, 100), antialias=False)", STK_DRAFT, 900, 900, 8), 0);
    CHECK_EQ(shrink_of("RandomHorizontalFlip(1) | Resize((100, 100))", STK_DRAFT, 900, 900, 8), 0);
    CHECK_EQ(shrink_of("Pad(10) | Resize((100, 100))", STK_DRAFT, 900, 900, 8), 0);
}

/* A smooth image, so that the average of some pixels equals the value in their middle. */
static int level_at(double x, double y, double w, double h, int channel)
{
    const double v = channel == 0 ? x / w : channel == 1 ? y / h : (x / w + y / h) / 2;
    return (int)(20 + 200 * v + 0.5);
}

static struct image smooth(const struct want *want, int32_t w, int32_t h)
{
    const struct rect *c = &want->crop;
    const double by = want->shrink ? want->shrink : 1;
    struct image im = {.stride = (size_t)c->w * 3, .w = c->w, .h = c->h, .channels = 3};
    im.px = calloc(im.stride * (size_t)c->h + IMAGE_SLACK, 1);
    for (int32_t y = 0; y < c->h; y++)
        for (int32_t x = 0; x < c->w; x++)
            for (int k = 0; k < 3; k++)
                im.px[(size_t)y * im.stride + 3 * (size_t)x + (size_t)k] =
                    (uint8_t)level_at((c->x + x + 0.5) * by, (c->y + y + 0.5) * by, w, h, k);
    return im;
}

static void run(const struct plan *p, const struct job *j, int32_t w, int32_t h, uint8_t *row)
{
    struct arena a = {0};
    struct image im = smooth(&j->want, w, h);
    const size_t scratch = plan_scratch(p, j);
    CHECK(scratch > 0 && arena_reserve(&a, scratch) == 0);
    CHECK_EQ(plan_run(p, j, &im, &a, row, NULL), STK_OK);
    arena_done(&a);
    free(im.px);
}

/* The result for a smooth image differs by at most two levels, wherever the crop begins. */
static void nothing_moves(void)
{
    enum { SIDE = 40, BYTES = 3 * SIDE * SIDE };
    struct plan *exact = plan_of("RandomResizedCrop(40, scale=(0.3, 1)) | RandomHorizontalFlip", STK_EXACT);
    struct plan *draft = plan_of("RandomResizedCrop(40, scale=(0.3, 1)) | RandomHorizontalFlip", STK_DRAFT);
    uint8_t a[BYTES], b[BYTES];
    int most = 0, shrunk[9] = {0};
    for (uint64_t i = 0; i < 200; i++) {
        const struct draw d = {.sample = i};
        const int32_t w = 90 + (int32_t)(i * 37 % 600), h = 90 + (int32_t)(i * 53 % 500);
        struct job j, k;
        CHECK_EQ(plan_draw(exact, &d, w, h, &j, NULL), STK_OK);
        CHECK_EQ(plan_draw(draft, &d, w, h, &k, NULL), STK_OK);
        plan_draft(draft, &k, w, h, 8);
        shrunk[k.want.shrink]++;
        run(exact, &j, w, h, a);
        run(draft, &k, w, h, b);
        for (int n = 0; n < BYTES; n++)
            most = abs(a[n] - b[n]) > most ? abs(a[n] - b[n]) : most;
    }
    CHECK(shrunk[0] > 0 && shrunk[2] > 0 && shrunk[4] > 0 && shrunk[8] > 0);
    CHECK(most <= 2);
    plan_free(exact);
    plan_free(draft);
}

int main(int argc, char **argv)
{
    TESTS(T(only_when_it_is_twice_as_large), T(only_before_a_soft_resize), T(nothing_moves))
}
