/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_walk.c -- a walk over a scan, by checkpoints.
 *
 * A row of MCUs is cut into groups, and points->at[g] is where group g begins. The first n of them are known: the file
 * was seen undamaged up to there. Within them the walk jumps; behind, it skips, and each group that it comes to adds
 * one.
 *
 *     at[0]       at[1]       at[2]              at[n - 1]
 *     |-----------|-----------|----  ...  -------|- - - - - - - - - -
 *                    ^ crop ^ : jump to at[1], skip, read, skip to at[2], compare
 */
#include "decode/jpeg_walk.h"

#include <string.h>

static int64_t row_mcus(const struct jpeg_walk *w)
{
    return w->scan.frame->mcus_x;
}

static int64_t total_mcus(const struct jpeg_walk *w)
{
    return row_mcus(w) * w->scan.frame->mcus_y;
}

static int32_t group_of(const struct jpeg_walk *w, int64_t mcu)
{
    const int32_t y = (int32_t)(mcu / row_mcus(w)), x = (int32_t)(mcu % row_mcus(w));
    return y * w->points->across + x / w->points->every;
}

static int64_t start_of(const struct jpeg_walk *w, int32_t group)
{
    const int32_t y = group / w->points->across, x = group % w->points->across;
    return y * row_mcus(w) + (int64_t)x * w->points->every;
}

/* At the start of a group: it is as known, or becomes known. */
static bool arrive(struct jpeg_walk *w)
{
    if (!w->points)
        return true;
    const int32_t group = group_of(w, w->at);
    if (group > w->points->n || start_of(w, group) != w->at)
        return true;
    const bool settled = w->at == total_mcus(w) || jpeg_scan_settle(&w->scan);
    const uint64_t bit = jpeg_scan_at(&w->scan);
    if (group < w->points->n) {
        const struct jpeg_point *p = &w->points->at[group];
        return settled && p->bit == bit && memcmp(p->dc, w->scan.dc, sizeof p->dc) == 0;
    }
    if (settled)
        jpeg_points_add(w->points, bit, w->scan.dc); /* without memory, they end here */
    return true;
}

/* To an MCU, without a jump. */
static bool skip_to(struct jpeg_walk *w, int64_t mcu)
{
    while (w->at < mcu) {
        const int64_t end = w->points ? start_of(w, group_of(w, w->at) + 1) : mcu;
        const int64_t next = end < mcu ? end : mcu;
        if (!jpeg_scan_skip(&w->scan, (int32_t)(next - w->at)))
            return false;
        w->at = next;
        if (!arrive(w))
            return false;
    }
    return true;
}

/* The rest of a group that was begun. */
static bool leave(struct jpeg_walk *w)
{
    const int32_t group = group_of(w, w->at);
    return start_of(w, group) == w->at || skip_to(w, start_of(w, group + 1));
}

static bool go_to(struct jpeg_walk *w, int64_t mcu)
{
    if (w->points && w->points->n > 0) {
        const int32_t wanted = group_of(w, mcu), last = w->points->n - 1, group = wanted < last ? wanted : last;
        const int64_t start = start_of(w, group);
        if (start > w->at && !leave(w))
            return false;
        if (start > w->at) {
            const struct jpeg_point *p = &w->points->at[group];
            if (!jpeg_scan_jump(&w->scan, start, p->bit, p->dc))
                return false;
            w->at = start;
        }
    }
    return skip_to(w, mcu);
}

bool jpeg_walk_begin(struct jpeg_walk *w, const struct jpeg_frame *f, struct huff_store *store, const uint8_t *bytes,
                     size_t n, struct jpeg_points *points)
{
    *w = (struct jpeg_walk){.points = points, .known = points ? points->n : 0};
    return jpeg_scan_begin(&w->scan, f, store, bytes, n) && arrive(w);
}

bool jpeg_walk_read(struct jpeg_walk *w, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to)
{
    if (!go_to(w, y * row_mcus(w) + x) || !jpeg_scan_read(&w->scan, n, to))
        return false;
    w->at += n;
    return arrive(w);
}

bool jpeg_walk_finish(struct jpeg_walk *w, int32_t end, bool whole)
{
    const int64_t mcu = end * row_mcus(w);
    if (w->points && !whole && group_of(w, mcu) < w->known)
        return leave(w); /* what lies behind was seen when they were made */
    return go_to(w, mcu) && jpeg_scan_has_more(&w->scan) && (!whole || jpeg_scan_is_over(&w->scan));
}
