/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h -- stoker doctor for data: a sample of the dataset, loaders that read it, and their speeds.
 *
 * A run is one way to load the sample. Runs take turns: each turn reads the sample once in every way, so that other
 * programs slow down all of them alike. A gain is the median over the turns of the ratio to the first run, "as it is".
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdint.h>

#include "args.h"
#include "scratch.h"
#include "stoker.h"

enum { DOCTOR_RUNS = 12, DOCTOR_TURNS = 9, DOCTOR_BADS = 5 };

#define DOCTOR_NO_TIME "no time was left; try again on an idle machine"

enum doctor_kind { DOCTOR_BASELINE, DOCTOR_CEILING, DOCTOR_WHAT_IF };
enum doctor_status { DOCTOR_OK, DOCTOR_FAILED, DOCTOR_SKIPPED };

struct doctor_run {
    const char *name;
    enum doctor_kind kind;
    enum doctor_status status;
    char reason[400];   /* why it failed or was skipped */
    char change[700];   /* what to type or to paste; "" if nothing, or if it does not fit */
    int same;           /* the same pixels as now */
    const char *other;  /* how the pixels differ; NULL if `same` */
    int remedy;         /* may be advised: a ceiling and fewer threads are not */
    stk_options o;      /* how the loader is opened */
    char source[600];   /* o.source, if it is a pack; "" if not */
    stk_source *opened; /* o.opened, if it belongs to this run */
    stk_loader *loader; /* while the turns run */
    double rates[DOCTOR_TURNS];
    int n_rates;
    double rate, gain;   /* samples/s, files in memory; to the first run */
    double cold;         /* samples/s, files not in memory; 0: not measured */
    double wanted_bytes; /* memory of the cache, or disk of the pack, for the whole dataset; 0: none */
    int fits;            /* wanted_bytes fit */
    stk_stats stats;     /* of the turns */
    double cpu_s;        /* of the turns, all threads */
    double seconds;
};

struct doctor {
    struct args *a;
    const char *ops; /* NULL: none */
    stk_source *source;
    stk_info info;
    double began, deadline, open_s;
    int is_image;
    char what[12];                         /* "images" or "samples" */
    int64_t count, *subset, n, batch_size; /* of the dataset; of the sample */
    struct scratch scratch;
    struct doctor_run runs[DOCTOR_RUNS];
    int n_runs;
    /* The sample, by its headers. */
    int64_t n_sized, n_encoded, bytes, n_bad;
    double pixels, short_side, aspect;
    int out_side;  /* the longest side that the ops make */
    int need_side; /* the shorter side of images that this needs */
    char bads[DOCTOR_BADS][700];
    /* Storage. */
    double resident; /* the share of the sample's pages that were in memory at the start; -1: unknown */
    char no_cold[160];
    double cold_bytes_s;
    int stopped;
};

/* doctor_measure.c */
int doctor_begin(struct doctor *d, stk_error *e); /* opens the source and chooses the sample */
void doctor_end(struct doctor *d);
struct doctor_run *doctor_add(struct doctor *d, const char *name, enum doctor_kind kind);
/* Opens the run's loader, and reads the sample once, to fill caches. A failure is stored in the run. */
void doctor_open(struct doctor *d, struct doctor_run *r);
void doctor_turns(struct doctor *d);        /* of all open loaders, until the deadline */
double doctor_left(const struct doctor *d); /* seconds */
void doctor_say(const char *doing);         /* a line on the terminal; "" erases it */
void doctor_fail(struct doctor_run *r, enum doctor_status status, const char *why);

/* doctor_cold.c: the speed with files that are not in memory. */
void doctor_cold(struct doctor *d);
void doctor_cold_packs(struct doctor *d);

/* doctor_try.c: adds the runs. */
void doctor_try(struct doctor *d);

/* doctor_judge.c */
struct doctor_verdict {
    const char *limit;               /* "decode", "storage", ... */
    double rate;                     /* what the dataset delivers in training */
    int is_cold;                     /* it does not fit into memory, so every epoch reads from storage */
    const struct doctor_run *best;   /* the best that keeps the pixels; NULL: none is worth it */
    const struct doctor_run *bolder; /* better than `best`, but changes pixels; NULL: none */
    const struct doctor_run *enough; /* the first remedy that reaches `need`; runs[0]: none is needed; NULL: none */
    int something;                   /* there is something to gain */
};
struct doctor_verdict doctor_judge(const struct doctor *d);
/* The dataset does not stay in the page cache between epochs. */
int doctor_is_cold(const struct doctor *d);
int doctor_is_crowded(const struct doctor *d); /* other programs use the CPUs */
double doctor_rate_of(const struct doctor_run *r, int is_cold);
double doctor_gain_of(const struct doctor *d, const struct doctor_run *r, int is_cold); /* 0: unknown */

/* doctor_python.c: for a script, replaces this process by Python. Returns -1 if the words name no script, or an END_*
 * if there is no Python. */
int doctor_python(int argc, char **argv);

#endif
