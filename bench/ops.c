/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c -- the CPU time of ops on images of 224 x 224, for ops.py.
 *
 *     bench-ops PIXELS      bytes of images, 224 x 224 x 3 each
 *
 * Reads ops from stdin, a line each, and answers each with microseconds per image: drawing and running them on every
 * image, several times, in one thread. The least time of all rounds counts, which other programs disturb least.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "file.h"
#include "transform/plan.h"

enum { SIDE = 224, BYTES = SIDE * SIDE * 3, ROUNDS = 9, REPEATS = 3 };

static int one(const struct plan *p, uint8_t *px, uint64_t sample, struct arena *a, uint8_t *row)
{
    struct job j;
    if (plan_draw(p, &(struct draw){.sample = sample}, SIDE, SIDE, &j, NULL))
        return -1;
    const struct rect c = j.want.crop;
    const struct image im = {.px = px + ((size_t)c.y * SIDE + (size_t)c.x) * 3,
                             .stride = (size_t)SIDE * 3,
                             .w = c.w,
                             .h = c.h,
                             .channels = 3};
    return arena_reserve(a, plan_scratch(p, &j)) || plan_run(p, &j, &im, a, row, NULL) ? -1 : 0;
}

/* Microseconds per image; below 0: the ops failed. */
static double measure(const char *ops, uint8_t *px, size_t n)
{
    stk_cpu cpu;
    stk_error e;
    if (cpu_choose(STK_CPU_DEFAULT, &cpu, &e))
        return -1;
    const struct plan_options o = {.ops = ops,
                                   .dtype = STK_UINT8,
                                   .layout = STK_NHWC,
                                   .fidelity = STK_EXACT,
                                   .cpu = cpu,
                                   .fixed_w = SIDE,
                                   .fixed_h = SIDE};
    struct plan *p = NULL;
    if (plan_new(&p, &o, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    struct arena a = {0};
    uint8_t *row = aligned_alloc(64, (plan_row_bytes(p) + 63) / 64 * 64);
    double least = 1e9;
    for (int round = 0; row && round < ROUNDS; round++) {
        const double before = cpu_us();
        for (size_t i = 0; i < n * REPEATS; i++)
            if (one(p, px + i % n * BYTES, i, &a, row))
                round = ROUNDS;
        const double took = (cpu_us() - before) / (double)(n * REPEATS);
        least = round == ROUNDS ? -1 : took < least ? took : least;
    }
    free(row);
    arena_done(&a);
    plan_free(p);
    return least;
}

int main(int argc, char **argv)
{
    struct buf pixels = {0};
    char line[4096];
    if (argc != 2 || read_file(argv[1], &pixels) || pixels.len < BYTES) {
        fprintf(stderr, "bench-ops: give a file with images of 224 x 224 x 3 bytes\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        printf("%.2f\n", measure(line, pixels.data, pixels.len / BYTES));
        fflush(stdout);
    }
    buf_done(&pixels);
    return 0;
}
