/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_follow.c -- boxes, keypoints and masks through the steps of ops. tests/python/test_follow.py compares them with
 * torchvision.
 */
#include "transform/follow.h"

#include <math.h>

#include "test.h"

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

/* The job of ops that do not draw. */
static struct job *job_of(struct plan *p, int32_t w, int32_t h)
{
    static struct job j;
    const struct draw d = {0};
    CHECK_EQ(plan_follow(p, &d, w, h, &j, NULL), STK_OK);
    return &j;
}

/* Takes a box through ops on an image of 10 x 20 pixels. */
static bool box_after(const char *ops, double box[4])
{
    struct plan *p = plan_of(ops);
    const bool stays = follow_box(job_of(p, 10, 20), true, box);
    plan_free(p);
    return stays;
}

static void check_box(const double box[4], double l, double t, double r, double b)
{
    const double right[4] = {l, t, r, b};
    for (int k = 0; k < 4; k++)
        CHECK(fabs(box[k] - right[k]) < 1e-9);
}

static void boxes_move_and_are_clamped(void)
{
    double a[4] = {1, 2, 5, 9}, b[4] = {1, 2, 5, 9}, c[4] = {-3, 2, 50, 9}, d[4] = {-3, 2, 50, 9};
    CHECK(box_after("RandomHorizontalFlip(1) | RandomVerticalFlip(1)", a));
    check_box(a, 5, 11, 9, 18);
    CHECK(box_after("Resize((40, 30))", b));
    check_box(b, 3, 4, 15, 18);
    CHECK(box_after("Resize((40, 30))", c)); /* resizing does not clamp, as in torchvision */
    check_box(c, -9, 4, 150, 18);
    CHECK(box_after("CenterCrop((20, 10))", d)); /* cropping does, even if it takes everything */
    check_box(d, 0, 2, 10, 9);
    double e[4] = {1, 2, 5, 9}, f[4] = {1, 2, 5, 9};
    CHECK(box_after("CenterCrop((10, 4))", e));
    check_box(e, 0, 0, 2, 4);
    CHECK(box_after("Pad(3)", f));
    check_box(f, 4, 5, 8, 12);
    double g[4] = {1, 2, 5, 9};
    CHECK(box_after("RandomRotation((180, 180))", g));
    check_box(g, 5, 11, 9, 18);
}

static void whole_boxes_stay_whole(void)
{
    double a[4] = {1, 2, 5, 9}, b[4] = {1, 2, 5, 9}, c[4] = {-3, 2, 5, 9}, d[4] = {1, 2, 5.5, 9};
    CHECK(box_after("WholeBoundingBoxes | Resize((7, 9))", a));
    check_box(a, 0, 0, 4, 3);
    CHECK(box_after("Resize((7, 9)) | WholeBoundingBoxes", b)); /* only what follows */
    check_box(b, 0.9, 0.7, 4.5, 3.15);
    CHECK(box_after("WholeBoundingBoxes | Resize((7, 9)) | Resize((20, 10))", c)); /* towards zero, every time */
    check_box(c, -2, 0, 4, 8);
    struct plan *p = plan_of("WholeBoundingBoxes | Resize((7, 9))");
    CHECK(follow_box(job_of(p, 10, 20), false, d));
    check_box(d, 0.9, 0.7, 4.95, 3.15);
    plan_free(p);
}

static void small_boxes_are_removed(void)
{
    double a[4] = {1, 2, 1.5, 9}, b[4] = {1, 2, 5, 9}, c[4] = {1, 2, 5, 9}, d[4] = {1, 2, 5, 9}, e[4] = {-1, 2, 5, 9};
    CHECK(!box_after("SanitizeBoundingBoxes", a));
    CHECK(box_after("SanitizeBoundingBoxes(4, 28)", b));
    CHECK(!box_after("SanitizeBoundingBoxes(4.5)", c));
    CHECK(!box_after("SanitizeBoundingBoxes(1, 29)", d));
    CHECK(!box_after("SanitizeBoundingBoxes", e));
    double f[4] = {-1, 2, 5, 9};
    CHECK(box_after("ClampBoundingBoxes | SanitizeBoundingBoxes", f));
}

