/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_doctor.c -- stoker doctor: what this machine delivers from a dataset, what limits it, and what would help.
 */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/json.h"
#include "doctor.h"
#include "out.h"
#include "stop.h"
#include "table.h"

#define DEFAULT_OPS "RandomResizedCrop(224) | RandomHorizontalFlip | Normalize"

/* Shares of the time. After them, no new loader is opened, no turn starts, and no pack is read. */
static const double opening = 0.6, turning = 0.85, reading = 0.92;

/* ------------------------------------------------------------------ text */

static double work_s(const stk_stats *s)
{
    return s->read_s + s->decode_s + s->transform_s + s->op_s;
}

static double share_of(const stk_stats *s, const char *limit)
{
    const double part = strcmp(limit, "decode") == 0      ? s->decode_s
                        : strcmp(limit, "transform") == 0 ? s->transform_s
                                                          : s->read_s;
    return work_s(s) > 0 ? part / work_s(s) : 0;
}

/* Images far larger than the ops need cost decoding time, reading time and disk. */
static double times_too_large(const struct doctor *d)
{
    const double need = (double)d->need_side * d->need_side * d->aspect;
    return need > 0 && d->n_encoded > 0 ? d->pixels / need : 0;
}

static void print_limit(const struct doctor *d, const struct doctor_verdict *v)
{
    const struct doctor_run *now = &d->runs[0];
    if (strcmp(v->limit, "storage") == 0)
        printf(
            " Storage limits it: the dataset does not fit into memory, and with files in memory it would be %s %s/s.",
            out_real(now->rate, 0).s, d->what);
    else if (strcmp(v->limit, "copying") == 0)
        printf(" Nothing is decoded: rows are only copied.");
    else
        printf(" %s limits it: %s of the work of %s.",
               v->limit[0] == 'd'   ? "Decoding"
               : v->limit[0] == 't' ? "Transforming"
                                    : "Reading",
               out_share(share_of(&now->stats, v->limit), 1).s, out_some(now->stats.threads, "thread", "threads").s);
    if (times_too_large(d) >= 4)
        printf(" The images are %s times larger than the ops need.", out_real(times_too_large(d), 0).s);
}

/* What to type, or the run's name if that does not fit. */
static const char *what_of(const struct doctor_run *r)
{
    return r->change[0] ? r->change : r->name;
}

static void print_remedy(const struct doctor *d, const struct doctor_verdict *v, const struct doctor_run *r)
{
    printf(" `%s` makes it %s times as fast (%s %s/s), %s%s.", what_of(r),
           out_real(doctor_gain_of(d, r, v->is_cold), 2).s, out_real(doctor_rate_of(r, v->is_cold), 0).s, d->what,
           r->same ? "" : "but ", r->same ? "with the same pixels" : r->other);
}

static int n_untried(const struct doctor *d)
{
    int n = 0;
    for (int i = 0; i < d->n_runs; i++)
        n += d->runs[i].status == DOCTOR_SKIPPED && strcmp(d->runs[i].reason, DOCTOR_NO_TIME) == 0;
    return n;
}

static void print_need(const struct doctor *d, const struct doctor_verdict *v)
{
    const struct doctor_run *top = v->bolder ? v->bolder : v->best;
    const double rate = top ? doctor_rate_of(top, v->is_cold) : v->rate;
    out_paint(stdout, PAINT_BOLD);
    printf("%s %s/s: ", out_count(d->a->need).s, d->what);
    out_paint(stdout, PAINT_PLAIN);
    if (v->enough == &d->runs[0])
        puts("delivered as it is.");
    else if (v->enough)
        printf("not as it is, but with `%s` (%s).\n", what_of(v->enough),
               out_real(doctor_rate_of(v->enough, v->is_cold), 0).s);
    else
        printf("not reachable %s", n_untried(d) ? "with what was tried" : "here");
    if (!v->enough && rate > 0)
        printf("; the best is %s, so use about %s machines like this one, or smaller images", out_real(rate, 0).s,
               out_real((double)d->a->need / rate, 1).s);
    if (!v->enough)
        puts(".");
}

