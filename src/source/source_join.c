/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_join.c -- several sources, one after the other, as one.
 *
 * Sample i is sample i - first[p] of source p. join_match.c finds the common fields and classes. Labels become indices
 * into the common classes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/search.h"
#include "source/field.h"
#include "source/join_match.h"

enum { JOINED_MOST = 1 << 20 };

struct join {
    int n;
    struct source **sources;
    int64_t *first;     /* n + 1 */
    uint32_t **numbers; /* the common index of every class of every source; NULL: unchanged */
    struct blocks blocks;
    pthread_mutex_t lock;
    bool summed; /* this and the following are protected by lock */
    struct source_tally tally;
};

/* The index of the source that contains sample *i; *i becomes the index in it. */
static int find_source(const struct source *s, int64_t *i)
{
    const struct join *j = s->state;
    const int p = (int)search_last(j->first, sizeof *j->first, j->n, *i);
    *i -= j->first[p];
    return p;
}

static const struct source *source_of(const struct source *s, int64_t *i)
{
    const int p = find_source(s, i);
    return ((const struct join *)s->state)->sources[p];
}

static const struct source *source_at(const struct source *s, int64_t i)
{
    return source_of(s, &i);
}

static void close_join(struct source *s)
{
    struct join *j = s->state;
    if (!j)
        return;
    for (int i = 0; j->sources && i < j->n; i++)
        source_close(j->sources[i]);
    join_numbers_free(j->numbers, j->n);
    free(j->sources);
    free(j->first);
    blocks_done(&j->blocks);
    pthread_mutex_destroy(&j->lock);
    free(j);
    s->state = NULL;
}

static size_t path(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct source *p = source_of(s, &i);
    return source_path(p, i, buf, n);
}

static size_t key(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct source *p = source_of(s, &i);
    return source_key(p, i, buf, n);
}

/* Converts a label of source p. */
static int64_t renumber(const struct join *j, int p, int64_t label)
{
    return j->numbers && label >= 0 && label < source_n_classes(j->sources[p]) ? j->numbers[p][label] : label;
}

static int64_t label(const struct source *s, int64_t i)
{
    const int p = find_source(s, &i);
    const struct join *j = s->state;
    return renumber(j, p, source_label(j->sources[p], i));
}

/* Converts the labels of boxes, where the source has put them. */
static void renumber_each(const struct join *j, int p, struct reading *r, const struct cell *c)
{
    uint8_t *at = r->derived.data + (c->bytes - r->derived.data);
    for (size_t k = 0; k < c->n / sizeof(int64_t); k++, at += sizeof(int64_t)) {
        int64_t v;
        memcpy(&v, at, sizeof v);
        v = renumber(j, p, v);
        memcpy(at, &v, sizeof v);
    }
}

/* Converts the label of a sample that was read, in r->label and in cells. */
static int renumber_read(const struct join *j, int p, struct reading *r, stk_error *e)
{
    static const struct field number = {.name = "label", .kind = FIELD_TENSOR, .dtype = STK_INT64, .bytes = 8};
    r->label = renumber(j, p, r->label);
    for (int f = 0; j->numbers && f < j->sources[p]->n_fields; f++) {
        const struct field *one = &j->sources[p]->fields[f];
        if (!one->named || one->column < 0 || !r->cells[f].bytes)
            continue;
        if (one->follow == FOLLOW_EACH) {
            renumber_each(j, p, r, &r->cells[f]);
            continue;
        }
        const int rc = field_store(&number, &r->cells[f], &r->number, e);
        if (rc != STK_OK)
            return rc;
        r->number = renumber(j, p, r->number);
        r->cells[f] = (struct cell){.bytes = (const uint8_t *)&r->number, .n = sizeof r->number, .dtype = STK_INT64};
    }
    return STK_OK;
}

static int64_t bytes(const struct source *s, int64_t i)
{
    const struct source *p = source_of(s, &i);
    return source_bytes(p, i);
}

