/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "base/pool.h"
#include "test.h"

static atomic_int ran[64];
static atomic_int blocked, crashes_blocked;

static void mark(void *user, int i)
{
    (void)user;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    blocked += sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGCHLD) == 1;
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
    for (size_t k = 0; k < sizeof crashes / sizeof crashes[0]; k++)
        crashes_blocked += sigismember(&mask, crashes[k]);
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
    CHECK_EQ(crashes_blocked, 0);
}

static pthread_t caller;
static atomic_int ticks, ticks_in_worker;

static void tick(int signal)
{
    (void)signal;
    ticks++;
    ticks_in_worker += !pthread_equal(pthread_self(), caller);
}

static void burn(void *user, int i)
{
    (void)user, (void)i;
    while (ticks < 50 && ticks_in_worker == 0)
        ;
}

/* The timer of a profiler interrupts the thread that uses the CPU: here a worker, since its caller waits. */
static void profilers_see_workers(void)
{
    const struct sigaction count = {.sa_handler = tick, .sa_flags = SA_RESTART};
    const struct itimerval every = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000}, never = {0};
    struct sigaction before;
    caller = pthread_self();
    sigaction(SIGPROF, &count, &before);
    setitimer(ITIMER_PROF, &every, NULL);
    struct pool p;
    CHECK_EQ(pool_open(&p, 1, burn, NULL, NULL, NULL), STK_OK);
    pool_close(&p);
    setitimer(ITIMER_PROF, &never, NULL);
    sigaction(SIGPROF, &before, NULL);
    CHECK(ticks_in_worker > 0);
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
    TESTS(T(runs_every_thread), T(profilers_see_workers), T(loops))
}
