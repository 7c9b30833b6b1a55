/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_index.c -- builds the index of a list, in two passes.
 *
 * The first pass counts, and collects the folders and the labels. Only all labels together decide whether "7" is a
 * number or a name. The second pass fills a block of exactly the right size, so that nothing but the index is held in
 * memory. If the list changes between the passes, the counts differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/list.h"

/* ------------------------------------------------------------------ labels */

enum label_kind { LABEL_MISSING, LABEL_WHOLE, LABEL_OTHER_NUMBER, LABEL_NULL, LABEL_WORD };

static bool is_word(struct slice s, const char *word)
{
    if (s.n != strlen(word))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] | 0x20) != (word[i] | 0x20))
            return false;
    return true;
}

static size_t count_digits(struct slice s, size_t at)
{
    size_t n = 0;
    while (at + n < s.n && s.p[at + n] >= '0' && s.p[at + n] <= '9')
        n++;
    return n;
}

/* A decimal number: "-7", "3.0" (pandas writes 3 like this if the column has missing values), "0.25", "1e9". */
static enum label_kind number_kind(struct slice s, int64_t *value)
{
    const bool negative = s.p[0] == '-';
    size_t at = negative || s.p[0] == '+' ? 1 : 0;
    const size_t digits = count_digits(s, at);
    uint64_t v = 0;
    bool fits = true;
    for (size_t i = at; i < at + digits; i++) {
        const uint64_t digit = (uint64_t)(s.p[i] - '0');
        fits &= v <= (INT64_MAX - digit) / 10;
        v = fits ? v * 10 + digit : v;
    }
    at += digits;
    bool whole = fits;
    size_t behind = 0;
    if (at < s.n && s.p[at] == '.') {
        behind = count_digits(s, ++at);
        for (size_t i = at; i < at + behind; i++)
            whole &= s.p[i] == '0';
        at += behind;
    }
    if (digits + behind == 0)
        return LABEL_WORD;
    if (at < s.n && (s.p[at] | 0x20) == 'e') {
        at += at + 1 < s.n && (s.p[at + 1] == '-' || s.p[at + 1] == '+') ? 2 : 1;
        const size_t exponent = count_digits(s, at);
        if (exponent == 0)
            return LABEL_WORD;
        at += exponent;
        whole = false;
    }
    *value = negative ? -(int64_t)v : (int64_t)v;
    return at < s.n ? LABEL_WORD : whole ? LABEL_WHOLE : LABEL_OTHER_NUMBER;
}

static enum label_kind label_kind(struct slice s, int64_t *value)
{
    if (s.n == 0 || is_word(s, "nan"))
        return LABEL_MISSING;
    if (is_word(s, "none") || is_word(s, "null") || is_word(s, "na") || is_word(s, "n/a"))
        return LABEL_NULL;
    return number_kind(s, value);
}

/* ------------------------------------------------------------------ the first pass */

struct survey {
    struct names dirs, labels; /* labels: as text, if no classes are given */
    uint64_t n, name_bytes;
    int64_t first[LABEL_WORD + 1]; /* line of the first label of each kind; 0: none */
    int64_t labelled, unlabelled;  /* line of the first row with and without a label */
    bool words;                    /* labels are names, not numbers */
    bool bad_label;                /* the error is about a label */
    uint32_t last_dir;
};

static size_t dir_bytes(struct slice path)
{
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/')
        n--;
    return n;
}

static int dir_of(struct survey *v, struct slice path, size_t n, uint32_t *out)
{
    const bool again = v->last_dir < v->dirs.n && names_length(&v->dirs, v->last_dir) == n &&
                       memcmp(names_at(&v->dirs, v->last_dir), path.p, n) == 0;
    if (!again && names_add(&v->dirs, path.p, n, &v->last_dir) < 0)
        return -1;
    *out = v->last_dir;
    return 0;
}

static int add_row(struct survey *v, const struct names *given, const struct list_row *row)
{
    uint32_t number;
    int64_t value;
    const size_t n = dir_bytes(row->path);
    if (dir_of(v, row->path, n, &number))
        return -1;
    v->n++;
    v->name_bytes += row->path.n - n + 1;
    if (!row->has_label) {
        v->unlabelled = v->unlabelled ? v->unlabelled : row->line;
        return 0;
    }
    v->labelled = v->labelled ? v->labelled : row->line;
    int64_t *first = &v->first[label_kind(row->label, &value)];
    *first = *first ? *first : row->line;
    return given->n == 0 && names_add(&v->labels, row->label.p, row->label.n, &number) < 0 ? -1 : 0;
}

