/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_judge.c -- what limits a dataset, and which remedy is worth it.
 */
#include <string.h>

#include "doctor.h"

static const double worth = 1.15;       /* a smaller gain is not advised */
static const double much_more = 1.3;    /* times the best that keeps the pixels, to name one that changes them */
static const double slow_storage = 0.8; /* of the speed with files in memory */

int doctor_is_cold(const struct doctor *d)
{
    const double all = d->n > 0 ? (double)d->bytes / (double)d->n * (double)d->count : 0;
    /* info.memory is a quarter of the free memory: more than half of it */
    return d->runs[0].cold > 0 && all > 2 * (double)d->info.memory;
}

/* A cache in memory does not read from storage after the first epoch. */
static int reads(const struct doctor_run *r)
{
    return r->o.cache != STK_CACHE_DCT && r->o.cache != STK_CACHE_PIXELS;
}

double doctor_rate_of(const struct doctor_run *r, int is_cold)
{
    return is_cold && reads(r) ? r->cold : r->rate;
}

double doctor_gain_of(const struct doctor *d, const struct doctor_run *r, int is_cold)
{
    const double now = doctor_rate_of(&d->runs[0], is_cold);
    return !is_cold ? r->gain : now > 0 ? doctor_rate_of(r, is_cold) / now : 0;
}

int doctor_is_crowded(const struct doctor *d)
{
    const struct doctor_run *now = &d->runs[0];
    const double computing = now->stats.decode_s + now->stats.transform_s + now->stats.op_s;
    return now->stats.threads <= d->info.threads && computing > 0.1 && now->cpu_s < 0.7 * computing;
}

static const char *stage(const stk_stats *s)
{
    if (s->decode_s + s->transform_s + s->op_s + s->read_s <= 0)
        return "copying";
    if (s->decode_s >= s->transform_s && s->decode_s >= s->read_s)
        return "decode";
    return s->transform_s >= s->read_s ? "transform" : "reading";
}

/* Whether it may be advised: the gain is worth it, and every turn was faster than the same turn of the first run. In
 * turns, files are in memory: they say nothing about reading from storage. */
static int is_gain(const struct doctor *d, const struct doctor_run *r, int is_cold)
{
    if (!r->remedy || r->status != DOCTOR_OK || !r->fits || r->n_rates == 0)
        return 0;
    /* More threads then only take CPU time from other programs. */
    if (r->o.threads > d->runs[0].stats.threads && doctor_is_crowded(d))
        return 0;
    for (int i = 0; !(is_cold && reads(r)) && i < r->n_rates && i < d->runs[0].n_rates; i++)
        if (r->rates[i] <= d->runs[0].rates[i])
            return 0;
    return doctor_gain_of(d, r, is_cold) >= worth;
}

/* The largest gain of those that keep the pixels, or of those that do not. Later ones need more memory, disk or effort,
 * so they must be better by as much as a gain must be worth. */
static const struct doctor_run *best_of(const struct doctor *d, int same, int is_cold)
{
    const struct doctor_run *best = NULL;
    for (int i = 1; i < d->n_runs; i++)
        if (d->runs[i].same == same && is_gain(d, &d->runs[i], is_cold) &&
            (!best || doctor_gain_of(d, &d->runs[i], is_cold) > worth * doctor_gain_of(d, best, is_cold)))
            best = &d->runs[i];
    return best;
}

/* The first that reaches the need: as it is, then those that keep the pixels, each in the order of their effort. */
static const struct doctor_run *enough_of(const struct doctor *d, int is_cold)
{
    if (doctor_rate_of(&d->runs[0], is_cold) >= (double)d->a->need)
        return &d->runs[0];
    for (int same = 1; same >= 0; same--)
        for (int i = 1; i < d->n_runs; i++)
            if (d->runs[i].same == same && is_gain(d, &d->runs[i], is_cold) &&
                doctor_rate_of(&d->runs[i], is_cold) >= (double)d->a->need)
                return &d->runs[i];
    return NULL;
}

struct doctor_verdict doctor_judge(const struct doctor *d)
{
    const struct doctor_run *now = &d->runs[0];
    struct doctor_verdict v = {.is_cold = doctor_is_cold(d)};
    v.limit = v.is_cold && now->cold < slow_storage * now->rate ? "storage" : stage(&now->stats);
    v.rate = doctor_rate_of(now, v.is_cold);
    v.best = best_of(d, 1, v.is_cold);
    v.bolder = best_of(d, 0, v.is_cold);
    if (v.best && v.bolder && doctor_gain_of(d, v.bolder, v.is_cold) < much_more * doctor_gain_of(d, v.best, v.is_cold))
        v.bolder = NULL;
    if (d->a->need)
        v.enough = enough_of(d, v.is_cold);
    v.something = d->n_bad > 0 || (d->a->need ? v.enough != now : v.best || v.bolder);
    return v;
}
