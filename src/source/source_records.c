/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_records.c -- samples inside shards as a source, with random access.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"
#include "source/field.h"
#include "source/shard_files.h"

struct shards {
    const struct record_format *format;
    struct records_index index;
    struct shard_files files;
    struct source_tally tally;
    uint64_t wanted; /* bits of the parts that the fields need */
    int image;       /* part; -1: none, or not a separate part */
    uint64_t column; /* hash of the name of the image's column, since a sample may have several images */
    int pixels;      /* the part with pixels as an npy array */
    void *state;     /* of the format */
    char kind[96];   /* if shards are compressed */
};

static const struct shards *shards_of(const struct source *s)
{
    return s->state;
}

/* ------------------------------------------------------------------ names */

static const char *shard_name(const struct records_index *x, int64_t shard)
{
    return x->pool + x->shards[shard].name_at;
}

static int name_record(const struct records_index *x, int64_t i, bool whole, char *buf, size_t n)
{
    const int64_t shard = records_shard(x, i);
    const char *path = shard_name(x, shard), *slash = strrchr(path, '/');
    const char *name = whole || !slash ? path : slash + 1;
    const long long number = (long long)(i - x->shards[shard].first);
    if (!x->key_at)
        return snprintf(buf, n, whole ? "%s record %lld" : "%s:%lld", name, number);
    return whole ? snprintf(buf, n, "%s/%s", name, x->pool + x->key_at[i])
                 : snprintf(buf, n, "%s", x->pool + x->key_at[i]);
}

static size_t path(const struct source *s, int64_t i, char *buf, size_t n)
{
    const int length = name_record(&shards_of(s)->index, i, true, buf, n);
    return length > 0 ? (size_t)length : 0;
}

static size_t key(const struct source *s, int64_t i, char *buf, size_t n)
{
    const int length = name_record(&shards_of(s)->index, i, false, buf, n);
    return length > 0 ? (size_t)length : 0;
}

/* The spelling is that of the first image of the sample, which may be another one. */
static const char *suffix(const struct source *s, int64_t i)
{
    const struct shards *d = s->state;
    const char *spelling = records_spelling(&d->index, i), *part = d->image < 0 ? "" : records_part_name(s, d->image);
    return spelling[0] && (strcmp(part, "image") == 0 || strcasecmp(part, spelling) == 0) ? spelling : NULL;
}

static int64_t label(const struct source *s, int64_t i)
{
    const struct records_index *x = &shards_of(s)->index;
    return x->label ? source_label_or_default(s, x->label[i]) : -1;
}

static const char *class_name(const struct source *s, int i)
{
    const struct records_index *x = &shards_of(s)->index;
    return s->classes.n > 0 ? source_given_class(s, i) : x->pool + x->class_at[i];
}

const void *records_state(const struct source *s)
{
    return shards_of(s)->state;
}

int records_n_parts(const struct source *s)
{
    return (int)shards_of(s)->index.head->n_parts;
}

const uint8_t *records_survey(const struct source *s, size_t *n)
{
    const struct records_index *x = &shards_of(s)->index;
    *n = (size_t)x->head->survey_bytes;
    return x->survey;
}

const char *records_part_name(const struct source *s, int p)
{
    const struct records_index *x = &shards_of(s)->index;
    return x->pool + x->part_name_at[p];
}

/* ------------------------------------------------------------------ reading */

static int read_parts(const struct source *s, struct reading *r, int64_t i, uint64_t wanted, struct record *out,
                      stk_error *e)
{
    const struct shards *d = s->state;
    const int rc = records_parts_read(&d->files, r, i, wanted, s->max_bytes, out, e);
    return rc == STK_OK && d->format->decompress ? d->format->decompress(s, r, out, e) : rc;
}

int records_read(const struct source *s, struct reading *r, int64_t i, struct record *out, stk_error *e)
{
    return read_parts(s, r, i, UINT64_MAX, out, e);
}

/* Each part is a column. */
static void parse_parts(const struct source *s, struct reading *r, const struct record *rec)
{
    for (int f = 0; f < s->n_fields; f++) {
        const int p = s->fields[f].column;
        if (p < 0)
            continue;
        r->cells[f] = (struct cell){.text = s->fields[f].text};
        if (p < records_n_parts(s)) { /* otherwise no sample has it */
            r->cells[f].bytes = rec->parts[p].bytes;
            r->cells[f].n = rec->parts[p].n;
        }
    }
}

