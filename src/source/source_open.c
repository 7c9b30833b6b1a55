/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_open.c -- opens the kind of source that was passed in or recognised.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "source/fields_text.h"
#include "source/recognise.h"
#include "source/source_ops.h"

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
            return error_set(e, STK_EUSAGE, "open", "the class %s is given twice, as classes[%d] and classes[%d]", name,
                             (int)number, i);
    }
    s->n_classes = o->n_classes > 0 ? o->n_classes : 0;
    return STK_OK;
}

/* Takes the class names stored in a pack, unless the caller gave others. */
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
        return source_list_open(s, o, r->path, e);
    if (r->form == SOURCE_FILE)
        return source_file_open(s, o, r->path, e);
    if (r->form != SOURCE_CONTAINER)
        return source_dir_open(s, o, r->path, r->form, e);
    const int rc = r->container->open(s, o, &r->paths, r->query, e);
    if (rc != STK_OK && !e->path[0])
        error_at(e, r->path, -1);
    return rc;
}

/* A pack stores its fields. `fields` chooses among them, or names columns of its files. */
static int open_recognised(struct source *s, const struct source_options *o, struct recognised *r, stk_error *e)
{
    struct source_options own = *o;
    struct buf text = {0};
    take_found_classes(s, r);
    s->is_pack = r->is_pack && r->form == SOURCE_CONTAINER;
    s->keys_are_files = r->keys_are_files;
    int rc = r->fields ? fields_text_choose(r->fields, o->fields, &text, e) : STK_OK;
    if (r->fields && rc == STK_OK)
        own.fields = (const char *)text.data;
    own.sidecar_fields = r->is_pack && r->form != SOURCE_CONTAINER ? r->fields : NULL;
    if (rc != STK_OK && rc != STK_ENOMEM && e)
        *e = (stk_error){.sample = -1}; /* `fields` may name columns of the files; if not, opening reports it */
    if (rc != STK_ENOMEM)
        rc = open_form(s, &own, r, e);
    buf_done(&text);
    return rc;
}

/* Resolves `fields` against the source's own fields. */
static int choose_fields(struct source_options *o, struct buf *text, stk_error *e)
{
    if (!o->own_fields || !o->own_fields[0] || !o->own_fields[0][0])
        return STK_OK;
    const int rc = fields_text_choose(o->own_fields[0], o->fields, text, e);
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
    const int rc = take_classes(s, o, e);
    if (rc != STK_OK)
        return rc;
    if (o->path)
        return open_path(s, o, e);
    if (o->paths)
        return source_join_open(s, o, e);
    if (o->arrays)
        return source_array_open(s, o, e);
    if (o->read_hooks)
        return source_read_open(s, o, e);
    return o->fill_hooks ? source_fill_open(s, o, e) : source_cells_open(s, o, e);
}

/* Appends a hash of all paths if there are several files. */
static void add_hash(const struct names *paths, char *buf, size_t n)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < paths->n; i++)
        all = hash_bytes(names_at(paths, i), names_length(paths, i), all);
    const size_t length = strlen(buf);
    if (paths->n > 1)
        snprintf(buf + length, n - length, " and %d more (%016llx)", (int)paths->n - 1, (unsigned long long)all);
}

bool source_locate(const char *name, char *buf, size_t n)
{
    struct recognised r;
    recognise(name, &r, NULL); /* sets the path even on failure */
    char *real = realpath(r.paths.n > 0 ? names_at(&r.paths, 0) : r.path, NULL);
    const int length = real ? snprintf(buf, n, "%s", real) : -1;
    if (length > 0 && (size_t)length < n)
        add_hash(&r.paths, buf, n);
    free(real);
    recognised_done(&r);
    return length > 0 && (size_t)length < n;
}

/* The location of one source. Of several: the first one's, and a hash of all. */
static char *find_location(const struct source_options *o)
{
    char location[PATH_MAX], all[PATH_MAX + 64];
    const int n = o->path ? 1 : o->paths ? o->n_paths : 0;
    uint64_t others = 0;
    for (int i = n - 1; i >= 0; i--) {
        if (!source_locate(o->path ? o->path : o->paths[i], location, sizeof location))
            return NULL;
        others = hash_bytes(location, strlen(location), others);
    }
    if (n == 0)
        return NULL;
    if (n == 1)
        return strdup(location);
    snprintf(all, sizeof all, "%s and %d more (%016llx)", location, n - 1, (unsigned long long)others);
    return strdup(all);
}

int source_open(struct source **out, const struct source_options *o, stk_error *e)
{
    stk_error unused;
    stk_error *error = e ? e : &unused; /* openers inspect the error */
    struct source_options options = *o;
    options.threads = o->threads < 1 ? 1 : o->threads;
    *out = NULL;
    struct source *s = calloc(1, sizeof *s);
    if (!s)
        return error_nomem(error, "open", sizeof *s);
    atomic_init(&s->refs, 1);
    s->max_bytes = o->max_bytes > 0 ? o->max_bytes : INT64_MAX;
    const int rc = open_kind(s, &options, error);
    if (rc != STK_OK) {
        source_close(s);
        return rc;
    }
    s->location = find_location(&options);
    *out = s;
    return STK_OK;
}

struct source *source_ref(struct source *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void source_close(struct source *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (s->ops)
        s->ops->close(s);
    names_done(&s->classes);
    free(s->location);
    free(s->unshared);
    free(s->unused_columns);
    free(s);
}
