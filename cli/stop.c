/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.c -- the command's own signal handler; the library has none.
 */
#include "stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "out.h"

static volatile sig_atomic_t asked;
/* stop_asked() was called. Before that, for example while a source is opened, there is nothing to end cleanly. */
static atomic_bool looked;

/* A terminal and a wrapper may both send a signal, so the second one changes nothing. */
static void on_signal(int number)
{
    if (!atomic_load(&looked))
        _exit(END_INTERRUPTED);
    if (asked < 3)
        asked++;
    if (asked == 3) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

void stop_watch(void)
{
    struct sigaction a = {.sa_handler = on_signal};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

int stop_asked(void)
{
    atomic_store(&looked, 1);
    return asked > 0;
}

int stop_next(stk_loader *l, stk_batch **b, stk_error *e)
{
    int rc = STK_STOPPED;
    while (!stop_asked() && (rc = stk_next_wait(l, b, 200, e)) == STK_AGAIN)
        rc = STK_STOPPED;
    return rc;
}
