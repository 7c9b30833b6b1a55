/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.h -- Ctrl-C: the first one asks to stop cleanly, the third ends at once; so does one that comes before anybody
 * has looked for it.
 */
#ifndef STOP_H
#define STOP_H

#include "stoker.h"

void stop_watch(void);
int stop_asked(void);
/* stk_next, but STK_STOPPED as soon as a stop is asked for. */
int stop_next(stk_loader *l, stk_batch **b, stk_error *e);

#endif
