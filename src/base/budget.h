/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h -- how much scratch a thread may hold at once.
 *
 * Half of the scratch is divided among the threads, for good; the other half goes, whole, to one
 * thread at a time: the one with a picture larger than its share. So large pictures wait for their
 * turn and no one waits in a circle.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
    size_t share;   /* of every thread */
    size_t reserve; /* for one at a time, on top of its share */
    pthread_mutex_t turn;
};

void budget_init(struct budget *b, size_t bytes, int threads);
void budget_done(struct budget *b);

/* Waits for the turn when need is over the share. false: it never fits. *in_turn is kept by the caller, false
 * at first; a second call with a larger need is fine. */
bool budget_enter(struct budget *b, size_t need, bool *in_turn);
void budget_leave(struct budget *b, bool *in_turn);

#endif
