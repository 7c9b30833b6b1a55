/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c -- a share for every thread, and a reserve for one at a time.
 */
#include "base/budget.h"

#include "base/error.h"

void budget_init(struct budget *b, size_t bytes, int threads)
{
    b->reserve = bytes / 2;
    b->share = b->reserve / (size_t)threads;
    pthread_mutex_init(&b->turn, NULL);
}

size_t budget_cap(struct budget *b, size_t share, int threads)
{
    const size_t less = b->share > share ? (b->share - share) * (size_t)threads : 0;
    if (less)
        b->share = share;
    return less;
}

void budget_done(struct budget *b)
{
    pthread_mutex_destroy(&b->turn);
}

static size_t mib(size_t bytes)
{
    return (bytes + (1 << 20) - 1) >> 20;
}

int budget_enter(struct budget *b, size_t need, bool *in_turn, stk_error *e)
{
    if (need > b->reserve) /* a quarter of memory, or more if batches are small */
        return error_set(
            e, STK_EDATA, "decode",
            "needs %zu MiB of scratch, but the memory limit leaves %zu MiB for one image; raise memory by %zu MiB",
            mib(need), b->reserve >> 20, 4 * mib(need - b->reserve));
    if (need > b->share && !*in_turn) {
        pthread_mutex_lock(&b->turn);
        *in_turn = true;
    }
    return STK_OK;
}

void budget_leave(struct budget *b, bool *in_turn)
{
    if (*in_turn)
        pthread_mutex_unlock(&b->turn);
    *in_turn = false;
}