static void show_bytes(const uint8_t *p, size_t n, char *to, size_t room)
{
    size_t at = 0;
    for (size_t k = 0; k < n && at + 5 < room; k++)
        at += (size_t)snprintf(to + at, room - at, p[k] >= ' ' && p[k] < 0x7f ? "%c" : "\\x%02x", p[k]);
    to[at] = 0;
}

/* Reports a missing label. In groups of files, the part "cls" contains it. */
static int fail_label(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    struct record rec;
    char shown[64] = "";
    int p = records_n_parts(s);
    while (--p >= 0 && strcmp(records_part_name(s, p), "cls") != 0)
        ;
    if (p < 0 || p >= 64 || read_parts(s, r, i, UINT64_C(1) << p, &rec, e) != STK_OK || !rec.parts[p].bytes)
        return error_set(e, STK_EDATA, "read", "the label is missing, although other samples have one");
    show_bytes(rec.parts[p].bytes, rec.parts[p].n, shown, sizeof shown);
    return error_set(e, STK_EDATA, "read", "the label is invalid: its cls has %zu byte%s%s%s%s", rec.parts[p].n,
                     rec.parts[p].n == 1 ? "" : "s", shown[0] ? ", \"" : "", shown, shown[0] ? "\"" : "");
}

static int read_sample(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct shards *d = s->state;
    struct record rec;
    const bool leave_out = r->rest && d->image >= 0;
    r->cold = false;
    r->bytes = NULL;
    r->n_bytes = 0;
    r->label = label(s, i);
    int rc = read_parts(s, r, i, leave_out ? d->wanted & ~(UINT64_C(1) << d->image) : d->wanted, &rec, e);
    if (rc != STK_OK)
        return rc;
    if (d->format->parse)
        rc = d->format->parse(s, r, &rec, e);
    else
        parse_parts(s, r, &rec);
    const struct field *labelled = d->index.label && d->index.label[i] == LABEL_NONE ? source_label_field(s) : NULL;
    if (rc == STK_OK && labelled && !labelled->has_fill)
        rc = fail_label(s, r, i, e);
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (s->fields[f].kind == FIELD_ENCODED && !r->rest) {
            r->bytes = r->cells[f].bytes;
            r->n_bytes = r->cells[f].n;
            if (!r->bytes || r->n_bytes == 0)
                rc = error_set(e, STK_EDATA, "read", r->bytes ? "the image is empty" : "the image is missing");
        }
    return rc;
}

static bool extent(const struct source *s, int64_t i, bool direct, struct extent *out)
{
    const struct shards *d = s->state;
    struct records_parts p;
    if (records_parts_plan(&d->index, i, d->wanted, &p, NULL) != STK_OK || p.bytes == 0 || p.bytes > s->max_bytes ||
        !records_parts_adjacent(&p))
        return false;
    out->at = p.from;
    out->bytes = (size_t)(p.to - p.from);
    return shard_files_lend(&d->files, p.shard, direct, out);
}

static int read_from(const struct source *s, struct reading *r, int64_t i, const uint8_t *given, size_t n, stk_error *e)
{
    struct records_parts p;
    const int rc = records_parts_plan(&shards_of(s)->index, i, shards_of(s)->wanted, &p, e);
    if (rc != STK_OK)
        return rc;
    r->ahead = given;
    r->ahead_at = p.from;
    r->ahead_bytes = (int64_t)n;
    const int read = read_sample(s, r, i, e);
    r->ahead = NULL;
    return read;
}

static int64_t bytes(const struct source *s, int64_t i)
{
    const struct shards *d = s->state;
    const struct part *parts = &d->index.parts[i * (int64_t)d->index.head->n_parts];
    int64_t sum = 0;
    for (uint64_t k = 0; k < d->index.head->n_parts; k++)
        if (parts[k].bytes > 0 && (d->wanted >> k & 1))
            sum += parts[k].bytes;
    return sum;
}

/* ------------------------------------------------------------------ identity */

static uint64_t identity(const struct source *s, int64_t i, const struct source_read *r)
{
    const struct shards *d = s->state;
    const int64_t shard = records_shard(&d->index, i);
    struct stamp now;
    struct stat st;
    int fd;
    if (shard_files_take(&d->files, shard, &fd, NULL) != STK_OK)
        return 0;
    const bool known = fstat(fd, &st) == 0;
    shard_files_give(&d->files, fd);
    if (!known || !index_stamp(&now, &st) || (r && now.seconds >= r->since))
        return 0;
    const char *name = shard_name(&d->index, shard);
    uint64_t h = hash_bytes(&now, sizeof now, hash_bytes(name, strlen(name), (uint64_t)st.st_size));
    const uint64_t n = d->index.head->n_parts;
    h = hash_mix(hash_bytes(&d->index.parts[(uint64_t)i * n], n * sizeof(struct part), h), d->column);
    return h ? h : 1;
}

