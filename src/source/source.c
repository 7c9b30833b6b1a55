/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c -- opens the kind of source that was given or recognised, and hands calls on to it.
 */
#include "source/source.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/blocks.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/size.h"
#include "format/gunzip.h"
#include "source/fields_text.h"
#include "source/index.h"
#include "source/recognise.h"

/* ------------------------------------------------------------------ opening */

static int take_classes(struct source *s, const struct source_options *o, stk_error *e)
{
    for (int i = 0; i < o->n_classes; i++) {
        uint32_t number;
        const char *name = o->classes ? o->classes[i] : NULL;
        if (!name)
            return error_set(e, STK_EUSAGE, "open", "classes[%d] is NULL", i);
        const int added = names_add(&s->classes, name, strlen(name), &number);
        if (added < 0)
            return error_nomem(e, "open", strlen(name));
        if (added == 0)
            return error_set(e, STK_EUSAGE, "open", "the class %s is given twice, as number %d and number %d", name,
                             (int)number, i);
    }
    s->n_classes = o->n_classes > 0 ? o->n_classes : 0;
    return STK_OK;
}

/* The names that a pack has kept, unless others were given. */
static void take_found_classes(struct source *s, struct recognised *r)
{
    if (s->classes.n > 0 || r->classes.n == 0)
        return;
    s->classes = r->classes;
    s->n_classes = (int)s->classes.n;
    r->classes = (struct names){0};
}

static int open_form(struct source *s, const struct source_options *o, struct recognised *r, stk_error *e)
{
    if (r->form == SOURCE_LIST)
        return shard_list_open(s, o, r->path, e);
    if (r->form == SOURCE_FILE)
        return shard_file_open(s, o, r->path, e);
    if (r->form != SOURCE_CONTAINER)
        return shard_dir_open(s, o, r->path, r->form, e);
    const int rc = r->container->open(s, o, &r->paths, r->query, e);
    if (rc != STK_OK && !e->path[0])
        error_at(e, r->path, -1);
    return rc;
}

/* A pack knows what its fields were: they are what is asked for, unless it is columns of the files. */
static int open_recognised(struct source *s, const struct source_options *o, struct recognised *r, stk_error *e)
{
    struct source_options own = *o;
    struct buf text = {0};
    take_found_classes(s, r);
    s->packed = r->packed && r->form == SOURCE_CONTAINER;
    s->files = r->files;
    int rc = r->fields ? fields_text_of(r->fields, o->fields, &text, e) : STK_OK;
    if (r->fields && rc == STK_OK)
        own.fields = (const char *)text.data;
    own.beside = r->packed && r->form != SOURCE_CONTAINER ? r->fields : NULL;
    if (rc != STK_OK && rc != STK_ENOMEM && e)
        *e = (stk_error){.sample = -1}; /* they are columns of the files, or the opening says what is wrong */
    if (rc != STK_ENOMEM)
        rc = open_form(s, &own, r, e);
    buf_done(&text);
    return rc;
}

/* What is chosen of the source's own fields. */
static int choose_fields(struct source_options *o, struct buf *text, stk_error *e)
{
    if (!o->own || !o->own[0] || !o->own[0][0])
        return STK_OK;
    const int rc = fields_text_of(o->own[0], o->fields, text, e);
    o->fields = (const char *)text->data;
    return rc;
}

static int open_path(struct source *s, const struct source_options *given, stk_error *e)
{
    struct recognised r;
    struct buf text = {0};
    struct source_options o = *given;
    int rc = recognise(o.path, &r, e);
    if (rc == STK_OK)
        rc = choose_fields(&o, &text, e);
    if (rc == STK_OK)
        rc = open_recognised(s, &o, &r, e);
    else
        error_at(e, r.path, -1);
    recognised_done(&r);
    buf_done(&text);
    return rc;
}

