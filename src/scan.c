/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c -- goes over all samples, without batches: looks at headers, or decodes everything.
 *
 * Threads look at runs of samples (base/window.h). A run is one sample, or several for which nothing was ever stored:
 * what is found of the first holds for all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/window.h"
#include "loader.h"

enum { SLOTS = 256, HEAD_BYTES = 64 << 10, MEMORY_MIN = 16 << 20 /* a thread, to decode everyday photos */ };

struct result {
    bool machine; /* not the sample's fault */
    int os_error;
    stk_finding finding;
    char path[1024];
    char reason[640];
};

struct scan {
    stk_options options;
    bool decode;
    struct source *source;
    int picture; /* the field that is one; -1: none */
    bool labels; /* are a column of their own, and nowhere else */
    int64_t n;
    struct budget budget;
    struct desk *desks;
    struct piece *scratch; /* of each thread */
    struct result *results;
    const stk_scan_options *report_to;
};

/* Of what reading and reserving say, only the budget's words are of decoding. */
static int of_budget(int rc, const stk_error *e)
{
    return rc == STK_EDATA && strcmp(e->stage, "decode") == 0;
}

static int decode_whole(struct desk *d, const struct head *h, stk_finding *f, stk_error *e)
{
    const struct want want = {.crop = {.w = head_width(h), .h = head_height(h)}, .whole = true};
    const size_t scratch = decode_scratch(h, &want), foreign = decode_foreign(h, &want);
    if (scratch == 0)
        return error_set(e, STK_EDATA, "decode", "%d x %d pixels are too many", h->w, h->h);
    const int rc = desk_reserve(d, scratch, foreign, e);
    f->needs_memory = of_budget(rc, e);
    if (rc != STK_OK)
        return rc;
    struct image image;
    return decode_pixels(d->decoder, d->reading.bytes, d->reading.n_bytes, h, &want, &d->arena, &image, &f->warnings,
                         e);
}

