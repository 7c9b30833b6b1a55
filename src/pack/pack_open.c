/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_open.c -- everything before the first sample is packed: options, the recipe, the target, the estimate of size
 * and time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "loader.h"
#include "pack/packer.h"

enum { PROBES = 24 };
static const int64_t shard_size = (int64_t)256 << 20, margin = (int64_t)64 << 20;

/* ------------------------------------------------------------------ options */

static int usage(const char *words, stk_error *e)
{
    return error_set(e, STK_EUSAGE, "pack", "%s", words);
}

/* Parses the ops for some image size, so that mistakes are reported before anything is opened. */
static int check_ops(const struct packer *p, stk_error *e)
{
    const struct plan_options o = {.ops = p->options.ops,
                                   .dtype = STK_UINT8,
                                   .layout = STK_NHWC,
                                   .fidelity = STK_EXACT,
                                   .cpu = p->options.cpu,
                                   .fixed_w = 64,
                                   .fixed_h = 64};
    struct plan *plan;
    int rc = plan_new(&plan, &o, e);
    if (rc != STK_OK)
        return rc;
    const char *random = plan_random(plan);
    if (random)
        rc = error_set(
            e, STK_EUSAGE, "ops",
            "%s is random, but a pack has the same pixels in every epoch; give this op to the loader instead", random);
    else if (plan_crops(plan) > 1)
        rc = error_set(e, STK_EUSAGE, "ops",
                       "FiveCrop and TenCrop make several images, but a sample of a pack has one; give this op to the "
                       "loader instead");
    plan_free(plan);
    return rc;
}

/* Refuses forms of images that the target cannot hold. */
static int check_form(const struct packer *p, stk_error *e)
{
    const stk_pack_options *how = &p->how;
    const bool pixels = how->resize_short || how->resize_long || (p->options.ops && p->options.ops[0]);
    if (how->to == STK_TO_NPY && how->as != STK_AS_RAW)
        return usage("npy stores only raw pixels: omit --as, or pack to tar, tfrecord, hdf5 or folder", e);
    if (how->to == STK_TO_NPY && p->options.on_error == STK_SKIP)
        return usage(
            "npy has a row for every sample, so bad samples cannot be skipped: omit --on-error skip, or pack to "
            "another target",
            e);
    if (how->as == STK_AS_RAW && (how->to == STK_TO_TFRECORD || how->to == STK_TO_FOLDER))
        return usage("raw images can only be read back from tar, hdf5 and npy: pack to one of these, or use --as png, "
                     "which keeps the same pixels",
                     e);
    if (how->as == STK_AS_DCT && how->to != STK_TO_TAR)
        return usage("dct works only with tar shards: omit --to, or use --as jpeg", e);
    if (how->as == STK_AS_DCT && pixels)
        return usage("dct keeps the pixels of a JPEG, which --resize and --ops change: pack with --as jpeg first, then "
                     "that pack with --as dct",
                     e);
    return STK_OK;
}

static int check(struct packer *p, stk_error *e)
{
    stk_pack_options *how = &p->how;
    how->to = how->to == STK_TO_DEFAULT ? STK_TO_TAR : how->to;
    if (how->as == STK_AS_DEFAULT)
        how->as = how->to == STK_TO_NPY ? STK_AS_RAW : STK_AS_KEEP;
    how->shard_size = how->shard_size == 0 ? shard_size : how->shard_size;
    if (!how->out || !how->out[0])
        return usage("there is no output folder: set `out`", e);
    if ((int)how->to < STK_TO_TAR || (int)how->to > STK_TO_FOLDER)
        return usage("to must be tar, tfrecord, hdf5, npy or folder", e);
    if ((int)how->as < STK_AS_KEEP || (int)how->as > STK_AS_DCT)
        return usage("as must be keep, jpeg, webp, png, raw or dct", e);
    const int rc = check_form(p, e);
    if (rc != STK_OK)
        return rc;
    if (how->quality < 0 || how->quality > 100)
        return usage("quality must be from 1 to 100", e);
    if (how->shard_size < 0 || how->resize_short < 0 || how->resize_long < 0)
        return usage("shard_size, resize_short and resize_long must not be negative", e);
    if (how->resize_short && how->resize_long)
        return usage("resize takes the short side or the long side, not both", e);
    if (p->options.fidelity == STK_DRAFT)
        return usage("a pack is always exact: omit fidelity draft, and give it to the loader instead", e);
    if (p->options.on_error == STK_REPLACE)
        return usage("on_error must be raise or skip: with replace, some samples would be in the pack twice", e);
    return check_ops(p, e);
}

