/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_verify.c -- stoker verify: decodes everything, and lists the bad samples.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/json.h"
#include "file.h"
#include "out.h"
#include "progress.h"
#include "stop.h"

struct verify {
    const struct args *a;
    struct progress progress;
    struct json json;
    int64_t samples, seen, bad, with_warnings;
    int64_t needs_memory, unlisted; /* of the bad samples */
    int64_t bad_files;              /* of a pack */
    FILE *list;                     /* the bad paths, in memory */
};

static void report(struct verify *v, const stk_finding *f)
{
    char reason[800];
    out_typed(reason, sizeof reason, f->reason ? f->reason : stk_code_words(f->code));
    if (v->a->json) {
        json_open(&v->json, NULL, '{');
        json_int(&v->json, "sample", f->sample);
        json_text(&v->json, "path", f->path);
        json_text(&v->json, "reason", reason);
        json_bool(&v->json, "needs_memory", f->needs_memory);
        json_close(&v->json, '}');
        return;
    }
    progress_clear(&v->progress);
    out_name(stdout, f->path);
    fputs(": ", stdout);
    out_name(stdout, reason);
    putchar('\n');
}

/* Leaves out samples that failed for lack of memory, which may be good, and names with a newline, which would read as
 * two. */
static void list(struct verify *v, const stk_finding *f)
{
    const int fits = !strchr(f->path, '\n');
    v->needs_memory += f->needs_memory;
    v->unlisted += !f->needs_memory && !fits;
    if (v->list && !f->needs_memory && fits)
        fprintf(v->list, "%s\n", f->path);
}

static int each(void *user, const stk_finding *f)
{
    struct verify *v = user;
    v->seen += f->run;
    v->with_warnings += f->code == STK_OK && f->warnings > 0 ? f->run : 0;
    if (f->code != STK_OK) {
        v->bad++;
        report(v, f);
        list(v, f);
    }
    progress_at(&v->progress, v->seen);
    return stop_asked();
}

static void summary(const struct verify *v, double seconds)
{
    const int64_t good = v->seen - v->bad;
    out_paint(stderr, v->bad ? PAINT_BAD : PAINT_GOOD);
    fprintf(stderr, "%s good, %s bad, %s with warnings", out_count(good).s, out_count(v->bad).s,
            out_count(v->with_warnings).s);
    out_paint(stderr, PAINT_PLAIN);
    if (v->seen < v->samples)
        fprintf(stderr, "  (stopped after %s of %s)\n", out_count(v->seen).s,
                out_some(v->samples, "sample", "samples").s);
    else
        fprintf(stderr, "  (%s in %s)\n", out_some(v->seen, "sample", "samples").s, out_seconds(seconds).s);
}

static void say_left_out(const struct verify *v)
{
    if (v->needs_memory)
        out_say("verify", "%s failed because --memory was too small; raise it%s",
                out_some(v->needs_memory, "sample", "samples").s, v->list ? "; not quarantined" : "");
    if (v->unlisted && v->list)
        out_say("verify", "%s with a newline in the name; not quarantined",
                out_some(v->unlisted, "bad sample", "bad samples").s);
}

static void json_tail(struct verify *v, int good, double seconds)
{
    json_close(&v->json, ']');
    json_int(&v->json, "samples", v->seen);
    json_int(&v->json, "good", v->seen - v->bad);
    json_int(&v->json, "bad", v->bad);
    json_int(&v->json, "warnings", v->with_warnings);
    json_int(&v->json, "bad_files", v->bad_files);
    json_real(&v->json, "seconds", seconds);
    json_bool(&v->json, "complete", good && v->seen == v->samples);
    out_json_error(&v->json);
    json_close(&v->json, '}');
}

/* Damaged files of a pack are counted apart from bad samples. */
static int each_file(void *user, const char *name, const char *reason, int64_t bytes)
{
    struct verify *v = user;
    (void)bytes;
    if (reason) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", v->a->operand, name);
        v->bad_files++;
        report(v, &(stk_finding){.sample = -1, .path = path, .reason = reason});
    }
    return stop_asked();
}

