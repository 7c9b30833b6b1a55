/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume.h -- the file of --state: where a run was stopped, so that the next one goes on from there.
 *
 * It holds the loader's own state, the running hash of the epoch that was under way, and the options that
 * decide what comes out. On resuming they need not be typed again, and may not be typed otherwise;
 * batch size, threads and ranks may change.
 */
#ifndef RESUME_H
#define RESUME_H

#include <stdint.h>

#include "args.h"
#include "stoker.h"

struct resume {
    int found;        /* there was a file to go on from */
    char loader[400]; /* the loader's state */
    int64_t first;    /* epoch that the whole run began with */
    int64_t epochs;   /* of the whole run */
    int64_t position; /* in the epoch that is under way: rows delivered over all ranks */
    int64_t samples;  /* of it that were hashed here */
    uint64_t hash;    /* of them */
    char *texts[4];   /* what options that are texts point to */
    int n_texts;
};

/* Reads a->state, if given and there, and sets the options that were not typed. An END_*. */
int resume_load(struct resume *r, struct args *a);
/* After stk_open: puts the loader where the run was. */
int resume_apply(const struct resume *r, const struct args *a, stk_loader *l);
int resume_save(struct resume *r, const struct args *a, stk_loader *l);
void resume_done(struct resume *r);

#endif
