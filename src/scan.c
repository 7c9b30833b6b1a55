/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c -- goes over all samples without batches: reads headers, or decodes everything.
 *
 * Threads look at runs of samples (base/window.h). A run is one sample, or several that were never stored: a finding
 * for the first holds for all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/image_file.h"
#include "base/window.h"
#include "loader.h"
#include "source/field.h"

enum { SLOTS = 256, MEMORY_MIN = 16 << 20 /* per thread, to decode photos of a usual size */ };

struct result {
    bool machine; /* the machine failed, not the sample */
    int os_error;
    stk_finding finding;
    char path[1024];
    char reason[640];
};

struct scan {
    stk_options options;
    const struct decode_limits *limits;
    bool decode;
    struct source *source;
    int image;   /* the field with the image; -1: none */
    bool labels; /* labels have to be read from a column */
    int64_t n;
    struct budget budget;
    struct desk *desks;
    struct ragged_row *scratch; /* of each thread */
    struct result *results;
    const stk_scan_options *report_to;
};

static int decode_whole(struct desk *d, struct desk_image *im, stk_finding *f, stk_error *e)
{
    const struct want want = desk_whole(&im->head);
    const int rc = desk_decode(d, im, &want, 0, e);
    f->needs_memory = d->refused;
    f->warnings = im->warnings;
    return rc;
}

/* Checks that all fields except the image can be made from what was read. */
static int check_fields(const struct scan *s, struct desk *d, int64_t i, stk_error *e)
{
    struct ragged_row *scratch = &s->scratch[d->reading.thread];
    int rc = source_reads_fields_at(s->source, i) && !d->all_read ? desk_read_rest(d, s->source, i, e) : STK_OK;
    for (int f = 0; f < source_n_fields(s->source) && rc == STK_OK; f++) {
        const struct field *field = source_field_at(s->source, i, f);
        const struct cell *c = &d->reading.cells[f];
        if (field->kind == FIELD_ENCODED || field->label)
            continue;
        if (field->kind == FIELD_RAGGED)
            rc = field_ragged_row(field, c, scratch, e);
        else if (ragged_row_reserve(scratch, field->bytes))
            rc = error_nomem(e, "read", field->bytes);
        else if (field->column >= 0)
            rc = field_store(field, c, scratch->data, e);
        else
            rc = source_copy(s->source, &d->reading, i, f, scratch->data, e);
    }
    return rc;
}

static int look(const struct scan *s, struct desk *d, int64_t i, stk_finding *f, stk_error *e)
{
    if (s->image < 0 || source_field_at(s->source, i, s->image)->kind != FIELD_ENCODED)
        return s->decode ? check_fields(s, d, i, e) : STK_OK;
    struct desk_image im;
    const struct head *head = &im.head;
    int rc = desk_read_head(d, s->source, i, s->decode || s->labels, s->limits, &im, e);
    f->needs_memory = d->refused;
    if (d->all_read)
        f->bytes = (int64_t)im.n;
    f->format = head->format;
    f->width = head->w;
    f->height = head->h;
    f->channels = head->channels;
    f->bits = head->bits;
    f->orientation = head->orientation;
    f->odd |= head->odd & ((1u << STK_N_ODDITIES) - 1);
    if (rc == STK_OK && s->decode)
        rc = decode_whole(d, &im, f, e);
    if (rc == STK_OK && s->decode)
        rc = check_fields(s, d, i, e);
    return rc;
}

static int look_at_label(const struct scan *s, struct desk *d, int64_t i, stk_finding *f, stk_error *e)
{
    int rc = d->all_read ? STK_OK : desk_read(d, s->source, i, e);
    d->reading.label = f->label;
    if (rc == STK_OK)
        rc = desk_label(d, s->source, i, &f->label, e);
    return rc;
}

/* Whether the file's suffix is that of another format. */
static bool is_misnamed(const char *path, stk_format f)
{
    static const char *const suffixes[] = {[STK_JPEG] = "jpg", [STK_PNG] = "png", [STK_WEBP] = "webp"};
    const char *dot = strrchr(path, '.');
    for (int i = STK_JPEG; dot && i <= STK_WEBP; i++)
        if (image_file_same(dot + 1, suffixes[i]))
            return i != (int)f;
    return false;
}

static void find(const struct scan *s, struct desk *d, int64_t i, struct result *r)
{
    stk_error e = {0};
    source_path(s->source, i, r->path, sizeof r->path);
    r->finding = (stk_finding){
        .sample = i,
        .bytes = source_bytes(s->source, i),
        .label = source_label(s->source, i),
        .path = r->path,
        .orientation = 1,
    };
    stk_finding *f = &r->finding;
    f->code = look(s, d, i, f, &e);
    if (f->code == STK_OK && s->labels)
        f->code = look_at_label(s, d, i, f, &e);
    r->machine = f->code != STK_OK && error_is_machine(&e);
    r->os_error = e.os_error;
    if (f->code != STK_OK) {
        snprintf(r->reason, sizeof r->reason, "%s", e.reason);
        f->reason = r->reason;
    }
    if (f->format != STK_FORMAT_UNKNOWN && is_misnamed(r->path, f->format))
        f->odd |= STK_ODD_SUFFIX;
    desk_clear(d);
}

/* The length of the run that begins with sample i. */
static int64_t run_length(void *user, int64_t i)
{
    const struct scan *s = user;
    const int64_t n = s->options.subset ? 1 : source_count_identical(s->source, i);
    return n < s->n - i ? n : s->n - i;
}

