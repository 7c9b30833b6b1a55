/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_drawn.c -- the JSON of what was drawn agrees with the steps of the job.
 */
#include "base/json.h"
#include "base/rng.h"
#include "test.h"
#include "transform/plan_inner.h"

enum { TEXT = STK_DRAWN_BYTES - 256 }; /* stk_loader_drawn() adds less than 256 bytes */

/* {"ops": [...]} */
static int put(const struct plan *p, const struct draw *d, int32_t w, int32_t h, char text[TEXT], stk_error *e)
{
    struct text_out out = {.buf = text, .n = TEXT};
    struct json j = {.text = &out, .layout = JSON_ONE_LINE};
    json_open(&j, NULL, '{');
    const int rc = plan_drawn(p, d, w, h, &j, e);
    json_close(&j, '}');
    CHECK(out.used < TEXT);
    return rc;
}

static struct plan *plan_of(const char *ops)
{
    struct plan *p = NULL;
    const struct plan_options o = {
        .ops = ops, .dtype = STK_UINT8, .layout = STK_NHWC, .fidelity = STK_EXACT, .cpu = STK_CPU_C};
    stk_error e;
    if (plan_new(&p, &o, &e) != STK_OK) {
        printf("%s\n", e.text);
        exit(1);
    }
    return p;
}

static void check_words(const char *ops, int32_t w, int32_t h, const char *want)
{
    struct plan *p = plan_of(ops);
    const struct draw d = {.seed = 1};
    char text[TEXT];
    CHECK_EQ(put(p, &d, w, h, text, NULL), STK_OK);
    CHECK_STR(text, want);
    plan_free(p);
}

static void what_is_settled(void)
{
    check_words("Resize(8) | CenterCrop((8, 6))", 20, 16,
                "{\"ops\": [{\"op\": \"Resize\", \"size\": [8, 10]}, "
                "{\"op\": \"CenterCrop\", \"top\": 0, \"left\": 2, \"height\": 8, \"width\": 6}]}");
    check_words("CenterCrop(8) | Pad((1, 2, 3, 4)) | RandomHorizontalFlip(0) | RandomVerticalFlip(1) | Grayscale", 9, 9,
                "{\"ops\": [{\"op\": \"CenterCrop\", \"top\": 0, \"left\": 0, \"height\": 8, \"width\": 8}, "
                "{\"op\": \"Pad\", \"padding\": [1, 2, 3, 4]}, {\"op\": \"RandomHorizontalFlip\", \"flip\": false}, "
                "{\"op\": \"RandomVerticalFlip\", \"flip\": true}, {\"op\": \"Grayscale\"}]}");
    check_words(
        "RandomCrop((6, 4), padding=(1, 2), pad_if_needed=True)", 2, 2,
        "{\"ops\": [{\"op\": \"RandomCrop\", \"padding\": [1, 2, 1, 2], \"top\": 0, \"left\": 0, \"height\": 6, "
        "\"width\": 4}]}");
    check_words("RandomResizedCrop(5)", 1, 1,
                "{\"ops\": [{\"op\": \"RandomResizedCrop\", \"top\": 0, \"left\": 0, \"height\": 1, \"width\": 1, "
                "\"size\": [5, 5]}]}");
}

/* The crop that is written is the crop of the job. */
static void what_is_drawn(void)
{
    struct plan *p = plan_of("RandomResizedCrop(16)"), *q = plan_of("RandomCrop(10, padding=3)");
    for (uint64_t k = 0; k < 500; k++) {
        const struct draw d = {.sample = k};
        struct job j;
        char text[TEXT];
        int top, left, h, w;
        CHECK_EQ(put(p, &d, 300, 200, text, NULL), STK_OK);
        CHECK_EQ(
            sscanf(
                text,
                "{\"ops\": [{\"op\": \"RandomResizedCrop\", \"top\": %d, \"left\": %d, \"height\": %d, \"width\": %d,",
                &top, &left, &h, &w),
            4);
        CHECK_EQ(plan_draw(p, &d, 300, 200, &j, NULL), STK_OK);
        CHECK(j.want.crop.x == left && j.want.crop.y == top && j.want.crop.w == w && j.want.crop.h == h);

        CHECK_EQ(put(q, &d, 12, 12, text, NULL), STK_OK);
        CHECK_EQ(sscanf(text,
                        "{\"ops\": [{\"op\": \"RandomCrop\", \"padding\": [3, 3, 3, 3], \"top\": %d, \"left\": %d,",
                        &top, &left),
                 2);
        CHECK_EQ(plan_steps(q, &d, 12, 12, &j, NULL, NULL), STK_OK);
        CHECK(j.steps[0].x == left - 3 && j.steps[0].y == top - 3);
    }
    plan_free(p);
    plan_free(q);
}

static void the_longest_words_fit(void)
{
    char ops[OPS_TEXT];
    size_t used = 0;
    for (int i = 0; i < OPS_MAX; i++)
        used += (size_t)snprintf(ops + used, sizeof ops - used, "%sRandomCrop(65536, padding=60000)", i ? " | " : "");
    struct plan *p = plan_of(ops);
    char text[TEXT];
    const struct draw d = {0};
    CHECK_EQ(put(p, &d, 65536, 65536, text, NULL), STK_OK);
    CHECK_STR(text + strlen(text) - 2, "]}");
    stk_error e;
    CHECK_EQ(put(p, &d, 0, 5, text, &e), STK_EDATA);
    plan_free(p);
}

int main(int argc, char **argv)
{
    TESTS(T(what_is_settled), T(what_is_drawn), T(the_longest_words_fit))
}
