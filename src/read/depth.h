/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth.h -- how many reads are to be under way at once, found by trying.
 *
 * While somebody waits for bytes, twice as many are tried, and kept when they brought more; the
 * trial is repeated from time to time, since storage changes. While nobody waits, fewer will do.
 */
#ifndef DEPTH_H
#define DEPTH_H

#include <stdbool.h>

struct depth {
    int now, min, max;
    int before;         /* while trying: what to go back to; 0: not trying */
    double before_rate; /* what that brought */
    int hold;           /* windows until the next trial */
    int calm;           /* windows without waiting */
};

void depth_init(struct depth *d, int min, int start, int max);
/* After a window of reads: bytes a second, and whether anybody had to wait for them. */
void depth_window(struct depth *d, double rate, bool waited);

#endif