static size_t look_at_run(void *user, int thread, int64_t i, int64_t n, int slot)
{
    struct scan *s = user;
    struct result *r = &s->results[slot];
    find(s, &s->desks[thread], s->options.subset ? s->options.subset[i] : i, r);
    r->finding.run = n;
    return 0;
}

/* If the machine has run out of something, the scan ends: the sample may be good. */
static int machine_failed(const struct result *r, stk_error *e)
{
    error_set(e, r->finding.code, "scan", "%s", r->reason);
    if (e)
        e->os_error = r->os_error;
    error_at(e, r->path, r->finding.sample);
    return r->finding.code;
}

/* Reports a run to the caller: in one call if it asked for runs and the samples are good, otherwise sample by sample.
 */
static int report(const struct scan *s, const stk_scan_options *o, struct result *r)
{
    stk_finding *f = &r->finding;
    const int64_t n = f->run, first = f->sample;
    int enough = 0;
    if (!o->each || (o->runs && f->code == STK_OK))
        return o->each ? o->each(o->user, f) : 0;
    f->run = 1;
    for (int64_t i = 0; i < n && !enough; i++) {
        if (i > 0)
            source_path(s->source, first + i, r->path, sizeof r->path);
        f->sample = first + i;
        enough = o->each(o->user, f);
    }
    return enough;
}

static int take(void *user, int slot, stk_error *e)
{
    struct scan *s = user;
    struct result *r = &s->results[slot];
    if (r->machine)
        return machine_failed(r, e);
    return report(s, s->report_to, r) ? STK_STOPPED : STK_OK;
}

static int open_workers(struct scan *s, stk_error *e)
{
    const int n = s->options.threads;
    s->results = calloc(SLOTS, sizeof *s->results);
    s->desks = calloc((size_t)n, sizeof *s->desks);
    s->scratch = calloc((size_t)n, sizeof *s->scratch);
    if (!s->results || !s->desks || !s->scratch)
        return error_nomem(e, "scan", SLOTS * sizeof *s->results);
    for (int i = 0; i < n; i++) {
        const int rc = desk_init(&s->desks[i], i, &s->budget, true, s->options.cpu, e);
        if (rc != STK_OK)
            return rc;
    }
    return STK_OK;
}

static void close_scan(struct scan *s)
{
    for (int i = 0; s->desks && i < s->options.threads; i++)
        desk_done(&s->desks[i]);
    for (int i = 0; s->scratch && i < s->options.threads; i++)
        ragged_row_done(&s->scratch[i]);
    free(s->desks);
    free(s->scratch);
    free(s->results);
    source_close(s->source);
    budget_done(&s->budget);
}

/* With less memory, photos of a usual size would be reported as bad. */
static int check_memory(const struct scan *s, stk_error *e)
{
    const stk_options *o = &s->options;
    const int64_t least = (int64_t)o->threads * MEMORY_MIN;
    if (!s->decode || o->memory >= least)
        return STK_OK;
    return error_set(e, STK_EUSAGE, "scan",
                     "memory is %lld MiB, less than the %lld MiB that %d threads need; raise memory, or use fewer "
                     "threads",
                     (long long)(o->memory >> 20), (long long)(least >> 20), o->threads);
}

static int scan_all(struct scan *s, const stk_scan_options *o, stk_error *e)
{
    int rc = check_memory(s, e);
    if (rc != STK_OK)
        return rc;
    rc = options_source(&s->options, false, &s->source, e);
    if (rc != STK_OK)
        return rc;
    if (source_fills_rows(s->source))
        return error_set(e, STK_EUSAGE, "scan",
                         "a source with fill() makes its samples and stores none: there is nothing to scan");
    s->image = -1;
    for (int f = 0; f < source_n_fields(s->source); f++)
        if (source_field(s->source, f)->kind == FIELD_ENCODED)
            s->image = f;
        else if (source_is_label(source_field(s->source, f)) && source_field(s->source, f)->column >= 0)
            s->labels = true;
    s->n = s->options.subset ? s->options.n_subset : source_count(s->source);
    rc = options_check_subset(s->options.subset, s->options.n_subset, source_count(s->source), e);
    if (rc != STK_OK)
        return rc;
    if (s->options.take > 0 && s->options.take < s->n)
        s->n = s->options.take;
    rc = open_workers(s, e);
    if (rc != STK_OK)
        return rc;
    s->report_to = o;
    const struct window_job job = {
        .user = s, .end = s->n, .n_slots = SLOTS, .count = run_length, .make = look_at_run, .take = take};
    rc = window_run(&job, s->options.threads, e);
    return rc == STK_STOPPED ? STK_OK : rc; /* the caller has seen enough */
}

int stk_scan_sized(const stk_source *source, const stk_scan_options *given, size_t size, stk_error *e)
{
    struct machine m;
    stk_scan_options o = {0};
    if (!source)
        return error_set(e, STK_EUSAGE, "scan", "no source");
    int rc = given ? options_copy(&o, sizeof o, given, size, e) : STK_OK;
    if (rc != STK_OK)
        return rc;
    struct scan s = {.limits = &source->limits, .decode = o.decode != 0};
    const stk_options all = {.opened = source,
                             .take = o.take,
                             .subset = o.subset,
                             .n_subset = o.n_subset,
                             .threads = o.threads,
                             .memory = o.memory,
                             .cpu = o.cpu};
    rc = options_take(&s.options, &all, sizeof all, &m, e);
    if (rc != STK_OK)
        return rc;
    budget_init(&s.budget, (size_t)s.options.memory, s.options.threads);
    rc = scan_all(&s, &o, e);
    close_scan(&s);
    return rc;
}