static void print_sentence(const struct doctor *d, const struct doctor_verdict *v)
{
    out_paint(stdout, PAINT_BOLD);
    out_name(stdout, d->a->operand);
    printf(" delivers %s %s/s here.", out_real(v->rate, 0).s, d->what);
    out_paint(stdout, PAINT_PLAIN);
    print_limit(d, v);
    if (v->best)
        print_remedy(d, v, v->best);
    if (v->bolder)
        print_remedy(d, v, v->bolder);
    if (!v->best && !v->bolder)
        printf(" Nothing to gain: no remedy that was tried makes it faster by 15 %%.");
    putchar('\n');
    if (d->a->need)
        print_need(d, v);
}

static const char *needs_of(const struct doctor_run *r, char *buf, size_t n)
{
    buf[0] = 0;
    if (r->status != DOCTOR_OK)
        snprintf(buf, n, "%s: %.100s", r->status == DOCTOR_FAILED ? "failed" : "skipped", r->reason);
    else if (r->wanted_bytes > 0)
        snprintf(buf, n, "%s of %s%s", out_bytes((int64_t)r->wanted_bytes).s, r->source[0] ? "disk" : "memory",
                 r->fits ? "" : ": too much");
    return buf;
}

static void print_runs(const struct doctor *d, const struct doctor_verdict *v)
{
    struct table t = {0};
    char rate[24], needs[200];
    snprintf(rate, sizeof rate, ">%s/s", d->what);
    table_head(&t, "<what", rate, ">gain", ">cold", "<pixels", "<needs", NULL);
    for (int i = 0; i < d->n_runs; i++) {
        const struct doctor_run *r = &d->runs[i];
        const double gain = doctor_gain_of(d, r, v->is_cold);
        const int shows = r->status == DOCTOR_OK && r->n_rates > 0;
        struct out_text times = {""};
        if (shows && r->kind == DOCTOR_WHAT_IF && gain > 0)
            snprintf(times.s, sizeof times.s, "%.2f x", gain);
        table_row(&t, r->change[0] && !r->source[0] ? r->change : r->name, shows ? out_real(r->rate, 0).s : "", times.s,
                  r->cold > 0 ? out_real(r->cold, 0).s : "",
                  r->kind != DOCTOR_WHAT_IF || r->status != DOCTOR_OK ? ""
                  : r->same                                           ? "same"
                                                                      : "differ",
                  needs_of(r, needs, sizeof needs), NULL);
    }
    putchar('\n');
    table_print(&t, stdout);
}

static void line(const char *name)
{
    printf("  %-9s ", name);
}

static void print_storage(const struct doctor *d)
{
    line("storage");
    if (d->no_cold[0]) {
        printf("cold storage was not measured: %s\n", d->no_cold);
        return;
    }
    if (d->resident >= 0)
        printf("%s of the subset was in memory at the start", out_share(d->resident, 1).s);
    if (d->cold_bytes_s > 0)
        printf("; after dropping it, files are read at %s/s", out_bytes((int64_t)d->cold_bytes_s).s);
    putchar('\n');
}

static void print_stages(const struct doctor *d)
{
    const struct doctor_run *now = &d->runs[0];
    const double n = now->stats.samples > 0 ? (double)now->stats.samples : 1;
    if (work_s(&now->stats) > 0) {
        line("stages");
        printf("read %s µs, decode %s µs, transform %s µs per sample, on one thread\n",
               out_real(now->stats.read_s / n * 1e6, 0).s, out_real(now->stats.decode_s / n * 1e6, 0).s,
               out_real((now->stats.transform_s + now->stats.op_s) / n * 1e6, 0).s);
    }
    line("cores");
    printf("%s on %s; they used %s cores", out_some(now->stats.threads, "thread", "threads").s,
           out_some(d->info.threads, "CPU", "CPUs").s, out_real(now->seconds > 0 ? now->cpu_s / now->seconds : 0, 1).s);
    if (doctor_is_crowded(d))
        printf("; other programs use these CPUs, so all figures are too low, but gains hold");
    putchar('\n');
}

