/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth.c -- how many reads are to be under way at once.
 */
#include "read/depth.h"

enum { HOLD = 32, CALM = 8 }; /* windows */

void depth_init(struct depth *d, int min, int start, int max)
{
    *d = (struct depth){.now = start < max ? start : max, .min = min < max ? min : max, .max = max};
}

static void grow(struct depth *d, double rate)
{
    const int next = 2 * d->now < d->max ? 2 * d->now : d->max;
    d->before = next > d->now ? d->now : 0;
    d->before_rate = rate;
    d->now = next;
}

static void nobody_waits(struct depth *d)
{
    d->before = 0;
    if (++d->calm < CALM)
        return;
    d->calm = 0;
    d->now -= (d->now - d->min + 7) / 8;
}

void depth_window(struct depth *d, double rate, bool waited)
{
    if (!waited) {
        nobody_waits(d);
        return;
    }
    d->calm = 0;
    if (d->before && rate < 1.05 * d->before_rate) {
        d->now = d->before;
        d->before = 0;
        d->hold = HOLD;
    } else if (d->hold > 0) {
        d->hold--;
    } else {
        grow(d, rate);
    }
}
