/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_groups.c -- copies the coded bytes of a crop, from checkpoint to checkpoint.
 */
#include "decode/jpeg_groups.h"

#include <string.h>

#include "base/buf.h"

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

/* Copies bytes without the 00 after each FF. Returns false at anything else after an FF: a marker. */
static bool copy_bytes(uint8_t **to, const uint8_t *from, const uint8_t *end, const uint8_t *file_end)
{
    while (from < end) {
        const uint8_t *ff = memchr(from, 0xff, (size_t)(end - from));
        const size_t n = (size_t)((ff ? ff + 1 : end) - from);
        memcpy(*to, from, n);
        *to += n;
        if (!ff)
            return true;
        if (ff + 1 == file_end || ff[1] != 0)
            return false;
        from = ff + 2;
    }
    return true;
}

/* The bytes of n groups from `at` on, which are in one row, and where each group starts. */
static bool add_row(struct buf *out, const struct jpeg_checkpoint *at, int32_t n, const uint8_t *file, size_t file_n,
                    struct jpeg_group *groups)
{
    const uint64_t from = at[0].bit / 8, behind = (at[n].bit + 7) / 8;
    uint8_t *to = out->data + out->len;
    if (behind > file_n || behind < from || behind - from > out->max - out->len)
        return false;
    for (int32_t i = 0; i <= n; i++) {
        groups[i].bit = (uint32_t)(8 * (size_t)(to - out->data) + at[i].bit % 8);
        memcpy(groups[i].dc, at[i].dc, sizeof groups[i].dc);
        groups[i].unused = 0;
        const uint64_t next = i < n ? at[i + 1].bit / 8 : behind;
        if (!copy_bytes(&to, file + at[i].bit / 8, file + next, file + file_n))
            return false;
    }
    out->len = (size_t)(to - out->data);
    for (int32_t i = 0; i <= n; i++)
        groups[i].stop = (uint32_t)out->len;
    return true;
}

static void describe(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                     const struct jpeg_checkpoints *c)
{
    const int32_t first = need->x0 / c->every * c->every, end = ((need->x1 - 1) / c->every + 1) * c->every;
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
    p->every = c->every;
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
    describe(p, f, need, c);
    const int32_t first = need->x0 / c->every, across = (need->x1 - 1) / c->every + 1 - first;
    const size_t row_bytes = (size_t)(across + 1) * sizeof(struct jpeg_group);
    struct jpeg_group *to = (struct jpeg_group *)(void *)(out.data + out.len);
    if (buf_reserve(&out, out.len + row_bytes * (size_t)p->down))
        return false;
    out.len += row_bytes * (size_t)p->down;
    for (int32_t y = need->y0; y < need->y1; y++, to += across + 1)
        if (!add_row(&out, &c->at[y * c->across + first], across, file, n, to))
            return false;
    if (buf_add(&out, slack, sizeof slack))
        return false;
    p->used = out.len;
    return true;
}
