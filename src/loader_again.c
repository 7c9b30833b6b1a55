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

/* Sends the batch, unless that was done, and waits until the device is done with it. Returns false if it cannot be
 * sent: then all its scans are unknown. */
static bool send_and_wait(struct stk_loader *l, struct stk_batch *b, int64_t rows)
{
    const uint64_t began = now_ns();
    batch_set_rows(b, rows);
    const bool sent = loader_device_send(l, b, NULL) == STK_OK;
    if (b->twin)
        cuda_fence_wait(b->memory[l->image]->fence);
    pthread_mutex_lock(&l->lock);
    l->device.waited_ns += now_ns() - began;
    pthread_mutex_unlock(&l->lock);
    return sent;
}

static struct bad *find_bad(struct bad *list, int64_t row)
{
    while (list && list->row != row)
        list = list->next;
    return list;
}

/* A bad row that nothing replaced is left as it is. One whose sample had been replaced already counts as bad once. */
static void make(struct stk_loader *l, struct worker *w, struct ticket *t, int64_t row)
{
    struct bad *earlier = find_bad(t->bads, row), *before = t->bads;
    if (earlier && !earlier->replaced)
        return;
    loader_make_or_replace(l, w, t, row, loader_parcel_undo(l, t->to, row));
    struct bad *now = t->bads;
    if (!earlier || now == before || now->machine)
        return;
    earlier->replaced = now->replaced;
    t->bads = now->next;
    now->next = NULL;
    bads_free(now);
}

/* The first row from `row` on that must be made again; t->rows: none. */
static int64_t next_damaged(const struct stk_loader *l, const struct ticket *t, int64_t row, bool known)
{
    while (row < t->rows &&
           !(loader_parcel_is_scan(l, t->to, row) && (!known || loader_parcel_is_damaged(l, t->to, row))))
        row++;
    return row;
}

bool loader_again(struct stk_loader *l, struct ticket *t)
{
    if (!has_scans(l, t->to, t->rows))
        return true;
    const bool known = send_and_wait(l, t->to, t->rows);
    int64_t row = next_damaged(l, t, 0, known);
    if (row < t->rows || (t->bads && l->options.on_error == STK_SKIP)) /* rows will change, or be left out */
        loader_device_unsend(t->to);
    if (row == t->rows)
        return true;
    struct worker *w = loader_get_begin(l);
    for (; row < t->rows && !ring_wants_back(&l->ring); row = next_damaged(l, t, row + 1, known))
        make(l, w, t, row);
    loader_get_end(l, w);
    return !ring_wants_back(&l->ring);
}
