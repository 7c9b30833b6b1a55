/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_source.h -- a source opened with two threads and without a cache, unless the options say otherwise.
 */
#ifndef OPEN_SOURCE_H
#define OPEN_SOURCE_H

#include <string.h>

#include "source/source.h"

static stk_error error; /* of the last opening */

static inline struct source *open_with(struct source_options o)
{
    struct source *s = NULL;
    if (!o.cache_dir)
        o.cache_dir = "off";
    if (!o.threads)
        o.threads = 2;
    memset(&error, 0, sizeof error);
    source_open(&s, &o, &error);
    return s;
}

#endif
