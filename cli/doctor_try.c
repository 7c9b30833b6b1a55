/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_try.c -- the remedies: threads, draft, caches, and packs of the sample in a temporary folder.
 */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "doctor.h"
#include "out.h"
#include "stop.h"

static const double pack_most_s = 2.5;

/* ------------------------------------------------------------------ options of the loader */

static void try_threads(struct doctor *d, const char *name, int threads, int remedy)
{
    struct doctor_run *r = doctor_add(d, name, DOCTOR_WHAT_IF);
    r->o.threads = threads;
    r->remedy = remedy;
    snprintf(r->change, sizeof r->change, "threads=%d", threads);
    doctor_open(d, r);
}

static void try_all_threads(struct doctor *d)
{
    const int now = d->runs[0].stats.threads;
    if (now > 1)
        try_threads(d, "half the threads", now / 2, 0);
    if (now < d->info.threads)
        try_threads(d, "all CPUs", d->info.threads, 1);
    else
        try_threads(d, "twice the threads", 2 * now, 1);
}

static void try_draft(struct doctor *d)
{
    if (!d->is_image || d->a->o.fidelity == STK_DRAFT)
        return;
    struct doctor_run *r = doctor_add(d, "draft", DOCTOR_WHAT_IF);
    r->o.fidelity = STK_DRAFT;
    r->same = 0;
    r->other = "large JPEGs are decoded at a smaller size";
    snprintf(r->change, sizeof r->change, "fidelity=\"draft\"");
    if (d->n_encoded == 0)
        doctor_fail(r, DOCTOR_SKIPPED, "nothing is decoded");
    doctor_open(d, r);
}

/* Memory for the whole dataset is judged by that of the sample. Without it, a folder is needed. */
static void try_cache(struct doctor *d, const char *name, stk_cache cache, const char *word)
{
    if (!d->is_image || (d->a->o.cache != STK_CACHE_DEFAULT && d->a->o.cache != STK_CACHE_NONE))
        return;
    struct doctor_run *r = doctor_add(d, name, DOCTOR_WHAT_IF);
    const int64_t memory = d->a->o.memory ? d->a->o.memory : d->info.memory;
    r->o.cache = cache;
    if (cache == STK_CACHE_DCT && d->n_encoded == 0)
        doctor_fail(r, DOCTOR_SKIPPED, "nothing is decoded");
    doctor_open(d, r);
    if (r->status != DOCTOR_OK)
        return;
    if (r->stats.cache_entries > 0)
        r->wanted_bytes = (double)r->stats.cache_bytes / (double)r->stats.cache_entries * (double)d->count;
    else
        doctor_fail(r, DOCTOR_SKIPPED, "there is nothing to keep: a cache of this kind does not help here");
    struct statvfs disk;
    double disk_bytes = 0;
    if (statvfs(d->info.cache_dir[0] ? d->info.cache_dir : "/", &disk) == 0)
        disk_bytes = (double)disk.f_bavail * (double)disk.f_frsize / 2;
    const int in_memory = r->wanted_bytes < 0.8 * (double)memory;
    r->fits = in_memory || r->wanted_bytes < disk_bytes;
    snprintf(r->change, sizeof r->change, in_memory ? "cache=\"%s\"" : "cache=\"%s\", cache_dir=\"DIR\"", word);
}

/* ------------------------------------------------------------------ packs */

static int pack_goes_on(void *user, const stk_pack_report *r)
{
    const double *until = user;
    (void)r;
    return stop_asked() || out_clock() > *until;
}

/* Packs the sample into r->source. `from` is the pack of the unchanged files, or NULL: the dataset. */
static int pack(struct doctor *d, struct doctor_run *r, const char *from, const char *ops, stk_pack_options p)
{
    double until = out_clock() + pack_most_s;
    stk_options o = {.source = from ? from : d->a->o.source,
                     .fields = from ? NULL : d->a->o.fields,
                     .subset = from ? NULL : d->subset,
                     .n_subset = from ? 0 : d->n,
                     .classes = from ? NULL : d->a->o.classes,
                     .n_classes = from ? 0 : d->a->o.n_classes,
                     .ops = ops,
                     .on_error = STK_SKIP,
                     .max_bad = 1,
                     .threads = d->a->o.threads,
                     .memory = d->a->o.memory ? d->a->o.memory : d->info.memory / 4,
                     .cache_dir = from ? "off" : d->a->o.cache_dir};
    stk_pack_report report = {0};
    stk_error e;
    p.out = r->source;
    p.progress = pack_goes_on;
    p.user = &until;
    if (doctor_left(d) <= 0) {
        doctor_fail(r, DOCTOR_SKIPPED, DOCTOR_NO_TIME);
        return -1;
    }
    doctor_say(r->name);
    const int rc = stk_pack(&o, &p, &report, &e);
    if (rc == STK_STOPPED)
        doctor_fail(r, DOCTOR_SKIPPED, "packing the sample takes too long");
    else if (rc != STK_OK)
        doctor_fail(r, DOCTOR_FAILED, e.reason);
    else if (report.samples == 0)
        doctor_fail(r, DOCTOR_FAILED, "no sample could be packed");
    if (r->status != DOCTOR_OK)
        return -1;
    r->wanted_bytes = (double)report.bytes_out / (double)report.samples * (double)d->count;
    r->o.opened = NULL;
    r->o.source = r->source;
    r->o.subset = NULL;
    r->o.n_subset = 0;
    return 0;
}

