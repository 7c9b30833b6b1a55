/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_pack.c -- stoker pack: does the work of every epoch once, and writes files.
 */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/json.h"
#include "out.h"
#include "progress.h"
#include "stop.h"
#include "value.h"

struct packing {
    const struct args *a;
    struct progress progress;
    stk_pack_report before; /* the estimate */
};

/* Prints the estimate before anything is written. */
static int begin(void *user, const stk_pack_report *r)
{
    struct packing *p = user;
    p->before = *r;
    if (!p->a->json) {
        fprintf(stderr, "%s, about %s to write", out_some(r->total, "sample", "samples").s,
                out_bytes(r->expected_bytes).s);
        if (r->expected_seconds >= 1)
            fprintf(stderr, ", in about %s", out_seconds(r->expected_seconds).s);
        fprintf(stderr, "; %s free\n", out_bytes(r->free_bytes).s);
        if (r->resumed)
            fprintf(stderr, "%s already written; continuing after them\n",
                    out_some(r->resumed, "sample is", "samples are").s);
    }
    progress_begin(&p->progress, "pack", r->total);
    return p->a->pack.dry_run || stop_asked();
}

static int at(void *user, const stk_pack_report *r)
{
    struct packing *p = user;
    progress_at(&p->progress, r->samples + r->bad);
    return stop_asked();
}

/* "short=256" or "long=500". */
static int read_resize(const char *text, stk_pack_options *p)
{
    int64_t v;
    if (!text)
        return END_GOOD;
    if (strncmp(text, "short=", 6) == 0 && value_int64(text + 6, 1, 65536, &v) == 0) {
        p->resize_short = (int)v;
        return END_GOOD;
    }
    if (strncmp(text, "long=", 5) == 0 && value_int64(text + 5, 1, 65536, &v) == 0) {
        p->resize_long = (int)v;
        return END_GOOD;
    }
    out_say("pack", "'%s' is not a valid --resize; it takes short=256 or long=500", text);
    return END_USAGE;
}

static void report_json(const struct packing *p, const stk_pack_report *r, int complete)
{
    struct json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "source", p->a->operand);
    json_text(&j, "output", p->a->second);
    json_int(&j, "total", r->total);
    json_int(&j, "samples", r->samples);
    json_int(&j, "left_out", r->bad);
    json_int(&j, "resumed", r->resumed);
    json_int(&j, "source_bytes", r->bytes_in);
    json_int(&j, "bytes", r->bytes_out);
    json_int(&j, "shards", r->shards);
    json_real(&j, "seconds", r->seconds);
    json_int(&j, "expected_bytes", p->before.expected_bytes);
    json_real(&j, "expected_seconds", p->before.expected_seconds);
    json_int(&j, "free_bytes", p->before.free_bytes);
    json_bool(&j, "complete", complete);
    out_json_error(&j);
    json_close(&j, '}');
}

/* ------------------------------------------------------------------ how much faster the pack is */

/* Both are read in turns, so that other programs slow down both. The first batches are not counted, because files and
 * threads are still cold. */
static const char gain_ops[] = "RandomResizedCrop(224) | RandomHorizontalFlip";

/* Images per second of the source and of the pack; 0: unknown. */
struct gain {
    double before, after;
};

struct meter {
    stk_loader *loader;
    int64_t images;
    double seconds;
};

static int open_meter(struct meter *m, const stk_options *from, const char *pack)
{
    stk_options o = *from;
    stk_error e;
    o.ops = gain_ops;
    o.fields = "image";
    o.dtype = STK_UINT8;
    o.batch_size = 32;
    o.shuffle = 1;
    o.take = 512;
    o.on_error = STK_SKIP;
    o.max_bad = 1;
    o.cache_dir = "off";
    o.log = NULL;
    if (pack) {
        o.source = pack;
        o.sources = NULL;
        o.n_sources = 0;
        o.source_fields = NULL;
    }
    return stk_open(&m->loader, &o, &e);
}