/* ------------------------------------------------------------------ the recipe */

/* Adds one option to the recipe. Control characters become spaces, because a tab separates options. */
static int add_word(struct buf *b, const char *name, const char *value)
{
    const size_t start = b->len;
    if (buf_printf(b, "%s%s=%s", b->len ? "\t" : "", name, value))
        return -1;
    for (size_t i = start + 1; i < b->len; i++)
        if (b->data[i] < 0x20)
            b->data[i] = ' ';
    return 0;
}

static int add_number(struct buf *b, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return add_word(b, name, text);
}

static uint64_t fingerprint(const struct packer *p)
{
    const stk_options *o = &p->options;
    const uint64_t all = source_fingerprint(p->source);
    const uint64_t some = o->subset ? hash_bytes(o->subset, (size_t)o->n_subset * sizeof *o->subset, 0) : 0;
    return o->subset || o->take ? hash_mix(hash_mix(all, some), (uint64_t)o->take) : all;
}

static int write_recipe(struct packer *p, uint64_t print, stk_error *e)
{
    static const char *const tos[] = {"", "tar", "tfrecord", "hdf5", "npy", "folder"};
    static const char *const ass[] = {"", "keep", "jpeg", "webp", "png", "raw", "dct"};
    const stk_pack_options *h = &p->how;
    const stk_options *o = &p->options;
    struct buf *b = &p->recipe;
    char text[64];
    int rc = add_number(b, "version", 1) || add_word(b, "to", tos[h->to]) || add_word(b, "as", ass[h->as]) ||
             add_number(b, "quality", h->quality ? h->quality : 90) || add_number(b, "shard-size", h->shard_size);
    snprintf(text, sizeof text,
             h->resize_short  ? "short=%d"
             : h->resize_long ? "long=%d"
                              : "none%.0d",
             h->resize_short ? h->resize_short : h->resize_long);
    rc = rc || add_word(b, "resize", text) || add_number(b, "baseline", h->baseline != 0) ||
         add_number(b, "exif", !o->no_exif);
    snprintf(text, sizeof text, "%" PRIu64, o->seed);
    const char *shuffled = order_shuffles_few(&p->order) ? "shuffled-2" : "shuffled"; /* since ORDER_VERSION 2 */
    rc = rc || add_word(b, "order", o->shuffle ? shuffled : "source") || add_word(b, "seed", o->shuffle ? text : "0") ||
         add_word(b, "on-error", o->on_error == STK_SKIP ? "skip" : "raise") || add_number(b, "samples", p->n);
    snprintf(text, sizeof text, "%016" PRIx64, print);
    rc = rc || add_word(b, "source", text) || add_word(b, "fields", o->fields ? o->fields : "") ||
         add_word(b, "ops", o->ops ? o->ops : "") || buf_add(b, "", 1);
    return rc ? error_nomem(e, "pack", b->len) : STK_OK;
}

/* ------------------------------------------------------------------ opening */

int64_t packer_sample(const struct packer *p, struct walk *w, int64_t position)
{
    const int64_t i = order_at(&p->order, w, 0, position).index;
    return p->options.subset ? p->options.subset[i] : i;
}

/* The suffix of all images, if --as decides it. NULL: images keep their own, or there are no files. */
static const char *suffix_of(const struct packer *p)
{
    static const char *const made[] = {[STK_AS_JPEG] = "jpg", [STK_AS_WEBP] = "webp", [STK_AS_PNG] = "png"};
    bool pixels = p->how.as == STK_AS_RAW;
    for (int f = 0; f < source_n_fields(p->source) && p->how.as == STK_AS_KEEP; f++)
        pixels |= source_field(p->source, f)->kind == FIELD_PIXELS;
    if (pixels)
        return p->how.to == STK_TO_TAR ? "npy" : packer_into_arrays(p) ? NULL : "png";
    return p->how.as <= STK_AS_PNG ? made[p->how.as] : NULL;
}

