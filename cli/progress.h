/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h -- one line on stderr that says how far it is, how fast and how long it will take. Only on
 * a terminal; ten times a second at the most.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdint.h>

struct progress {
    const char *what;
    int64_t total; /* 0: not known */
    double began, shown;
    int on, drawn;
};

void progress_begin(struct progress *p, const char *what, int64_t total);
void progress_at(struct progress *p, int64_t done);
void progress_clear(struct progress *p); /* makes room for another line; drawn again by the next call */
void progress_end(struct progress *p);

#endif
