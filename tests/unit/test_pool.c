/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "test.h"

static atomic_int ran[64];
static atomic_int blocked;

static void mark(void *user, int i)
{
    (void)user;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    blocked += sigismember(&mask, SIGINT) == 1;
    ran[i]++;
}

static void runs_every_thread(void)
{
    struct pool p;
    CHECK_EQ(pool_open(&p, 8, mark, NULL, NULL, NULL), STK_OK);
    pool_close(&p);
    pool_close(&p);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(ran[i], 1);
    CHECK_EQ(blocked, 8);
}

static void add(void *user, int64_t i)
{
    atomic_fetch_add((_Atomic int64_t *)user, i);
}

static void loops(void)
{
    _Atomic int64_t sum = 0;
    pool_for(4, 1000, add, &sum);
    CHECK_EQ(sum, 499500);
    pool_for(4, 0, add, &sum);
    pool_for(1, 1, add, &sum);
    CHECK_EQ(sum, 499500);
}

int main(int argc, char **argv)
{
    TESTS(T(runs_every_thread), T(loops))
}
