/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_ls.c -- stoker ls: lists what a dataset contains.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/json.h"
#include "out.h"
#include "progress.h"
#include "stop.h"
#include "table.h"

enum { N_FORMATS = STK_WEBP + 1, BADS_KEPT = 20, VALUES_KEPT = 1 << 22 };

static const char *const format_names[N_FORMATS] = {"not an image", "JPEG", "PNG", "WebP"};
static const char *const oddities[STK_N_ODDITIES] = {
#define ODD_WORDS(name, bit, words) [bit] = words,
    STK_ODDITIES(ODD_WORDS)
#undef ODD_WORDS
};

struct bad {
    char *path, *reason;
    int64_t sample;
};

/* Values of all samples, for the median. Beyond VALUES_KEPT, it keeps every second, fourth, ... value. */
struct values {
    int64_t *of, n, room;
    int64_t step, skip; /* keeps one of `step`; skips `skip` more before the next */
    int64_t min, max;
};

struct listing {
    const struct args *a;
    struct progress progress;
    stk_source *source;
    stk_overview o;
    int n_classes;
    char fields[512];
    int64_t *class_counts;
    int64_t samples, seen, unlabelled, n_bad;
    int64_t formats[N_FORMATS], odd[STK_N_ODDITIES];
    struct values bytes, widths, heights;
    int64_t total_bytes;
    struct bad bads[BADS_KEPT];
    int no_memory;
};

/* ------------------------------------------------------------------ collecting */

static int begin(struct listing *l, stk_error *e)
{
    const int rc = args_open_source(l->a, &l->source, e);
    if (rc != STK_OK)
        return rc;
    stk_source_overview(l->source, &l->o);
    stk_source_fields(l->source, l->fields, sizeof l->fields);
    const int64_t take = l->a->o.take, n = stk_source_count(l->source);
    l->samples = take > 0 && take < n ? take : n;
    l->n_classes = stk_source_n_classes(l->source);
    l->class_counts = calloc((size_t)l->n_classes + 1, sizeof *l->class_counts);
    l->no_memory = !l->class_counts;
    progress_begin(&l->progress, "ls", l->samples);
    return STK_OK;
}

static int make_room(struct values *v)
{
    if (v->n < v->room)
        return 0;
    if (v->n < VALUES_KEPT) {
        const int64_t room = v->room ? 2 * v->room : 1024;
        int64_t *grown = realloc(v->of, (size_t)room * sizeof *grown);
        if (!grown)
            return -1;
        v->of = grown;
        v->room = room;
        return 0;
    }
    v->n /= 2;
    for (int64_t i = 0; i < v->n; i++)
        v->of[i] = v->of[2 * i];
    v->step *= 2;
    return 0;
}

/* Adds the same value for `run` samples. Returns 0, or -1: no memory. */
static int add_value(struct values *v, int64_t x, int64_t run)
{
    v->min = v->step == 0 || x < v->min ? x : v->min;
    v->max = v->step == 0 || x > v->max ? x : v->max;
    v->step = v->step ? v->step : 1;
    while (run > v->skip) {
        if (make_room(v))
            return -1;
        run -= v->skip + 1;
        v->of[v->n++] = x;
        v->skip = v->step - 1;
    }
    v->skip -= run;
    return 0;
}

static void add_bad(struct listing *l, const stk_finding *f)
{
    if (l->n_bad < BADS_KEPT) {
        struct bad *b = &l->bads[l->n_bad];
        b->path = strdup(f->path);
        char reason[800];
        out_typed(reason, sizeof reason, f->reason ? f->reason : stk_code_words(f->code));
        b->reason = strdup(reason);
        b->sample = f->sample;
    }
    l->n_bad++;
}

static int each(void *user, const stk_finding *f)
{
    struct listing *l = user;
    if (l->no_memory || l->seen >= l->samples)
        return 1;
    l->seen += f->run;
    if (f->label >= 0 && f->label < l->n_classes)
        l->class_counts[f->label] += f->run;
    else if (f->label < 0)
        l->unlabelled += f->run;
    if (f->bytes >= 0) {
        l->no_memory |= add_value(&l->bytes, f->bytes, f->run) != 0;
        l->total_bytes += f->bytes * f->run;
    }
    if (f->code != STK_OK) {
        add_bad(l, f);
    } else if (f->width > 0) {
        l->formats[(int)f->format < N_FORMATS ? f->format : 0]++;
        l->no_memory |= add_value(&l->widths, f->width, 1) || add_value(&l->heights, f->height, 1);
        for (int i = 0; i < STK_N_ODDITIES; i++)
            l->odd[i] += (f->odd >> i) & 1;
    }
    progress_at(&l->progress, l->seen);
    return stop_asked();
}

