/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gain.h -- images per second of a source, and of the pack made from it.
 */
#ifndef GAIN_H
#define GAIN_H

#include "stoker.h"

/* Images per second of the source and of the pack, with common training ops. Takes about two seconds. 0: unknown. */
struct gain {
    double before, after;
};

struct gain gain_measure(const stk_options *source, const char *pack);

#endif