static int read_sample(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct join *j = s->state;
    const int p = find_source(s, &i), rc = source_read(j->sources[p], r, i, e);
    return rc == STK_OK ? renumber_read(j, p, r, e) : rc;
}

static int peek(const struct source *s, struct reading *r, int64_t i, size_t n, stk_error *e)
{
    const struct source *p = source_of(s, &i);
    return source_peek(p, r, i, n, e);
}

/* Includes the location, because samples of several sources may have the same key. */
static uint64_t identity(const struct source *s, int64_t i, const struct source_read *r)
{
    const struct source *p = source_of(s, &i);
    const uint64_t own = p->ops->identity ? p->ops->identity(p, i, r) : 0;
    return own && p->location ? hash_bytes(p->location, strlen(p->location), own) : 0;
}

static bool file(const struct source *s, int64_t i, int *dir, char *buf, size_t n)
{
    const struct source *p = source_of(s, &i);
    return source_file(p, i, dir, buf, n);
}

static bool extent(const struct source *s, int64_t i, bool direct, struct extent *out)
{
    const struct source *p = source_of(s, &i);
    return source_extent(p, i, direct, out);
}

static int read_from(const struct source *s, struct reading *r, int64_t i, const uint8_t *given, size_t n, stk_error *e)
{
    const struct join *j = s->state;
    const int p = find_source(s, &i), rc = source_read_from(j->sources[p], r, i, given, n, e);
    return rc == STK_OK ? renumber_read(j, p, r, e) : rc;
}

static int copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    const struct source *p = source_of(s, &i);
    return source_copy(p, r, i, f, to, e);
}

static uint64_t fingerprint(const struct source *s)
{
    const struct join *j = s->state;
    uint64_t h = hash_bytes("join", 4, 0);
    for (int i = 0; i < j->n; i++)
        h = hash_mix(h, source_fingerprint(j->sources[i]));
    return h;
}

static void add_tally(struct source_tally *to, const struct source_tally *t)
{
    to->ignored_hidden += t->ignored_hidden;
    to->ignored_other += t->ignored_other;
    to->ignored_loops += t->ignored_loops;
    to->unreadable += t->unreadable;
    to->empty_classes += t->empty_classes;
    to->missing += t->missing;
    to->beside += t->beside;
    to->bytes += t->bytes;
    to->index_s += t->index_s;
    to->index_bytes += t->index_bytes;
}

static void memory(const struct source *s, size_t *held, size_t *most)
{
    const struct join *j = s->state;
    for (int i = 0; i < j->n; i++) {
        size_t held_there, most_there;
        source_memory(j->sources[i], &held_there, &most_there);
        *held += held_there;
        *most += most_there;
    }
}

/* Computed on the first call, because it calls stat on every file. */
static const struct source_tally *tally(const struct source *s)
{
    struct join *j = s->state;
    pthread_mutex_lock(&j->lock);
    for (int i = 0; !j->summed && i < j->n; i++)
        add_tally(&j->tally, source_tally(j->sources[i]));
    j->summed = true;
    pthread_mutex_unlock(&j->lock);
    return &j->tally;
}

static const char *class_name(const struct source *s, int i)
{
    return s->classes.n > 0 ? source_given_class(s, i) : source_class(((const struct join *)s->state)->sources[0], i);
}

static const struct blocks *blocks(const struct source *s)
{
    return &((const struct join *)s->state)->blocks;
}

static const struct source_ops ops = {
    .close = close_join,
    .source_at = source_at,
    .path = path,
    .key = key,
    .label = label,
    .bytes = bytes,
    .read = read_sample,
    .peek = peek,
    .identity = identity,
    .file = file,
    .extent = extent,
    .read_from = read_from,
    .copy = copy,
    .fingerprint = fingerprint,
    .tally = tally,
    .memory = memory,
    .class_name = class_name,
    .blocks = blocks,
};

/* ------------------------------------------------------------------ opening */

