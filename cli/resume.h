/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume.h -- the file of --state: where a run stopped, so that the next run continues from there.
 *
 * It contains the state of the loader, the running hash of the current epoch, and the options that
 * determine the output. When resuming, these options may be omitted, but must not change. Batch size,
 * threads and ranks may change.
 */
#ifndef RESUME_H
#define RESUME_H

#include <stdint.h>

#include "args.h"
#include "stoker.h"

struct resume {
    int found;        /* there was a file to continue from */
    char loader[400]; /* the loader's state */
    int64_t first;    /* the first epoch of the whole run */
    int64_t epochs;   /* of the whole run */
    int64_t position; /* in the current epoch: rows delivered, over all ranks */
    int64_t samples;  /* of the current epoch, hashed on this rank */
    uint64_t hash;    /* of these samples */
    char *texts[4];   /* owned values of text options */
    int n_texts;
};

/* Reads the file a->state if it is given and exists, and sets the options that were not typed. Returns an END_*. */
int resume_load(struct resume *r, struct args *a);
/* After stk_open(): moves the loader to where the run stopped. */
int resume_apply(const struct resume *r, const struct args *a, stk_loader *l);
int resume_save(struct resume *r, const struct args *a, stk_loader *l);
void resume_done(struct resume *r);

#endif