static int open_kind(struct source *s, const struct source_options *o, stk_error *e)
{
    const int given = (o->path != NULL) + (o->paths != NULL) + (o->arrays != NULL) + (o->hooks != NULL);
    if (given != 1)
        return error_set(e, STK_EUSAGE, "open", "%s of source, sources, arrays and hooks %s given; one is needed",
                         given ? "more than one" : "none", given ? "are" : "is");
    const int rc = take_classes(s, o, e);
    if (rc != STK_OK)
        return rc;
    if (o->path)
        return open_path(s, o, e);
    if (o->paths)
        return shard_join_open(s, o, e);
    return o->arrays ? shard_array_open(s, o, e) : shard_hooks_open(s, o, e);
}

/* Several files: that of the first, and a mark of all of them. */
static void mark_others(const struct names *paths, char *buf, size_t n)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < paths->n; i++)
        all = hash_bytes(names_at(paths, i), names_length(paths, i), all);
    const size_t length = strlen(buf);
    if (paths->n > 1)
        snprintf(buf + length, n - length, " and %d more (%016llx)", (int)paths->n - 1, (unsigned long long)all);
}

bool source_place_of(const char *name, char *buf, size_t n)
{
    struct recognised r;
    recognise(name, &r, NULL); /* the path is told in any case */
    char *real = realpath(r.paths.n > 0 ? names_at(&r.paths, 0) : r.path, NULL);
    const int length = real ? snprintf(buf, n, "%s", real) : -1;
    if (length > 0 && (size_t)length < n)
        mark_others(&r.paths, buf, n);
    free(real);
    recognised_done(&r);
    return length > 0 && (size_t)length < n;
}

/* The sources' own place; of several, all of them count and the first is shown. */
static char *find_place(const struct source_options *o)
{
    char place[PATH_MAX], all[PATH_MAX + 64];
    const int n = o->path ? 1 : o->paths ? o->n_paths : 0;
    uint64_t others = 0;
    for (int i = n - 1; i >= 0; i--) {
        if (!source_place_of(o->path ? o->path : o->paths[i], place, sizeof place))
            return NULL;
        others = hash_bytes(place, strlen(place), others);
    }
    if (n == 0)
        return NULL;
    if (n == 1)
        return strdup(place);
    snprintf(all, sizeof all, "%s and %d more (%016llx)", place, n - 1, (unsigned long long)others);
    return strdup(all);
}

int source_open(struct source **out, const struct source_options *o, stk_error *e)
{
    stk_error unasked;
    stk_error *error = e ? e : &unasked; /* openers look at what went wrong */
    struct source_options options = *o;
    options.threads = o->threads < 1 ? 1 : o->threads;
    *out = NULL;
    struct source *s = calloc(1, sizeof *s);
    if (!s)
        return error_nomem(error, "open", sizeof *s);
    s->max_bytes = o->max_bytes > 0 ? o->max_bytes : INT64_MAX;
    const int rc = open_kind(s, &options, error);
    if (rc != STK_OK) {
        source_close(s);
        return rc;
    }
    s->place = find_place(&options);
    *out = s;
    return STK_OK;
}

void source_close(struct source *s)
{
    if (!s)
        return;
    if (s->ops)
        s->ops->close(s);
    names_done(&s->classes);
    free(s->place);
    free(s->left_out);
    free(s->spare);
    free(s);
}

/* ------------------------------------------------------------------ what shards have in common */

void shard_fields(struct source *s, bool labels)
{
    s->fields[0] =
        (struct field){.name = "image", .kind = FIELD_ENCODED, .dtype = STK_UINT8, .what = STK_IMAGE, .column = -1};
    s->fields[1] = (struct field){.name = "label",
                                  .kind = FIELD_TENSOR,
                                  .dtype = STK_INT64,
                                  .bytes = sizeof(int64_t),
                                  .what = STK_INT,
                                  .column = -1,
                                  .label = true,
                                  .named = true};
    s->n_fields = labels ? 2 : 1;
}

size_t shard_path(const struct source *s, int64_t i, char *buf, size_t n)
{
    (void)s;
    const int length = snprintf(buf, n, "sample %lld", (long long)i);
    return length > 0 ? (size_t)length : 0;
}

