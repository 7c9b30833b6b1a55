/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gain.h -- what packing has gained: images a second of a source, and of what became of it.
 */
#ifndef GAIN_H
#define GAIN_H

#include "stoker.h"

/* Both of them, with the ops of an everyday training, in turns and for about two seconds; 0: it cannot be told. */
struct gain {
    double before, after;
};

struct gain gain_measure(const stk_options *source, const char *pack);

#endif
