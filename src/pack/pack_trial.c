/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_trial.c -- checks before anything is written: raw images have one size, and a sample that is packed with these
 * options can be read back.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/pool.h"
#include "loader.h"
#include "pack/packer.h"
#include "pack/place.h"

/* The field that is the image; -1: none. */
static int image_of(const struct source *s)
{
    int f = source_n_fields(s) - 1;
    while (f >= 0 && source_field(s, f)->kind != FIELD_ENCODED && source_field(s, f)->kind != FIELD_PIXELS)
        f--;
    return f;
}

/* ------------------------------------------------------------------ one size */

struct size {
    int32_t w, h;
};

/* A search for a sample of another size. Each thread searches a part of the samples. */
struct sizes {
    struct packer *p;
    struct size first;
    pthread_mutex_t lock; /* protects the rest */
    int64_t found;        /* the first position with another size; -1: none */
    struct size other;
};

/* Whether images of any size get the same size, as after CenterCrop. */
static bool ops_fix_size(const struct packer *p)
{
    static const struct size some[] = {{64, 48}, {50, 70}, {1000, 10}, {7, 333}};
    struct size first = {0};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        struct size s = some[i];
        if (packer_size(p, &s.w, &s.h, NULL) != STK_OK || (i > 0 && (s.w != first.w || s.h != first.h)))
            return false;
        first = s;
    }
    return true;
}

/* Computes the size that an image will have. False: the image is bad, which is reported when it is packed. */
static bool size_of(const struct packer *p, struct desk *d, int64_t sample, struct size *out)
{
    const struct decode_limits limits = options_limits(&p->options);
    const struct field *f = source_field_at(p->source, sample, image_of(p->source));
    struct desk_image im;
    if (f->kind == FIELD_PIXELS) {
        *out = (struct size){(int32_t)f->shape[1], (int32_t)f->shape[0]};
        return packer_size(p, &out->w, &out->h, NULL) == STK_OK;
    }
    const int rc = desk_read_head(d, p->source, sample, false, &limits, &im, NULL);
    desk_clear(d);
    *out = (struct size){head_width(&im.head), head_height(&im.head)};
    return rc == STK_OK && packer_size(p, &out->w, &out->h, NULL) == STK_OK;
}

/* Whether another thread has found a sample before position i. */
static bool is_over(struct sizes *s, int64_t i)
{
    pthread_mutex_lock(&s->lock);
    const bool over = s->found >= 0 && s->found < i;
    pthread_mutex_unlock(&s->lock);
    return over;
}

static void look_through(void *user, int64_t part)
{
    struct sizes *s = user;
    struct packer *p = s->p;
    struct walk walk = {.pass = -1};
    const int64_t parts = p->options.threads, end = p->n * (part + 1) / parts;
    for (int64_t i = p->n * part / parts; i < end && !is_over(s, i); i++) {
        struct size one;
        if (!size_of(p, &p->workers[part].desk, packer_sample(p, &walk, i), &one) ||
            (one.w == s->first.w && one.h == s->first.h))
            continue;
        pthread_mutex_lock(&s->lock);
        if (s->found < 0 || i < s->found) {
            s->found = i;
            s->other = one;
        }
        pthread_mutex_unlock(&s->lock);
        return;
    }
}

static int refuse_sizes(const struct sizes *s, stk_error *e)
{
    struct packer *p = s->p;
    struct walk walk = {.pass = -1};
    const int side = s->first.w < s->first.h ? s->first.w : s->first.h;
    const int rc = error_set(e, STK_EUSAGE, "pack",
                             "has %d x %d pixels, but others have %d x %d; raw images must have one size: end the "
                             "ops with CenterCrop(%d) or similar, or %s",
                             (int)s->other.w, (int)s->other.h, (int)s->first.w, (int)s->first.h, side,
                             p->how.to == STK_TO_NPY ? "pack to tar" : "leave out --as raw");
    loader_blame(p->source, packer_sample(p, &walk, s->found), e);
    return rc;
}

int packer_one_size(struct packer *p, stk_error *e)
{
    struct sizes s = {.p = p, .found = -1};
    struct walk walk = {.pass = -1};
    int64_t i = 0;
    if (p->how.as != STK_AS_RAW || image_of(p->source) < 0 || ops_fix_size(p))
        return STK_OK;
    while (i < p->n && !size_of(p, &p->workers[0].desk, packer_sample(p, &walk, i), &s.first))
        i++;
    if (i == p->n)
        return STK_OK;
    pthread_mutex_init(&s.lock, NULL);
    pool_for(p->options.threads, p->options.threads, look_through, &s);
    pthread_mutex_destroy(&s.lock);
    return s.found < 0 ? STK_OK : refuse_sizes(&s, e);
}

/* ------------------------------------------------------------------ one sample */