const struct field *shard_label_field(const struct source *s)
{
    for (int f = 0; f < s->n_fields; f++)
        if (s->fields[f].label)
            return &s->fields[f];
    return NULL;
}

int64_t shard_label(const struct source *s, int64_t kept)
{
    const struct field *f = kept == LABEL_NONE ? shard_label_field(s) : NULL;
    int64_t value = kept == LABEL_NONE ? -1 : kept;
    if (f && f->has_fill)
        memcpy(&value, f->fill, sizeof value);
    return value;
}

const char *shard_class(const struct source *s, int i)
{
    return names_at(&s->classes, (uint32_t)i);
}

int shard_allow_file(const struct source *s, const struct reading *r, int dir, const char *path, size_t held,
                     int copies, stk_error *e)
{
    struct stat st;
    if (!r->allow || fstatat(dir, path, &st, 0) != 0 || !S_ISREG(st.st_mode) || (int64_t)st.st_size > s->max_bytes)
        return STK_OK;
    for (int i = 0; i < copies; i++)
        held = size_add(held, size_add((size_t)st.st_size, IO_SLACK));
    return r->allow(r->user, held, e);
}

const struct source_tally *shard_tally(const struct source *s)
{
    (void)s;
    static const struct source_tally nothing;
    return &nothing;
}

/* ------------------------------------------------------------------ handing on */

const char *source_kind(const struct source *s)
{
    return s->kind;
}

int64_t source_count(const struct source *s)
{
    return s->count;
}

uint64_t source_fingerprint(const struct source *s)
{
    return s->ops->fingerprint(s);
}

const struct source_tally *source_tally(const struct source *s)
{
    return s->ops->tally(s);
}

void source_memory(const struct source *s, size_t *held, size_t *most)
{
    *held = *most = 0;
    if (s->ops->memory)
        s->ops->memory(s, held, most);
}

int source_n_classes(const struct source *s)
{
    return s->n_classes;
}

const char *source_class(const struct source *s, int i)
{
    return i >= 0 && i < s->n_classes ? s->ops->class_name(s, i) : NULL;
}

int source_parts(const struct source *s, const int64_t **first)
{
    *first = s->parts;
    return s->n_parts;
}

int source_n_fields(const struct source *s)
{
    return s->n_fields;
}

const struct field *source_field(const struct source *s, int f)
{
    return &s->fields[f];
}

bool source_pictured(const struct source *s)
{
    return s->pictured;
}

bool source_reads(const struct source *s)
{
    for (int f = 0; f < s->n_fields; f++)
        if (s->fields[f].column >= 0 && s->fields[f].what != STK_IMAGE)
            return true;
    return s->gaps;
}

static const struct source *source_of(const struct source *s, int64_t i)
{
    return s->ops->of ? s->ops->of(s, i) : s;
}

const struct field *source_field_at(const struct source *s, int64_t i, int f)
{
    return &source_of(s, i)->fields[f];
}

bool source_reads_at(const struct source *s, int64_t i)
{
    return source_reads(source_of(s, i));
}

const char *source_left_out(const struct source *s)
{
    return s->left_out;
}

const char *source_spare(const struct source *s)
{
    return s->spare;
}

const struct blocks *source_blocks(const struct source *s)
{
    const struct blocks *b = s->ops->blocks ? s->ops->blocks(s) : NULL;
    return b && b->n > 0 ? b : NULL;
}

/* A sample that is not there has no name. */
static bool is_there(const struct source *s, int64_t i, char *buf, size_t n)
{
    const bool there = i >= 0 && i < s->count;
    if (!there && n)
        buf[0] = 0;
    return there;
}

size_t source_path(const struct source *s, int64_t i, char *buf, size_t n)
{
    return is_there(s, i, buf, n) ? s->ops->path(s, i, buf, n) : 0;
}

size_t source_key(const struct source *s, int64_t i, char *buf, size_t n)
{
    return is_there(s, i, buf, n) ? s->ops->key(s, i, buf, n) : 0;
}

bool source_keyed(const struct source *s)
{
    return s->keyed;
}

