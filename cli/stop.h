/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.h -- Ctrl-C: the first one asks for a clean stop, the third ends the process at once. So does any Ctrl-C before
 * the first call of stop_asked().
 */
#ifndef STOP_H
#define STOP_H

#include "stoker.h"

void stop_watch(void);
int stop_asked(void);
/* Like stk_next(), but returns STK_STOPPED as soon as a stop is requested. */
int stop_next(stk_loader *l, stk_batch **b, stk_error *e);

#endif
