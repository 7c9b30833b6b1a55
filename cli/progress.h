/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h -- a line on stderr with progress, speed and remaining time. Only on a terminal; at most
 * ten updates per second.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdint.h>

struct progress {
    const char *what;
    int64_t total; /* 0: unknown */
    double began, shown;
    int on, drawn;
};

void progress_begin(struct progress *p, const char *what, int64_t total);
void progress_at(struct progress *p, int64_t done);
/* Erases the line, so that another one can be printed. The next progress_at() draws it again. */
void progress_clear(struct progress *p);
void progress_end(struct progress *p);

#endif