static void done(struct listing *l)
{
    for (int64_t i = 0; i < l->n_bad && i < BADS_KEPT; i++) {
        free(l->bads[i].path);
        free(l->bads[i].reason);
    }
    stk_source_close(l->source);
    free(l->class_counts);
    free(l->bytes.of);
    free(l->widths.of);
    free(l->heights.of);
}

/* ------------------------------------------------------------------ minimum, median, maximum */

struct spread {
    int64_t min, median, max;
};

static int by_int64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static struct spread spread_of(const struct values *v)
{
    if (v->n == 0)
        return (struct spread){0};
    qsort(v->of, (size_t)v->n, sizeof *v->of, by_int64);
    return (struct spread){v->min, v->of[v->n / 2], v->max};
}

/* ------------------------------------------------------------------ text */

static void line(const char *name)
{
    printf("  %-13s", name);
}

/* Prints a line, unless `names` is empty. */
static void print_names(const char *name, const char *words, const char *names)
{
    if (!names[0])
        return;
    line(name);
    fputs(words, stdout);
    out_name(stdout, names);
    putchar('\n');
}

/* Whether classes belong to the objects of a sample, which are not counted. */
static bool of_objects(const struct listing *l)
{
    return strstr(l->fields, "labels:each") && l->unlabelled == l->seen;
}

static void print_head(const struct listing *l)
{
    out_paint(stdout, PAINT_BOLD);
    out_name(stdout, l->a->operand);
    out_paint(stdout, PAINT_PLAIN);
    printf(": %s\n", stk_source_kind(l->source));
    line("samples");
    printf("%s, %s", out_count(l->seen).s, out_bytes(l->total_bytes).s);
    if (l->seen < l->samples)
        printf(" (of %s)", out_count(l->samples).s);
    putchar('\n');
    print_names("fields", "", l->fields);
    print_names("columns", "available with --fields: ", l->o.columns ? l->o.columns : "");
    print_names("left out", "not in every source: ", l->o.left_out ? l->o.left_out : "");
    line("classes");
    if (l->n_classes)
        printf("%s", out_count(l->n_classes).s);
    else
        fputs(strstr(l->fields, "label:int") ? "none; labels are integers without names" : "none", stdout);
    if (l->n_classes && l->unlabelled && !of_objects(l))
        printf(", %s without a class", out_some(l->unlabelled, "sample", "samples").s);
    putchar('\n');
    line("fingerprint");
    printf("%016" PRIx64 "\n", stk_source_fingerprint(l->source));
    if (l->o.index_bytes == 0)
        return; /* rows of arrays need no index */
    line("index");
    printf("%s, %s%s\n", out_seconds(l->o.index_s).s, out_bytes(l->o.index_bytes).s,
           l->o.index_cached ? ", from the cache" : "");
}

static void print_formats(const struct listing *l)
{
    const char *between = "";
    if (l->widths.n == 0 && l->n_bad == 0)
        return;
    line("formats");
    for (int i = 1; i < N_FORMATS; i++) {
        if (!l->formats[i])
            continue;
        printf("%s%s %s", between, format_names[i], out_count(l->formats[i]).s);
        between = ", ";
    }
    if (l->n_bad)
        printf("%sbad %s", between, out_count(l->n_bad).s);
    putchar('\n');
}

static void print_oddities(const struct listing *l)
{
    const char *between = "";
    line("odd");
    for (int i = 0; i < STK_N_ODDITIES; i++) {
        if (!l->odd[i])
            continue;
        printf("%s%s %s", between, oddities[i], out_count(l->odd[i]).s);
        between = ", ";
    }
    puts(between[0] ? "" : "nothing");
}

