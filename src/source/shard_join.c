/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_join.c -- several sources as one, one after the other.
 *
 * Sample i is sample i - first[p] of part p. The parts have the same fields; their classes are the
 * same names in the same order, which `classes` can bring about.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "source/blocks.h"
#include "source/shard.h"

struct join {
    int n;
    struct source **parts;
    int64_t *first; /* n + 1 */
    struct blocks blocks;
    pthread_mutex_t lock;
    bool summed; /* under lock, like what follows */
    struct source_tally tally;
};

/* The part that sample *i is in; *i becomes its number there. */
static const struct source *part_of(const struct source *s, int64_t *i)
{
    const struct join *j = s->state;
    int low = 0, high = j->n;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (j->first[middle] <= *i)
            low = middle;
        else
            high = middle;
    }
    *i -= j->first[low];
    return j->parts[low];
}

static void close_join(struct source *s)
{
    struct join *j = s->state;
    if (!j)
        return;
    for (int i = 0; j->parts && i < j->n; i++)
        source_close(j->parts[i]);
    free(j->parts);
    free(j->first);
    blocks_done(&j->blocks);
    pthread_mutex_destroy(&j->lock);
    free(j);
    s->state = NULL;
}

static size_t path(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct source *p = part_of(s, &i);
    return source_path(p, i, buf, n);
}

static size_t key(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct source *p = part_of(s, &i);
    return source_key(p, i, buf, n);
}

static int64_t label(const struct source *s, int64_t i)
{
    const struct source *p = part_of(s, &i);
    return source_label(p, i);
}

static int64_t bytes(const struct source *s, int64_t i)
{
    const struct source *p = part_of(s, &i);
    return source_bytes(p, i);
}

static int read_part(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct source *p = part_of(s, &i);
    return source_read(p, r, i, e);
}

static int peek(const struct source *s, struct reading *r, int64_t i, size_t n, stk_error *e)
{
    const struct source *p = part_of(s, &i);
    return source_peek(p, r, i, n, e);
}

/* Parts may have samples of the same key. */
static uint64_t identity(const struct source *s, int64_t i, const struct source_read *r)
{
    const struct source *p = part_of(s, &i);
    const uint64_t own = p->ops->identity ? p->ops->identity(p, i, r) : 0;
    return own && p->place ? hash_bytes(p->place, strlen(p->place), own) : 0;
}

static bool file(const struct source *s, int64_t i, int *dir, char *buf, size_t n)
{
    const struct source *p = part_of(s, &i);
    return source_file(p, i, dir, buf, n);
}

static bool extent(const struct source *s, int64_t i, bool direct, struct extent *out)
{
    const struct source *p = part_of(s, &i);
    return source_extent(p, i, direct, out);
}

static int lend(const struct source *s, struct reading *r, int64_t i, const uint8_t *given, size_t n, stk_error *e)
{
    const struct source *p = part_of(s, &i);
    return source_lend(p, r, i, given, n, e);
}

static int copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    const struct source *p = part_of(s, &i);
    return source_copy(p, r, i, f, to, e);
}

