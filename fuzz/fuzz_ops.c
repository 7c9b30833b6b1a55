/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ops.c -- any text as ops. If the text is accepted, the ops are drawn and run on images of odd sizes.
 *
 * Also checked: the canonical text is read back unchanged, and a trimmed job needs no pixel outside the image.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "transform/plan_inner.h"

static void run(const struct plan *p, const struct job *j)
{
    const struct rect c = j->want.crop;
    const size_t scratch = plan_scratch(p, j), line = (size_t)c.w * 3;
    if (scratch > 1 << 22 || plan_row_bytes(p) > 1 << 22 || line * (size_t)c.h > 1 << 20)
        return;
    struct arena a = {0};
    uint8_t *px = calloc(1, line * (size_t)c.h + IMAGE_SLACK), *row = malloc(plan_row_bytes(p));
    const struct image im = {.px = px, .stride = line, .w = c.w, .h = c.h, .channels = 3};
    require(px && row && arena_reserve(&a, scratch) == 0);
    require(plan_run(p, j, &im, &a, row, NULL) == STK_OK);
    require(a.used == scratch);
    free(px);
    free(row);
    arena_done(&a);
}

static void draw(const struct plan *p, int32_t w, int32_t h)
{
    struct job j;
    stk_error e;
    const int rc = plan_draw(p, &(struct draw){.seed = (uint64_t)w}, w, h, &j, &e);
    require(rc == STK_OK || rc == STK_EDATA);
    if (rc)
        return;
    const struct rect c = j.want.crop;
    require(c.x >= 0 && c.y >= 0 && c.w >= 1 && c.h >= 1 && c.w <= w - c.x && c.h <= h - c.y);
    run(p, &j);
}

/* The first byte chooses the type, the rest is text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const stk_dtype types[] = {STK_FLOAT32, STK_FLOAT16, STK_BFLOAT16, STK_UINT8};
    if (size < 1 || size > 3 * OPS_TEXT)
        return 0;
    char *text = malloc(size);
    require(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    struct plan *p = NULL, *again = NULL;
    stk_error e;
    struct plan_options o = {.ops = text, .dtype = types[data[0] % 4], .layout = STK_NCHW, .cpu = STK_CPU_C};
    const int rc = plan_new(&p, &o, &e);
    require(rc == STK_OK || rc == STK_EUSAGE);
    if (rc == STK_OK) {
        o.ops = plan_text(p);
        require(plan_new(&again, &o, &e) == STK_OK);
        require(strcmp(plan_text(p), plan_text(again)) == 0);
        draw(p, 1, 1);
        draw(p, 37, 61);
        draw(p, 200, 3);
        draw(p, 1, 60000);
    }
    plan_free(p);
    plan_free(again);
    free(text);
    return 0;
}
