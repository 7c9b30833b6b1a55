/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan.c -- plans and jobs: what is drawn, memory, extreme sizes; trimming changes no bit. Covers plan.c,
 * plan_draw.c and plan_run.c.
 */
#include "transform/plan.h"

#include <math.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "test.h"
#include "transform/plan_inner.h"

static struct plan *plan_of(const char *ops, stk_dtype dtype, stk_layout layout, stk_cpu cpu)
{
    const struct plan_options o = {.ops = ops, .dtype = dtype, .layout = layout, .fidelity = STK_EXACT, .cpu = cpu};
    stk_error e = {0};
    struct plan *p = NULL;
    if (plan_new(&p, &o, &e) != STK_OK)
        printf("%s: %s\n", ops, e.text);
    CHECK(p != NULL);
    return p;
}

static struct plan *bytes_of(const char *ops)
{
    return plan_of(ops, STK_UINT8, STK_NHWC, STK_CPU_C);
}

/* An image of w x h, in which no two pixels are equal. Its memory ends where the slack ends. */
static struct image image(int32_t w, int32_t h, uint64_t seed)
{
    const size_t n = (size_t)w * (size_t)h * 3;
    struct image im = {.px = calloc(1, n + IMAGE_SLACK), .stride = (size_t)w * 3, .w = w, .h = h, .channels = 3};
    struct rng r;
    rng_init(&r, &(struct draw){.seed = seed}, "image", 0);
    for (size_t i = 0; i < n; i++)
        im.px[i] = (uint8_t)rng_u32(&r);
    return im;
}

/* The part that a decoder would return, in separate memory. */
static struct image part_of(const struct image *im, struct rect c)
{
    const size_t line = (size_t)c.w * 3;
    struct image p = {
        .px = malloc(line * (size_t)c.h + IMAGE_SLACK), .stride = line, .w = c.w, .h = c.h, .channels = 3};
    memset(p.px + line * (size_t)c.h, 0xa5, IMAGE_SLACK);
    for (int32_t y = 0; y < c.h; y++)
        memcpy(p.px + line * (size_t)y, im->px + im->stride * (size_t)(c.y + y) + (size_t)c.x * 3, line);
    return p;
}

/* Runs a job with exactly the memory it asked for, between guards. Returns the row. */
static uint8_t *run(const struct plan *p, const struct job *j, const struct image *im)
{
    enum { GUARD = 64 };
    const size_t n = plan_row_bytes(p), scratch = plan_scratch(p, j);
    uint8_t *memory = aligned_alloc(64, (n + 2 * GUARD + 63) / 64 * 64);
    memset(memory, 0xee, n + 2 * GUARD);
    struct arena a = {0};
    stk_error e = {0};
    CHECK(scratch > 0 && arena_reserve(&a, scratch) == 0);
    a.cap = scratch; /* no byte more */
    struct image part = part_of(im, j->want.crop);
    CHECK_EQ(plan_run(p, j, &part, &a, memory + GUARD, &e), STK_OK);
    CHECK_EQ(a.used, scratch);
    for (size_t i = 0; i < GUARD; i++)
        CHECK(memory[i] == 0xee && memory[GUARD + n + i] == 0xee);
    free(part.px);
    arena_done(&a);
    memmove(memory, memory + GUARD, n);
    return memory;
}

static void shapes(void)
{
    int64_t s[3];
    struct plan *p = plan_of("CenterCrop((5, 7))", STK_FLOAT16, STK_NCHW, STK_CPU_C);
    plan_shape(p, s);
    CHECK(s[0] == 3 && s[1] == 5 && s[2] == 7);
    CHECK_EQ(plan_row_bytes(p), 5 * 7 * 3 * 2);
    CHECK_STR(plan_text(p), "CenterCrop(size=(5, 7))");
    plan_free(p);
    p = plan_of("CenterCrop((5, 7)) | Grayscale", STK_FLOAT32, STK_NHWC, STK_CPU_C);
    plan_shape(p, s);
    CHECK(s[0] == 5 && s[1] == 7 && s[2] == 1);
    CHECK_EQ(plan_row_bytes(p), 5 * 7 * 4);
    plan_free(p);
    plan_free(NULL);
}

