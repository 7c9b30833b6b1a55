/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_list.c -- collects what scanning finds per shard, and combines it into one index.
 *
 * Each shard is scanned into its own list, in parallel. The result does not depend on the number of threads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "source/labels.h"
#include "source/records_index.h"

void record_list_done(struct record_list *l)
{
    names_done(&l->part_names);
    names_done(&l->label_names);
    buf_done(&l->items);
    buf_done(&l->keys);
    buf_done(&l->labels);
    buf_done(&l->reasons);
    buf_done(&l->survey);
}

/* ------------------------------------------------------------------ scanning */

int record_begin(struct record_scan *sc, const char *key, size_t n)
{
    struct record_list *l = sc->list;
    const uint32_t none = 0;
    if (l->n == 0)
        l->keyed = key != NULL;
    l->n++;
    if (l->keyed && (buf_add(&l->keys, key ? key : "", key ? n : 0) || buf_add(&l->keys, "\0", 2)))
        return -1;
    return buf_add(&l->labels, &none, sizeof none);
}

static int add_item(struct record_list *l, uint32_t name, struct part p, const struct part_extra *extra)
{
    const struct record_item item = {
        .sample = l->n - 1, .name = name, .part = p, .extra = extra ? *extra : (struct part_extra){0}};
    return buf_add(&l->items, &item, sizeof item);
}

int record_part(struct record_scan *sc, const char *name, size_t n, struct part p, const struct part_extra *extra)
{
    uint32_t number;
    return names_add(&sc->list->part_names, name, n, &number) < 0 ? -1 : add_item(sc->list, number, p, extra);
}

int record_spelling(struct record_scan *sc, const char *suffix, size_t n)
{
    struct buf *keys = &sc->list->keys;
    if (!sc->list->keyed || keys->data[keys->len - 2] != 0) /* the last byte of a spelling, or the end of the key */
        return 0;
    keys->len--;
    return buf_add(keys, suffix, n) || buf_add(keys, "", 1) ? -1 : 0;
}

int record_label(struct record_scan *sc, const char *text, size_t n)
{
    struct record_list *l = sc->list;
    uint32_t number;
    if (names_add(&l->label_names, text, n, &number) < 0)
        return -1;
    number++;
    memcpy(l->labels.data + (size_t)(l->n - 1) * sizeof number, &number, sizeof number);
    return 0;
}

int record_survey(struct record_scan *sc, const void *p, size_t n)
{
    return buf_add(&sc->list->survey, p, n);
}

int record_bad(struct record_scan *sc, int64_t at, const char *reason)
{
    struct record_list *l = sc->list;
    const struct part p = {.at = at, .bytes = PART_NONE - 1 - (int64_t)l->reasons.len};
    if (buf_add(&l->reasons, reason, strlen(reason) + 1))
        return -1;
    return add_item(l, (uint32_t)RECORD_ALL, p, NULL);
}

/* ------------------------------------------------------------------ labels */

static int collect_labels(struct labels *all, const struct record_list *lists, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < lists[i].label_names.n; k++) {
            uint32_t ignored;
            if (names_add(&all->names, names_at(&lists[i].label_names, k), names_length(&lists[i].label_names, k),
                          &ignored) < 0)
                return -1;
        }
    return 0;
}

/* ------------------------------------------------------------------ combining */

struct joining {
    struct records_index *x;
    const struct names *parts;
    const struct labels *labels;
    uint64_t pool; /* filled so far */
};

static uint64_t put(struct joining *j, const void *p, size_t n)
{
    const uint64_t at = j->pool;
    if (n > 0)
        memcpy(j->x->pool + at, p, n);
    j->pool += n;
    return at;
}

static void put_parts(struct joining *j, const struct record_list *l, int64_t first)
{
    const uint64_t n_parts = j->x->head->n_parts;
    const uint64_t reasons = put(j, l->reasons.data, l->reasons.len);
    const struct record_item *items = (const void *)l->items.data;
    for (size_t i = 0; i < l->items.len / sizeof *items; i++) {
        const struct record_item *item = &items[i];
        uint64_t cell = (uint64_t)(first + item->sample) * n_parts;
        struct part p = item->part;
        if (item->name == (uint32_t)RECORD_ALL) {
            p.bytes -= (int64_t)reasons;
        } else {
            uint32_t part = 0;
            names_find(j->parts, names_at(&l->part_names, item->name), names_length(&l->part_names, item->name), &part);
            cell += part;
        }
        if (records_bad_reason(j->x, &j->x->parts[cell])) /* a bad sample stays bad */
            continue;
        j->x->parts[cell] = p;
        if (j->x->extra)
            j->x->extra[cell] = item->extra;
    }
}

static void put_labels(struct joining *j, const struct record_list *l, int64_t first)
{
    for (int64_t i = 0; j->x->label && i < l->n; i++) {
        uint32_t number, all = 0;
        memcpy(&number, l->labels.data + (size_t)i * sizeof number, sizeof number);
        if (number > 0)
            names_find(&j->labels->names, names_at(&l->label_names, number - 1),
                       names_length(&l->label_names, number - 1), &all);
        j->x->label[first + i] = number > 0 ? j->labels->value[all] : LABEL_NONE;
    }
}

static void put_keys(struct joining *j, const struct record_list *l, int64_t first)
{
    if (!j->x->key_at || l->n == 0)
        return;
    uint64_t at = put(j, l->keys.data, l->keys.len);
    for (int64_t i = 0; i < l->n; i++) {
        j->x->key_at[first + i] = at;
        at = (uint64_t)(record_next_key(j->x->pool + at) - j->x->pool);
    }
}

