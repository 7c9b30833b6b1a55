/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h -- a temporary folder that is removed at the end, even if this process is killed.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <sys/types.h>

#include "stoker.h"

struct scratch {
    char path[512]; /* "": there is none */
    int pipe;       /* closing it starts the removal */
    pid_t remover;
};

/* Makes the folder in TMPDIR, or in /tmp. Call it before any thread starts, because it forks. */
int scratch_open(struct scratch *s, stk_error *e);
/* Removes the folder with everything in it. Accepts a zeroed struct. */
void scratch_close(struct scratch *s);

#endif
