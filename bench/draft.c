/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft.c -- how much fidelity draft changes images, and how much time it saves.
 *
 *     find photos -name '*.jpg' | draft [OPS]
 *
 * Decodes and transforms every file both ways, with the same draws. Prints a line for each factor by which the decoder
 * shrank images: how many images, the mean and the largest difference in levels of 255, the PSNR, and the CPU time per
 * image of both ways. Images that were not shrunk are the same.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "decode/decode.h"
#include "file.h"
#include "transform/plan.h"

enum { WAYS = 2, SHRINKS = 4, ROUNDS = 3 };

struct tally {
    int64_t images, values;
    double sum, squares;
    int most;
    double us[WAYS];
};

struct bench {
    struct decoder *decoder;
    struct plan *plans[WAYS];
    uint8_t *rows[WAYS];
    size_t row_bytes;
    struct arena arena;
    struct tally tallies[SHRINKS];
};

/* Decodes and transforms one way. Returns by how much the image was shrunk, or 0 on failure. */
static int make(struct bench *b, int way, const struct buf *file, uint64_t sample)
{
    const struct decode_limits limits = {.max_pixels = 256000000};
    const struct plan *p = b->plans[way];
    struct head h;
    struct job j;
    struct image im;
    int warnings;
    if (decode_head(file->data, file->len, &limits, &h, NULL) != STK_OK ||
        plan_draw(p, &(struct draw){.sample = sample}, head_width(&h), head_height(&h), &j, NULL) != STK_OK)
        return 0;
    plan_draft(p, &j, head_width(&h), head_height(&h), decode_shrink(&h));
    if (arena_reserve(&b->arena, decode_scratch(&h, &j.want) + plan_scratch(p, &j)) ||
        decode_pixels(b->decoder, file->data, file->len, &h, &j.want, &b->arena, &im, &warnings, NULL) != STK_OK ||
        plan_run(p, &j, &im, &b->arena, b->rows[way], NULL) != STK_OK)
        return 0;
    return j.want.shrink > 1 ? j.want.shrink : 1;
}

static void compare(const struct bench *b, struct tally *t)
{
    for (size_t i = 0; i < b->row_bytes; i++) {
        const int d = abs(b->rows[0][i] - b->rows[1][i]);
        t->sum += d;
        t->squares += (double)d * d;
        t->most = d > t->most ? d : t->most;
    }
    t->values += (int64_t)b->row_bytes;
    t->images++;
}

/* Alternates between both ways, and keeps the best time of each. */
static void one_file(struct bench *b, const struct buf *file, uint64_t sample)
{
    double best[WAYS] = {1e18, 1e18};
    int shrink = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int way = 0; way < WAYS; way++) {
            const double begun = cpu_us();
            shrink = make(b, way, file, sample);
            best[way] = fmin(best[way], cpu_us() - begun);
            if (shrink == 0)
                return;
        }
    struct tally *t = &b->tallies[shrink == 8 ? 3 : shrink / 2];
    compare(b, t);
    for (int way = 0; way < WAYS; way++)
        t->us[way] += best[way];
}

static bool bench_init(struct bench *b, const char *ops, stk_error *e)
{
    stk_cpu cpu;
    if (cpu_choose(STK_CPU_DEFAULT, &cpu, e) != STK_OK || decoder_new(&b->decoder, cpu, e) != STK_OK)
        return false;
    for (int way = 0; way < WAYS; way++) {
        const struct plan_options o = {
            .ops = ops, .dtype = STK_UINT8, .layout = STK_NHWC, .cpu = cpu, .fidelity = way ? STK_DRAFT : STK_EXACT};
        if (plan_new(&b->plans[way], &o, e) != STK_OK)
            return false;
        b->row_bytes = plan_row_bytes(b->plans[way]);
        b->rows[way] = malloc(b->row_bytes);
        if (!b->rows[way])
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    stk_error e = {.text = "not enough memory"};
    if (!bench_init(&b, argc > 1 ? argv[1] : "RandomResizedCrop(224)", &e))
        return fprintf(stderr, "draft: %s\n", e.text), 3;
    struct buf file = {0};
    char line[4096];
    for (uint64_t n = 0; fgets(line, sizeof line, stdin); n++) {
        line[strcspn(line, "\n")] = 0;
        if (read_file(line, &file) == 0)
            one_file(&b, &file, n);
    }
    printf("shrunk by    images  mean  most   PSNR  exact us  draft us  ratio\n");
    for (int i = 0; i < SHRINKS; i++) {
        const struct tally *t = &b.tallies[i];
        const double n = (double)t->values, p = (double)t->images;
        if (t->images)
            printf("%9d %9lld %5.2f %5d %6.1f %9.0f %9.0f %6.2f\n", 1 << i, (long long)t->images, t->sum / n, t->most,
                   10 * log10(255.0 * 255.0 * n / t->squares), t->us[0] / p, t->us[1] / p, t->us[0] / t->us[1]);
    }
    for (int way = 0; way < WAYS; way++) {
        plan_free(b.plans[way]);
        free(b.rows[way]);
    }
    buf_done(&file);
    arena_done(&b.arena);
    decoder_free(b.decoder);
    return 0;
}