static void put_all(struct joining *j, const struct names *paths, const struct record_list *lists,
                    const struct names *classes)
{
    struct records_index *x = j->x;
    int64_t first = 0;
    put(j, "", 1);
    for (uint64_t i = 0; i < x->head->n * x->head->n_parts; i++)
        x->parts[i].bytes = PART_NONE;
    for (uint32_t i = 0; i < paths->n; i++) {
        x->shards[i] = (struct record_shard){.bytes = lists[i].bytes,
                                             .raw = lists[i].raw,
                                             .form = lists[i].form,
                                             .first = first,
                                             .stamp = lists[i].stamp};
        put_parts(j, &lists[i], first);
        put_labels(j, &lists[i], first);
        put_keys(j, &lists[i], first);
        first += lists[i].n;
    }
    for (uint32_t i = 0; i < x->head->n_parts; i++)
        x->part_name_at[i] = i < j->parts->n ? put(j, names_at(j->parts, i), names_length(j->parts, i) + 1) : 0;
    for (uint32_t i = 0; i < x->head->n_classes; i++) {
        const uint32_t k = j->labels->rank[i];
        x->class_at[i] = put(j, names_at(classes, k), names_length(classes, k) + 1);
    }
    for (uint32_t i = 0; i < paths->n; i++) /* last, because records_beside.c replaces them */
        x->shards[i].name_at = put(j, names_at(paths, i), names_length(paths, i) + 1);
}

static int collect_parts(struct names *parts, const struct record_list *lists, uint32_t n, stk_error *e)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < lists[i].part_names.n; k++) {
            uint32_t ignored;
            if (names_add(parts, names_at(&lists[i].part_names, k), names_length(&lists[i].part_names, k), &ignored) <
                0)
                return error_nomem(e, "open", parts->pool.len);
        }
    if (parts->n > RECORD_PARTS)
        return error_set(e, STK_EUSAGE, "open",
                         "its samples have more than %d parts (%.40s, %.40s, %.40s, ...); the text after the first dot "
                         "of a file name is the name of the part: rename the files",
                         RECORD_PARTS, names_at(parts, 0), names_at(parts, 1), names_at(parts, 2));
    return STK_OK;
}

static uint64_t pool_bytes(const struct names *paths, const struct names *parts, const struct record_list *lists,
                           const struct labels *labels)
{
    uint64_t n = 1 + paths->pool.len + parts->pool.len + labels->names.pool.len;
    for (uint32_t i = 0; i < paths->n; i++)
        n += lists[i].reasons.len + lists[i].keys.len;
    return n;
}

/* Joins the surveys of all shards, in order. */
static int join_surveys(const struct record_format *f, const struct record_list *lists, uint32_t n, struct buf *all)
{
    int rc = 0;
    for (uint32_t i = 0; f->join && i < n && rc == 0; i++)
        rc = f->join(all, lists[i].survey.data, lists[i].survey.len);
    return rc;
}

static int join(struct records_index *x, const struct record_format *f, const struct names *paths,
                const struct record_list *lists, const struct names *parts, const struct labels *labels,
                const struct buf *survey, stk_error *e)
{
    struct records_head head = {
        .format = f->id, .n_shards = paths->n, .n_parts = parts->n > 0 ? parts->n : 1, .survey_bytes = survey->len};
    bool keyed = false;
    for (uint32_t i = 0; i < paths->n; i++) {
        head.n += (uint64_t)lists[i].n;
        keyed |= lists[i].keyed;
    }
    for (uint32_t i = 0; i < paths->n && keyed; i++) /* only a shard without samples may lack keys */
        keyed = lists[i].keyed || lists[i].n == 0;
    head.has = (f->extra ? RECORDS_EXTRA : 0) | (labels->names.n > 0 ? RECORDS_LABELS : 0) | (keyed ? RECORDS_KEYS : 0);
    head.n_classes = labels->rank ? labels->names.n : 0;
    head.pool_bytes = pool_bytes(paths, parts, lists, labels);
    if (records_init(x, &head))
        return error_nomem(e, "open", (size_t)(head.n * head.n_parts) * sizeof(struct part));
    struct joining j = {.x = x, .parts = parts, .labels = labels};
    put_all(&j, paths, lists, &labels->names);
    if (survey->len > 0)
        memcpy(x->survey, survey->data, survey->len);
    records_seal(x);
    return STK_OK;
}

int records_join(struct records_index *x, const struct record_format *f, const struct names *paths,
                 struct record_list *lists, const struct names *given, stk_error *e)
{
    struct names parts = {0};
    struct labels labels = {0};
    struct buf survey = {0};
    int rc = f->groups && records_groups(lists, paths->n) ? error_nomem(e, "open", sizeof *lists) : STK_OK;
    if (rc == STK_OK)
        rc = collect_parts(&parts, lists, paths->n, e);
    if (rc == STK_OK && collect_labels(&labels, lists, paths->n))
        rc = error_nomem(e, "open", labels.names.pool.len);
    if (rc == STK_OK)
        rc = labels_resolve(&labels, given, e);
    if (rc == STK_OK && join_surveys(f, lists, paths->n, &survey))
        rc = error_nomem(e, "open", survey.len);
    if (rc == STK_OK)
        rc = join(x, f, paths, lists, &parts, &labels, &survey, e);
    buf_done(&survey);
    labels_done(&labels);
    names_done(&parts);
    return rc;
}
