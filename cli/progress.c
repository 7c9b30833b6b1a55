/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c -- the progress line.
 */
#include "progress.h"

#include <stdio.h>

#include "out.h"

void progress_begin(struct progress *p, const char *what, int64_t total)
{
    *p = (struct progress){.what = what, .total = total, .began = out_clock(), .on = out_is_terminal(stderr)};
}

static void clock_text(char *buf, size_t n, double seconds)
{
    const long long s = (long long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(buf, n, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, n, "%lld:%02lld", s / 60, s % 60);
}

static void draw(const struct progress *p, int64_t done, double now)
{
    const double took = now - p->began, rate = took > 0 ? (double)done / took : 0;
    char line[256], left[32] = "-:--";
    if (rate > 0 && p->total >= done)
        clock_text(left, sizeof left, (double)(p->total - done) / rate);
    if (p->total > 0)
        snprintf(line, sizeof line, "%s  %s of %s  %3.0f %%  %s/s  %s left", p->what, out_count(done).s,
                 out_count(p->total).s, 100.0 * (double)done / (double)p->total, out_real(rate, 0).s, left);
    else
        snprintf(line, sizeof line, "%s  %s  %s/s", p->what, out_count(done).s, out_real(rate, 0).s);
    fprintf(stderr, "\r%.*s\033[K", out_width(stderr) - 1, line);
    fflush(stderr);
}

void progress_at(struct progress *p, int64_t done)
{
    if (!p->on)
        return;
    const double now = out_clock();
    if (now - p->shown < 0.1 || now - p->began < 0.2)
        return;
    draw(p, done, now);
    p->shown = now;
    p->drawn = 1;
}

void progress_clear(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = 0;
}

void progress_end(struct progress *p)
{
    progress_clear(p);
    p->on = 0;
}
