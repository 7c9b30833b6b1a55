/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c -- epochs with a fixed number of threads, or with the number that the loader chooses, for several kinds of
 * callers.
 *
 *     bench-threads FOLDER THREADS EPOCHS CALLER STEP
 *
 * THREADS 0: the loader chooses. After every batch, the caller takes a step of STEP µs. CALLER says how: at once (no
 * step), sleep (as if it waited for another device), spin (computes), burst (sleeps for 16 steps after every 16th
 * batch). Prints `images/s  CPU µs per image` of the epochs after the first; the CPU time of steps is not counted.
 * bench/threads.py compares several runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stoker.h"

enum { BURST = 16 };

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_for(double s)
{
    const struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};
    if (s > 0)
        nanosleep(&t, NULL);
}

static void spin_for(double s)
{
    const double end = seconds(CLOCK_THREAD_CPUTIME_ID) + s;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

/* What the caller does between batches. Returns how much CPU time that took. */
static double step(const char *caller, double s, int64_t batch)
{
    if (strcmp(caller, "sleep") == 0)
        sleep_for(s);
    if (strcmp(caller, "burst") == 0 && batch % BURST == BURST - 1)
        sleep_for(BURST * s);
    if (strcmp(caller, "spin") != 0)
        return 0;
    spin_for(s);
    return s;
}

static int fail(const stk_error *e)
{
    fprintf(stderr, "%s\n", e->text);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: bench-threads FOLDER THREADS EPOCHS at-once|sleep|spin|burst STEP\n");
        return 2;
    }
    const stk_options o = {.source = argv[1],
                           .ops = "RandomResizedCrop(224) | RandomHorizontalFlip | Normalize",
                           .batch_size = 64,
                           .shuffle = 1,
                           .drop_last = 1,
                           .threads = (int)strtol(argv[2], NULL, 10),
                           .cache_dir = "off"};
    const long epochs = strtol(argv[3], NULL, 10);
    const double s = strtod(argv[5], NULL) * 1e-6;
    stk_loader *l;
    stk_error e;
    double begun = 0, cpu = 0, own = 0;
    int64_t images = 0, batches = 0;
    if (stk_open(&l, &o, &e) != STK_OK)
        return fail(&e);
    for (long epoch = 0; epoch < epochs; epoch++) {
        stk_batch *b;
        int rc;
        if (epoch == 1) {
            begun = seconds(CLOCK_MONOTONIC);
            cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
            own = 0;
            images = 0;
        }
        while ((rc = stk_next(l, &b, &e)) == STK_OK) {
            images += stk_samples(b);
            stk_release(b);
            own += step(argv[4], s, batches++);
        }
        if (rc != STK_END)
            return fail(&e);
    }
    const double wall = seconds(CLOCK_MONOTONIC) - begun, used = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu - own;
    printf("%.1f %.1f\n", (double)images / wall, used * 1e6 / (double)images);
    stk_close(l);
    return 0;
}
