/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_ahead.c -- the thread that reads files ahead: it joins the ring, the order, the caches and the source.
 *
 *     ring: rows to come -> caches: not needed? -> source: which file or extent -> read/ahead.h
 */
#include <limits.h>

#include "loader.h"

/* Claims more rows, and starts to read those that no cache has. */
static void claim_rows(struct stk_loader *l, struct foresight *f)
{
    struct foreseen seen[AHEAD_MOST];
    struct ahead_row rows[AHEAD_MOST];
    const int most = ahead_wanted(l->ahead);
    if (most < 0)
        return;
    const int n = ring_foresee(&l->ring, f, seen, most);
    int needed = 0;
    for (int i = 0; i < n; i++)
        if (!cache_has(l->cache.entries, seen[i].pick.index))
            rows[needed++] = (struct ahead_row){seen[i].serial, loader_draw(l, seen[i].epoch, seen[i].pick)};
    const int claimed = ahead_claim(l->ahead, rows, needed, f->born, f->serial);
    for (int i = 0; i < claimed; i++) {
        const int64_t sample = (int64_t)rows[i].draw.sample;
        const bool direct = ahead_is_direct(l->ahead, sample);
        struct extent x;
        char path[PATH_MAX];
        int dir;
        if (source_file(l->source, sample, &dir, path, sizeof path))
            ahead_file(l->ahead, &rows[i], dir, path, direct);
        else
            ahead_extent(l->ahead, &rows[i], source_extent(l->source, sample, direct, &x) ? &x : NULL);
    }
}

static void read_ahead(void *user, int i)
{
    (void)i;
    struct stk_loader *l = user;
    struct foresight f = {.walk.pass = -1};
    if (!ahead_begin(l->ahead))
        return;
    do {
        struct ahead_open open;
        while (ahead_opened(l->ahead, &open)) {
            struct ranges ranges;
            loader_checkpoints_ranges(l, &open.row.draw, &ranges);
            ahead_read(l->ahead, &open, &ranges);
        }
        claim_rows(l, &f);
    } while (ahead_wait(l->ahead));
    ahead_end(l->ahead);
}

void loader_start_ahead(struct stk_loader *l)
{
    stk_error e;
    if (ahead_starts(l->ahead) && pool_open(&l->reader, 1, read_ahead, NULL, l, &e) != STK_OK)
        ahead_give_up(l->ahead, &e);
}