/* Removes a folder below dir and the files in it. Does not follow a link. */
static void remove_folder(int dir, const char *name)
{
    DIR *d = place_list(dir, name);
    for (const struct dirent *entry; d && (entry = readdir(d));)
        unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    unlinkat(dir, name, AT_REMOVEDIR);
}

static const char trial_before[] = ".stoker-trial-", trial_unique[] = "XXXXXX";

/* Removes the trials of killed runs. The journal is locked, so no other run is active. */
static void remove_trials(int dir)
{
    const size_t before = sizeof trial_before - 1, n = before + sizeof trial_unique - 1;
    DIR *d = place_list(dir, ".");
    for (const struct dirent *entry; d && (entry = readdir(d));)
        if (strncmp(entry->d_name, trial_before, before) == 0 && strlen(entry->d_name) == n)
            remove_folder(dir, entry->d_name);
    if (d)
        closedir(d);
}

/* Whether a sample has all fields. One that lacks a field, or has an empty one, does not show that others can be read
 * back. */
static bool is_full(const struct packer *p, const struct packed *s)
{
    for (int i = 0; i < s->n_fields; i++)
        if (s->fields[i].n == s->fields[i].head_bytes)
            return false;
    return s->n_fields == source_n_fields(p->source);
}

static int write_trial(struct packer *p, const char *out, struct packed *s, stk_error *e)
{
    struct target t;
    struct target_options o = p->target.o;
    const struct keys keys = p->keys;
    o.out = out;
    o.samples = 1;
    p->keys = (struct keys){0};
    int rc = packer_key(p, s, e);
    keys_done(&p->keys);
    p->keys = keys;
    if (rc != STK_OK)
        return rc;
    rc = target_open(&t, &o, e);
    if (rc == STK_OK)
        rc = target_add(&t, s, e);
    if (rc == STK_OK)
        rc = target_end(&t, e);
    target_done(&t);
    return rc;
}

/* Checks that a reader finds the packed image, with the same size. */
static int read_image(const struct packer *p, const struct source *from, const struct packed *s, stk_error *e)
{
    const struct decode_limits limits = options_limits(&p->options);
    const int image = image_of(from);
    struct reading r = {0};
    struct head h = {0};
    int rc = STK_OK;
    if (s->w == 0) /* the source has no readable image either */
        return STK_OK;
    if (image < 0)
        return error_set(e, STK_EDATA, "read", "the pack has no image field");
    const struct field *f = source_field(from, image);
    if (f->kind == FIELD_PIXELS) {
        h = (struct head){.w = (int32_t)f->shape[1], .h = (int32_t)f->shape[0], .orientation = 1};
    } else {
        rc = source_read(from, &r, 0, e);
        if (rc == STK_OK)
            rc = decode_head(r.bytes, r.n_bytes, &limits, &h, e);
    }
    reading_done(&r);
    if (rc == STK_OK && (head_width(&h) != s->w || head_height(&h) != s->h))
        rc = error_set(e, STK_EDATA, "read", "the image has %d x %d pixels, but %d x %d were packed", head_width(&h),
                       head_height(&h), s->w, s->h);
    return rc;
}

static int read_trial(const struct packer *p, const char *out, const struct packed *s, stk_error *e)
{
    struct source *from = NULL;
    const struct source_options o = {.path = out, .threads = 1, .cache_dir = "off"};
    int rc = source_open(&from, &o, e);
    if (rc == STK_OK && (source_count(from) != 1 || source_n_fields(from) != source_n_fields(p->source)))
        rc =
            error_set(e, STK_EDATA, "read", "one sample with %d fields was packed, but %lld with %d fields can be read",
                      source_n_fields(p->source), (long long)source_count(from), source_n_fields(from));
    if (rc == STK_OK && s->image >= 0)
        rc = read_image(p, from, s, e);
    source_close(from);
    return rc;
}

int packer_trial(struct packer *p, struct packed *s, bool *tried, stk_error *e)
{
    char out[4096];
    stk_error why = {.sample = -1};
    if (p->how.to == STK_TO_FOLDER || !is_full(p, s))
        return STK_OK;
    if (snprintf(out, sizeof out, "%s/%s%s", p->how.out, trial_before, trial_unique) >= (int)sizeof out)
        return STK_OK;
    *tried = true;
    remove_trials(p->target.dir);
    if (!mkdtemp(out)) { /* a new folder contains only what the trial writes */
        const int rc = error_os(e, errno, "write", "cannot create a folder in it");
        error_at(e, p->how.out, -1);
        return rc;
    }
    int rc = write_trial(p, out, s, e);
    if (rc == STK_OK && read_trial(p, out, s, &why) != STK_OK) {
        rc = error_set(e, STK_EUSAGE, "pack", "cannot be read back after packing with these options: %s", why.reason);
        loader_blame(p->source, s->sample, e);
    }
    remove_folder(p->target.dir, strrchr(out, '/') + 1);
    return rc;
}
