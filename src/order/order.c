/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c -- positions, batches and ranks.
 *
 * With W ranks and B rows per batch:
 *
 *     positions:  |<---- W*B ---->|<---- W*B ---->|<-- rest -->|
 *     batch:      |       0       |       1       |     2      |
 *     rank:       | 0 | 1 |...|W-1| 0 | 1 |...|W-1| 0 | 1 |... |
 *
 * A resumed epoch has the same layout, starting at the position where it was left. So a different number of ranks
 * continues with exactly the samples that are due.
 *
 * The sample at a position is one of:
 *   - the position itself;
 *   - a shuffle, with a different key in every epoch;
 *   - with passes: position e*n + p of an endless walk, for position p of epoch e. Every pass of that walk over the
 *     samples has its own shuffle;
 *   - the same walk over several sources, mixed by weight (mix.c);
 *   - a draw by weight (alias.c);
 *   - the sample that the caller gave.
 * If the source has blocks that must be read as a whole, the shuffle stays close to them (blocks_walk.c).
 */
#include "order/order.h"

#include <stdlib.h>

#include "base/search.h"

static int64_t start_of(const struct order *o, int64_t epoch)
{
    return epoch == o->resumed_epoch ? o->resumed_at : 0;
}

const struct given *order_given(const struct order *o, int64_t epoch)
{
    const struct given *g = &o->given[epoch & 1];
    return g->samples && g->epoch == epoch ? g : NULL;
}

static const int64_t *starts_of(const struct order *o, int64_t epoch)
{
    const struct given *g = o->sampled ? order_given(o, epoch) : NULL;
    return g ? g->starts : NULL;
}

/* The batch that contains a position. */
static int64_t batch_of(const struct given *g, int64_t position)
{
    return search_last(g->starts, sizeof *g->starts, g->n_batches, position);
}

static int64_t begin_of(const struct given *g, int64_t batch)
{
    return batch < g->n_batches ? g->starts[batch] : g->n;
}

int64_t order_length(const struct order *o, int64_t epoch)
{
    if (!o->sampled)
        return o->n;
    const struct given *g = order_given(o, epoch);
    return g ? g->n : -1;
}

int64_t order_batches(const struct order *o, int64_t epoch)
{
    const int64_t n = order_length(o, epoch);
    if (n < 0)
        return -1;
    const int64_t left = n - start_of(o, epoch), step = o->world * o->batch_size;
    if (left <= 0)
        return 0;
    if (starts_of(o, epoch)) {
        const struct given *g = order_given(o, epoch);
        return g->n_batches - batch_of(g, start_of(o, epoch));
    }
    return o->drop_last ? left / step : left / step + (left % step != 0);
}

static struct span given_span(const struct order *o, const struct given *g, int64_t batch)
{
    const int64_t start = start_of(o, g->epoch), b = batch_of(g, start) + batch;
    struct span s = {.epoch = g->epoch, .first = begin_of(g, b)};
    if (s.first < start)
        s.first = start;
    s.rows = begin_of(g, b + 1) - s.first;
    return s;
}

struct span order_span(const struct order *o, int64_t epoch, int64_t batch)
{
    if (starts_of(o, epoch))
        return given_span(o, order_given(o, epoch), batch);
    const int64_t step = o->world * o->batch_size, n = order_length(o, epoch);
    struct span s = {.epoch = epoch, .rows = o->batch_size};
    s.first = start_of(o, epoch) + batch * step + o->rank * o->batch_size;
    if (!o->pad_last && s.first + s.rows > n)
        s.rows = s.first < n ? n - s.first : 0;
    return s;
}

int64_t order_position(const struct order *o, int64_t epoch, int64_t batches)
{
    const int64_t start = start_of(o, epoch), n = order_length(o, epoch);
    if (batches == 0 || n < 0)
        return start;
    if (starts_of(o, epoch)) {
        const struct given *g = order_given(o, epoch);
        return begin_of(g, batch_of(g, start) + batches);
    }
    const int64_t p = start + batches * o->world * o->batch_size;
    return p < n ? p : n;
}