/* Reads for `seconds`, over as many epochs as it takes. Returns non-zero on an error or a stop. */
static int read_for(struct meter *m, double seconds, int counts)
{
    const double began = out_clock();
    int64_t images = 0;
    int rc = STK_OK;
    for (int empty = 0; out_clock() - began < seconds && empty < 2 && !stop_asked();) {
        stk_batch *b;
        stk_error e;
        rc = stop_next(m->loader, &b, &e);
        if (rc != STK_OK && rc != STK_END)
            return rc;
        empty = rc == STK_END ? empty + 1 : 0;
        images += rc == STK_OK ? stk_samples(b) : 0;
        if (rc == STK_OK)
            stk_release(b);
    }
    m->images += counts ? images : 0;
    m->seconds += counts ? out_clock() - began : 0;
    return stop_asked();
}

static struct gain measure(const stk_options *source, const char *pack)
{
    enum { TURNS = 4 };
    struct meter before = {0}, after = {0};
    struct gain g = {0};
    int rc = open_meter(&before, source, NULL) || open_meter(&after, source, pack);
    rc = rc || read_for(&before, 0.1, 0) || read_for(&after, 0.1, 0);
    for (int i = 0; i < TURNS && !rc; i++)
        rc = read_for(&before, 0.2, 1) || read_for(&after, 0.2, 1);
    if (!rc && before.images > 0 && after.images > 0)
        g = (struct gain){(double)before.images / before.seconds, (double)after.images / after.seconds};
    stk_close(before.loader);
    stk_close(after.loader);
    return g;
}

/* Measures and prints how much faster the pack is. */
static void report_gain(const struct packing *p)
{
    fflush(stdout);
    const struct gain g = measure(&p->a->o, p->a->second);
    if (g.before > 0 && g.after > 0)
        printf("with %s: the pack reads %s images/s, the source %s: %s times as fast\n", gain_ops,
               out_count((int64_t)g.after).s, out_count((int64_t)g.before).s, out_real(g.after / g.before, 2).s);
}

/* ------------------------------------------------------------------ the command */

static void report(const struct packing *p, const stk_pack_report *r)
{
    out_name(stdout, p->a->second);
    if (r->resumed == r->samples) {
        printf(": %s, all written already\n", out_some(r->samples, "sample", "samples").s);
        return;
    }
    printf(": %s", out_some(r->samples, "sample", "samples").s);
    if (r->shards)
        printf(" in %s", out_some(r->shards, "file", "files").s);
    printf(", %s", out_bytes(r->bytes_out).s);
    if (r->bytes_in > 0)
        printf(" (%s of the source's %s)", out_share((double)r->bytes_out, (double)r->bytes_in).s,
               out_bytes(r->bytes_in).s);
    printf(", packed in %s\n", out_seconds(r->seconds).s);
    if (r->bad)
        printf("%s left out\n", out_some(r->bad, "bad sample", "bad samples").s);
    if (p->a->pack.measure || out_is_terminal(stdout))
        report_gain(p);
}

static int run(struct args *a)
{
    struct packing p = {.a = a};
    struct out_log log;
    stk_error e = {.sample = -1};
    stk_pack_report r = {0};
    stk_pack_options o = {.out = a->second,
                          .to = a->pack.to,
                          .as = a->pack.as,
                          .quality = a->pack.quality,
                          .shard_size = a->pack.shard_size,
                          .baseline = a->pack.baseline,
                          .force = a->pack.force,
                          .begin = begin,
                          .progress = at,
                          .user = &p};
    int end = read_resize(a->pack.resize, &o);
    if (end != END_GOOD)
        return end;
    a->o.log = out_log_init(&log, "pack");
    const int rc = stk_pack(&a->o, &o, &r, &e);
    progress_end(&p.progress);
    if (rc == STK_STOPPED && a->pack.dry_run && !stop_asked())
        end = END_GOOD;
    else if (rc == STK_STOPPED)
        end = END_INTERRUPTED;
    else if (rc != STK_OK)
        end = out_fail("pack", rc, &e);
    if (end == END_INTERRUPTED)
        out_say("pack", "stopped after %s of %s samples; the same command continues after the last whole file",
                out_count(r.samples + r.bad).s, out_count(r.total).s);
    if (a->json && (end == END_GOOD || end == END_INTERRUPTED))
        report_json(&p, &r, rc == STK_OK);
    else if (!a->json && rc == STK_OK)
        report(&p, &r);
    return end;
}

