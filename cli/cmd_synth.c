/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_synth.c -- stoker synth: makes a dataset of photo-like images.
 *
 * Each thread takes the next index. An image depends only on its index, so the number of threads
 * changes nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "base/json.h"
#include "file.h"
#include "out.h"
#include "progress.h"
#include "stop.h"
#include "synth.h"
#include "synth_folder.h"

struct job {
    const struct args *a;
    int keep;
    _Atomic int64_t next, done, made, bytes;
    pthread_mutex_t lock;
    int rc; /* the first failure, under lock */
    stk_error error;
    _Atomic int failed, running;
};

static void fail(struct job *j, int rc, const stk_error *e)
{
    pthread_mutex_lock(&j->lock);
    if (j->rc == STK_OK) {
        j->rc = rc;
        j->error = *e;
    }
    pthread_mutex_unlock(&j->lock);
    atomic_store(&j->failed, 1);
}

static int make_image(struct job *j, struct synth_painter *p, int64_t index, const char *path, stk_error *e)
{
    const struct args_synth *s = &j->a->synth;
    const struct synth_spec spec = {.seed = s->seed, .index = index, .n_classes = s->classes, .size = s->size};
    struct synth_image pic;
    void *file;
    size_t n;
    synth_paint(p, &spec, &pic);
    const stk_encode_options o = {.format = synth_format_of(s, index),
                                  .quality = s->quality ? s->quality : pic.quality,
                                  .subsample = pic.subsample,
                                  .progressive = pic.progressive};
    int rc = stk_encode(pic.pixels, pic.width, pic.height, pic.channels, (size_t)pic.width * (size_t)pic.channels, &o,
                        &file, &n, e);
    if (rc != STK_OK)
        return rc;
    rc = file_write(path, file, n, e);
    stk_free(file);
    atomic_fetch_add(&j->made, rc == STK_OK);
    atomic_fetch_add(&j->bytes, (int64_t)n);
    return rc;
}

static void *work(void *user)
{
    struct job *j = user;
    stk_error e = {.sample = -1};
    char path[SYNTH_PATH];
    struct synth_painter *p = synth_painter_new(j->a->synth.size);
    int rc = p ? STK_OK : file_error(&e, j->a->operand, "cannot make images", ENOMEM);
    while (rc == STK_OK && !atomic_load(&j->failed) && !stop_asked()) {
        const int64_t i = atomic_fetch_add(&j->next, 1);
        if (i >= j->a->synth.samples)
            break;
        if (synth_path(j->a->operand, &j->a->synth, i, path, sizeof path))
            rc = file_error(&e, j->a->operand, "cannot write into it", ENAMETOOLONG);
        else if (!j->keep || access(path, F_OK) != 0)
            rc = make_image(j, p, i, path, &e);
        atomic_fetch_add(&j->done, 1);
    }
    if (rc != STK_OK)
        fail(j, rc, &e);
    synth_painter_free(p);
    atomic_fetch_sub(&j->running, 1);
    return NULL;
}

static void watch(struct job *j)
{
    struct progress p;
    progress_begin(&p, "synth", j->a->synth.samples);
    while (atomic_load(&j->running) > 0) {
        const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
        nanosleep(&pause, NULL);
        progress_at(&p, atomic_load(&j->done));
    }
    progress_end(&p);
}

static int run_threads(struct job *j)
{
    enum { MOST = 256 };
    pthread_t threads[MOST];
    int n = j->a->synth.threads, started = 0;
    if (n == 0) {
        stk_info i;
        stk_info_get(&i);
        n = i.threads;
    }
    n = n < 1 ? 1 : n > MOST ? MOST : n;
    if (n > j->a->synth.samples)
        n = (int)j->a->synth.samples;
    atomic_store(&j->running, n);
    while (started < n && pthread_create(&threads[started], NULL, work, j) == 0)
        started++;
    atomic_fetch_sub(&j->running, n - started);
    watch(j);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (started == 0)
        return file_error(&j->error, j->a->operand, "cannot start a thread", EAGAIN);
    return j->rc;
}

/* ------------------------------------------------------------------ the command */