static void print_size(const struct doctor *d)
{
    if (d->n_sized == 0)
        return;
    line("size");
    printf("%s megapixels on average", out_real(d->pixels * 1e-6, 2).s);
    if (d->need_side > 0 && d->n_encoded > 0) {
        const double times = times_too_large(d);
        printf("; the ops need about %s (shorter side %d)", out_real(d->pixels / times * 1e-6, 2).s, d->need_side);
        if (times >= 2)
            printf(": the images are %s times larger than needed", out_real(times, 1).s);
    }
    putchar('\n');
}

static void print_bads(const struct doctor *d)
{
    if (d->n_bad == 0)
        return;
    line("bad");
    out_paint(stdout, PAINT_BAD);
    char command[600] = "stoker verify ";
    const int fits = !out_add_quoted(command, sizeof command, d->a->operand);
    printf("%s of the subset%s%s%s\n", out_some(d->n_bad, "file", "files").s, fits ? "; `" : "", fits ? command : "",
           fits ? "` lists all of them" : "");
    out_paint(stdout, PAINT_PLAIN);
    for (int64_t i = 0; i < d->n_bad && i < DOCTOR_BADS; i++) {
        line("");
        out_name(stdout, d->bads[i]);
        putchar('\n');
    }
}

static void print_change(const struct doctor *d, const struct doctor_run *r)
{
    if (r->source[0]) {
        printf("\n  %s\n  and read OUT instead\n", r->change);
        return;
    }
    printf("\n  stoker.Loader(\"");
    for (const char *p = d->a->operand; *p; p++) {
        const char one[] = {*p, 0};
        if (*p == '"' || *p == '\\')
            putchar('\\');
        out_name(stdout, one);
    }
    printf("\", ..., %s)\n", r->change);
}

static void print_text(const struct doctor *d, const struct doctor_verdict *v)
{
    print_sentence(d, v);
    if (d->stopped)
        puts("Stopped in the middle: this is what is known so far.");
    const struct doctor_run *advice[] = {v->best, v->bolder};
    for (int i = 0; i < 2; i++)
        if (advice[i] && advice[i]->change[0])
            print_change(d, advice[i]);
    print_runs(d, v);
    putchar('\n');
    line("subset");
    printf("%s of %s samples, %s, in blocks spread over the dataset\n", out_count(d->n).s, out_count(d->count).s,
           out_bytes(d->bytes).s);
    line("ops");
    puts(d->ops && d->ops[0] ? d->ops : "none");
    print_stages(d);
    print_storage(d);
    line("memory");
    printf("%s for a loader; the dataset has about %s%s\n", out_bytes(d->info.memory).s,
           out_bytes((int64_t)((double)d->bytes / (double)d->n * (double)d->count)).s,
           v->is_cold ? " and does not stay in memory between epochs" : "");
    print_size(d);
    print_bads(d);
}

/* ------------------------------------------------------------------ JSON */

static void json_positive(struct json *j, const char *key, double v)
{
    if (v > 0)
        json_real(j, key, v);
    else
        json_raw(j, key, "null");
}

static void json_run(struct json *j, const struct doctor *d, const struct doctor_run *r)
{
    static const char *const kinds[] = {"baseline", "ceiling", "what-if"}, *const ends[] = {"ok", "failed", "skipped"};
    json_open(j, NULL, '{');
    json_text(j, "name", r->name);
    json_text(j, "kind", kinds[r->kind]);
    json_text(j, "status", ends[r->status]);
    json_text(j, "reason", r->reason[0] ? r->reason : NULL);
    json_positive(j, "samples_per_s", r->rate);
    json_positive(j, "cold_samples_per_s", r->cold);
    json_open(j, "turns", '[');
    for (int i = 0; i < r->n_rates; i++)
        json_real(j, NULL, r->rates[i]);
    json_close(j, ']');
    json_positive(j, "gain", r->kind == DOCTOR_WHAT_IF ? r->gain : 0);
    json_positive(j, "cold_gain",
                  r->cold > 0 && d->runs[0].cold > 0 && r->kind == DOCTOR_WHAT_IF ? r->cold / d->runs[0].cold : 0);
    json_int(j, "threads", r->stats.threads);
    json_positive(j, "needs_bytes", r->wanted_bytes);
    json_bool(j, "fits", r->fits);
    json_text(j, "change", r->change[0] ? r->change : NULL);
    json_bool(j, "same_result", r->same);
    json_close(j, '}');
}

