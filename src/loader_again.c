/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_again.c -- rows that the device was to finish, and could not.
 *
 * When the device decodes a whole scan, only the device finds out whether its codes are good. If they are, the CPU's
 * decoder would accept the file as well, and make the same pixels. If they are not, the file is damaged somewhere,
 * maybe beyond the crop, and the CPU must judge it: the row is made again, as if it had never been sent.
 *
 * So a batch with such rows is delivered only after the device is done with it. Usually that is long before, because
 * batches are sent ahead. Other batches are not waited for.
 */
#include <stdlib.h>

#include "loader.h"

static bool has_scans(const struct stk_loader *l, const struct stk_batch *b, int64_t rows)
{
    for (int64_t row = 0; row < rows; row++)
        if (loader_parcel_is_scan(l, b, row))
            return true;
    return false;
}

/* Waits until the device is done with the batch. If it cannot be sent, all its scans are unknown. */
static bool wait_for(struct stk_loader *l, struct stk_batch *b, int64_t rows)
{
    batch_set_rows(b, rows);
    if (loader_device_send(l, b, NULL) != STK_OK)
        return false;
    cuda_fence_wait(b->memory[l->image]->fence);
    return true;
}

static struct bad *find_bad(struct bad *list, int64_t row)
{
    while (list && list->row != row)
        list = list->next;
    return list;
}

/* A row whose sample had been replaced already counts as bad once. */
static void make(struct stk_loader *l, struct worker *w, struct ticket *t, int64_t row)
{
    struct bad *earlier = find_bad(t->bads, row), *before = t->bads;
    loader_make_or_replace(l, w, t, row, loader_parcel_undo(l, t->to, row));
    struct bad *now = t->bads;
    if (!earlier || now == before || now->machine)
        return;
    earlier->replaced = now->replaced;
    t->bads = now->next;
    now->next = NULL;
    bads_free(now);
}

void loader_again(struct stk_loader *l, struct ticket *t)
{
    if (!has_scans(l, t->to, t->rows))
        return;
    const bool known = wait_for(l, t->to, t->rows);
    bool changed = t->bads != NULL; /* rows will be left out */
    pthread_mutex_lock(&l->getting);
    struct worker *w = &l->workers[l->options.threads];
    for (int64_t row = 0; row < t->rows; row++)
        if (loader_parcel_is_scan(l, t->to, row) && (!known || loader_parcel_is_damaged(l, t->to, row))) {
            make(l, w, t, row);
            changed = true;
        }
    arena_done(&w->desk.arena);
    buf_trim(&w->desk.reading.file, 0);
    pthread_mutex_unlock(&l->getting);
    if (changed)
        loader_device_unsend(t->to);
}