/* --classes as it may be typed; "" if a name has a comma or does not fit. */
static void classes_text(const stk_options *o, char *to, size_t n)
{
    to[0] = 0;
    for (int i = 0; i < o->n_classes; i++) {
        if (strchr(o->classes[i], ',') || out_add(to, n, i ? "," : "") || out_add(to, n, o->classes[i])) {
            to[0] = 0;
            return;
        }
    }
}

/* The command that packs the dataset as it is loaded here. Returns 0, or -1 if it does not fit. */
static int pack_command(const struct doctor *d, const char *options, char *to, size_t n)
{
    const stk_options *o = &d->a->o;
    char take[32], classes[600];
    snprintf(take, sizeof take, " --take %lld", (long long)o->take);
    classes_text(o, classes, sizeof classes);
    if (out_add(to, n, "stoker pack ") || out_add_quoted(to, n, d->a->operand) || out_add(to, n, " OUT") ||
        (o->take && out_add(to, n, take)) || (o->n_classes && !classes[0]))
        return -1;
    if (o->fields && (out_add(to, n, " --fields ") || out_add_quoted(to, n, o->fields)))
        return -1;
    if (o->n_classes && (out_add(to, n, " --classes ") || out_add_quoted(to, n, classes)))
        return -1;
    return options[0] ? out_add(to, n, " ") || out_add(to, n, options) ? -1 : 0 : 0;
}

static struct doctor_run *add_pack(struct doctor *d, const char *name, const char *folder, const char *options,
                                   const char *other)
{
    struct doctor_run *r = doctor_add(d, name, DOCTOR_WHAT_IF);
    snprintf(r->source, sizeof r->source, "%s/%s", d->scratch.path, folder);
    if (pack_command(d, options, r->change, sizeof r->change))
        r->change[0] = 0;
    r->same = !other;
    r->other = other;
    return r;
}

static void try_small_jpeg(struct doctor *d, const char *from)
{
    char options[80];
    snprintf(options, sizeof options, "--resize short=%d --as jpeg --quality 92", d->need_side);
    struct doctor_run *r = add_pack(d, "pack, small JPEG", "small", options, "images are shrunk and encoded again");
    if (d->short_side < 1.1 * d->need_side)
        doctor_fail(r, DOCTOR_SKIPPED, "the images are not larger than the ops need");
    else if (!pack(d, r, from, NULL,
                   (stk_pack_options){.as = STK_AS_JPEG, .quality = 92, .resize_short = d->need_side}))
        doctor_open(d, r);
}

static void try_raw(struct doctor *d, const char *from)
{
    char ops[80], options[160];
    snprintf(ops, sizeof ops, "Resize(%d) | CenterCrop(%d)", d->need_side, d->need_side);
    snprintf(options, sizeof options, "--ops \"%s\" --as raw", ops);
    struct doctor_run *r = add_pack(d, "pack, pixels", "raw", options, "images are shrunk and cropped to a square");
    if (!pack(d, r, from, ops, (stk_pack_options){.as = STK_AS_RAW}))
        doctor_open(d, r);
}

static void try_packs(struct doctor *d)
{
    if (!d->scratch.path[0] || d->n_encoded == 0 || d->need_side == 0)
        return;
    struct doctor_run *keep = add_pack(d, "pack, as it is", "keep", "", NULL);
    if (pack(d, keep, NULL, NULL, (stk_pack_options){.as = STK_AS_KEEP}))
        return;
    doctor_open(d, keep);
    struct doctor_run *dct = add_pack(d, "pack, coefficients", "dct", "--as dct", NULL);
    if (!pack(d, dct, keep->source, NULL, (stk_pack_options){.as = STK_AS_DCT}))
        doctor_open(d, dct);
    try_small_jpeg(d, keep->source);
    try_raw(d, keep->source);
}

void doctor_try(struct doctor *d)
{
    doctor_open(d, &d->runs[0]);
    doctor_open(d, &d->runs[1]);
    if (d->runs[0].status != DOCTOR_OK)
        return;
    try_all_threads(d);
    try_draft(d);
    try_cache(d, "cache of coefficients", STK_CACHE_DCT, "dct");
    try_cache(d, "cache of pixels", STK_CACHE_PIXELS, "pixels");
    try_packs(d);
}