static void json_remedy(struct json *j, const char *key, const struct doctor *d, const struct doctor_verdict *v,
                        const struct doctor_run *r)
{
    if (!r) {
        json_raw(j, key, "null");
        return;
    }
    json_open(j, key, '{');
    json_text(j, "id", v->limit);
    json_text(j, "run", r->name);
    json_text(j, "change", r->change);
    json_positive(j, "gain", doctor_gain_of(d, r, v->is_cold));
    json_positive(j, "samples_per_s", doctor_rate_of(r, v->is_cold));
    json_bool(j, "same_result", r->same);
    json_close(j, '}');
}

static void json_stages(struct json *j, const struct doctor_run *now)
{
    const double n = now->stats.samples > 0 ? (double)now->stats.samples : 1;
    json_open(j, "stages", '{');
    json_real(j, "read_us", now->stats.read_s / n * 1e6);
    json_real(j, "decode_us", now->stats.decode_s / n * 1e6);
    json_real(j, "transform_us", (now->stats.transform_s + now->stats.op_s) / n * 1e6);
    json_close(j, '}');
}

static void json_machine(struct json *j, const struct doctor *d)
{
    json_open(j, "machine", '{');
    json_int(j, "cpus", d->info.threads);
    json_positive(j, "quota", d->info.cpus_quota);
    json_int(j, "memory", d->info.memory_total);
    json_int(j, "loader_memory", d->info.memory);
    json_positive(j, "cores_used", d->runs[0].seconds > 0 ? d->runs[0].cpu_s / d->runs[0].seconds : 0);
    json_close(j, '}');
}

static void json_image(struct json *j, const struct doctor *d)
{
    if (d->n_sized == 0) {
        json_raw(j, "image", "null");
        return;
    }
    json_open(j, "image", '{');
    json_real(j, "megapixels", d->pixels * 1e-6);
    json_real(j, "short_side", d->short_side);
    json_int(j, "needed_side", d->need_side);
    json_positive(j, "times_needed", times_too_large(d));
    json_close(j, '}');
}

static void json_bads(struct json *j, const struct doctor *d)
{
    json_int(j, "bad", d->n_bad);
    json_open(j, "bad_samples", '[');
    for (int64_t i = 0; i < d->n_bad && i < DOCTOR_BADS; i++)
        json_text(j, NULL, d->bads[i]);
    json_close(j, ']');
}

static void print_json(const struct doctor *d, const struct doctor_verdict *v)
{
    struct json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "stoker-doctor/1");
    json_text(&j, "form", "data");
    json_text(&j, "source", d->a->operand);
    json_int(&j, "samples", d->count);
    json_int(&j, "sampled", d->n);
    json_text(&j, "ops", d->ops ? d->ops : "");
    json_real(&j, "seconds", out_clock() - d->began);
    json_machine(&j, d);
    json_open(&j, "runs", '[');
    for (int i = 0; i < d->n_runs; i++)
        json_run(&j, d, &d->runs[i]);
    json_close(&j, ']');
    json_stages(&j, &d->runs[0]);
    json_open(&j, "storage", '{');
    json_positive(&j, "resident", d->resident);
    json_positive(&j, "cold_bytes_per_s", d->cold_bytes_s);
    json_text(&j, "reason", d->no_cold[0] ? d->no_cold : NULL);
    json_bool(&j, "fits_in_memory", !v->is_cold);
    json_close(&j, '}');
    json_image(&j, d);
    json_bads(&j, d);
    json_text(&j, "limit", v->limit);
    json_positive(&j, "samples_per_s", v->rate);
    json_remedy(&j, "verdict", d, v, v->best ? v->best : v->bolder);
    json_remedy(&j, "next", d, v, v->best ? v->bolder : NULL);
    if (d->a->need) {
        json_int(&j, "need", d->a->need);
        json_bool(&j, "reachable", v->enough != NULL);
        json_text(&j, "reached_by", v->enough ? v->enough->name : NULL);
    }
    json_bool(&j, "complete", !d->stopped);
    out_json_error(&j);
    json_close(&j, '}');
}