static int no_memory(stk_error *e, size_t bytes)
{
    error_nomem(e, "open", bytes);
    return -1;
}

/* "the label", and in a table its column. */
static const char *describe_label(const struct list *l, char buf[128])
{
    const bool table = l->format == LIST_TABLE;
    snprintf(buf, 128, "the label%s%s", table ? " in column " : "", table ? l->label_name : "");
    return buf;
}

/* Whether the labels make sense together. */
static int check_labels(struct survey *v, const struct list *l, stk_error *e)
{
    const int64_t *first = v->first;
    const bool numbers = first[LABEL_WHOLE] || first[LABEL_OTHER_NUMBER];
    v->words = first[LABEL_WORD] || (first[LABEL_NULL] && !numbers);
    if (v->n == 0) {
        error_set(e, STK_EUSAGE, "open", "the list contains no paths");
        error_at(e, l->name, -1);
        return -1;
    }
    static const char without[] = "or choose fields without the label (fields=\"image\")";
    char name[128];
    v->bad_label = true;
    if (v->labelled && v->unlabelled)
        return list_fail(l, v->unlabelled, e, "the label is missing, but line %lld has one; add it, %s",
                         (long long)v->labelled, without);
    if (first[LABEL_MISSING] || (!v->words && first[LABEL_NULL]))
        return list_fail(l, first[LABEL_MISSING] ? first[LABEL_MISSING] : first[LABEL_NULL], e,
                         "%s is missing; add it, %s", describe_label(l, name), without);
    if (!v->words && first[LABEL_OTHER_NUMBER])
        return list_fail(l, first[LABEL_OTHER_NUMBER], e,
                         "%s is not a 64-bit integer; write integers or class names, %s", describe_label(l, name),
                         without);
    v->bad_label = false;
    return 0;
}

static int survey(struct survey *v, struct list *l, const struct names *given, stk_error *e)
{
    struct list_row row;
    int rc;
    while ((rc = list_next(l, &row, e)) > 0)
        if (add_row(v, given, &row))
            return no_memory(e, v->dirs.pool.len);
    return rc < 0 ? -1 : check_labels(v, l, e);
}

/* ------------------------------------------------------------------ the second pass */

struct filling {
    struct index *x;
    struct survey *v;
    const struct names *classes; /* the names of the labels */
    const struct names *given;
    const uint32_t *rank; /* of a class in byte order; NULL: keep the order */
    uint64_t n, pool;     /* filled so far */
};

static int unknown_class(const struct list *l, const struct names *given, const struct list_row *row, stk_error *e)
{
    char word[128];
    const size_t n = row->label.n < sizeof word ? row->label.n : sizeof word - 1;
    memcpy(word, row->label.p, n);
    word[n] = 0;
    struct nearest near = {.word = word};
    names_nearest(given, &near);
    return list_fail(l, row->line, e, "the label %s is not one of the %d given classes%s", word, (int)given->n,
                     near.found ? nearest_hint(&near) : "; add it to classes");
}

static int label_of(const struct filling *f, const struct list *l, const struct list_row *row, int64_t *label,
                    stk_error *e)
{
    uint32_t i;
    if (f->v->words) {
        f->v->bad_label = !names_find(f->classes, row->label.p, row->label.n, &i);
        if (f->v->bad_label)
            return unknown_class(l, f->classes, row, e);
        *label = f->rank ? f->rank[i] : i;
        return 0;
    }
    if (label_kind(row->label, label) != LABEL_WHOLE)
        return list_fail(l, row->line, e, "the list changed while it was read; open it again");
    f->v->bad_label = f->given->n > 0 && (*label < 0 || *label >= (int64_t)f->given->n);
    if (f->v->bad_label)
        return list_fail(l, row->line, e,
                         "the label %lld is not the index of one of the %d given classes; add the class",
                         (long long)*label, (int)f->given->n);
    return 0;
}