/* Covers keys, sizes and labels of all samples, in order. */
static uint64_t fingerprint(const struct source *s)
{
    const struct records_index *x = &shards_of(s)->index;
    uint64_t h = hash_mix(hash_bytes("records", 7, 0), (uint64_t)s->count);
    for (int64_t i = 0; i < s->count; i++) {
        const struct part *parts = &x->parts[i * (int64_t)x->head->n_parts];
        for (uint64_t k = 0; k < x->head->n_parts; k++)
            h = hash_mix(h, (uint64_t)parts[k].bytes);
        if (x->key_at)
            h = hash_bytes(x->pool + x->key_at[i], strlen(x->pool + x->key_at[i]), h);
        h = hash_mix(h, (uint64_t)label(s, i));
    }
    return h;
}

static const struct source_tally *tally(const struct source *s)
{
    return &shards_of(s)->tally;
}

static void memory(const struct source *s, size_t *held, size_t *most)
{
    shard_files_memory(&shards_of(s)->files, held, most);
}

static const struct blocks *blocks(const struct source *s)
{
    return &shards_of(s)->files.blocks;
}

static void close_shards(struct source *s)
{
    struct shards *d = s->state;
    if (!d)
        return;
    shard_files_done(&d->files);
    free(d->state);
    records_done(&d->index);
    free(d);
    s->state = NULL;
}

/* Exchanges file and derived with the spare buffers; a second call undoes it. */
static void swap_buffers(struct reading *r)
{
    const struct buf file = r->file, derived = r->derived;
    r->file = r->spare[0];
    r->derived = r->spare[1];
    r->spare[0] = file;
    r->spare[1] = derived;
}

/* Copies pixels from an npy array in a part. */
static int copy_pixels(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    const int part = shards_of(s)->pixels;
    struct record rec;
    const int rc = read_parts(s, r, i, UINT64_C(1) << part, &rec, e);
    if (rc != STK_OK)
        return rc;
    const struct cell c = {.bytes = rec.parts[part].bytes, .n = rec.parts[part].n};
    struct field array = s->fields[f];
    array.what = STK_TENSOR;
    return field_store(&array, &c, to, e);
}

/* Keeps the buffers that cells of the sample may point into. */
static int copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    swap_buffers(r);
    const int rc = copy_pixels(s, r, i, f, to, e);
    swap_buffers(r);
    return rc;
}

static const struct source_ops ops = {
    .close = close_shards,
    .path = path,
    .key = key,
    .suffix = suffix,
    .label = label,
    .bytes = bytes,
    .read = read_sample,
    .copy = copy,
    .identity = identity,
    .extent = extent,
    .read_from = read_from,
    .fingerprint = fingerprint,
    .tally = tally,
    .memory = memory,
    .class_name = class_name,
    .blocks = blocks,
};

/* ------------------------------------------------------------------ opening */

/* Guesses the kind of a part from its name, or else from some samples. For arrays, finds the common shape. */
static void guess_part(const struct source *s, struct reading *r, int p, struct column *out)
{
    enum { TRIED = 32 };
    const int64_t step = s->count / TRIED + 1;
    const char *name = records_part_name(s, p);
    *out = (struct column){.kind = columns_guess(name, NULL, 0), .label = strcmp(name, "cls") == 0};
    snprintf(out->name, sizeof out->name, "%s", name);
    bool more = out->kind == STK_KIND_DEFAULT || out->kind == STK_TENSOR;
    for (int64_t i = 0; i < s->count && more; i += step) {
        struct record rec;
        if (read_parts(s, r, i, UINT64_C(1) << p, &rec, NULL) != STK_OK || !rec.parts[p].bytes)
            continue;
        if (out->kind == STK_KIND_DEFAULT || out->kind == STK_TEXT)
            out->kind = columns_guess(name, rec.parts[p].bytes, rec.parts[p].n);
        more = out->kind == STK_TENSOR || out->kind == STK_TEXT; /* text only if all samples are text */
        if (out->kind == STK_TENSOR)
            columns_merge_npy(out, rec.parts[p].bytes, rec.parts[p].n);
    }
}

static int guess_parts(const struct source *s, struct columns *c, stk_error *e)
{
    struct reading r = {0};
    int rc = STK_OK;
    for (int p = 0; p < records_n_parts(s) && rc == STK_OK; p++) {
        struct column one;
        guess_part(s, &r, p, &one);
        if (columns_add(c, &one))
            rc = error_nomem(e, "open", sizeof one);
    }
    reading_done(&r);
    return rc;
}