static int64_t shuffled(const struct order *o, struct walk *w, int64_t pass, int64_t i)
{
    if (!o->shuffle)
        return i;
    if (o->near.n > 0)
        return blocks_at(&o->near, &w->near, o->seed, pass, i);
    if (w->pass != pass) {
        perm_init(&w->perm, (uint64_t)o->samples, o->seed, (uint64_t)pass);
        w->pass = pass;
        w->run_at = -1;
    }
    const int64_t at = i - i % PERM_RUN; /* callers mostly ask for positions in order */
    if (w->run_at != at) {
        perm_run(&w->perm, (uint64_t)at, w->run);
        w->run_at = at;
    }
    return (int64_t)w->run[i - at];
}

/* Huge epochs wrap around. */
static uint64_t place_in_walk(const struct order *o, int64_t epoch, int64_t position)
{
    return (uint64_t)epoch * (uint64_t)o->n + (uint64_t)position;
}

static struct pick pass_at(const struct order *o, struct walk *w, int64_t epoch, int64_t position)
{
    const uint64_t samples = (uint64_t)o->samples, begin = place_in_walk(o, epoch, 0);
    const uint64_t q = place_in_walk(o, epoch, position);
    return (struct pick){
        .index = shuffled(o, w, (int64_t)(q / samples), (int64_t)(q % samples)),
        .repeat = (int64_t)(q / samples - begin / samples),
    };
}

uint64_t order_mixed(const struct order *o, struct walk *w, int64_t epoch, int64_t position, int s)
{
    return mix_before(&o->mix, &w->mix, o->seed, o->shuffle, place_in_walk(o, epoch, position), s);
}

int64_t order_repeat(const struct order *o, int64_t position)
{
    return position * (o->all > 1 ? o->all : 1) + o->mine;
}

static struct pick pick_at(const struct order *o, struct walk *w, int64_t epoch, int64_t position)
{
    const int64_t n = order_length(o, epoch), i = position < n ? position : n > 0 ? position % n : 0;
    if (o->sampled)
        return (struct pick){.index = n > 0 ? order_given(o, epoch)->samples[i] : 0,
                             .repeat = order_repeat(o, position)};
    if (o->mix.n > 0)
        return (struct pick){.index = mix_at(&o->mix, &w->mix, o->seed, o->shuffle, place_in_walk(o, epoch, i)),
                             .repeat = i};
    if (o->alias.n > 0)
        return (struct pick){.index = alias_at(&o->alias, o->seed, epoch, i), .repeat = i};
    if (o->passes)
        return pass_at(o, w, epoch, i);
    return (struct pick){.index = shuffled(o, w, epoch, i)};
}

int64_t order_sample(const struct order *o, int64_t i)
{
    return o->subset ? o->subset[i] : i;
}

struct pick order_at(const struct order *o, struct walk *w, int64_t epoch, int64_t position)
{
    struct pick p = pick_at(o, w, epoch, position);
    p.index = order_sample(o, p.index);
    return p;
}

static bool is_few(int64_t n)
{
    return n > 1 && n <= PERM_SMALL;
}

bool order_shuffles_few(const struct order *o)
{
    if (!o->shuffle || o->sampled || o->alias.n > 0)
        return false;
    bool few = false;
    for (int s = 0; s < o->mix.n; s++)
        few |= is_few(o->mix.sources[s].count);
    if (o->mix.n > 0)
        return few;
    if (o->near.n > 0) /* the order of the blocks, a full window, the last window */
        return is_few(o->near.n) || is_few(o->near.window) || is_few(o->samples % o->near.window);
    return is_few(o->samples);
}

/* ------------------------------------------------------------------ orders given */

static void drop(struct given *g)
{
    free(g->samples);
    free(g->starts);
    *g = (struct given){.epoch = -1};
}

void order_give(struct order *o, const struct given *g)
{
    struct given *to = &o->given[g->epoch & 1];
    drop(to);
    *to = *g;
}

void order_forget(struct order *o)
{
    drop(&o->given[0]);
    drop(&o->given[1]);
}

void order_done(struct order *o)
{
    order_forget(o);
    alias_done(&o->alias);
    mix_done(&o->mix);
    blocks_done(&o->near);
    free(o->subset);
    o->subset = NULL;
}
