/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c -- shares for all, and one turn for the large.
 */
#include "base/budget.h"

void budget_init(struct budget *b, size_t bytes, int threads)
{
    b->share = bytes / 2 / (size_t)threads;
    b->reserve = bytes - b->share * (size_t)threads;
    pthread_mutex_init(&b->turn, NULL);
}

void budget_done(struct budget *b)
{
    pthread_mutex_destroy(&b->turn);
}

bool budget_enter(struct budget *b, size_t need, bool *in_turn)
{
    if (need <= b->share)
        return true;
    if (need - b->share > b->reserve)
        return false;
    if (!*in_turn)
        pthread_mutex_lock(&b->turn);
    *in_turn = true;
    return true;
}

void budget_leave(struct budget *b, bool *in_turn)
{
    if (*in_turn)
        pthread_mutex_unlock(&b->turn);
    *in_turn = false;
}