/* Without another image, the part "npy" is the image if it has the shape of pixels. */
static void find_pixels(struct columns *c)
{
    struct column *npy = NULL;
    for (int i = 0; i < c->n; i++) {
        if (c->items[i].kind == STK_IMAGE)
            return;
        if (strcmp(c->items[i].name, "npy") == 0)
            npy = &c->items[i];
    }
    if (npy && npy->kind == STK_TENSOR && columns_hold_pixels(npy))
        npy->kind = STK_IMAGE;
}

/* Whether some samples lack the label, and no other read of them would report it. */
static bool lacks_labels(const struct source *s)
{
    const struct records_index *x = &shards_of(s)->index;
    const struct field *labelled = x->label ? source_label_field(s) : NULL;
    bool missing = false;
    if (!labelled || labelled->has_fill || shards_of(s)->wanted != 0)
        return false;
    for (int64_t i = 0; i < s->count && !missing; i++)
        missing = x->label[i] == LABEL_NONE;
    return missing;
}

static int make_fields(struct source *s, const struct source_options *o, stk_error *e)
{
    struct shards *d = s->state;
    struct columns c = {.labels = d->index.label != NULL, .declared = s->is_pack};
    int rc = d->format->find_columns ? d->format->find_columns(s, &c, e) : guess_parts(s, &c, e);
    if (d->format->groups)
        find_pixels(&c);
    if (rc == STK_OK)
        rc = columns_add_declared(&c, o->fields, e);
    if (rc == STK_OK)
        rc = columns_bind(s, &c, o->fields, e);
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (s->fields[f].kind == FIELD_ENCODED && s->fields[f].column >= 0)
            d->column = hash_bytes(c.items[s->fields[f].column].name, strlen(c.items[s->fields[f].column].name), 0);
    if (rc == STK_OK && d->format->prepare)
        rc = d->format->prepare(s, &c, &d->state, e);
    columns_done(&c);
    d->image = -1;
    d->wanted = d->format->parse ? UINT64_MAX : 0;
    for (int f = 0; f < s->n_fields && !d->format->parse; f++) {
        if (s->fields[f].column < 0)
            continue;
        if (s->fields[f].kind == FIELD_PIXELS) { /* copied directly, not read into a cell */
            d->pixels = s->fields[f].column;
            s->fields[f].column = -1;
            continue;
        }
        if (s->fields[f].column < records_n_parts(s)) /* otherwise no sample has it */
            d->wanted |= UINT64_C(1) << s->fields[f].column;
        if (s->fields[f].kind == FIELD_ENCODED)
            d->image = s->fields[f].column;
    }
    s->labels_missing = rc == STK_OK && lacks_labels(s);
    return rc;
}

int source_records_open(struct source *s, const struct source_options *o, const struct record_format *f,
                        const struct names *paths, stk_error *e)
{
    struct shards *d = calloc(1, sizeof *d);
    if (!d)
        return error_nomem(e, "open", sizeof *d);
    d->format = f;
    d->wanted = UINT64_MAX;
    s->state = d;
    s->ops = &ops;
    s->kind = f->kind;
    int rc = records_open_index(&d->index, f, s, o, paths, &d->tally, e);
    if (rc != STK_OK)
        return rc;
    s->has_keys = f->groups && d->index.key_at;
    s->has_key_column = s->is_pack && !f->groups && d->index.key_at;
    s->count = (int64_t)d->index.head->n;
    if (s->count == 0)
        return error_set(
            e, STK_EUSAGE, "open", "contains no samples%s",
            f->groups ? ": file names need a dot, as in 0017.jpg; hidden files and paths that start with __name__ are "
                        "skipped"
                      : "");
    if (s->n_classes == 0)
        s->n_classes = (int)d->index.head->n_classes;
    for (uint64_t i = 0; i < d->index.head->n_shards; i++)
        d->tally.bytes += d->index.shards[i].bytes;
    rc = shard_files_open(&d->files, &d->index, o->memory, e);
    if (rc != STK_OK)
        return rc;
    if (d->files.blocks.n > 0) {
        const int64_t window = d->files.blocks.window;
        if (window < s->count)
            snprintf(d->kind, sizeof d->kind, "%s, compressed: shuffled in windows of %lld", f->kind,
                     (long long)window);
        else
            snprintf(d->kind, sizeof d->kind, "%s, compressed", f->kind);
        s->kind = d->kind;
    }
    return make_fields(s, o, e);
}
