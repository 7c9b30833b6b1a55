/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h -- how many threads work and how many batches they are ahead, by how long the caller waits.
 *
 * A caller who waits gets all threads at once, and a deeper ring where one that had been full for a while ran
 * dry: then he takes batches in bursts, or some samples are slow. A caller who never waits needs fewer threads: one is
 * sent to sleep after a number of batches that were there in time with a full ring behind them, a number that
 * doubles whenever it turns out to have been one too many.
 */
#ifndef PACE_H
#define PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
    int threads, active;       /* there are; may work: those with a number below */
    int64_t depth_most, depth; /* batches ahead: at most ever; at most now */
    int64_t calm, patience;    /* batches in time since the last change; how many it takes for one */
    int64_t easy;              /* batches since the caller waited last that were there with a full ring behind them */
    bool idle;                 /* the ring was full since the caller was served last */
};

void pace_init(struct pace *p, int threads, int64_t depth, int64_t depth_most);
void pace_full(struct pace *p);   /* workers found no room */
void pace_waits(struct pace *p);  /* the caller came and nothing was ready */
void pace_served(struct pace *p); /* the caller came and got a batch at once */

#endif