/* ------------------------------------------------------------------ the command */

static int examine(struct doctor *d, stk_error *e)
{
    d->began = out_clock();
    d->deadline = d->began + d->a->seconds;
    const int rc = doctor_begin(d, e);
    if (rc == STK_OK) {
        const double from = d->began + d->open_s, seconds = (double)d->a->seconds;
        d->deadline = from + opening * seconds;
        doctor_cold(d);
        doctor_try(d);
        d->deadline = from + turning * seconds;
        doctor_turns(d);
        d->deadline = from + reading * seconds;
        doctor_cold_packs(d);
    }
    doctor_say("");
    d->stopped = stop_asked();
    return rc;
}

static int run(struct args *a)
{
    struct doctor d = {.a = a};
    stk_error e = {.sample = -1};
    int end;
    const int rc = examine(&d, &e);
    if (rc == STK_STOPPED || (d.stopped && d.runs[0].n_rates == 0)) {
        end = END_INTERRUPTED;
    } else if (rc != STK_OK) {
        end = out_fail("doctor", rc, &e);
    } else if (d.runs[0].n_rates == 0) {
        out_say("doctor", "%s cannot be loaded: %s", a->operand, d.runs[0].reason);
        end = END_BAD;
    } else {
        const struct doctor_verdict v = doctor_judge(&d);
        if (a->json)
            print_json(&d, &v);
        else
            print_text(&d, &v);
        end = d.stopped ? END_INTERRUPTED : v.something ? END_BAD : END_GOOD;
    }
    doctor_end(&d);
    return end;
}

static void defaults(struct args *a)
{
    a->o.ops = DEFAULT_OPS;
    a->seconds = 20;
}

static const struct args_option options[] = {
    {"need", 0, ARGS_INT64, 0, offsetof(struct args, need), 1, 1000000000, NULL, "N",
     "report whether N samples/s can be reached, and by which remedy", NULL},
    {"seconds", 0, ARGS_INT, 0, offsetof(struct args, seconds), 2, 3600, NULL, "N",
     "the time for all measurements, without the time to open the dataset", "20"},
    {0},
};

static const char *const examples[] = {
    "stoker doctor train/",
    "print how many images/s this machine delivers for ImageNet training, what limits it, and the gain of every remedy",
    "stoker doctor 'shards-{0000..0127}.tar' --ops \"Resize(256) | CenterCrop(224) | Normalize\" --need 5000",
    "report whether 5,000 images/s can be reached, and how",
    "stoker doctor train.py --lr 0.1",
    "run a training script for a minute, find out by experiment what it waits for, and print the change that helps",
    "stoker doctor -- torchrun --nproc-per-node 4 train.py",
    "the same for a script with a launcher",
    "stoker doctor compare before.json after.json",
    "compare two reports of scripts (--json)",
    NULL,
};

const struct command cmd_doctor = {
    .name = "doctor",
    .operand = "DATA",
    .summary = "find out what limits a dataset or a training script, and what would help",
    .about =
        "DATA is a dataset (see `stoker help`). If it is a .py file, or if a command follows after --, the doctor "
        "examines a training script instead. This needs the Python package; `python3 -m stoker.doctor --help` lists "
        "the options for scripts.\n"
        "For a dataset, the doctor reads a subset of it within 20 s: from cold storage, with files in memory, with "
        "fewer and more threads, in draft quality, with caches, and as packs in a temporary folder, which is removed. "
        "These take turns, so that a busy machine slows down all of them alike. The doctor prints what it measured, "
        "and the argument or command with the largest gain.",
    .ends_0 = "if there is nothing to gain",
    .ends_1 = "if there is, or if samples are bad",
    .groups = FOR_SOURCE | FOR_PIXELS | FOR_FORM | FOR_JSON,
    .without = {"shuffle", "no-shuffle", "cache-size"},
    .options = options,
    .examples = examples,
    .defaults = defaults,
    .run = run,
    .instead = doctor_python,
};