static int open_one(struct join *j, const struct source_options *o, int i, const char *fields, stk_error *e)
{
    struct source_options one = *o;
    one.path = o->paths[i];
    one.paths = NULL;
    one.memory = o->memory / o->n_paths;
    one.own_fields = o->own_fields ? &o->own_fields[i] : NULL;
    one.fields = fields;
    if (!one.path)
        return error_set(e, STK_EUSAGE, "open", "sources[%d] is NULL", i);
    source_close(j->sources[i]);
    const int rc = source_open(&j->sources[i], &one, e);
    if (rc == STK_OK)
        j->first[i + 1] = j->first[i] + source_count(j->sources[i]);
    return rc;
}

static bool has_same_names(const struct source *s, const struct source *other)
{
    bool same = s->n_fields == other->n_fields;
    for (int f = 0; same && f < s->n_fields; f++)
        same = strcmp(s->fields[f].name, other->fields[f].name) == 0;
    return same;
}

/* Without `fields`: if the sources differ in their fields, opens all again with the common ones. */
static int share_fields(struct source *s, const struct source_options *o, const struct joined *joined, stk_error *e)
{
    struct join *j = s->state;
    struct buf fields = {0}, left_out = {0};
    bool same = true;
    for (int i = 1; i < j->n && same; i++)
        same = has_same_names(j->sources[0], j->sources[i]);
    int rc = same ? STK_OK : join_common_fields(joined, &fields, &left_out, e);
    for (int i = 0; i < j->n && rc == STK_OK && !same; i++)
        rc = open_one(j, o, i, (const char *)fields.data, e);
    if (rc == STK_OK && left_out.len > 0) {
        s->unshared = strndup((const char *)left_out.data, left_out.len);
        rc = s->unshared ? STK_OK : error_nomem(e, "open", left_out.len);
    }
    buf_done(&fields);
    buf_done(&left_out);
    return rc;
}

static int open_all(struct source *s, const struct source_options *o, stk_error *e)
{
    struct join *j = s->state;
    const struct joined joined = {.sources = j->sources, .names = o->paths, .n = j->n};
    int rc = STK_OK;
    for (int i = 0; i < j->n && rc == STK_OK; i++)
        rc = open_one(j, o, i, o->fields, e);
    if (rc == STK_OK && !(o->fields && o->fields[0]))
        rc = share_fields(s, o, &joined, e);
    if (rc == STK_OK)
        rc = join_fields(s, &joined, e);
    return rc == STK_OK ? join_classes(s, &joined, &j->numbers, e) : rc;
}

static int join_blocks(struct join *j, stk_error *e)
{
    const struct blocks **all = calloc((size_t)j->n, sizeof *all);
    for (int i = 0; all && i < j->n; i++)
        all[i] = source_blocks(j->sources[i]);
    const int rc = all ? blocks_join(&j->blocks, all, j->first, j->n) : -1;
    free(all);
    return rc ? error_nomem(e, "open", (size_t)j->n * sizeof *all) : STK_OK;
}

int source_join_open(struct source *s, const struct source_options *o, stk_error *e)
{
    if (o->n_paths < 1 || o->n_paths > JOINED_MOST)
        return error_set(e, STK_EUSAGE, "open", "cannot join %d sources; give 1 to %d", o->n_paths, JOINED_MOST);
    struct join *j = calloc(1, sizeof *j);
    if (!j)
        return error_nomem(e, "open", sizeof *j);
    pthread_mutex_init(&j->lock, NULL);
    s->state = j;
    s->ops = &ops;
    s->kind = "joined sources";
    j->n = o->n_paths;
    j->sources = calloc((size_t)j->n, sizeof *j->sources);
    j->first = calloc((size_t)j->n + 1, sizeof *j->first);
    if (!j->sources || !j->first)
        return error_nomem(e, "open", (size_t)j->n * sizeof *j->first);
    const int rc = open_all(s, o, e);
    if (rc != STK_OK)
        return rc;
    s->count = j->first[j->n];
    s->joined_starts = j->first;
    s->n_joined = j->n;
    return join_blocks(j, e);
}