/* Files, or datasets of an HDF5 file, that are not samples. */
static void print_ignored(const struct listing *l)
{
    const stk_overview *o = &l->o;
    const int datasets = strncmp(stk_source_kind(l->source), "HDF5", 4) == 0;
    const struct {
        const char *words;
        int64_t n;
    } kinds[] = {
        {"hidden", o->ignored_hidden},
        {datasets ? "datasets of another length or an unsupported type" : "without an image suffix",
         o->ignored_other - o->beside},
        {"images next to the class folders (files:SRC reads all)", o->beside},
        {"symlink loops", o->ignored_loops},
        {"unreadable", o->unreadable},
        {"empty classes", o->empty_classes},
    };
    const char *between = "";
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!kinds[i].n)
            continue;
        if (!between[0])
            line("skipped");
        printf("%s%s %s", between, kinds[i].words, out_count(kinds[i].n).s);
        between = ", ";
    }
    if (between[0])
        putchar('\n');
    if (o->missing) {
        line("missing");
        printf("%s; a missing file is a bad sample\n", out_some(o->missing, "file", "files").s);
    }
}

static void print_sizes(struct listing *l)
{
    const struct spread w = spread_of(&l->widths), h = spread_of(&l->heights);
    const struct spread b = spread_of(&l->bytes);
    struct table t = {0};
    putchar('\n');
    table_head(&t, "<size", ">smallest", ">median", ">largest", NULL);
    if (l->widths.n > 0) {
        table_row(&t, "width", out_count(w.min).s, out_count(w.median).s, out_count(w.max).s, NULL);
        table_row(&t, "height", out_count(h.min).s, out_count(h.median).s, out_count(h.max).s, NULL);
    }
    table_row(&t, l->widths.n > 0 ? "file" : "sample", out_bytes(b.min).s, out_bytes(b.median).s, out_bytes(b.max).s,
              NULL);
    table_print(&t, stdout);
}

static void print_classes(const struct listing *l)
{
    const int n = l->n_classes, height = out_height(stdout);
    const int screenful = height > 24 ? height - 20 : 20;
    const int shown = l->a->all || n <= screenful + 1 ? n : screenful;
    if (n == 0)
        return;
    struct table t = {0};
    putchar('\n');
    table_head(&t, ">label", "<class", of_objects(l) ? NULL : ">samples", NULL);
    for (int i = 0; i < shown; i++) {
        char label[16];
        const char *count = of_objects(l) ? NULL : out_count(l->class_counts[i]).s;
        snprintf(label, sizeof label, "%d", i);
        table_row(&t, label, stk_source_class(l->source, i), count, NULL);
    }
    table_print(&t, stdout);
    if (shown < n)
        printf("  … and %s more (--all lists them)\n", out_count(n - shown).s);
}

static void print_bads(const struct listing *l)
{
    if (l->n_bad == 0)
        return;
    putchar('\n');
    out_paint(stdout, PAINT_BAD);
    printf("  %s found without decoding", out_some(l->n_bad, "bad sample", "bad samples").s);
    out_paint(stdout, PAINT_PLAIN);
    puts(" (`stoker verify` decodes every sample)");
    for (int64_t i = 0; i < l->n_bad && i < BADS_KEPT; i++) {
        const struct bad *b = &l->bads[i];
        fputs("  ", stdout);
        out_name(stdout, b->path ? b->path : "?");
        fputs(": ", stdout);
        out_name(stdout, b->reason ? b->reason : "?");
        putchar('\n');
    }
    if (l->n_bad > BADS_KEPT)
        printf("  … and %s more\n", out_count(l->n_bad - BADS_KEPT).s);
}

static void print_text(struct listing *l)
{
    print_head(l);
    print_formats(l);
    print_oddities(l);
    print_ignored(l);
    if (l->bytes.n)
        print_sizes(l);
    print_classes(l);
    print_bads(l);
}

/* ------------------------------------------------------------------ JSON */

static void json_spread(struct json *j, const char *key, struct spread s)
{
    json_open(j, key, '{');
    json_int(j, "min", s.min);
    json_int(j, "median", s.median);
    json_int(j, "max", s.max);
    json_close(j, '}');
}

static void json_tallies(struct json *j, const struct listing *l)
{
    json_open(j, "formats", '{');
    for (int i = 1; i < N_FORMATS; i++)
        json_int(j, format_names[i], l->formats[i]);
    json_close(j, '}');
    json_open(j, "odd", '{');
    for (int i = 0; i < STK_N_ODDITIES; i++)
        if (l->odd[i])
            json_int(j, oddities[i], l->odd[i]);
    json_close(j, '}');
    json_open(j, "ignored", '{');
    json_int(j, "hidden", l->o.ignored_hidden);
    json_int(j, "other", l->o.ignored_other - l->o.beside);
    json_int(j, "beside", l->o.beside);
    json_int(j, "loops", l->o.ignored_loops);
    json_int(j, "unreadable", l->o.unreadable);
    json_int(j, "empty_classes", l->o.empty_classes);
    json_close(j, '}');
    json_int(j, "missing", l->o.missing);
}

