/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c -- sources whose samples are files: folders and lists.
 *
 * Opening reads only names, since a size costs as much as ten names. Sizes become known as files are read. The first
 * call of tally or fingerprint calls stat on all files, whatever the cache says, and then caches the index with the
 * sizes. Otherwise the index is cached at close.
 */
#include "source/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/io.h"

enum { CACHE_FROM = 1000 }; /* samples; scanning fewer is as fast as reading a cache */

struct files {
    struct index index;
    int dir;
    int threads;
    char *folder;   /* as typed, ends with "/"; or "" */
    char *cache;    /* file; NULL: do not cache */
    char *location; /* for source_list_cached */
    pid_t pid;      /* a forked child does not write the cache */
    bool found, unsaved;
    atomic_bool stale; /* a file has another size than in the index */
    pthread_mutex_t lock;
    bool measured; /* this and the following are protected by lock */
    uint64_t fingerprint;
    struct source_tally tally;
    struct files_extra extra;
};

/* ------------------------------------------------------------------ samples */

static size_t key(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct files *f = s->state;
    return index_path(&f->index, i, buf, n);
}

static size_t path(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct files *f = s->state;
    const char *dir = f->index.pool + f->index.dir_at[f->index.dir_of[i]];
    const size_t n_folder = dir[0] == '/' ? 0 : strlen(f->folder);
    if (n_folder < n) {
        memcpy(buf, f->folder, n_folder);
        return n_folder + index_path(&f->index, i, buf + n_folder, n - n_folder);
    }
    if (n > 0) {
        memcpy(buf, f->folder, n - 1);
        buf[n - 1] = 0;
    }
    return n_folder + index_path(&f->index, i, NULL, 0);
}

static int64_t label(const struct source *s, int64_t i)
{
    const struct files *f = s->state;
    return index_label(&f->index, i);
}

static int64_t bytes(const struct source *s, int64_t i)
{
    const struct files *f = s->state;
    return index_size(&f->index, f->dir, i);
}

static const char *class_name(const struct source *s, int i)
{
    const struct files *f = s->state;
    return s->classes.n > 0 ? source_given_class(s, i) : index_class(&f->index, i);
}

static int copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    (void)r, (void)f, (void)e; /* only the label is copied */
    const int64_t value = label(s, i);
    memcpy(to, &value, sizeof value);
    return STK_OK;
}

static void store_size(const struct source *s, int64_t i, int64_t size)
{
    struct files *f = s->state;
    const int64_t known = atomic_load_explicit(&f->index.size[i], memory_order_relaxed);
    if (known == size)
        return;
    if (known >= 0)
        atomic_store_explicit(&f->stale, true, memory_order_relaxed);
    atomic_store_explicit(&f->index.size[i], size, memory_order_relaxed);
}

static int read_file(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    struct files *f = s->state;
    char below[PATH_MAX];
    if (index_path(&f->index, i, below, sizeof below) >= sizeof below)
        return error_os(e, ENAMETOOLONG, "read", "cannot be opened");
    int64_t size = -1;
    const int rc = io_read(f->dir, below, s->max_bytes, &r->file, &size, r->probe ? &r->cold : NULL, e);
    if (size >= 0)
        store_size(s, i, size);
    r->bytes = r->file.data;
    r->n_bytes = rc == STK_OK ? r->file.len : 0;
    r->label = label(s, i);
    return rc;
}

static int read_sample(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct files *f = s->state;
    const bool file = !r->rest || f->extra.file;
    if (!file)
        r->label = label(s, i);
    const int rc = file ? read_file(s, r, i, e) : STK_OK;
    return rc == STK_OK && f->extra.read ? f->extra.read(f->extra.state, s, r, i, e) : rc;
}

static bool file(const struct source *s, int64_t i, int *dir, char *buf, size_t n)
{
    const struct files *f = s->state;
    *dir = f->dir;
    return index_path(&f->index, i, buf, n) < n;
}

