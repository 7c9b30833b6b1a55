/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_groups.c -- copies the coded bytes of a crop, from checkpoint to checkpoint.
 */
#include "decode/jpeg_groups.h"

#include <string.h>

#include "base/buf.h"

enum { AHEAD = 2 }; /* bytes after the last bit, so that FF is not separated from the 00 after it */

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

/* The bytes of groups first to end, which are in one row, and where each group starts. */
static bool add_row(struct buf *out, const struct jpeg_checkpoints *c, int32_t first, int32_t end, const uint8_t *file,
                    size_t n, struct jpeg_group *to)
{
    const uint64_t from = c->at[first].bit / 8, behind = (c->at[end].bit + 7) / 8 + AHEAD;
    const uint64_t stop = behind < n ? behind : n;
    const uint64_t moved = out->len - from; /* may wrap around, and back */
    if (stop < from || buf_add(out, file + from, (size_t)(stop - from)))
        return false;
    for (int32_t g = first; g <= end; g++, to++) {
        *to = (struct jpeg_group){.bit = (uint32_t)(c->at[g].bit + 8 * moved), .stop = (uint32_t)(stop + moved)};
        memcpy(to->dc, c->at[g].dc, sizeof to->dc);
    }
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
    struct buf out = {.data = p->to, .cap = p->room, .max = p->room};
    p->used = 0;
    if (f->restart || need->end * c->across >= c->n || !add_tables(&out, f))
        return false;
    describe(p, f, need, c);
    const int32_t first = need->x0 / c->every, end = (need->x1 - 1) / c->every + 1;
    const size_t row_bytes = (size_t)(end - first + 1) * sizeof(struct jpeg_group);
    struct jpeg_group *to = (struct jpeg_group *)(void *)(out.data + out.len);
    if (buf_reserve(&out, out.len + row_bytes * (size_t)p->down))
        return false;
    out.len += row_bytes * (size_t)p->down;
    for (int32_t y = need->y0; y < need->y1; y++, to += end - first + 1)
        if (!add_row(&out, c, y * c->across + first, y * c->across + end, file, n, to))
            return false;
    p->used = out.len;
    return true;
}
