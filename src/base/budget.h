/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h -- how much scratch a thread may hold at once.
 *
 * One half of the memory is divided among all threads: each always has its share. The other half, the reserve, goes to
 * one thread at a time, whose image needs more than its share. So large images wait for each other, there is no
 * deadlock, and the size of the largest image does not depend on the number of threads.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "stoker.h"

struct budget {
    size_t share;   /* of every thread */
    size_t reserve; /* of one thread at a time: the most that one image may take */
    pthread_mutex_t turn;
};

void budget_init(struct budget *b, size_t bytes, int threads);
/* Limits the shares to `share` bytes; the reserve stays. Returns how many bytes fewer are needed. */
size_t budget_cap(struct budget *b, size_t share, int threads);
void budget_done(struct budget *b);

/* Waits for the reserve if need exceeds the share. STK_EDATA: need exceeds the reserve as well. *in_turn is false at
 * first; the caller keeps it from call to call. A thread may call this again with another need. */
int budget_enter(struct budget *b, size_t need, bool *in_turn, stk_error *e);
void budget_leave(struct budget *b, bool *in_turn);

#endif