static int open_source(struct packer *p, stk_error *e)
{
    const stk_options *o = &p->options;
    int rc = options_source(o, true, &p->source, e);
    if (rc != STK_OK)
        return rc;
    if (source_fills_rows(p->source))
        return usage("a source with fill() has no stored samples to pack", e);
    rc = options_check_subset(o->subset, o->n_subset, source_count(p->source), e);
    if (rc != STK_OK)
        return rc;
    p->n = o->subset ? o->n_subset : source_count(p->source);
    p->n = o->take > 0 && o->take < p->n ? o->take : p->n;
    if (p->n == 0)
        return usage("the source has no samples", e);
    p->report.total = p->n;
    p->order = (struct order){.n = p->n,
                              .samples = p->n,
                              .batch_size = 1,
                              .world = 1,
                              .seed = o->seed,
                              .shuffle = o->shuffle != 0,
                              .resumed_epoch = -1};
    char path[4096];
    int dir;
    p->names = source_file(p->source, 0, &dir, path, sizeof path) || source_keys_are_files(p->source);
    p->suffix = suffix_of(p);
    return packer_columns(p, e);
}

static int open_target(struct packer *p, stk_error *e)
{
    const bool by_folder = p->how.to == STK_TO_FOLDER; /* folders are classes only if there is a label */
    const int n = by_folder && !packer_labels(p) ? 0 : source_n_classes(p->source);
    p->classes = calloc((size_t)n + 1, sizeof *p->classes);
    if (!p->classes)
        return error_nomem(e, "pack", (size_t)n * sizeof *p->classes);
    for (int i = 0; i < n; i++)
        p->classes[i] = source_class(p->source, i);
    const uint64_t print = fingerprint(p);
    const int rc = write_recipe(p, print, e);
    if (rc != STK_OK)
        return rc;
    const struct target_options o = {.out = p->how.out,
                                     .to = p->how.to,
                                     .shard_size = p->how.shard_size,
                                     .samples = p->n,
                                     .recipe = (const char *)p->recipe.data,
                                     .force = p->how.force != 0,
                                     .classes = p->classes,
                                     .n_classes = n,
                                     .fingerprint = print,
                                     .columns = p->columns,
                                     .n_columns = p->n_columns,
                                     .fields = (const char *)p->fields.data,
                                     .files = p->names};
    return target_open(&p->target, &o, e);
}

static int open_workers(struct packer *p, stk_error *e)
{
    const int n = p->options.threads;
    budget_init(&p->budget, (size_t)p->options.memory / 2, n);
    p->workers = calloc((size_t)n, sizeof *p->workers);
    if (!p->workers)
        return error_nomem(e, "pack", (size_t)n * sizeof *p->workers);
    for (int i = 0; i < n; i++) {
        p->workers[i].walk.pass = -1;
        const int rc = desk_init(&p->workers[i].desk, i, &p->budget, true, p->options.cpu, e);
        if (rc != STK_OK)
            return rc;
    }
    return STK_OK;
}

/* Makes the keys of samples that an earlier run has packed: later keys depend on them. */
static int repeat_keys(struct packer *p, stk_error *e)
{
    struct packed s = {0};
    struct walk walk = {.pass = -1};
    int rc = STK_OK;
    for (int64_t i = 0; i < p->target.next && rc == STK_OK; i++) {
        s.sample = packer_sample(p, &walk, i);
        rc = packer_key(p, &s, e);
    }
    buf_done(&s.key);
    return rc;
}

