/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c -- how long decoding alone takes; bench/decode.py alternates between this program and Pillow.
 *
 *     decode        reads lines "FILE whole|crop", and answers each with the CPU time of decoding in microseconds: the
 *                   head and all pixels, or the pixels of a crop as RandomResizedCrop(224) draws it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "file.h"
#include "transform/plan.h"

static int decode(struct decoder *d, const struct plan *p, const struct buf *b, struct arena *a, bool crop,
                  stk_error *e)
{
    const struct decode_limits limits = {.max_pixels = 256000000};
    struct head h;
    struct job job;
    struct image im;
    int warnings, rc = decode_head(b->data, b->len, &limits, &h, e);
    if (rc == STK_OK)
        rc = plan_draw(p, &(struct draw){.sample = b->len}, head_width(&h), head_height(&h), &job, e);
    if (rc != STK_OK)
        return rc;
    const struct want whole = {.crop = {0, 0, head_width(&h), head_height(&h)}};
    const struct want *w = crop ? &job.want : &whole;
    if (arena_reserve(a, decode_scratch(&h, w)))
        return STK_ENOMEM;
    return decode_pixels(d, b->data, b->len, &h, w, a, &im, &warnings, e);
}

int main(void)
{
    const struct plan_options o = {.ops = "RandomResizedCrop(224)", .dtype = STK_UINT8, .layout = STK_NCHW};
    struct decoder *d;
    struct plan *p;
    stk_error e = {.text = "not enough memory"};
    if (decoder_new(&d, STK_CPU_DEFAULT, &e) != STK_OK || plan_new(&p, &o, &e) != STK_OK)
        return fprintf(stderr, "decode: %s\n", e.text), 3;
    struct buf b = {0};
    struct arena a = {0};
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        char *kind = strrchr(line, ' ');
        if (!kind)
            continue;
        *kind++ = 0;
        const int read = read_file(line, &b);
        const double begun = cpu_us();
        if (read != 0 || decode(d, p, &b, &a, strncmp(kind, "crop", 4) == 0, &e) != STK_OK)
            return fprintf(stderr, "decode: %s: %s\n", line, e.text), 3;
        printf("%.1f\n", cpu_us() - begun);
        fflush(stdout);
    }
    buf_done(&b);
    arena_done(&a);
    plan_free(p);
    decoder_free(d);
    return 0;
}