static int read_from(const struct source *s, struct reading *r, int64_t i, const uint8_t *given, size_t n, stk_error *e)
{
    const struct files *f = s->state;
    store_size(s, i, (int64_t)n);
    r->file.len = 0;
    r->bytes = given;
    r->n_bytes = n;
    r->label = label(s, i);
    r->cold = false;
    return f->extra.read ? f->extra.read(f->extra.state, s, r, i, e) : STK_OK;
}

/* On errors, calls read_file, which fails as well and reports them. */
static int peek_file(const struct source *s, struct reading *r, int64_t i, size_t n, stk_error *e)
{
    const struct files *f = s->state;
    char below[PATH_MAX];
    if (index_path(&f->index, i, below, sizeof below) >= sizeof below || buf_reserve(&r->file, n + IO_SLACK))
        return read_file(s, r, i, e);
    const ssize_t got = io_peek(f->dir, below, r->file.data, n);
    if (got <= 0)
        return read_file(s, r, i, e);
    r->file.len = (size_t)got;
    memset(r->file.data + got, 0, IO_SLACK);
    r->bytes = r->file.data;
    r->n_bytes = r->file.len;
    r->label = label(s, i);
    return STK_OK;
}

static uint64_t identity(const struct source *s, int64_t i, const struct source_read *r)
{
    const struct files *f = s->state;
    char below[PATH_MAX];
    struct stamp w;
    struct stat st;
    const size_t n = index_path(&f->index, i, below, sizeof below);
    if (n >= sizeof below || fstatat(f->dir, below, &st, 0) != 0 || !S_ISREG(st.st_mode) || !index_stamp(&w, &st))
        return 0;
    if (r && ((size_t)st.st_size != r->bytes || w.seconds + 1 >= r->since))
        return 0;
    const uint64_t is[3] = {(uint64_t)st.st_size, (uint64_t)w.seconds, (uint64_t)w.nanoseconds};
    return hash_bytes(is, sizeof is, hash_bytes(below, n, 0));
}

/* ------------------------------------------------------------------ tally and fingerprint */

static void save(struct files *f)
{
    if (f->cache && f->pid == getpid()) {
        index_save(&f->index, f->cache);
        index_save_location(f->cache, f->location);
    }
    f->unsaved = false;
}

static void measure(const struct source *s, struct files *f)
{
    struct index_sum sum;
    index_measure(&f->index, f->dir, f->threads, &sum);
    f->fingerprint = sum.fingerprint;
    if (f->extra.fingerprint)
        f->fingerprint = hash_mix(f->fingerprint, f->extra.fingerprint(f->extra.state, s));
    f->tally.bytes = sum.bytes;
    f->tally.missing = sum.missing;
    f->tally.unreadable += sum.unreadable;
    if (f->unsaved || sum.learned > 0)
        save(f);
    f->measured = true;
}

static const struct files *measured(const struct source *s)
{
    struct files *f = s->state;
    pthread_mutex_lock(&f->lock);
    if (!f->measured)
        measure(s, f);
    pthread_mutex_unlock(&f->lock);
    return f;
}

static uint64_t fingerprint(const struct source *s)
{
    return measured(s)->fingerprint;
}

static const struct source_tally *tally(const struct source *s)
{
    return &measured(s)->tally;
}

/* ------------------------------------------------------------------ opening and closing */

static void close_files(struct source *s)
{
    struct files *f = s->state;
    if (!f)
        return;
    if (f->cache && atomic_load(&f->stale) && f->pid == getpid())
        unlink(f->cache);
    else if (f->unsaved)
        save(f);
    if (f->extra.done)
        f->extra.done(f->extra.state);
    index_done(&f->index);
    if (f->dir >= 0)
        close(f->dir);
    free(f->folder);
    free(f->cache);
    free(f->location);
    pthread_mutex_destroy(&f->lock);
    free(f);
    s->state = NULL;
}

