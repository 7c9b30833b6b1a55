/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h -- how much scratch a thread may hold at once.
 *
 * Half of the scratch is divided among the threads, for good; the other half goes, whole, to one
 * thread at a time: the one with a picture larger than its share. So large pictures wait for their
 * turn, no one waits in a circle, and how large a picture may be does not depend on the number of threads.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "stoker.h"

struct budget {
    size_t share;   /* of every thread */
    size_t reserve; /* for one at a time, and so the most that one picture may take */
    pthread_mutex_t turn;
};

void budget_init(struct budget *b, size_t bytes, int threads);
/* Shares of at most so many bytes; what one picture may take stays as it is. How much less is needed now. */
size_t budget_cap(struct budget *b, size_t share, int threads);
void budget_done(struct budget *b);

/* Waits for the turn when need is over the share; STK_EDATA with words when it never fits. *in_turn is kept by
 * the caller, false at first; a second call with another need is fine. */
int budget_enter(struct budget *b, size_t need, bool *in_turn, stk_error *e);
void budget_leave(struct budget *b, bool *in_turn);

#endif
