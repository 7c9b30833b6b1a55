/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c -- positions, batches and ranks.
 *
 *     epoch:  |<--- W*B --->|<--- W*B --->|<-- rest -->|
 *     batch:  |    0        |     1       |     2      |
 *     rank:   | 0 | 1 | ... | 0 | 1 | ... | 0 | 1 | .. |
 *
 * A resumed epoch is laid out in the same way from the position where it was left, so that
 * another number of ranks goes on with exactly the samples that are due.
 */
#include "source/order.h"

static int64_t start_of(const struct order *o, int64_t epoch)
{
    return epoch == o->resumed_epoch ? o->resumed_at : 0;
}

int64_t order_batches(const struct order *o, int64_t epoch)
{
    const int64_t left = o->n - start_of(o, epoch), step = o->world * o->batch_size;
    if (left <= 0)
        return 0;
    return o->drop_last ? left / step : left / step + (left % step != 0);
}

struct span order_span(const struct order *o, int64_t epoch, int64_t batch)
{
    const int64_t step = o->world * o->batch_size;
    struct span s = {.epoch = epoch, .rows = o->batch_size};
    s.first = start_of(o, epoch) + batch * step + o->rank * o->batch_size;
    if (!o->pad_last && s.first + s.rows > o->n)
        s.rows = s.first < o->n ? o->n - s.first : 0;
    return s;
}

int64_t order_position(const struct order *o, int64_t epoch, int64_t batches)
{
    const int64_t p = start_of(o, epoch) + batches * o->world * o->batch_size;
    return p < o->n ? p : o->n;
}

int64_t order_at(const struct order *o, struct walk *w, int64_t epoch, int64_t position)
{
    const int64_t i = position % o->n;
    if (!o->shuffle)
        return i;
    if (w->epoch != epoch) {
        perm_init(&w->perm, (uint64_t)o->n, o->seed, (uint64_t)epoch);
        w->epoch = epoch;
    }
    return (int64_t)perm_at(&w->perm, (uint64_t)i);
}
