/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_box.c -- Pillow's ImageFilter.GaussianBlur: three box blurs across and three down, bit for bit.
 *
 * A box of radius r sums the 2 * floor(r) + 1 pixels around one, and a share of the two next to them. Pixels outside of
 * the image are those at its border. All passes are done before the first line is asked for.
 */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "transform/stage.h"

enum { PASSES = 3 };

struct box {
    int32_t radius;
    uint32_t whole, far; /* weights, of 2^24 */
};

static struct box box_of(double sigma)
{
    const float radius = (float)sigma, sigma2 = radius * radius / (float)PASSES;
    const float length = (float)sqrt(12.0 * (double)sigma2 + 1.0);
    const float l = (float)floor(((double)length - 1.0) / 2.0);
    float a = (2 * l + 1) * (l * (l + 1) - 3 * sigma2);
    a /= 6 * (sigma2 - (l + 1) * (l + 1));
    struct box b = {.radius = (int32_t)(l + a)};
    b.whole = (uint32_t)((float)(1 << 24) / ((l + a) * 2 + 1));
    b.far = ((1u << 24) - (uint32_t)(b.radius * 2 + 1) * b.whole) / 2;
    return b;
}

struct rect box_step_needs(const struct step *s)
{
    const int32_t reach = PASSES * (box_of(s->amount).radius + 1);
    const struct rect n = s->need;
    const int32_t x = n.x > reach ? n.x - reach : 0, y = n.y > reach ? n.y - reach : 0;
    const int32_t right = n.x + n.w + reach, bottom = n.y + n.h + reach;
    return (struct rect){x, y, (right < s->in_w ? right : s->in_w) - x, (bottom < s->in_h ? bottom : s->in_h) - y};
}

/* Two images: the passes go to and fro between them. A line with margins follows. */
struct work {
    struct image at[2];
    uint8_t *line;
};

static struct work lay(struct room *r, const struct step *s)
{
    const size_t margin = (size_t)box_of(s->amount).radius + 1;
    struct work w;
    for (int i = 0; i < 2; i++)
        w.at[i] = room_image(r, s->from.w, s->from.h, s->in);
    w.line = room_take(r, size_mul(size_add((size_t)s->from.w, 2 * margin), (size_t)s->in));
    return w;
}

void box_step_lay(struct room *r, struct stage *st)
{
    struct work *w = room_take(r, sizeof *w);
    const struct work all = lay(r, st->s);
    st->memory = w;
    if (w)
        *w = all;
}

/* One line: n sums of bytes that are `step` apart, from rows or from a line with margins. */
static void sum(uint8_t *restrict dst, const uint8_t *const *from, const struct box *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t middle = 0;
        for (int32_t k = 1; k <= 2 * b->radius + 1; k++)
            middle += from[k][i];
        const uint32_t ends = (uint32_t)from[0][i] + from[2 * b->radius + 2][i];
        dst[i] = (uint8_t)((middle * b->whole + ends * b->far + (1u << 23)) >> 24);
    }
}

enum { MOST = 64 }; /* radius; a sigma of 60 needs it */

static void across(const struct box *b, const struct work *w, const struct image *in, const struct image *out)
{
    const size_t ch = (size_t)in->channels, n = (size_t)in->w * ch, margin = (size_t)(b->radius + 1) * ch;
    const uint8_t *from[2 * MOST + 3];
    for (int32_t k = 0; k <= 2 * b->radius + 2; k++)
        from[k] = w->line + (size_t)k * ch;
    for (int32_t y = 0; y < in->h; y++) {
        const uint8_t *src = image_line(in, y);
        for (size_t i = 0; i < margin; i++) {
            w->line[i] = src[i % ch];
            w->line[margin + n + i] = src[n - ch + i % ch];
        }
        memcpy(w->line + margin, src, n);
        sum(image_line(out, y), from, b, n);
    }
}

static void down(const struct box *b, const struct image *in, const struct image *out)
{
    const uint8_t *from[2 * MOST + 3];
    for (int32_t y = 0; y < in->h; y++) {
        for (int32_t k = 0; k <= 2 * b->radius + 2; k++) {
            const int32_t at = y + k - b->radius - 1;
            from[k] = image_line(in, at < 0 ? 0 : at < in->h ? at : in->h - 1);
        }
        sum(image_line(out, y), from, b, (size_t)in->w * (size_t)in->channels);
    }
}

void box_step_begin(const struct kernels *k, struct stage *st)
{
    const struct box b = box_of(st->s->amount);
    const struct work *w = st->memory;
    (void)k;
    across(&b, w, &st->in, &w->at[0]);
    across(&b, w, &w->at[0], &w->at[1]);
    across(&b, w, &w->at[1], &w->at[0]);
    down(&b, &w->at[0], &w->at[1]);
    down(&b, &w->at[1], &w->at[0]);
    down(&b, &w->at[0], &w->at[1]);
}

void box_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct step *s = st->s;
    const struct image *from = &((const struct work *)st->memory)->at[1];
    const size_t ch = (size_t)s->channels, x = (size_t)(s->need.x - s->from.x) * ch;
    (void)k;
    for (int32_t i = 0; i < n; i++)
        memcpy(dst + (size_t)i * stride, image_line(from, s->need.y - s->from.y + y + i) + x, (size_t)s->need.w * ch);
}