static void boxes_that_are_cut_too_much_are_removed(void)
{
    /* The first crop leaves half of the box, the second one two fifths of that. */
    double a[4] = {-4, 5, 4, 15}, b[4] = {-4, 5, 4, 15}, c[4] = {-4, 5, 4, 15}, d[4] = {-4, 5, 4, 15};
    CHECK(box_after("CenterCrop((10, 10)) | SanitizeBoundingBoxes(min_visibility=0.5)", a));
    CHECK(!box_after("CenterCrop((10, 10)) | Resize((99, 30)) | SanitizeBoundingBoxes(min_visibility=0.51)", b));
    CHECK(!box_after("CenterCrop((10, 10)) | RandomVerticalFlip(1) | CenterCrop((4, 10))"
                     " | SanitizeBoundingBoxes(min_visibility=0.21)",
                     c));
    const char *each = "CenterCrop((10, 10)) | SanitizeBoundingBoxes(min_visibility=0.5) | CenterCrop((4, 10))"
                       " | SanitizeBoundingBoxes(min_visibility=0.4)";
    CHECK(box_after(each, d)); /* of what the ops before the last check left */
}

static bool point_after(const char *ops, double at[2])
{
    struct plan *p = plan_of(ops);
    const bool stays = follow_point(job_of(p, 10, 20), at);
    plan_free(p);
    return stays;
}

static void points_are_mirrored_about_the_middle_of_pixels(void)
{
    double a[2] = {1, 2}, b[2] = {-4, 30}, c[2] = {-4, 30}, d[2] = {9.5, 19.5};
    CHECK(point_after("RandomHorizontalFlip(1) | RandomVerticalFlip(1)", a));
    CHECK(a[0] == 8 && a[1] == 17);
    CHECK(point_after("ClampKeyPoints", b));
    CHECK(b[0] == 0 && b[1] == 19);
    CHECK(!point_after("SanitizeKeyPoints", c));
    CHECK(point_after("SanitizeKeyPoints", d));
}

enum { W = 5, H = 4 };

/* A mask through ops; returns whether all numbers fit. */
static bool mask_after(const char *ops, size_t element, stk_dtype t, void *out, int32_t *w, int32_t *h)
{
    uint8_t bytes[W * H];
    int32_t numbers[W * H], value = 0;
    for (int i = 0; i < W * H; i++) {
        bytes[i] = (uint8_t)i;
        numbers[i] = i * 100;
    }
    struct plan *p = plan_of(ops);
    const struct job *j = job_of(p, W, H);
    const struct mask in = {
        .px = element == 1 ? (const void *)bytes : numbers, .stride = W * element, .w = W, .h = H, .element = element};
    struct arena a = {0};
    CHECK(arena_reserve(&a, follow_masks_scratch(p, j, W, H, element)) == 0);
    struct follow_masks *f = follow_masks_begin(p, j, W, H, element, &a);
    CHECK(f != NULL && a.used <= a.cap);
    const bool fits = f && follow_mask(f, &in, t, out, &value);
    CHECK(fits || value > 255);
    CHECK(follow_masks_begin(p, j, W, H, element, &(struct arena){0}) == NULL);
    *w = j->w;
    *h = j->h;
    arena_done(&a);
    plan_free(p);
    return fits;
}

static void masks_take_pixels(void)
{
    uint8_t out[400];
    int32_t w, h;
    CHECK(mask_after("Pad((2, 1, 0, 0), 7) | CenterCrop((3, 7)) | RandomHorizontalFlip(0)", 1, STK_UINT8, out, &w, &h));
    CHECK_EQ(w, 7);
    CHECK_EQ(h, 3);
    CHECK(out[0] == 7 && out[1] == 7 && out[2] == 0 && out[6] == 4 && out[9] == 5);
    CHECK(mask_after("Resize((2, 2))", 1, STK_UINT8, out, &w, &h)); /* rows 0 and 2, columns 0 and 2 */
    CHECK(out[0] == 0 && out[1] == 2 && out[2] == 10 && out[3] == 12);
    CHECK(mask_after("RandomRotation((90, 90), expand=True)", 1, STK_UINT8, out, &w, &h));
    CHECK_EQ(w, H);
    CHECK(out[0] == 4 && out[1] == 9 && out[4] == 3);
    CHECK(mask_after("RandomRotation((180, 180)) | RandomVerticalFlip(1) | RandomHorizontalFlip(1)", 1, STK_UINT8, out,
                     &w, &h));
    for (int i = 0; i < W * H; i++)
        CHECK_EQ(out[i], i);
}