static int fill_row(struct filling *f, const struct list *l, const struct list_row *row, stk_error *e)
{
    struct index *x = f->x;
    const size_t n_dir = dir_bytes(row->path), n_name = row->path.n - n_dir;
    uint32_t dir;
    const uint32_t known = f->v->dirs.n;
    if (dir_of(f->v, row->path, n_dir, &dir))
        return no_memory(e, n_dir);
    if (f->n == x->head->n || dir >= known || n_name + 1 > x->head->pool_bytes - f->pool ||
        row->has_label != (x->label != NULL))
        return list_fail(l, row->line, e, "the list changed while it was read; open it again");
    memcpy(x->pool + f->pool, row->path.p + n_dir, n_name); /* the pool is zeroed */
    x->name_at[f->n] = f->pool;
    x->dir_of[f->n] = dir;
    if (x->label && label_of(f, l, row, &x->label[f->n], e))
        return -1;
    f->pool += n_name + 1;
    f->n++;
    return 0;
}

/* Copies all names into the pool; at[] gets their offsets, in the order of rank. */
static void fill_names(struct filling *f, const struct names *s, const uint32_t *rank, uint64_t *at)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const size_t n = names_length(s, i);
        memcpy(f->x->pool + f->pool, names_at(s, i), n);
        at[rank ? rank[i] : i] = f->pool;
        f->pool += n + 1;
    }
}

static int fill(struct filling *f, struct list *l, stk_error *e)
{
    const struct index_head *h = f->x->head;
    fill_names(f, &f->v->dirs, NULL, f->x->dir_at);
    if (h->n_classes > 0)
        fill_names(f, f->classes, f->rank, f->x->class_at);
    for (uint64_t i = 0; i < h->n_dirs; i++)
        f->x->dir_label[i] = -1;
    struct list_row row;
    int rc;
    list_rewind(l);
    while ((rc = list_next(l, &row, e)) > 0)
        if (fill_row(f, l, &row, e))
            return -1;
    if (rc == 0 && f->n < h->n)
        return list_fail(l, l->lines.line, e, "the list changed while it was read; open it again");
    return rc;
}

/* ------------------------------------------------------------------ both passes */

/* rank[i] is the position of name i in byte order. */
static uint32_t *ranks(const struct names *s)
{
    uint32_t *order = names_sorted(s), *rank = order ? malloc(s->n * sizeof *rank) : NULL;
    for (uint32_t k = 0; k < s->n && rank; k++)
        rank[order[k]] = k;
    free(order);
    return rank;
}

static int make(struct list *l, struct survey *v, const struct names *given, struct index *x, stk_error *e)
{
    struct filling f = {.x = x, .v = v, .classes = given->n > 0 ? given : &v->labels, .given = given};
    const bool classes = v->words || given->n > 0;
    const struct index_head head = {
        .kind = INDEX_LIST,
        .n = v->n,
        .n_dirs = v->dirs.n,
        .n_classes = classes ? f.classes->n : 0,
        .has_labels = v->labelled > 0,
        .pool_bytes = v->name_bytes + v->dirs.pool.len + (classes ? f.classes->pool.len : 0),
    };
    uint32_t *rank = NULL;
    if (given->n == 0 && v->words) {
        f.rank = rank = ranks(&v->labels);
        if (!rank)
            return no_memory(e, v->labels.n * sizeof *rank);
    }
    const int rc = index_init(x, &head) == 0 ? fill(&f, l, e) : no_memory(e, (size_t)head.pool_bytes);
    free(rank);
    return rc;
}

static int index_once(struct list *l, const struct names *given, struct index *x, bool *bad_label, stk_error *e)
{
    struct survey v = {0};
    int rc = survey(&v, l, given, e);
    if (rc == 0 && !v.words) /* numbers need no names, and there may be many */
        names_done(&v.labels);
    if (rc == 0)
        rc = make(l, &v, given, x, e);
    names_done(&v.dirs);
    names_done(&v.labels);
    *bad_label = v.bad_label;
    return rc;
}

int list_index(struct list *l, const struct names *given, struct index *x, stk_error *e)
{
    bool bad_label = false;
    const int rc = index_once(l, given, x, &bad_label, e);
    if (rc == 0 || !bad_label || !l->labels_optional)
        return rc;
    index_done(x);
    error_clear(e);
    l->without_labels = true;
    list_rewind(l);
    return index_once(l, given, x, &bad_label, e);
}