static int check_files(struct verify *v, stk_error *e)
{
    int64_t files = 0;
    const int rc = v->a->o.source ? stk_pack_check(v->a->o.source, each_file, v, &files, e) : STK_OK;
    if (files > 0)
        fprintf(stderr, "checksums match: %s of %s\n", out_count(files - v->bad_files).s,
                out_some(files, "file", "files").s);
    return rc == STK_STOPPED ? STK_OK : rc;
}

static int scan(struct verify *v, stk_error *e)
{
    stk_scan_options scan = args_scan(v->a);
    scan.decode = 1;
    scan.each = each;
    scan.user = v;
    const double began = out_clock();
    stk_source *s = NULL;
    int rc = check_files(v, e);
    if (rc == STK_OK)
        rc = args_open_source(v->a, &s, e);
    if (rc == STK_OK) {
        const int64_t n = stk_source_count(s);
        v->samples = scan.take > 0 && scan.take < n ? scan.take : n;
        progress_begin(&v->progress, "verify", v->samples);
        rc = stk_scan(s, &scan, e);
        progress_end(&v->progress);
    }
    stk_source_close(s);
    if (rc != STK_OK)
        return rc;
    fflush(stdout);
    summary(v, out_clock() - began);
    say_left_out(v);
    return STK_OK;
}

static int no_memory(stk_error *e, const char *what)
{
    *e = (stk_error){.code = STK_ENOMEM, .sample = -1};
    snprintf(e->text, sizeof e->text, "no memory for %s", what);
    return STK_ENOMEM;
}

/* Collects the list in memory, so that the file is either complete or not written. */
static int scan_and_list(struct verify *v, stk_error *e)
{
    char *text = NULL;
    size_t n = 0;
    if (v->a->quarantine && !(v->list = open_memstream(&text, &n)))
        return no_memory(e, "the list");
    int rc = scan(v, e);
    if (!v->list)
        return rc;
    if (fclose(v->list) && rc == STK_OK)
        rc = no_memory(e, "the list");
    if (rc == STK_OK)
        rc = file_write(v->a->quarantine, text, n, e);
    free(text);
    return rc;
}

static int run(struct args *a)
{
    struct verify v = {.a = a, .json = {.f = stdout}};
    stk_error e = {.sample = -1};
    const double began = out_clock();
    if (a->json) {
        json_open(&v.json, NULL, '{');
        json_text(&v.json, "source", a->operand);
        json_open(&v.json, "bad_samples", '[');
    }
    const int rc = scan_and_list(&v, &e);
    const int failed = rc == STK_OK ? END_GOOD : out_fail("verify", rc, &e);
    if (a->json)
        json_tail(&v, rc == STK_OK, out_clock() - began);
    if (failed)
        return failed;
    return stop_asked() ? END_INTERRUPTED : v.bad || v.bad_files ? END_BAD : END_GOOD;
}

static const struct args_option options[] = {
    {"quarantine", 0, ARGS_TEXT, 0, offsetof(struct args, quarantine), 0, 0, NULL, "FILE",
     "write the paths of the bad samples to FILE, one per line, byte for byte", NULL},
    {0},
};

static const char *const examples[] = {
    "stoker verify train/",
    "decode every image completely; print one line `path: reason` per bad one",
    "stoker verify photo.jpg",
    "check one image",
    "stoker verify train/ --quarantine bad.txt",
    "also write the paths of the bad samples to bad.txt",
    "xargs -d '\\n' cp --parents -t rejected -- < bad.txt && xargs -d '\\n' rm -- < bad.txt   "
    "# after stoker verify --quarantine bad.txt and mkdir rejected",
    "move them out of the dataset into rejected/, and keep their folders",
    "stoker verify big.csv --memory 1G --threads 4",
    "stay within a memory limit; an image that needs more is listed as bad, but never quarantined",
    NULL,
};

const struct command cmd_verify = {
    .name = "verify",
    .operand = "SRC",
    .summary = "decode everything; print one line `path: reason` per bad sample",
    .about =
        "Decodes every sample completely. For each bad sample, prints a line `path: reason` on stdout, in the order "
        "of the source. Control characters in a name are printed as \\xNN. For a pack, first checks the checksum of "
        "every file and the number of samples. The exit status is 0 if all samples are good, and 1 if some are bad.",
    .ends_1 = "for bad samples",
    .groups = FOR_SOURCE | FOR_JSON,
    .without = {"cache", "cache-size", "reader"},
    .options = options,
    .examples = examples,
    .run = run,
};