static void masks_have_three_types(void)
{
    int32_t numbers[W * H], w, h;
    int64_t wide[W * H];
    uint8_t bytes[W * H];
    CHECK(mask_after("RandomHorizontalFlip(1)", 4, STK_INT32, numbers, &w, &h));
    CHECK_EQ(numbers[0], 400);
    CHECK(mask_after("RandomVerticalFlip(1) | Identity", 4, STK_INT64, wide, &w, &h));
    CHECK_EQ(wide[0], 1500);
    CHECK(!mask_after("RandomVerticalFlip(1)", 4, STK_UINT8, bytes, &w, &h));
    CHECK(mask_after("RandomRotation((180, 180))", 4, STK_INT32, numbers, &w, &h));
    CHECK_EQ(numbers[0], 1900);
}

/* The later step decides about a pixel outside of two. */
static void fills_of_several_steps(void)
{
    uint8_t out[400];
    int32_t w, h;
    CHECK(mask_after("Pad((1, 0, 0, 0), 50) | Pad((0, 1, 0, 0), 60)", 1, STK_UINT8, out, &w, &h));
    CHECK_EQ(w, W + 1);
    CHECK_EQ(h, H + 1);
    CHECK(out[0] == 60 && out[1] == 60 && out[w] == 50 && out[w + 1] == 0);
    CHECK(mask_after("Pad(1, (1, 2, 3))", 1, STK_UINT8, out, &w, &h)); /* a colour is not for masks */
    CHECK_EQ(out[0], 0);
    CHECK(mask_after("Pad(1, 9, mask_fill=255)", 1, STK_UINT8, out, &w, &h));
    CHECK_EQ(out[0], 255);
    CHECK(mask_after("PadIfSmaller((2, 7), mask_fill=255)", 1, STK_UINT8, out, &w, &h)); /* on the right only */
    CHECK_EQ(w, 7);
    CHECK_EQ(h, H);
    CHECK(out[0] == 0 && out[4] == 4 && out[5] == 255 && out[6] == 255 && out[7] == 5);
}

static void what_a_plan_says(void)
{
    struct plan *p = plan_of("RandomIoUCrop | ConvertBoundingBoxFormat(CXCYWH) | ClampKeyPoints");
    CHECK_STR(plan_needs_boxes(p), "RandomIoUCrop");
    CHECK_STR(plan_needs_points(p), "ClampKeyPoints");
    CHECK(!plan_not_followed(p));
    bool relative;
    CHECK_EQ(plan_box_format(p, BOX_XYXY, &relative), BOX_CXCYWH);
    CHECK(!relative);
    plan_free(p);
    p = plan_of("ConvertBoundingBoxFormat(XYXY) | ConvertBoundingBoxFormat(CXCYWH, relative=True)");
    CHECK_EQ(plan_box_format(p, BOX_XYXY, &relative), BOX_CXCYWH);
    CHECK(relative);
    plan_free(p);
    p = plan_of("RandomApply([AugMix])");
    CHECK_STR(plan_not_followed(p), "AugMix");
    CHECK(!plan_needs_boxes(p));
    CHECK_EQ(plan_box_format(p, BOX_XYWH, &relative), BOX_XYWH);
    plan_free(p);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {T(boxes_move_and_are_clamped),
                                      T(whole_boxes_stay_whole),
                                      T(small_boxes_are_removed),
                                      T(boxes_that_are_cut_too_much_are_removed),
                                      T(points_are_mirrored_about_the_middle_of_pixels),
                                      T(masks_take_pixels),
                                      T(masks_have_three_types),
                                      T(fills_of_several_steps),
                                      T(what_a_plan_says)};
    return test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
}
