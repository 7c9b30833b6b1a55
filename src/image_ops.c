/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_ops.c -- ops on an image in the caller's memory, without a source: for ops that follow the caller's own code.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/size.h"
#include "loader.h"

struct stk_ops {
    struct plan *plan;
};

int stk_ops_open(stk_ops **out, const char *ops, stk_dtype dtype, stk_layout layout, stk_error *e)
{
    *out = NULL;
    struct plan_options p = {.ops = ops,
                             .dtype = dtype == STK_DTYPE_DEFAULT ? STK_FLOAT32 : dtype,
                             .layout = layout == STK_LAYOUT_DEFAULT ? STK_NCHW : layout,
                             .fidelity = STK_EXACT,
                             .open = true};
    struct stk_ops *o = calloc(1, sizeof *o);
    if (!o)
        return error_nomem(e, "open", sizeof *o);
    int rc = cpu_choose(STK_CPU_DEFAULT, &p.cpu, e);
    if (rc == STK_OK)
        rc = plan_new(&o->plan, &p, e);
    if (rc == STK_OK && plan_crops(o->plan) > 1)
        rc = error_set(e, STK_EUSAGE, "open",
                       "FiveCrop and TenCrop make several images, which only a loader can return");
    if (rc == STK_OK)
        *out = o;
    else
        stk_ops_close(o);
    return rc;
}

void stk_ops_close(stk_ops *o)
{
    if (!o)
        return;
    plan_free(o->plan);
    free(o);
}

static int draw(const stk_ops *o, int width, int height, uint64_t random, struct job *job, stk_error *e)
{
    if (width < 1 || height < 1)
        return error_set(e, STK_EUSAGE, "transform", "an image of %d x %d pixels; both sides must be at least 1", width,
                         height);
    return plan_draw(o->plan, &(struct draw){.seed = random}, width, height, job, e);
}

int stk_ops_shape(const stk_ops *o, int width, int height, uint64_t random, int64_t shape[3], stk_error *e)
{
    struct job job;
    const int rc = draw(o, width, height, random, &job, e);
    if (rc == STK_OK)
        plan_job_shape(o->plan, &job, shape);
    return rc;
}

/* Kernels read a few bytes past the last pixel, so the wanted part is copied to memory that has them. */
static struct image copy_part(struct arena *a, const uint8_t *pixels, int width, struct rect c)
{
    const size_t line = (size_t)c.w * 3;
    struct image im = {.px = arena_alloc(a, line * (size_t)c.h), .stride = line, .w = c.w, .h = c.h, .channels = 3};
    for (int32_t y = 0; y < c.h; y++)
        memcpy(im.px + line * (size_t)y, pixels + ((size_t)(c.y + y) * (size_t)width + (size_t)c.x) * 3, line);
    return im;
}

int stk_ops_run(const stk_ops *o, const uint8_t *pixels, int width, int height, uint64_t random, void *to, stk_error *e)
{
    struct job job;
    const int rc = draw(o, width, height, random, &job, e);
    if (rc != STK_OK)
        return rc;
    const struct rect c = job.want.crop;
    const size_t scratch = plan_scratch(o->plan, &job), part = arena_cost((size_t)c.w * (size_t)c.h * 3);
    const size_t all = scratch > 0 ? size_add(scratch, part) : SIZE_MAX;
    struct arena a = {0};
    if (all == SIZE_MAX || arena_reserve(&a, all) != 0)
        return error_nomem(e, "transform", all);
    const struct image im = copy_part(&a, pixels, width, c);
    const int done = plan_run(o->plan, &job, &im, &a, to, e);
    arena_done(&a);
    return done;
}