static void json_lists(struct json *j, const struct listing *l)
{
    json_open(j, "classes", '[');
    for (int i = 0; i < l->n_classes; i++) {
        json_open(j, NULL, '{');
        json_text(j, "name", stk_source_class(l->source, i));
        json_int(j, "samples", l->class_counts[i]);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "bad_samples", '[');
    for (int64_t i = 0; i < l->n_bad && i < BADS_KEPT; i++) {
        json_open(j, NULL, '{');
        json_int(j, "sample", l->bads[i].sample);
        json_text(j, "path", l->bads[i].path);
        json_text(j, "reason", l->bads[i].reason);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void print_json(struct listing *l)
{
    struct json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "source", l->a->operand);
    json_text(&j, "kind", stk_source_kind(l->source));
    json_text(&j, "fields", l->fields);
    json_text(&j, "columns", l->o.columns ? l->o.columns : "");
    json_text(&j, "left_out", l->o.left_out ? l->o.left_out : "");
    json_int(&j, "samples", l->seen);
    json_int(&j, "bytes", l->total_bytes);
    json_int(&j, "n_classes", l->n_classes);
    json_hex(&j, "fingerprint", stk_source_fingerprint(l->source));
    json_spread(&j, "width", spread_of(&l->widths));
    json_spread(&j, "height", spread_of(&l->heights));
    json_spread(&j, "file_bytes", spread_of(&l->bytes));
    json_int(&j, "bad", l->n_bad);
    json_tallies(&j, l);
    json_open(&j, "index", '{');
    json_real(&j, "seconds", l->o.index_s);
    json_int(&j, "bytes", l->o.index_bytes);
    json_bool(&j, "cached", l->o.index_cached);
    json_close(&j, '}');
    json_lists(&j, l);
    json_bool(&j, "complete", l->seen == l->samples);
    out_json_error(&j);
    json_close(&j, '}');
}

/* ------------------------------------------------------------------ the command */

static int run(struct args *a)
{
    struct listing l = {.a = a};
    stk_error e = {.sample = -1};
    stk_scan_options scan = args_scan(a);
    scan.each = each;
    scan.user = &l;
    int rc = begin(&l, &e);
    if (rc == STK_OK)
        rc = stk_scan(l.source, &scan, &e);
    progress_end(&l.progress);
    if (rc == STK_OK && l.no_memory) {
        rc = STK_ENOMEM;
        snprintf(e.text, sizeof e.text, "no memory for a list of %s samples", out_count(l.samples).s);
    }
    int end = stop_asked() ? END_INTERRUPTED : END_GOOD;
    if (rc != STK_OK)
        end = out_fail("ls", rc, &e);
    else if (a->json)
        print_json(&l);
    else
        print_text(&l);
    done(&l);
    return end;
}

static const struct args_option options[] = {
    {"all", 0, ARGS_ON, 0, offsetof(struct args, all), 0, 0, NULL, NULL, "list all classes, not only a screenful",
     NULL},
    {0},
};

static const char *const examples[] = {
    "stoker ls train/",
    "list samples, classes, formats, sizes, oddities and the fingerprint",
    "stoker ls train/ --all",
    "also list every class and its count",
    "stoker ls val.csv --classes @classes.txt",
    "read a list, with the classes of the training set",
    "stoker ls train/ --json | jq .odd",
    "count rotated, grey, CMYK and other odd images, for programs",
    NULL,
};

const struct command cmd_ls = {
    .name = "ls",
    .operand = "SRC",
    .summary = "list samples, classes, formats, sizes, oddities and the fingerprint",
    .about = "Lists what a dataset contains, from its index and the header of every image. Nothing is decoded. Two "
             "datasets with the same fingerprint have the same paths, sizes and labels.",
    .groups = FOR_SOURCE | FOR_JSON,
    .without = {"cache", "cache-size", "reader", "cpu"},
    .options = options,
    .examples = examples,
    .run = run,
};