static void refuses_odd_options(void)
{
    struct plan *p = NULL;
    stk_error e = {0};
    struct plan_options o = {.ops = "CenterCrop(8)", .dtype = STK_INT64, .layout = STK_NCHW, .cpu = STK_CPU_C};
    CHECK_EQ(plan_new(&p, &o, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "the dtype of images is int64") != NULL);
    o.dtype = STK_UINT8;
    o.layout = STK_LAYOUT_DEFAULT;
    CHECK_EQ(plan_new(&p, &o, &e), STK_EUSAGE);
    CHECK(p == NULL);
}

/* If all images have one size, ops may keep it, and there may be no ops. */
static void images_of_one_size(void)
{
    static const struct {
        const char *ops;
        int32_t w, h;
    } cases[] = {{NULL, 7, 5},
                 {" ", 7, 5},
                 {"RandomHorizontalFlip(1) | RandomHorizontalFlip(1)", 7, 5},
                 {"Pad(2)", 11, 9},
                 {"Resize(10)", 14, 10},
                 {"CenterCrop(3)", 3, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct plan_options o = {
            .ops = cases[i].ops, .dtype = STK_UINT8, .layout = STK_NHWC, .cpu = STK_CPU_C, .fixed_w = 7, .fixed_h = 5};
        struct plan *p = NULL;
        struct job j;
        stk_error e = {0};
        int64_t s[3];
        CHECK_EQ(plan_new(&p, &o, &e), STK_OK);
        plan_shape(p, s);
        CHECK(s[0] == cases[i].h && s[1] == cases[i].w && s[2] == 3);
        CHECK_EQ(plan_draw(p, &(struct draw){0}, 7, 5, &j, &e), STK_OK);
        struct image im = image(7, 5, i);
        uint8_t *row = run(p, &j, &im);
        if (cases[i].w == 7)
            CHECK(memcmp(row, im.px, plan_row_bytes(p)) == 0);
        free(row);
        free(im.px);
        if (cases[i].w != 3) /* an image of another size than announced makes no row */
            CHECK_EQ(plan_draw(p, &(struct draw){0}, 8, 5, &j, &e), STK_EBUG);
        plan_free(p);
    }
}

static void too_large_without_ops(void)
{
    struct plan *p = NULL;
    stk_error e = {0};
    struct plan_options o = {.dtype = STK_UINT8, .layout = STK_NCHW, .cpu = STK_CPU_C, .fixed_w = 7, .fixed_h = 70000};
    CHECK_EQ(plan_new(&p, &o, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "7 x 70000 pixels") != NULL);
    o.ops = "CenterCrop(8)";
    CHECK_EQ(plan_new(&p, &o, &e), STK_OK);
    plan_free(p);
}

static struct job job_of(const struct plan *p, uint64_t sample, int32_t w, int32_t h)
{
    struct job j;
    const struct draw d = {.seed = 7, .sample = sample};
    CHECK_EQ(plan_draw(p, &d, w, h, &j, NULL), STK_OK);
    return j;
}

/* The decoder does the crop, the store does the flip, and only the resize remains. */
static void trims_the_usual(void)
{
    struct plan *p = bytes_of("RandomResizedCrop(224) | RandomHorizontalFlip(1)");
    struct job j = job_of(p, 1, 500, 400);
    CHECK_EQ(j.n_steps, 1);
    CHECK(j.steps[0].kind == STEP_RESIZE && j.flip_x && !j.flip_y);
    CHECK(j.want.crop.w <= 500 && j.want.crop.w == j.steps[0].in_w && j.want.crop.h == j.steps[0].in_h);
    plan_free(p);
    p = bytes_of("RandomCrop(32) | RandomHorizontalFlip(1) | RandomVerticalFlip(1)");
    j = job_of(p, 1, 500, 400);
    CHECK(j.n_steps == 0 && j.flip_x && j.flip_y && j.want.crop.w == 32 && j.want.crop.h == 32);
    plan_free(p);
    /* only the middle of a wide image is decoded */
    p = bytes_of("Resize(256) | CenterCrop(224)");
    j = job_of(p, 1, 3000, 300);
    CHECK(j.n_steps == 1 && j.want.crop.w < 300 && j.want.crop.x > 1300 && j.want.crop.h < 300);
    CHECK_EQ(j.steps[0].w, 2560);
    plan_free(p);
    /* two flips cancel each other; a flip before a resize stays there */
    p = bytes_of("RandomHorizontalFlip(1) | CenterCrop((9, 10)) | RandomHorizontalFlip(1) | Resize((5, 5))");
    j = job_of(p, 1, 31, 31);
    CHECK(j.n_steps == 1 && !j.flip_x);
    plan_free(p);
    p = bytes_of("RandomHorizontalFlip(1) | RandomResizedCrop(8, antialias=True)");
    j = job_of(p, 1, 100, 100);
    CHECK(j.n_steps == 2 && j.steps[0].kind == STEP_FLIP_X && j.steps[1].kind == STEP_RESIZE && !j.flip_x);
    plan_free(p);
}

static void whole(struct rng *r, char *text, size_t n, int *side)
{
    static const char *const filters[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};
    static const char *const modes[] = {"constant", "edge", "symmetric", "reflect"};
    static const char *const maps[] = {"nearest", "bilinear", "bicubic"};
    static const char *const points[] = {"RandomInvert",
                                         "RandomPosterize(3)",
                                         "RandomSolarize(100)",
                                         "RGB",
                                         "RandomAutocontrast",
                                         "RandomEqualize(1)",
                                         "RandomGrayscale",
                                         "RandomApply(RandomInvert)",
                                         "ColorJitter(0.5, 0.5, 0.5, 0.5)",
                                         "RandomAdjustSharpness(3, p=1)",
                                         "RandomChannelPermutation",
                                         "RandomPhotometricDistort",
                                         "RandomOrder([RandomInvert, RandomSolarize(77)])",
                                         "RandomChoice([RandomInvert, ColorJitter(1, 1)])",
                                         "RandAugment",
                                         "AugMix",
                                         "TimmAugment(\"augmix-m9\")",
                                         "TimmAugment(\"3a\")",
                                         "TimmAugment(\"rand-m9-mstd0.5-inc1\")"};
    const char *f = filters[rng_below(r, 6)], *m = modes[rng_below(r, 4)];
    const int a = (int)rng_below(r, 40) + 1, b = (int)rng_below(r, 40) + 1;
    const int pad = *side > 1 ? (int)rng_below(r, (uint64_t)(*side < 12 ? *side : 12)) : 0;
    switch (rng_below(r, 18)) {
    case 8:
        snprintf(text, n, "RandomRotation(180, %s, fill=%d)", maps[rng_below(r, 3)], a);
        break;
    case 9:
        snprintf(text, n, "RandomAffine(40, (0.3, 0.1), (0.5, 2), 30, %s, %d)", maps[rng_below(r, 3)], a);
        break;
    case 10:
        snprintf(text, n, "%s", *side > 24 ? "ElasticTransform(30, 3)" : *side > 9 ? "RandomPerspective(0.6)" : "RGB");
        break;
    case 11:
        snprintf(text, n, "%s", *side > 3 && a % 3 ? "GaussianBlur((5, 7))" : a % 2 ? "JPEG(30)" : "GaussianNoise");
        break;
    case 0:
        snprintf(text, n, "Resize((%d, %d), %s, antialias=%s)", a, b, f, rng_below(r, 2) ? "True" : "False");
        *side = a < b ? a : b;
        break;
    case 1:
        snprintf(text, n, "Resize(%d, %s)", a, f);
        *side = a;
        break;
    case 2:
        snprintf(text, n, "CenterCrop((%d, %d))", a, b);
        *side = a < b ? a : b;
        break;
    case 3:
        snprintf(text, n, "RandomCrop((%d, %d), padding=%d, pad_if_needed=True, fill=77, padding_mode=%s)", a, b, pad,
                 modes[rng_below(r, 3)]);
        *side = a < b ? a : b;
        break;
    case 4:
        snprintf(text, n, "RandomResizedCrop((%d, %d), interpolation=%s)", a, b, f);
        *side = a < b ? a : b;
        break;
    case 5:
        snprintf(text, n, "Pad(%d, fill=3, padding_mode=%s)", *side > pad ? pad : 0, m);
        break;
    case 6:
        snprintf(text, n, "%s", rng_below(r, 2) ? "RandomHorizontalFlip" : "RandomVerticalFlip");
        break;
    case 7:
        snprintf(text, n, "Grayscale(%d)", rng_below(r, 2) ? 1 : 3);
        break;
    default:
        snprintf(text, n, "%s", points[rng_below(r, sizeof points / sizeof points[0])]);
    }
}

/* Makes a random chain of ops that ends in a known size. */
static void chain(struct rng *r, char *text, size_t n, int side)
{
    char op[160];
    const int ops = 1 + (int)rng_below(r, 6);
    text[0] = 0;
    for (int i = 0; i < ops; i++) {
        whole(r, op, sizeof op, &side);
        snprintf(text + strlen(text), n - strlen(text), "%s | ", op);
    }
    snprintf(text + strlen(text), n - strlen(text), "%s",
             rng_below(r, 2) ? "CenterCrop((17, 23))" : "Resize((13, 11)) | RandomHorizontalFlip | RandomVerticalFlip");
}

/* For random chains and random sizes, the trimmed job gives the same bits as the separate steps, on every instruction
 * set. */
static void trimming_changes_no_bit(void)
{
    struct machine m;
    machine_look(&m);
    const stk_cpu sets[] = {STK_CPU_C, m.avx2 ? STK_CPU_AVX2 : STK_CPU_C, m.avx512 ? STK_CPU_AVX512 : STK_CPU_C};
    int ran = 0, less = 0;
    for (uint64_t k = 0; k < 700; k++) {
        struct rng r;
        rng_init(&r, &(struct draw){.sample = k}, "chain", 0);
        const int32_t w = (int32_t)rng_below(&r, 90) + 1, h = (int32_t)rng_below(&r, 90) + 1;
        char text[1600];
        chain(&r, text, sizeof text, w < h ? w : h);
        struct plan *plain = bytes_of(text), *p = plan_of(text, STK_UINT8, STK_NHWC, sets[k % 3]);
        const struct draw d = {.seed = k};
        struct job all, trimmed;
        stk_error e = {0};
        const int rc = plan_steps(plain, &d, w, h, &all, NULL, &e);
        CHECK_EQ(plan_draw(p, &d, w, h, &trimmed, &e), rc);
        if (rc == STK_OK) {
            struct image im = image(w, h, k);
            uint8_t *a = run(plain, &all, &im), *b = run(p, &trimmed, &im);
            const bool same = memcmp(a, b, plan_row_bytes(p)) == 0;
            if (!same)
                printf("%" PRIu64 ": %d x %d: %s\n", k, w, h, text);
            CHECK(same);
            ran++;
            less += trimmed.n_steps < all.n_steps;
            free(a);
            free(b);
            free(im.px);
        } else {
            CHECK_EQ(rc, STK_EDATA);
        }
        plan_free(plain);
        plan_free(p);
    }
    CHECK(ran > 500 && less > 300);
}

/* Runs a job with the memory it asks for, on a part of an image with any number of channels. */
static void run_into(const struct plan *p, const struct job *j, const struct image *im, void *to)
{
    struct arena a = {0};
    struct image part = *im;
    part.px += (size_t)j->want.crop.y * im->stride + (size_t)j->want.crop.x * (size_t)im->channels;
    part.w = j->want.crop.w;
    part.h = j->want.crop.h;
    CHECK_EQ(arena_reserve(&a, plan_scratch(p, j)), 0);
    CHECK_EQ(plan_run(p, j, &part, &a, to, NULL), STK_OK);
    arena_done(&a);
}

/* The rest of the ops, run on the head's image, makes the same row as all ops together. */
static void check_split(const struct plan *p, const char *text, uint64_t k, int32_t w, int32_t h)
{
    const struct draw d = {.seed = k};
    struct job all, head, rest;
    const int rc = plan_draw(p, &d, w, h, &all, NULL);
    const bool split =
        plan_draw_head(p, w, h, &head, NULL) == STK_OK && plan_draw_rest(p, &d, head.w, head.h, &rest, NULL) == STK_OK;
    CHECK_EQ(split, rc == STK_OK);
    if (!split)
        return;
    const size_t n = plan_row_bytes(p), line = (size_t)head.w * (size_t)head.channels, bytes = line * (size_t)head.h;
    struct image im = image(w, h, k);
    uint8_t *a = calloc(1, n + 64), *b = calloc(1, n + 64);
    const struct image kept = {calloc(1, bytes + IMAGE_SLACK), line, head.w, head.h, head.channels};
    CHECK_EQ(head.channels, plan_head_channels(p));
    run_into(p, &all, &im, a);
    run_into(p, &head, &im, kept.px);
    CHECK_EQ(kept.px[bytes], 0);
    run_into(p, &rest, &kept, b);
    if (memcmp(a, b, n) != 0)
        printf("%" PRIu64 ": %d x %d: %s\n", k, w, h, text);
    CHECK(memcmp(a, b, n) == 0);
    free(a);
    free(b);
    free(kept.px);
    free(im.px);
}

static void splitting_changes_no_bit(void)
{
    for (uint64_t k = 0; k < 500; k++) {
        struct rng r;
        rng_init(&r, &(struct draw){.sample = k}, "split", 0);
        const int32_t w = (int32_t)rng_below(&r, 90) + 1, h = (int32_t)rng_below(&r, 90) + 1;
        char text[1600];
        chain(&r, text, sizeof text, w < h ? w : h);
        struct plan *p = plan_of(text, k % 2 ? STK_FLOAT32 : STK_UINT8, k % 4 < 2 ? STK_NCHW : STK_NHWC, STK_CPU_C);
        check_split(p, text, k, w, h);
        plan_free(p);
    }
}

static void heads_end_at_the_first_draw(void)
{
    static const struct {
        const char *ops, *head;
        bool settled;
        int channels;
    } cases[] = {
        {"RandomResizedCrop(8) | Normalize", "", false, 3},
        {"Resize((9, 9)) | CenterCrop(8) | Normalize",
         "Resize(size=(9, 9), interpolation=bilinear, max_size=None, "
         "antialias=True) | CenterCrop(size=(8, 8))",
         true, 3},
        {"Grayscale(1) | ToTensor | RandomCrop(8) | CenterCrop(4)", "Grayscale(num_output_channels=1)", false, 1},
        {"CenterCrop(8) | RandomHorizontalFlip(1) | RandomVerticalFlip(0) | RandomHorizontalFlip(0.5)",
         "CenterCrop(size=(8, 8)) | RandomHorizontalFlip(p=1) | RandomVerticalFlip(p=0)", false, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[OPS_TEXT];
        struct plan *p = plan_of(cases[i].ops, STK_FLOAT32, STK_NCHW, STK_CPU_C);
        const uint64_t hash = plan_head_text(p, text, sizeof text);
        CHECK_STR(text, cases[i].head);
        CHECK_EQ(plan_settled(p), cases[i].settled);
        CHECK_EQ(plan_head_channels(p), cases[i].channels);
        CHECK_EQ(hash, plan_head_text(p, text, 1)); /* of the whole image, however small the crop is */
        check_split(p, text, i, 20, 15);
        plan_free(p);
    }
}

/* The share of the area, the logarithm of the ratio, and the position are uniformly distributed. */
static void random_resized_crop_is_fair(void)
{
    enum { N = 20000, W = 1000, H = 1000 };
    struct plan *p = bytes_of("RandomResizedCrop(8, scale=(0.2, 0.6), ratio=(1/2, 2), interpolation=box)");
    double area = 0, ratio = 0, x = 0, y = 0, area2 = 0;
    int n = 0;
    for (uint64_t k = 0; k < N; k++) {
        const struct rect c = job_of(p, k, W, H).want.crop;
        const double share = (double)c.w * c.h / ((double)W * H);
        CHECK(c.x >= 0 && c.y >= 0 && c.x + c.w <= W && c.y + c.h <= H);
        CHECK(share > 0.19 && share < 0.61);
        if (share < 0.45) { /* larger shares do not fit in every shape */
            area += share;
            area2 += share * share;
            ratio += log((double)c.w / c.h);
            x += (double)c.x / (W - c.w);
            y += (double)c.y / (H - c.h);
            n++;
        }
    }
    CHECK(n > N / 2);
    CHECK(fabs(area / n - 0.325) < 0.003);
    CHECK(fabs(area2 / n - (0.325 * 0.325 + 0.25 * 0.25 / 12)) < 0.003);
    CHECK(fabs(ratio / n) < 0.015);
    CHECK(fabs(x / n - 0.5) < 0.015 && fabs(y / n - 0.5) < 0.015);
    plan_free(p);
}

static void falls_back_to_the_middle(void)
{
    struct plan *p = bytes_of("RandomResizedCrop(8, scale=(0.9, 1), ratio=(3/4, 4/3), interpolation=box)");
    struct rect c = job_of(p, 3, 1000, 100).want.crop;
    CHECK(c.w == 133 && c.h == 100 && c.x == 433 && c.y == 0);
    c = job_of(p, 3, 100, 1000).want.crop;
    CHECK(c.w == 100 && c.h == 133 && c.x == 0 && c.y == 433);
    plan_free(p);
}

static void flips_and_crops_are_fair(void)
{
    enum { N = 20000 };
    struct plan *p = bytes_of("RandomCrop(8, padding=2) | RandomHorizontalFlip(0.25) | RandomVerticalFlip");
    int x = 0, y = 0, places[5] = {0};
    for (uint64_t k = 0; k < N; k++) {
        struct job j;
        const struct draw d = {.sample = k};
        CHECK_EQ(plan_steps(p, &d, 8, 8, &j, NULL, NULL), STK_OK);
        for (int i = 0; i < j.n_steps; i++) {
            x += j.steps[i].kind == STEP_FLIP_X;
            y += j.steps[i].kind == STEP_FLIP_Y;
        }
        const int32_t at = j.n_steps > 0 && j.steps[0].kind == STEP_CROP ? j.steps[0].x : 0;
        CHECK(at >= -2 && at <= 2);
        places[at + 2]++;
    }
    CHECK(abs(x - N / 4) < N / 50 && abs(y - N / 2) < N / 50);
    for (int i = 0; i < 5; i++)
        CHECK(abs(places[i] - N / 5) < N / 50);
    plan_free(p);
}

static bool same_crop(const struct step *a, const struct step *b)
{
    return a->kind == STEP_CROP && b->kind == STEP_CROP && a->x == b->x && a->y == b->y && a->w == b->w && a->h == b->h;
}

/* Another op in the chain does not change the draws of the others. Another sample, epoch or seed does. */
static void draws_belong_to_their_op(void)
{
    struct plan *p = bytes_of("RandomResizedCrop(8) | RandomHorizontalFlip | RandomVerticalFlip");
    struct plan *q = bytes_of("RandomResizedCrop(8) | RandomCrop(8, padding=1) | Grayscale | RandomVerticalFlip");
    int differ = 0;
    for (uint64_t k = 0; k < 200; k++) {
        struct draw d = {.seed = 3, .sample = k};
        struct job a, b, c;
        plan_steps(p, &d, 300, 200, &a, NULL, NULL);
        plan_steps(q, &d, 300, 200, &b, NULL, NULL);
        CHECK(same_crop(&a.steps[0], &b.steps[0]));
        const bool up = a.n_steps > 0 && a.steps[a.n_steps - 1].kind == STEP_FLIP_Y;
        CHECK(up == (b.steps[b.n_steps - 1].kind == STEP_FLIP_Y));
        d.epoch = 1;
        plan_steps(p, &d, 300, 200, &c, NULL, NULL);
        differ += !same_crop(&a.steps[0], &c.steps[0]);
    }
    CHECK(differ > 190);
    plan_free(p);
    plan_free(q);
}

/* Images of unusual shapes, and ops that are unusual for them. */
static void extremes(void)
{
    static const struct {
        const char *ops;
        int32_t w, h;
    } cases[] = {
        {"RandomResizedCrop(224)", 1, 1},
        {"RandomResizedCrop(7)", 1, 60000},
        {"RandomResizedCrop(7)", 60000, 1},
        {"Resize(256) | CenterCrop(224)", 1, 60000},
        {"Resize(256, nearest) | CenterCrop(224)", 60000, 1},
        {"Resize((1, 1), lanczos)", 20000, 3},
        {"Resize((1, 1), bicubic)", 3, 20000},
        {"Resize((300, 1), hamming)", 1, 1},
        {"CenterCrop(300)", 1, 1},
        {"CenterCrop((1, 300))", 70, 70},
        {"RandomCrop(5, padding=100, padding_mode=edge)", 1, 1},
        {"RandomCrop(5, padding=100, padding_mode=symmetric)", 2, 1},
        {"RandomCrop(5, padding=100, fill=9)", 1, 1},
        {"CenterCrop(3) | Pad(2, padding_mode=reflect)", 3, 3},
        {"RandomCrop(64, pad_if_needed=True) | RandomHorizontalFlip(1) | Resize((1, 65))", 3, 90},
        {"Grayscale | Resize((33, 47)) | RandomHorizontalFlip(1) | RandomVerticalFlip(1) | Grayscale(3)", 21, 22},
    };
    struct machine m;
    machine_look(&m);
    const stk_cpu best = m.avx512 ? STK_CPU_AVX512 : m.avx2 ? STK_CPU_AVX2 : STK_CPU_C;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan *p = bytes_of(cases[i].ops), *q = plan_of(cases[i].ops, STK_UINT8, STK_NHWC, best);
        struct image im = image(cases[i].w, cases[i].h, i);
        const struct job j = job_of(p, i, im.w, im.h);
        uint8_t *a = run(p, &j, &im), *b = run(q, &j, &im);
        CHECK(memcmp(a, b, plan_row_bytes(p)) == 0);
        free(a);
        free(b);
        free(im.px);
        plan_free(p);
        plan_free(q);
    }
}

static void says_what_is_wrong_with_an_image(void)
{
    static const struct {
        const char *ops, *words;
        int32_t w, h;
    } cases[] = {
        {"RandomCrop(8)", "RandomCrop: the image has 7 x 9 pixels here, fewer than the crop; use pad_if_needed=True", 7,
         9},
        {"RandomCrop(8, padding=3, padding_mode=reflect)", "reflect needs more pixels than it pads", 3, 20},
        {"RandomCrop(8, None, True, padding_mode=reflect)", "reflect needs more pixels than it pads", 4, 20},
        {"Pad((0, 9, 0, 0), padding_mode=reflect) | CenterCrop(8)", "reflect needs more pixels than it pads", 20, 9},
        {"Resize(300) | CenterCrop(8)", "too long and narrow", 1, 60000},
        {"Resize(5, max_size=6) | CenterCrop(8)", "too long and narrow", 1, 60000},
        {"CenterCrop(8)", "an image of 0 x 5 pixels", 0, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan *p = bytes_of(cases[i].ops);
        struct job j;
        stk_error e = {0};
        CHECK_EQ(plan_draw(p, &(struct draw){0}, cases[i].w, cases[i].h, &j, &e), STK_EDATA);
        if (!strstr(e.text, cases[i].words))
            printf("%s\n", e.text);
        CHECK(strstr(e.text, cases[i].words) != NULL);
        plan_free(p);
    }
}

/* Mistakes of our own code are reported, not run. */
static void checks_what_it_gets(void)
{
    struct plan *p = bytes_of("RandomResizedCrop(8)");
    struct image im = image(30, 30, 1);
    const struct job j = job_of(p, 1, 30, 30);
    struct arena a = {0};
    stk_error e = {0};
    uint8_t row[8 * 8 * 3];
    struct image wrong = {.px = im.px, .stride = 90, .w = j.want.crop.w - 1, .h = j.want.crop.h, .channels = 3};
    CHECK_EQ(plan_run(p, &j, &wrong, &a, row, &e), STK_EBUG);
    wrong.w++;
    CHECK_EQ(plan_run(p, &j, &wrong, &a, row, &e), STK_EBUG);
    CHECK(strstr(e.text, "no room") != NULL);
    free(im.px);
    plan_free(p);
}

/* All layouts and types contain the same numbers. */
static void layouts_and_types(void)
{
    const char *const ops = "RandomResizedCrop((9, 21)) | RandomHorizontalFlip | Normalize";
    struct plan *bytes = bytes_of("RandomResizedCrop((9, 21)) | RandomHorizontalFlip");
    struct plan *planar = plan_of(ops, STK_FLOAT32, STK_NCHW, STK_CPU_C);
    struct plan *interleaved = plan_of(ops, STK_FLOAT32, STK_NHWC, STK_CPU_C);
    struct image im = image(50, 60, 5);
    const struct job j = job_of(bytes, 9, 50, 60);
    uint8_t *b = run(bytes, &j, &im);
    float *p = (float *)(void *)run(planar, &j, &im), *q = (float *)(void *)run(interleaved, &j, &im);
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
    for (int i = 0; i < 9 * 21; i++)
        for (int ch = 0; ch < 3; ch++) {
            const float x = ((float)b[3 * i + ch] / 255.0f - mean[ch]) / std[ch];
            CHECK(q[3 * i + ch] == x && p[ch * 9 * 21 + i] == x);
        }
    free(b);
    free(p);
    free(q);
    free(im.px);
    plan_free(bytes);
    plan_free(planar);
    plan_free(interleaved);
}

/* Rows that bypass the caches are the same. */
static void streamed_rows(void)
{
    struct machine m;
    machine_look(&m);
    const stk_cpu sets[] = {m.avx2 ? STK_CPU_AVX2 : STK_CPU_C, m.avx512 ? STK_CPU_AVX512 : STK_CPU_C};
    static const stk_dtype types[] = {STK_FLOAT32, STK_FLOAT16, STK_BFLOAT16, STK_UINT8};
    struct image im = image(300, 200, 5);
    for (int s = 0; s < 2; s++)
        for (int t = 0; t < 4; t++)
            for (int layout = STK_NCHW; layout <= STK_NHWC; layout++) {
                const char *ops = t == 3 ? "Resize((320, 384))" : "Resize((320, 384)) | Normalize";
                struct plan *p = plan_of(ops, types[t], (stk_layout)layout, STK_CPU_C);
                struct plan *q = plan_of(ops, types[t], (stk_layout)layout, sets[s]);
                const struct job j = job_of(p, 0, 300, 200);
                uint8_t *a = run(p, &j, &im), *b = run(q, &j, &im);
                CHECK(q->stream != NULL && memcmp(a, b, plan_row_bytes(p)) == 0);
                free(a);
                free(b);
                plan_free(p);
                plan_free(q);
            }
    free(im.px);
}

int main(int argc, char **argv)
{
    TESTS(T(shapes), T(refuses_odd_options), T(images_of_one_size), T(too_large_without_ops), T(trims_the_usual),
          T(trimming_changes_no_bit), T(splitting_changes_no_bit), T(heads_end_at_the_first_draw),
          T(random_resized_crop_is_fair), T(falls_back_to_the_middle), T(flips_and_crops_are_fair),
          T(draws_belong_to_their_op), T(extremes), T(says_what_is_wrong_with_an_image), T(checks_what_it_gets),
          T(layouts_and_types), T(streamed_rows))
}
