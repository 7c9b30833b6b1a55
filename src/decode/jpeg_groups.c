/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_groups.c -- copies the coded bytes of a crop, from checkpoint to checkpoint, or of a whole scan.
 */
#include "decode/jpeg_groups.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "decode/jpeg_head.h"

static bool add_tables(struct buf *out, const struct jpeg_frame *f)
{
    for (int i = 0; i < f->n_components; i++)
        if (buf_add(out, f->component[i].q, sizeof f->component[i].q))
            return false;
    for (int i = 0; i < 2 * f->n_components; i++) {
        const uint8_t *from = i % 2 ? f->component[i / 2].ac : f->component[i / 2].dc;
        uint8_t codes[JPEG_GROUP_CODES] = {0};
        size_t n = 16;
        for (int k = 0; k < 16; k++)
            n += from[k];
        memcpy(codes, from, n < sizeof codes ? n : sizeof codes);
        if (buf_add(out, codes, sizeof codes))
            return false;
    }
    return true;
}

/* Copies bytes without the 00 after each FF, up to `end` or a marker. Returns where it stopped; NULL: there is no room,
 * or nothing after an FF. */
static const uint8_t *copy_bytes(struct buf *out, const uint8_t *from, const uint8_t *end, const uint8_t *file_end)
{
    while (from < end) {
        const uint8_t *ff = memchr(from, 0xff, (size_t)(end - from));
        const size_t n = (size_t)((ff ? ff + 1 : end) - from);
        if (n > out->max - out->len || (ff && ff + 1 == file_end))
            return NULL;
        if (ff && ff[1] != 0) {
            memcpy(out->data + out->len, from, n - 1);
            out->len += n - 1;
            return ff;
        }
        memcpy(out->data + out->len, from, n);
        out->len += n;
        from = ff ? ff + 2 : end;
    }
    return from;
}

/* The bytes of n groups from `at` on, which are in one row, and where each group starts. If they are the last ones of
 * the scan, it must end behind them. */
static bool add_row(struct buf *out, const struct jpeg_checkpoint *at, int32_t n, const uint8_t *file, size_t file_n,
                    bool last, struct jpeg_group *groups)
{
    const uint64_t from = at[0].bit / 8, behind = (at[n].bit + 7) / 8;
    const uint8_t *stopped = NULL;
    if (behind > file_n || behind < from)
        return false;
    for (int32_t i = 0; i <= n; i++) {
        groups[i].bit = (uint32_t)(8 * out->len + at[i].bit % 8);
        memcpy(groups[i].dc, at[i].dc, sizeof groups[i].dc);
        groups[i].unused = 0;
        const uint8_t *end = file + (i < n ? at[i + 1].bit / 8 : behind);
        stopped = copy_bytes(out, file + at[i].bit / 8, end, file + file_n);
        if (!stopped || stopped < end)
            return false;
    }
    for (int32_t i = 0; i <= n; i++)
        groups[i].stop = (uint32_t)out->len;
    return !last || (file + file_n - stopped >= 2 && stopped[0] == 0xff && stopped[1] == EOI);
}

/* In groups of `every` MCUs. */
static void describe(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *need, int32_t every)
{
    const int32_t first = need->x0 / every * every, end = ((need->x1 - 1) / every + 1) * every;
    p->coded = true;
    p->w = f->w;
    p->h = f->h;
    p->components = f->n_components;
    p->halves_columns = jpeg_frame_halves_columns(f);
    p->halves_rows = jpeg_frame_halves_rows(f);
    p->x = first;
    p->y = need->y0;
    p->across = (end < f->mcus_x ? end : f->mcus_x) - first;
    p->down = need->y1 - need->y0;
    p->every = every;
}

bool jpeg_groups_write(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                       const struct jpeg_checkpoints *c, const uint8_t *file, size_t n)
{
    static const uint8_t slack[JPEG_GROUPS_SLACK];
    const size_t most = UINT32_MAX / 8, room = p->room < most ? p->room : most;
    struct buf out = {.data = p->to, .cap = room, .max = room};
    p->used = 0;
    if (f->restart || need->end * c->across >= c->n || !add_tables(&out, f))
        return false;
    describe(p, f, need, c->every);
    const int32_t first = need->x0 / c->every, across = (need->x1 - 1) / c->every + 1 - first;
    const size_t row_bytes = (size_t)(across + 1) * sizeof(struct jpeg_group);
    struct jpeg_group *to = (struct jpeg_group *)(void *)(out.data + out.len);
    if (buf_reserve(&out, out.len + row_bytes * (size_t)p->down))
        return false;
    out.len += row_bytes * (size_t)p->down;
    for (int32_t y = need->y0; y < need->y1; y++, to += across + 1) {
        const bool last = y + 1 == f->mcus_y && first + across == c->across;
        if (!add_row(&out, &c->at[y * c->across + first], across, file, n, last, to))
            return false;
    }
    if (buf_add(&out, slack, sizeof slack))
        return false;
    p->used = out.len;
    return true;
}

/* ------------------------------------------------------------------ whole scans */

static bool is_same_table(const uint8_t *a, const uint8_t *b)
{
    size_t n = 16;
    for (int i = 0; i < 16; i++)
        n += a[i];
    return memcmp(a, b, 16) == 0 && memcmp(a, b, n) == 0;
}

/* Whether all components have the same codes: then a decoder that takes one for another does not synchronise. */
static bool has_one_table(const struct jpeg_frame *f)
{
    const struct jpeg_component *luma = &f->component[0];
    bool same = f->n_components > 1;
    for (int i = 1; i < f->n_components; i++)
        same = same && is_same_table(luma->dc, f->component[i].dc) && is_same_table(luma->ac, f->component[i].ac);
    return same;
}

bool jpeg_scan_copy(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *need, const uint8_t *file,
                    size_t n)
{
    uint8_t head[JPEG_SCAN_HEAD] = {0};
    static const uint8_t slack[JPEG_GROUPS_SLACK];
    const size_t most = UINT32_MAX / 16, room = p->room < most ? p->room : most;
    struct buf out = {.data = p->to, .cap = room, .max = room};
    p->used = 0;
    if (f->restart || has_one_table(f) || !add_tables(&out, f) || buf_add(&out, head, sizeof head))
        return false;
    const size_t begin = out.len;
    const uint8_t *end = copy_bytes(&out, file + f->scan, file + n, file + n);
    if (!end || end == file + n || end[1] != EOI || out.len == begin)
        return false;
    le_put(p->to + begin - sizeof head, out.len - begin, 4);
    if (buf_add(&out, slack, sizeof slack))
        return false;
    describe(p, f, need, 1);
    p->whole = true;
    p->used = out.len;
    return true;
}
