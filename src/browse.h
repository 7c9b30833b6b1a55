/* SPDX-License-Identifier: Apache-2.0 */
/*
 * browse.h -- a source alone, as browse.c and cells.c know it.
 */
#ifndef BROWSE_H
#define BROWSE_H

#include "loader.h"

struct stk_source {
    stk_options options; /* its pointers are not used after open */
    struct source *source;
};

#endif