int packer_open(struct packer *p, stk_error *e)
{
    int rc = check(p, e);
    if (rc != STK_OK) {
        options_close(&p->options);
        return rc;
    }
    rc = open_source(p, e);
    if (rc == STK_OK)
        rc = open_target(p, e);
    p->report.resumed = p->target.written;
    if (rc == STK_OK && !p->target.complete)
        rc = open_workers(p, e);
    if (rc == STK_OK && !p->target.complete)
        rc = repeat_keys(p, e);
    return rc;
}

void packer_close(struct packer *p)
{
    target_done(&p->target);
    for (int i = 0; p->workers && i < p->options.threads; i++)
        desk_done(&p->workers[i].desk);
    if (p->workers)
        budget_done(&p->budget);
    free(p->workers);
    free(p->classes);
    keys_done(&p->keys);
    buf_done(&p->recipe);
    buf_done(&p->fields);
    source_close(p->source);
}

/* ------------------------------------------------------------------ the estimate */

struct probe {
    int64_t samples, bytes_in, bytes_out;
    uint64_t ns;
};

/* Packs a few samples from all over the dataset and discards them. Bad samples are reported later, when it is their
 * turn. An impossible request fails here, before anything is written. */
static int probe(struct packer *p, struct probe *out, stk_error *e)
{
    int rc = STK_OK;
    bool tried = false;
    struct packed s = {0};
    struct pack_worker *b = &p->workers[0];
    const int64_t left = p->n - p->target.next, n = left < PROBES ? left : PROBES;
    for (int64_t i = 0; i < n && rc == STK_OK; i++) {
        const uint64_t began = now_ns();
        const int64_t sample = packer_sample(p, &b->walk, p->target.next + left * i / n);
        const int made = packer_make(p, &b->desk, sample, &s, e);
        if (made == STK_EUSAGE) {
            loader_blame(p->source, sample, e);
            rc = made;
        }
        if (made != STK_OK)
            continue;
        if (!tried && p->target.next == 0)
            rc = packer_trial(p, &s, &tried, e);
        out->ns += now_ns() - began;
        out->samples++;
        out->bytes_in += s.bytes_in;
        /* In a tar, a field has a header, and half a block of padding on average. */
        out->bytes_out += (int64_t)s.bytes.len + (p->how.to == STK_TO_TAR ? 768 : 32) * s.n_fields;
    }
    buf_done(&s.bytes);
    buf_done(&s.key);
    return rc;
}

static int no_room(const struct packer *p, int64_t needs, stk_error *e)
{
    const int rc =
        error_set(e, STK_EIO, "pack",
                  "the disk has %lld MiB free, but about %lld MiB are needed, and %lld MiB must remain free; "
                  "make room, or choose another disk",
                  (long long)(p->report.free_bytes >> 20), (long long)(needs >> 20), (long long)(margin >> 20));
    error_at(e, p->how.out, -1);
    return rc;
}

int packer_estimate(struct packer *p, stk_error *e)
{
    struct probe seen = {0};
    struct statvfs v;
    int rc = p->target.next == 0 ? packer_one_size(p, e) : STK_OK;
    if (rc == STK_OK)
        rc = probe(p, &seen, e);
    if (rc != STK_OK)
        return rc;
    if (e)
        *e = (stk_error){.sample = -1};
    const double left = (double)(p->n - p->target.next);
    const double each = seen.samples ? (double)seen.bytes_out / (double)seen.samples : 0;
    int64_t needs = (int64_t)(each * left);
    const int64_t all = source_tally(p->source)->bytes;
    /* If the sizes of all files are known, their sum gives a better estimate. */
    if (p->names && all > 0 && seen.bytes_in > 0)
        needs = (int64_t)((double)all * left / (double)source_count(p->source) * (double)seen.bytes_out /
                          (double)seen.bytes_in);
    p->report.expected_bytes = p->target.bytes + needs;
    if (seen.samples)
        p->report.expected_seconds = (double)seen.ns / 1e9 / (double)seen.samples * left / p->options.threads;
    if (fstatvfs(p->target.dir, &v))
        return STK_OK;
    p->report.free_bytes = (int64_t)((double)v.f_bavail * (double)v.f_frsize);
    return p->report.free_bytes < needs + margin ? no_room(p, needs, e) : STK_OK;
}
