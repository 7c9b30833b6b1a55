/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_follow_step.c -- points go where their pixels go; crops that depend on boxes.
 */
#include "transform/follow.h"

#include <math.h>

#include "base/rng.h"
#include "test.h"
#include "transform/plan_inner.h"

static struct plan *plan_of(const char *ops)
{
    struct plan *p = NULL;
    const struct plan_options o = {
        .ops = ops, .dtype = STK_UINT8, .layout = STK_NHWC, .fidelity = STK_EXACT, .cpu = STK_CPU_C, .open = true};
    stk_error e;
    if (plan_new(&p, &o, &e) != STK_OK) {
        printf("%s\n", e.text);
        exit(1);
    }
    return p;
}

enum { SIDE = 200 };

/* A black image with a white square around (x, y). */
static void draw_square(uint8_t *px, int x, int y)
{
    memset(px, 0, SIDE * SIDE * 3);
    for (int i = -8; i < 8; i++)
        memset(px + ((size_t)(y + i) * SIDE + (size_t)x - 8) * 3, 255, 16 * 3);
}

/* The middle of what is bright; false: too little of it is left. */
static bool find_square(const uint8_t *row, const struct job *j, double *x, double *y)
{
    double sum = 0, sum_x = 0, sum_y = 0;
    for (int32_t v = 0; v < j->h; v++)
        for (int32_t u = 0; u < j->w; u++) {
            const double light = row[((size_t)v * (size_t)j->w + (size_t)u) * 3];
            sum += light;
            sum_x += light * (u + 0.5);
            sum_y += light * (v + 0.5);
        }
    *x = sum_x / sum;
    *y = sum_y / sum;
    return sum > 255 * 60;
}

static void follow(const char *ops, double bound)
{
    struct plan *p = plan_of(ops);
    uint8_t *px = calloc(1, SIDE * SIDE * 3 + IMAGE_SLACK);
    uint8_t *row = calloc(1, (size_t)SIDE * SIDE * 3 * 16);
    struct arena a = {0};
    int seen = 0;
    for (uint64_t k = 0; k < 40; k++) {
        const struct draw d = {.sample = k};
        struct job j;
        draw_square(px, 60 + (int)k * 2, 130 - (int)k);
        CHECK_EQ(plan_steps(p, &d, SIDE, SIDE, &j, NULL, NULL), STK_OK);
        const struct image im = {.px = px, .stride = SIDE * 3, .w = SIDE, .h = SIDE, .channels = 3};
        CHECK(arena_reserve(&a, plan_scratch(p, &j)) == 0);
        CHECK_EQ(plan_run(p, &j, &im, &a, row, NULL), STK_OK);
        double x = 60 + (double)k * 2, y = 130 - (double)k, at_x, at_y;
        for (int i = 0; i < j.n_steps; i++)
            CHECK(follow_step_point(&j.steps[i], &x, &y));
        const bool inside = x > 12 && y > 12 && x < j.w - 12 && y < j.h - 12;
        if (!inside || !find_square(row, &j, &at_x, &at_y))
            continue;
        seen++;
        CHECK(fabs(at_x - x) < bound && fabs(at_y - y) < bound);
    }
    CHECK(seen > 5);
    arena_done(&a);
    free(px);
    free(row);
    plan_free(p);
}

static void points_follow_their_pixels(void)
{
    follow("RandomCrop(180) | RandomHorizontalFlip | RandomVerticalFlip", 0.01);
    follow("Resize((150, 260)) | Pad((3, 7, 11, 2))", 0.1);
    follow("RandomRotation(180, bilinear)", 0.5);
    follow("RandomRotation(180, bilinear, expand=True) | RandomRotation((90, 90), expand=True)", 0.5);
    follow("RandomAffine(90, (0.1, 0.1), (0.8, 1.3), (-20, 20, -10, 10), bilinear)", 0.5);
    follow("RandomPerspective(0.4, 1)", 1.0);
    follow("RandomZoomOut(side_range=(1, 1.5), p=1) | RandomResizedCrop((170, 190), scale=(0.6, 1))", 0.3);
    follow("ElasticTransform(60, 8)", 1.5);
    follow("GaussianBlur(5) | JPEG(95) | RandomHorizontalFlip", 0.1);
}

static void boxes_follow(void)
{
    const struct step flip = {.kind = STEP_FLIP_X, .in_w = 100, .in_h = 50};
    double box[4] = {10, 20, 30, 40};
    CHECK(follow_step_box(&flip, box));
    CHECK(box[0] == 70 && box[1] == 20 && box[2] == 90 && box[3] == 40);
    struct step turn = {.kind = STEP_WARP, .in_w = 100, .in_h = 100};
    CHECK(warp_rotate(&turn.warp, 100, 100, FILTER_NEAREST, 90, false, NULL)); /* counterclockwise */
    CHECK(follow_step_box(&turn, box));
    CHECK(fabs(box[0] - 20) < 1e-9 && fabs(box[1] - 10) < 1e-9 && fabs(box[2] - 40) < 1e-9 && fabs(box[3] - 30) < 1e-9);
}

/* Every crop contains the middle of a box, also after a flip and with a large overlap. */
static void crops_by_boxes(void)
{
    static const float at[][4] = {{10, 10, 60, 50}, {120, 80, 190, 190}};
    const struct boxes boxes = {.n = 2, .at = at};
    struct plan *p = plan_of("RandomHorizontalFlip(1) | RandomIoUCrop(sampler_options=(0.3, 0.5))");
    for (uint64_t k = 0; k < 200; k++) {
        const struct draw d = {.sample = k, .boxes = &boxes};
        struct job j;
        bool good = false;
        CHECK_EQ(plan_steps(p, &d, SIDE, SIDE, &j, NULL, NULL), STK_OK);
        const struct step *s = &j.steps[j.n_steps - 1];
        CHECK(s->kind == STEP_CROP && s->w >= 60 && s->h >= 60);
        for (int i = 0; i < 2; i++) {
            const double x = SIDE - (at[i][0] + at[i][2]) / 2.0 - s->x, y = (at[i][1] + at[i][3]) / 2.0 - s->y;
            good |= x > 0 && y > 0 && x < s->w && y < s->h;
        }
        CHECK(good);
    }
    struct job j;
    stk_error e;
    CHECK_EQ(plan_draw(p, &(struct draw){0}, SIDE, SIDE, &j, &e), STK_EDATA);
    CHECK(strstr(e.text, "has no boxes") != NULL);
    const struct boxes none = {0};
    CHECK_EQ(plan_draw(p, &(struct draw){.boxes = &none}, SIDE, SIDE, &j, &e), STK_EDATA);
    CHECK(strstr(e.text, "no crop overlaps a box enough") != NULL);
    plan_free(p);
}

int main(int argc, char **argv)
{
    TESTS(T(points_follow_their_pixels), T(boxes_follow), T(crops_by_boxes))
}