static const struct args_word targets[] = {{"tar", STK_TO_TAR}, {"tfrecord", STK_TO_TFRECORD}, {"hdf5", STK_TO_HDF5},
                                           {"npy", STK_TO_NPY}, {"folder", STK_TO_FOLDER},     {0}};
static const struct args_word forms[] = {{"keep", STK_AS_KEEP},
                                         {"jpeg", STK_AS_JPEG},
                                         {"webp", STK_AS_WEBP},
                                         {"png", STK_AS_PNG},
                                         {"raw", STK_AS_RAW},
                                         {"dct", STK_AS_DCT},
                                         {0}};

#define AT(member) offsetof(struct args, pack.member)
static const struct args_option options[] = {
    {"to", 0, ARGS_WORD, 0, AT(to), 0, 0, targets, "FORM", "tar, tfrecord, hdf5, npy or folder", "tar"},
    {"as", 0, ARGS_WORD, 0, AT(as), 0, 0, forms, "FORM", "the format of the images: keep, jpeg, webp, png, raw or dct",
     "keep"},
    {"resize", 0, ARGS_TEXT, 0, AT(resize), 0, 0, NULL, "SIDE",
     "short=256 or long=500: shrink larger images to that size; never enlarge", "as they are"},
    {"quality", 0, ARGS_INT, 0, AT(quality), 1, 100, NULL, "N",
     "the quality of images that are encoded as JPEG or WebP; WebP with 100 is lossless", "90"},
    {"shard-size", 0, ARGS_SIZE, 0, AT(shard_size), 0, 0, NULL, "SIZE", "the largest size of a tar or tfrecord file",
     "256M"},
    {"baseline", 0, ARGS_ON, 0, AT(baseline), 0, 0, NULL, NULL,
     "rewrite progressive JPEGs as one scan, without loss: a few percent larger, but faster to decode", NULL},
    {"force", 0, ARGS_ON, 0, AT(force), 0, 0, NULL, NULL,
     "replace a pack in OUT that was made with other options; also allow other files in OUT", NULL},
    {"measure", 0, ARGS_ON, 0, AT(measure), 0, 0, NULL, NULL,
     "at the end, read the source and the pack for a second each, and print images/s; the default on a terminal", NULL},
    {"dry-run", 0, ARGS_ON, 0, AT(dry_run), 0, 0, NULL, NULL, "print the expected size and time, and write nothing",
     NULL},
    {0},
};

static const char *const examples[] = {
    "stoker pack train/ packed",
    "write every file as it is, to tar shards of 256 MiB: a million files become a few hundred",
    "stoker pack train/ small --resize short=256 --as jpeg --quality 92",
    "shrink images once instead of in every epoch",
    "stoker pack train/ raw --ops \"Resize(256) | CenterCrop(256)\" --as raw",
    "write pixels, ready to be cropped: no decoding at all in training, but many times the size",
    "stoker pack train/ shuffled --shuffle --seed 7",
    "write samples in random order, for tools that read shards from front to back",
    "stoker pack train/ records --to tfrecord",
    "write tf.train.Example with image/encoded, image/class/label, image/class/text",
    NULL,
};

const struct command cmd_pack = {
    .name = "pack",
    .operand = "SRC",
    .second = "OUT",
    .both = 1,
    .summary = "write samples to tar, TFRecord, HDF5, npy or a folder, as they are or resized",
    .about =
        "Writes the samples of a source to a folder: tar shards in the layout of WebDataset (KEY.jpg, KEY.cls, "
        "...), and stoker.json with the class names and a checksum of every shard. Labels, keys and other fields "
        "are kept. Images keep their exact bytes unless an option changes their pixels or their format. Before "
        "it starts, it prints the expected size and time; it does not start if the disk has too little space. After "
        "any "
        "interruption, the same command continues after the last complete shard and ends with the same bytes. OUT is "
        "then a source like any other.",
    .ends_1 = "for bad samples",
    .groups = FOR_SOURCE | FOR_PIXELS | FOR_ERRORS | FOR_JSON,
    .without = {"fidelity", "cache", "cache-size", "reader"},
    .options = options,
    .examples = examples,
    .run = run,
};