static void report(const struct job *j, int complete, double seconds)
{
    const struct args_synth *s = &j->a->synth;
    const int classes = s->samples < s->classes ? (int)s->samples : s->classes; /* those with an image */
    const int64_t made = atomic_load(&j->made), bytes = atomic_load(&j->bytes);
    if (j->a->json) {
        struct json w = {.f = stdout};
        json_open(&w, NULL, '{');
        json_text(&w, "output", j->a->operand);
        json_int(&w, "samples", s->samples);
        json_int(&w, "classes", classes);
        json_int(&w, "made", made);
        json_int(&w, "made_bytes", bytes);
        json_real(&w, "seconds", seconds);
        json_bool(&w, "complete", complete);
        out_json_error(&w);
        json_close(&w, '}');
        return;
    }
    out_name(stdout, j->a->operand);
    if (made == 0)
        printf(": %s in %s, all written already\n", out_some(s->samples, "image", "images").s,
               out_some(classes, "class", "classes").s);
    else
        printf(": %s of %s in %s, %s, made in %s\n", out_count(made).s, out_some(s->samples, "image", "images").s,
               out_some(classes, "class", "classes").s, out_bytes(bytes).s, out_seconds(seconds).s);
}

static int run(struct args *a)
{
    struct job j = {.a = a, .lock = PTHREAD_MUTEX_INITIALIZER};
    stk_error e;
    const double began = out_clock();
    const int end = synth_folder_open(a, &j.keep);
    if (end != END_GOOD)
        return end;
    int rc = run_threads(&j);
    if (rc != STK_OK)
        return out_fail("synth", rc, &j.error);
    if (stop_asked()) {
        out_say("synth", "stopped after %s of %s images; the same command continues from there",
                out_count(atomic_load(&j.done)).s, out_count(a->synth.samples).s);
        if (a->json)
            report(&j, 0, out_clock() - began);
        return END_INTERRUPTED;
    }
    rc = synth_folder_write_recipe(a, 1, &e);
    if (rc != STK_OK)
        return out_fail("synth", rc, &e);
    report(&j, 1, out_clock() - began);
    return END_GOOD;
}

static void defaults(struct args *a)
{
    a->synth = (struct args_synth){.samples = 2000, .classes = 10, .size = 500};
}

static const struct args_word formats[] = {
    {"jpeg", STK_JPEG}, {"png", STK_PNG}, {"webp", STK_WEBP}, {"mixed", -1}, {0}};

#define AT(member) offsetof(struct args, member)
static const struct args_option options[] = {
    {"samples", 0, ARGS_INT64, 0, AT(synth.samples), 1, 100000000, NULL, "N", "how many images", NULL},
    {"classes", 0, ARGS_INT, 0, AT(synth.classes), 1, SYNTH_MAX_CLASSES, NULL, "N", "how many classes", NULL},
    {"size", 0, ARGS_INT, 0, AT(synth.size), 32, 4096, NULL, "N", "pixels of the long side of most images", NULL},
    {"format", 0, ARGS_WORD, 0, AT(synth.format), 0, 0, formats, "NAME", "jpeg, png, webp or mixed", "jpeg"},
    {"quality", 0, ARGS_INT, 0, AT(synth.quality), 1, 100, NULL, "N", "one quality for all images", "75 to 96"},
    {"seed", 0, ARGS_UINT64, 0, AT(synth.seed), 0, 0, NULL, "N", "another seed gives other images", "0"},
    {"threads", 0, ARGS_INT, 0, AT(synth.threads), 0, 256, NULL, "N", "use at most N threads",
     "all CPUs that this process may use"},
    {"force", 0, ARGS_ON, 0, AT(synth.force), 0, 0, NULL, NULL,
     "write everything again, even if OUT has other files, or images that were made with other options", NULL},
    {"json", 0, ARGS_ON, 0, AT(json), 0, 0, NULL, NULL, "print one JSON document and nothing else", NULL},
    {0},
};

static const char *const examples[] = {
    "stoker synth photos",
    "make 2,000 images in 10 classes, with sizes and JPEG qualities like those of ImageNet",
    "stoker synth big --samples 100000 --classes 1000",
    "make a large dataset; if interrupted, the same command continues",
    "stoker synth small --samples 500 --size 64 --format png",
    "make small lossless images",
    "stoker synth mixed --format mixed --seed 7",
    "make JPEG, PNG and WebP images; the same seed gives the same images on every machine",
    NULL,
};

const struct command cmd_synth = {
    .name = "synth",
    .operand = "OUT",
    .summary = "make a dataset of photo-like images to try things on",
    .about =
        "Makes photo-like images, in one folder per class. The class of an image determines the colour, shape and "
        "pattern of one object. The scene around the object is fractal noise and does not depend on the class. A small "
        "network can learn the classes, but not from the colour alone. The images depend only on the options, not "
        "on the number of threads.",
    .options = options,
    .examples = examples,
    .defaults = defaults,
    .run = run,
};
