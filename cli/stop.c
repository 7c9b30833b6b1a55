/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.c -- the command's own signal handler; the library has none.
 */
#include "stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t asked;

static void on_signal(int number)
{
    (void)number;
    asked = 1;
}

void stop_watch(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

int stop_asked(void)
{
    return asked;
}

int stop_next(stk_loader *l, stk_batch **b, stk_error *e)
{
    int rc = STK_STOPPED;
    while (!asked && (rc = stk_next_wait(l, b, 200, e)) == STK_AGAIN)
        rc = STK_STOPPED;
    return rc;
}