/* Whether everything but the picture can be made of what is read. */
static int check_fields(const struct scan *s, struct desk *d, int64_t i, stk_error *e)
{
    struct piece *scratch = &s->scratch[d->reading.thread];
    int rc = source_reads_fields_at(s->source, i) && !d->all_read ? desk_read_rest(d, s->source, i, e) : STK_OK;
    for (int f = 0; f < source_n_fields(s->source) && rc == STK_OK; f++) {
        const struct field *field = source_field_at(s->source, i, f);
        const struct cell *c = &d->reading.cells[f];
        if (field->kind == FIELD_ENCODED || field->label)
            continue;
        if (field->kind == FIELD_RAGGED)
            rc = field_piece(field, c, scratch, e);
        else if (piece_reserve(scratch, field->bytes))
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
    if (s->picture < 0 || source_field_at(s->source, i, s->picture)->kind != FIELD_ENCODED)
        return s->decode ? check_fields(s, d, i, e) : STK_OK;
    const struct decode_limits limits = options_limits(&s->options);
    struct head head = {0};
    int rc = STK_OK;
    if (!s->decode && !s->labels) {
        /* The first bytes nearly always hold the header; else the whole file is read below. */
        rc = source_peek(s->source, &d->reading, i, HEAD_BYTES, e);
        if (rc == STK_OK && decode_head(d->reading.bytes, d->reading.n_bytes, &limits, &head, NULL) != STK_OK)
            head.w = 0;
    }
    if (rc == STK_OK && head.w == 0) {
        rc = desk_read(d, s->source, i, e);
        f->needs_memory = of_budget(rc, e);
        if (rc == STK_OK) {
            f->bytes = (int64_t)d->reading.n_bytes;
            rc = decode_head(d->reading.bytes, d->reading.n_bytes, &limits, &head, e);
        }
    }
    f->format = head.format;
    f->width = head.w;
    f->height = head.h;
    f->channels = head.channels;
    f->bits = head.bits;
    f->orientation = head.orientation;
    f->odd |= head.odd & ((1u << STK_N_ODDITIES) - 1);
    if (rc == STK_OK && s->decode)
        rc = decode_whole(d, &head, f, e);
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

static bool suffix_is(const char *path, const char *suffix)
{
    const size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcasecmp(path + n - m, suffix) == 0;
}

static bool suffix_lies(const char *path, stk_format f)
{
    const bool jpeg =
        suffix_is(path, ".jpg") || suffix_is(path, ".jpeg") || suffix_is(path, ".jpe") || suffix_is(path, ".jfif");
    const bool png = suffix_is(path, ".png"), webp = suffix_is(path, ".webp");
    return (jpeg && f != STK_JPEG) || (png && f != STK_PNG) || (webp && f != STK_WEBP);
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
    if (f->format != STK_FORMAT_UNKNOWN && suffix_lies(r->path, f->format))
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

/* A machine that has run out of something ends the scan: the sample may be as good as any. */
static int machine_failed(const struct result *r, stk_error *e)
{
    error_set(e, r->finding.code, "scan", "%s", r->reason);
    if (e)
        e->os_error = r->os_error;
    error_at(e, r->path, r->finding.sample);
    return r->finding.code;
}

/* Tells the caller of a run: at once where it asked for that and all is well, else of each sample. */
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

static int announce(const struct scan *s, const stk_scan_options *o, stk_error *e)
{
    if (!o->begin)
        return STK_OK;
    const struct source_tally *t = source_tally(s->source);
    const int n = source_n_classes(s->source);
    const char **names = calloc((size_t)n + 1, sizeof *names);
    if (!names)
        return error_nomem(e, "scan", (size_t)n * sizeof *names);
    for (int i = 0; i < n; i++)
        names[i] = source_class(s->source, i);
    char fields[2048];
    source_fields_text(s->source, fields, sizeof fields);
    const stk_overview v = {
        .kind = source_kind(s->source),
        .fields = fields,
        .samples = s->n,
        .bytes = t->bytes,
        .n_classes = n,
        .fingerprint = source_fingerprint(s->source),
        .ignored_hidden = t->ignored_hidden,
        .ignored_other = t->ignored_other,
        .ignored_loops = t->ignored_loops,
        .unreadable = t->unreadable,
        .empty_classes = t->empty_classes,
        .missing = t->missing,
        .beside = t->beside,
        .index_cached = t->index_cached,
        .index_s = t->index_s,
        .index_bytes = t->index_bytes,
        .columns = source_unused_columns(s->source),
        .left_out = source_unshared_fields(s->source),
    };
    o->begin(o->user, &v, names);
    free(names);
    return STK_OK;
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
        piece_done(&s->scratch[i]);
    free(s->desks);
    free(s->scratch);
    free(s->results);
    source_close(s->source);
    budget_done(&s->budget);
}

/* With less, photos of an everyday size would be called bad. */
static int check_memory(const struct scan *s, stk_error *e)
{
    const stk_options *o = &s->options;
    const int64_t least = (int64_t)o->threads * MEMORY_MIN;
    if (!s->decode || o->memory >= least)
        return STK_OK;
    return error_set(e, STK_EUSAGE, "scan",
                     "memory of %lld MiB is less than the %lld MiB that %d threads need; raise memory, or take fewer "
                     "threads",
                     (long long)(o->memory >> 20), (long long)(least >> 20), o->threads);
}

static int scan_all(struct scan *s, const stk_scan_options *o, stk_error *e)
{
    int rc = check_memory(s, e);
    if (rc != STK_OK) {
        options_close(&s->options);
        return rc;
    }
    rc = options_source(&s->options, false, &s->source, e);
    if (rc != STK_OK)
        return rc;
    if (source_fills_rows(s->source))
        return error_set(e, STK_EUSAGE, "scan", "samples that fill() makes cannot be looked at");
    s->picture = -1;
    for (int f = 0; f < source_n_fields(s->source); f++)
        if (source_field(s->source, f)->kind == FIELD_ENCODED)
            s->picture = f;
        else if (source_is_label(source_field(s->source, f)) && source_field(s->source, f)->column >= 0)
            s->labels = true;
    s->n = s->options.subset ? s->options.n_subset : source_count(s->source);
    rc = options_check_subset(&s->options, source_count(s->source), e);
    if (rc != STK_OK)
        return rc;
    if (s->options.take > 0 && s->options.take < s->n)
        s->n = s->options.take;
    rc = announce(s, o, e);
    if (rc == STK_OK)
        rc = open_workers(s, e);
    if (rc != STK_OK)
        return rc;
    s->report_to = o;
    const struct window_job job = {
        .user = s, .end = s->n, .n_slots = SLOTS, .count = run_length, .make = look_at_run, .take = take};
    rc = window_run(&job, s->options.threads, e);
    return rc == STK_STOPPED ? STK_OK : rc; /* the caller has seen enough */
}

int stk_scan_sized(const stk_options *options, size_t size, const stk_scan_options *o, size_t o_size, stk_error *e)
{
    struct scan s = {0};
    struct machine m;
    stk_scan_options scan = {0};
    int rc = options_take(&s.options, options, size, &m, e);
    if (rc != STK_OK)
        return rc;
    rc = options_copy(&scan, sizeof scan, o, o_size, e);
    if (rc != STK_OK) {
        options_close(&s.options);
        return rc;
    }
    s.decode = scan.decode != 0;
    budget_init(&s.budget, (size_t)s.options.memory, s.options.threads);
    rc = scan_all(&s, &scan, e);
    close_scan(&s);
    return rc;
}