static uint64_t fingerprint(const struct source *s)
{
    const struct join *j = s->state;
    uint64_t h = hash_bytes("join", 4, 0);
    for (int i = 0; i < j->n; i++)
        h = hash_mix(h, source_fingerprint(j->parts[i]));
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

/* Summed when somebody asks: it looks at every file of every part. */
static void memory(const struct source *s, size_t *held, size_t *most)
{
    const struct join *j = s->state;
    for (int i = 0; i < j->n; i++) {
        size_t held_there, most_there;
        source_memory(j->parts[i], &held_there, &most_there);
        *held += held_there;
        *most += most_there;
    }
}

static const struct source_tally *tally(const struct source *s)
{
    struct join *j = s->state;
    pthread_mutex_lock(&j->lock);
    for (int i = 0; !j->summed && i < j->n; i++)
        add_tally(&j->tally, source_tally(j->parts[i]));
    j->summed = true;
    pthread_mutex_unlock(&j->lock);
    return &j->tally;
}

static const char *class_name(const struct source *s, int i)
{
    return source_class(((const struct join *)s->state)->parts[0], i);
}

static const struct blocks *blocks(const struct source *s)
{
    return &((const struct join *)s->state)->blocks;
}

static const struct source_ops ops = {
    .close = close_join,
    .path = path,
    .key = key,
    .label = label,
    .bytes = bytes,
    .read = read_part,
    .peek = peek,
    .identity = identity,
    .file = file,
    .extent = extent,
    .lend = lend,
    .copy = copy,
    .fingerprint = fingerprint,
    .tally = tally,
    .memory = memory,
    .class_name = class_name,
    .blocks = blocks,
};

/* ------------------------------------------------------------------ do they go together */

static int check_classes(const struct source *a, const struct source *b, const char *name, stk_error *e)
{
    bool same = source_n_classes(a) == source_n_classes(b);
    for (int i = 0; same && i < source_n_classes(a); i++)
        same = strcmp(source_class(a, i), source_class(b, i)) == 0;
    if (same)
        return STK_OK;
    return error_set(e, STK_EUSAGE, "open", "%s has other classes than the source before it; give classes", name);
}

static int check_fields(const struct source *a, const struct source *b, const char *name, stk_error *e)
{
    bool same = a->n_fields == b->n_fields;
    for (int i = 0; same && i < a->n_fields; i++)
        same = a->fields[i].kind == b->fields[i].kind && strcmp(a->fields[i].name, b->fields[i].name) == 0;
    if (same)
        return STK_OK;
    return error_set(e, STK_EUSAGE, "open",
                     "%s has other fields than the source before it; fields says which to take of all, as image or "
                     "\"image, label\"",
                     name);
}

static int open_part(struct source *s, const struct source_options *o, int i, stk_error *e)
{
    struct join *j = s->state;
    struct source_options one = *o;
    one.path = o->paths[i];
    one.paths = NULL;
    one.memory = o->memory / o->n_paths;
    if (!one.path)
        return error_set(e, STK_EUSAGE, "open", "sources[%d] is NULL", i);
    int rc = source_open(&j->parts[i], &one, e);
    if (rc == STK_OK && i > 0)
        rc = check_fields(j->parts[0], j->parts[i], one.path, e);
    if (rc == STK_OK && i > 0)
        rc = check_classes(j->parts[0], j->parts[i], one.path, e);
    if (rc != STK_OK)
        return rc;
    j->first[i + 1] = j->first[i] + source_count(j->parts[i]);
    return STK_OK;
}

static int join_blocks(struct join *j, stk_error *e)
{
    const struct blocks **parts = calloc((size_t)j->n, sizeof *parts);
    for (int i = 0; parts && i < j->n; i++)
        parts[i] = source_blocks(j->parts[i]);
    const int rc = parts ? blocks_join(&j->blocks, parts, j->first, j->n) : -1;
    free(parts);
    return rc ? error_nomem(e, "open", (size_t)j->n * sizeof *parts) : STK_OK;
}

int shard_join_open(struct source *s, const struct source_options *o, stk_error *e)
{
    if (o->n_paths < 1 || o->n_paths > 1 << 20)
        return error_set(e, STK_EUSAGE, "open", "%d sources to join", o->n_paths);
    struct join *j = calloc(1, sizeof *j);
    if (!j)
        return error_nomem(e, "open", sizeof *j);
    pthread_mutex_init(&j->lock, NULL);
    s->state = j;
    s->ops = &ops;
    s->kind = "joined sources";
    j->n = o->n_paths;
    j->parts = calloc((size_t)j->n, sizeof *j->parts);
    j->first = calloc((size_t)j->n + 1, sizeof *j->first);
    if (!j->parts || !j->first)
        return error_nomem(e, "open", (size_t)j->n * sizeof *j->first);
    for (int i = 0; i < j->n; i++) {
        const int rc = open_part(s, o, i, e);
        if (rc != STK_OK)
            return rc;
    }
    s->count = j->first[j->n];
    s->parts = j->first;
    s->n_parts = j->n;
    s->n_fields = j->parts[0]->n_fields;
    memcpy(s->fields, j->parts[0]->fields, sizeof s->fields);
    s->n_classes = source_n_classes(j->parts[0]);
    return join_blocks(j, e);
}