bool source_named(const struct source *s)
{
    return s->named;
}

bool source_files(const struct source *s)
{
    return s->named && s->files;
}

bool source_packed(const struct source *s)
{
    return s->packed;
}

bool source_is_label(const struct field *f)
{
    return f->label || (f->kind == FIELD_TENSOR && f->what == STK_INT && strcmp(f->name, "label") == 0);
}

int64_t source_label(const struct source *s, int64_t i)
{
    return s->ops->label(s, i);
}

int64_t source_bytes(const struct source *s, int64_t i)
{
    return s->ops->bytes(s, i);
}

void reading_done(struct reading *r)
{
    buf_done(&r->file);
    buf_done(&r->made);
    buf_done(&r->aside[0]);
    buf_done(&r->aside[1]);
    gunzip_free(r->gunzip);
    r->gunzip = NULL;
}

int source_read(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    return s->ops->read(s, r, i, e);
}

int source_peek(const struct source *s, struct reading *r, int64_t i, size_t n, stk_error *e)
{
    return s->ops->peek ? s->ops->peek(s, r, i, n, e) : s->ops->read(s, r, i, e);
}

bool source_file(const struct source *s, int64_t i, int *dir, char *path, size_t n)
{
    return s->ops->file && s->ops->file(s, i, dir, path, n);
}

bool source_extent(const struct source *s, int64_t i, bool direct, struct extent *out)
{
    return s->ops->extent && s->ops->extent(s, i, direct, out);
}

/* A file system that has no storage below it. */
static bool in_memory(int fd)
{
    const uint32_t tmpfs = 0x01021994, ramfs = 0x858458f6;
    struct statfs s;
    return fstatfs(fd, &s) == 0 && ((uint32_t)s.f_type == tmpfs || (uint32_t)s.f_type == ramfs);
}

/* Some may be bad, or lie in a shard that is packed. */
enum source_lies source_lies(const struct source *s)
{
    enum { LOOKS = 32 };
    for (int64_t i = 0; i < s->count; i += s->count / LOOKS + 1) {
        int dir;
        char path[PATH_MAX];
        struct extent x;
        if (source_file(s, i, &dir, path, sizeof path))
            return in_memory(dir) ? SOURCE_IN_MEMORY : SOURCE_OPEN;
        if (source_extent(s, i, false, &x))
            return in_memory(x.fd) ? SOURCE_IN_MEMORY : SOURCE_OPEN;
    }
    return SOURCE_HIDDEN;
}

int source_lend(const struct source *s, struct reading *r, int64_t i, const uint8_t *bytes, size_t n, stk_error *e)
{
    return s->ops->lend(s, r, i, bytes, n, e);
}

size_t source_read_bytes(const struct source *s, int64_t i)
{
    const int64_t bytes = s->ops->bytes(s, i);
    return bytes > 0 && bytes <= s->max_bytes ? (size_t)bytes + IO_SLACK : 0;
}

uint64_t source_identity(const struct source *s, int64_t i)
{
    return s->ops->identity ? s->ops->identity(s, i, NULL) : 0;
}

uint64_t source_identity_since(const struct source *s, int64_t i, size_t bytes, int64_t since)
{
    const struct source_read r = {bytes, since};
    return s->ops->identity ? s->ops->identity(s, i, &r) : 0;
}

const char *source_place(const struct source *s)
{
    return s->place;
}

int64_t source_alike(const struct source *s, int64_t i)
{
    return s->ops->alike ? s->ops->alike(s, i) : 1;
}

void source_near(const struct source *s, int64_t i)
{
    if (s->ops->near)
        s->ops->near(s, i);
}

int source_copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    return s->ops->copy(s, r, i, f, to, e);
}

bool source_fills(const struct source *s)
{
    return s->ops->fill != NULL;
}

int source_fill(const struct source *s, const stk_row *row, void *const *to, stk_error *e)
{
    return s->ops->fill(s, row, to, e);
}

void source_cache_dir(const char *option, char *buf, size_t n)
{
    index_cache_dir(option, buf, n);
}