static const struct source_ops ops = {
    .close = close_files,
    .path = path,
    .key = key,
    .label = label,
    .bytes = bytes,
    .read = read_sample,
    .peek = peek_file,
    .identity = identity,
    .file = file,
    .read_from = read_from,
    .copy = copy,
    .fingerprint = fingerprint,
    .tally = tally,
    .class_name = class_name,
};

/* "train//" and "train" are "train/". */
static char *with_slash(const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    char *out = malloc(n + 2);
    if (!out)
        return NULL;
    memcpy(out, folder, n);
    if (n > 0 && out[n - 1] != '/')
        out[n++] = '/';
    out[n] = 0;
    return out;
}

/* The name of the cache file is a hash of everything the index depends on. */
static char *cache_file(const struct source *s, const char *location, const struct files_options *o)
{
    if (!location)
        return NULL;
    uint64_t h = hash_mix(hash_bytes(location, strlen(location), INDEX_MAGIC), o->kind);
    for (uint32_t i = 0; i < s->classes.n; i++)
        h = hash_bytes(names_at(&s->classes, i), names_length(&s->classes, i), h);
    return index_cache_file(o->cache_dir, h);
}

int files_open(struct source *s, const struct files_options *o, stk_error *e)
{
    struct files *f = calloc(1, sizeof *f);
    if (!f)
        return error_nomem(e, "open", sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    f->pid = getpid();
    f->threads = o->threads;
    s->state = f;
    s->ops = &ops;
    f->dir = open(o->folder[0] ? o->folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir < 0)
        return error_os(e, errno, "open", "cannot open the folder");
    f->folder = with_slash(o->folder);
    if (!f->folder)
        return error_nomem(e, "open", strlen(o->folder));
    f->location = realpath(o->path, NULL);
    f->cache = cache_file(s, f->location, o);
    f->found = f->cache && index_load(&f->index, f->cache, o->kind, f->dir, o->list, o->threads) == 0;
    return STK_OK;
}

bool files_cached(const struct source *s)
{
    return ((const struct files *)s->state)->found;
}

struct index *files_index(const struct source *s)
{
    return &((struct files *)s->state)->index;
}

int files_dir(const struct source *s)
{
    return ((const struct files *)s->state)->dir;
}

void files_add_extra(struct source *s, const struct files_extra *b)
{
    ((struct files *)s->state)->extra = *b;
}

const void *files_extra_state(const struct source *s)
{
    return ((const struct files *)s->state)->extra.state;
}

static int read_whole(const void *state, const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    (void)state, (void)i, (void)e;
    for (int f = 0; f < s->n_fields; f++)
        if (s->fields[f].column >= 0)
            r->cells[f] = (struct cell){.bytes = r->bytes, .n = r->n_bytes};
    return STK_OK;
}

void files_add_bytes(struct source *s)
{
    files_add_extra(s, &(struct files_extra){.read = read_whole, .file = true});
}

void files_finish(struct source *s, const char *kind, const struct files_report *report)
{
    struct files *f = s->state;
    const struct index_head *h = f->index.head;
    s->kind = kind;
    s->count = (int64_t)h->n;
    s->n_classes = (int)h->n_classes;
    source_default_fields(s, h->has_labels || h->kind == INDEX_CLASSES);
    f->tally = (struct source_tally){
        .ignored_hidden = h->hidden,
        .ignored_other = h->other + h->beside,
        .beside = h->beside,
        .ignored_loops = h->loops,
        .empty_classes = h->empty_classes,
        .unreadable = report->unreadable,
        .index_cached = f->found,
        .index_s = (double)(now_ns() - report->began_ns) * 1e-9,
        .index_bytes = (int64_t)h->bytes,
    };
    f->unsaved = !f->found;
    if (!report->stable || report->unreadable > 0 || s->count < CACHE_FROM) {
        free(f->cache);
        f->cache = NULL;
        f->unsaved = false;
    }
}
