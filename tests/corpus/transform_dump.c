/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_dump.c -- runs ops on raw pixels, for transform_parity.py.
 *
 * Reads requests from stdin until its end:
 *     WIDTH HEIGHT DTYPE LAYOUT CPU SEED BYTES_OF_OPS\n   ops, then WIDTH * HEIGHT * 3 bytes
 * and answers each on stdout:
 *     ok X Y W H FLIP_X FLIP_Y BYTES\n                     what was drawn (the first crop), then the row
 *     error CODE WORDS\n
 * Numbers are those of the enums in stoker.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transform/plan_inner.h"

struct request {
    int w, h, dtype, layout, cpu;
    unsigned long long seed;
    unsigned n_ops;
    char ops[8192];
    uint8_t *px;
};

static int read_request(struct request *r)
{
    if (scanf("%d %d %d %d %d %llu %u", &r->w, &r->h, &r->dtype, &r->layout, &r->cpu, &r->seed, &r->n_ops) != 7)
        return -1;
    if (getchar() != '\n' || r->n_ops >= sizeof r->ops || r->w < 1 || r->h < 1)
        return -1;
    if (fread(r->ops, 1, r->n_ops, stdin) != r->n_ops)
        return -1;
    r->ops[r->n_ops] = 0;
    const size_t n = (size_t)r->w * (size_t)r->h * 3;
    r->px = malloc(n + IMAGE_SLACK);
    return r->px && fread(r->px, 1, n, stdin) == n ? 0 : -1;
}

static int run(const struct request *r, const struct plan *p, void *row, struct job *job, stk_error *e)
{
    const struct draw d = {.seed = r->seed};
    int rc = plan_draw(p, &d, r->w, r->h, job, e);
    if (rc)
        return rc;
    const struct rect c = job->want.crop;
    const struct image im = {.px = r->px + ((size_t)c.y * (size_t)r->w + (size_t)c.x) * 3,
                             .stride = (size_t)r->w * 3,
                             .w = c.w,
                             .h = c.h,
                             .channels = 3};
    struct arena a = {0};
    if (arena_reserve(&a, plan_scratch(p, job)))
        return STK_ENOMEM;
    rc = plan_run(p, job, &im, &a, row, e);
    arena_done(&a);
    return rc;
}

/* What was drawn, as the ops say it: the trimmed job may ask for less than the first crop. */
static void print_drawn(const struct request *r, const struct plan *p)
{
    const struct draw d = {.seed = r->seed};
    struct job job;
    struct rect c = {0, 0, r->w, r->h};
    int flip_x = 0, flip_y = 0;
    plan_steps(p, &d, r->w, r->h, &job, NULL, NULL);
    for (int i = 0; i < job.n_steps; i++) {
        const struct step *s = &job.steps[i];
        flip_x ^= s->kind == STEP_FLIP_X;
        flip_y ^= s->kind == STEP_FLIP_Y;
        if (i == 0 && s->kind == STEP_CROP)
            c = (struct rect){s->x, s->y, s->w, s->h};
    }
    printf("ok %d %d %d %d %d %d %zu\n", c.x, c.y, c.w, c.h, flip_x, flip_y, plan_row_bytes(p));
}

static void answer(const struct request *r)
{
    const struct plan_options o = {.ops = r->ops,
                                   .dtype = (stk_dtype)r->dtype,
                                   .layout = (stk_layout)r->layout,
                                   .fidelity = STK_EXACT,
                                   .cpu = (stk_cpu)r->cpu};
    stk_error e = {0};
    struct plan *p = NULL;
    struct job job;
    uint8_t *row = NULL;
    int rc = plan_new(&p, &o, &e);
    if (rc == STK_OK) {
        row = aligned_alloc(64, (plan_row_bytes(p) + 63) / 64 * 64);
        rc = row ? run(r, p, row, &job, &e) : STK_ENOMEM;
    }
    if (rc == STK_OK) {
        print_drawn(r, p);
        fwrite(row, 1, plan_row_bytes(p), stdout);
    } else {
        printf("error %d %s\n", rc, e.text);
    }
    fflush(stdout);
    free(row);
    plan_free(p);
}

int main(void)
{
    struct request r;
    while (read_request(&r) == 0) {
        answer(&r);
        free(r.px);
    }
    return 0;
}
