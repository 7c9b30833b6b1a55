/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.c -- how many threads work, and how many batches they may be ahead. ring.h explains the rules.
 */
#include "batch/ring.h"

enum {
    PATIENCE = 16,
    PATIENCE_MOST = 4096,
    EASY = 8, /* batches; distinguishes a caller who takes bursts from one who is always faster than the workers */
};

void pace_init(struct pace *p, int threads, int64_t depth, int64_t depth_most)
{
    *p = (struct pace){
        .threads = threads, .active = threads, .depth = depth, .depth_most = depth_most, .patience = PATIENCE};
}

void pace_full(struct pace *p)
{
    p->idle = true;
}

void pace_waits(struct pace *p)
{
    if (p->easy >= EASY)
        p->depth = 2 * p->depth < p->depth_most ? 2 * p->depth : p->depth_most;
    if (p->active < p->threads && p->patience < PATIENCE_MOST)
        p->patience *= 2;
    p->active = p->threads;
    p->calm = p->easy = 0;
    p->idle = false;
}

void pace_served(struct pace *p)
{
    p->calm = p->idle ? p->calm + 1 : 0;
    p->easy += p->idle;
    p->idle = false;
    if (p->calm < p->patience)
        return;
    p->calm = 0;
    if (p->active > 1)
        p->active--;
}
