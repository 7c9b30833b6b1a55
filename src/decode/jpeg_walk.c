/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_walk.c -- a walk over a scan, by checkpoints.
 *
 * A row of MCUs is cut into groups; checkpoints->at[g] is the start of group g. The first n are known: the file is
 * undamaged up to there. Within them the walk jumps. After them it skips, and adds a checkpoint at each group it
 * reaches. The last checkpoint is the end of the scan. It is known only if the file ends as it should.
 *
 *     at[0]       at[1]       at[2]              at[n - 1]
 *     |-----------|-----------|----  ...  -------|- - - - - - - - - -
 *                    ^ crop ^     jump to at[1], skip, read, skip to at[2], compare
 */
#include "decode/jpeg_walk.h"

#include <string.h>

static int32_t group_of(const struct jpeg_walk *w, int32_t y, int32_t x)
{
    return y * w->checkpoints->across + x / w->checkpoints->every;
}

static bool at_start(const struct jpeg_walk *w)
{
    return w->x % w->checkpoints->every == 0;
}

static bool is_before(const struct jpeg_walk *w, int32_t y, int32_t x)
{
    return w->y < y || (w->y == y && w->x < x);
}

/* Moves on by n MCUs. At the start of a group, compares the known checkpoint or adds a new one. */
static bool advance(struct jpeg_walk *w, int64_t n)
{
    const struct jpeg_frame *f = w->scan.frame;
    const int64_t x = w->x + n;
    w->y += (int32_t)(x < f->mcus_x ? 0 : x / f->mcus_x);
    w->x = (int32_t)(x < f->mcus_x ? x : x % f->mcus_x);
    if (!w->checkpoints || !at_start(w))
        return true;
    const int32_t group = group_of(w, w->y, w->x);
    if (group > w->checkpoints->n)
        return true;
    const bool settled = w->y == f->mcus_y ? jpeg_scan_is_over(&w->scan) : jpeg_scan_settle(&w->scan);
    const uint64_t bit = jpeg_scan_at(&w->scan);
    if (group < w->checkpoints->n) {
        const struct jpeg_checkpoint *p = &w->checkpoints->at[group];
        return settled && p->bit == bit && memcmp(p->dc, w->scan.dc, sizeof p->dc) == 0;
    }
    if (settled)
        jpeg_checkpoints_add(w->checkpoints, bit, w->scan.dc); /* without memory, they end here */
    return true;
}

/* Skips to an MCU without a jump: in one go, or from group to group. */
static bool skip_to(struct jpeg_walk *w, int32_t y, int32_t x)
{
    const int32_t across = w->scan.frame->mcus_x;
    while (is_before(w, y, x)) {
        int64_t n = (int64_t)(y - w->y) * across + x - w->x;
        if (w->checkpoints) {
            const int32_t left = across - w->x, in_group = w->checkpoints->every - w->x % w->checkpoints->every;
            const int32_t most = left < in_group ? left : in_group;
            n = n < most ? n : most;
        }
        if (!jpeg_scan_skip(&w->scan, (int32_t)n) || !advance(w, n))
            return false;
    }
    return true;
}

/* Skips the rest of a group. */
static bool leave(struct jpeg_walk *w)
{
    if (at_start(w))
        return true;
    const int32_t end = (w->x / w->checkpoints->every + 1) * w->checkpoints->every;
    return end < w->scan.frame->mcus_x ? skip_to(w, w->y, end) : skip_to(w, w->y + 1, 0);
}

/* Jumps to the start of a known group, unless we are past it. */
static bool jump_to(struct jpeg_walk *w, int32_t group)
{
    const int32_t y = group / w->checkpoints->across, x = group % w->checkpoints->across * w->checkpoints->every;
    if (!is_before(w, y, x))
        return true;
    if (!leave(w))
        return false;
    if (!is_before(w, y, x))
        return true;
    const struct jpeg_checkpoint *p = &w->checkpoints->at[group];
    w->y = y;
    w->x = x;
    return jpeg_scan_jump(&w->scan, (int64_t)y * w->scan.frame->mcus_x + x, p->bit, p->dc);
}

static bool go_to(struct jpeg_walk *w, int32_t y, int32_t x)
{
    if (w->checkpoints && w->checkpoints->n > 0) {
        const int32_t wanted = group_of(w, y, x), last = w->checkpoints->n - 1;
        if (!jump_to(w, wanted < last ? wanted : last))
            return false;
    }
    return skip_to(w, y, x);
}

bool jpeg_walk_begin(struct jpeg_walk *w, const struct jpeg_frame *f, struct huff_store *store, const uint8_t *bytes,
                     size_t n, struct jpeg_checkpoints *checkpoints)
{
    *w = (struct jpeg_walk){.checkpoints = checkpoints, .known = checkpoints ? checkpoints->n : 0};
    return jpeg_scan_begin(&w->scan, f, store, bytes, n) && advance(w, 0);
}

bool jpeg_walk_read(struct jpeg_walk *w, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to)
{
    return go_to(w, y, x) && jpeg_scan_read(&w->scan, n, to) && advance(w, n);
}

bool jpeg_walk_finish(struct jpeg_walk *w, int32_t end, bool whole)
{
    if (w->checkpoints && group_of(w, end, 0) < w->known)
        return leave(w); /* what follows was checked when they were made */
    return go_to(w, end, 0) && jpeg_scan_has_more(&w->scan) && (!whole || jpeg_scan_is_over(&w->scan));
}
