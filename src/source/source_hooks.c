/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hooks.c -- samples from the caller's read() or fill().
 *
 * Encoded bytes are copied into the thread's buffer, because decoders may read past the end. fill() writes straight
 * into its row.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "source/source_ops.h"

static void close_read(struct source *s)
{
    stk_read_hooks *h = s->state;
    if (h->close)
        h->close(h->user);
    free(h);
}

static void close_fill(struct source *s)
{
    stk_fill_hooks *h = s->state;
    if (h->close)
        h->close(h->user);
    free(h);
}

static int read_hook(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const stk_read_hooks *h = s->state;
    const void *bytes = NULL;
    size_t n = 0;
    r->label = -1;
    r->n_bytes = 0;
    error_clear(e);
    const int rc = h->read(h->user, r->thread, i, &bytes, &n, &r->label, e);
    if (rc != STK_OK)
        return error_of_hook(e, rc, "read", "the source's read()");
    if (!bytes || n == 0)
        return error_set(e, STK_EDATA, "read", "is empty");
    return source_keep_bytes(s, r, NULL, bytes, n, e);
}

static int fill_hook(const struct source *s, const stk_row *row, void *const *to, stk_error *e)
{
    const stk_fill_hooks *h = s->state;
    error_clear(e);
    const int rc = h->fill(h->user, row, to, e);
    return rc == STK_OK ? rc : error_of_hook(e, rc, "read", "the source's fill()");
}

static int copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    (void)r, (void)f, (void)e; /* labels are unknown before reading */
    const int64_t none = source_unknown(s, i);
    memcpy(to, &none, sizeof none);
    return STK_OK;
}

static uint64_t fingerprint(const struct source *s)
{
    return hash_mix(hash_bytes("hooks", 5, 0), (uint64_t)s->count);
}

static int no_bytes(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    (void)s, (void)r, (void)i;
    return error_set(e, STK_EUSAGE, "read", "samples of fill() have no encoded bytes");
}

static const struct source_ops read_ops = {
    .close = close_read,
    .path = source_numbered_path,
    .key = source_numbered_path,
    .label = source_unknown,
    .bytes = source_unknown,
    .read = read_hook,
    .copy = copy,
    .fingerprint = fingerprint,
    .tally = source_empty_tally,
    .class_name = source_given_class,
};

static const struct source_ops fill_ops = {
    .close = close_fill,
    .path = source_numbered_path,
    .key = source_numbered_path,
    .label = source_unknown,
    .bytes = source_unknown,
    .read = no_bytes,
    .copy = copy,
    .fill_row = fill_hook,
    .fingerprint = fingerprint,
    .tally = source_empty_tally,
    .class_name = source_given_class,
};

static int take_fields(struct source *s, const stk_fill_hooks *h, stk_error *e)
{
    if (h->n_fields < 1 || h->n_fields > FIELD_MAX - 2 || !h->fields)
        return error_set(e, STK_EUSAGE, "open", "fill_hooks has %d fields; it needs 1 to %d", h->n_fields,
                         FIELD_MAX - 2);
    for (int i = 0; i < h->n_fields; i++) {
        struct field *f = &s->fields[i];
        *f = (struct field){.kind = FIELD_TENSOR, .what = STK_TENSOR, .column = -1};
        const int rc = field_of(f, &h->fields[i], e);
        if (rc != STK_OK)
            return rc;
        for (int k = 0; k < i; k++)
            if (strcmp(s->fields[k].name, f->name) == 0)
                return error_set(e, STK_EUSAGE, "open", "two fields are named %s; rename one", f->name);
    }
    s->n_fields = h->n_fields;
    return STK_OK;
}

int source_hooks_count(int64_t count, stk_error *e)
{
    if (count > 0)
        return STK_OK;
    if (count == 0)
        return error_set(e, STK_EUSAGE, "open", "the source is empty: its count() returned 0");
    return error_set(e, STK_EUSAGE, "open", "the source's count() returned %lld; it must return the number of samples",
                     (long long)count);
}

static int open_hooks(struct source *s, const struct source_ops *ops, const void *hooks, size_t bytes, stk_error *e)
{
    s->state = malloc(bytes);
    if (!s->state)
        return error_nomem(e, "open", bytes);
    memcpy(s->state, hooks, bytes);
    s->ops = ops;
    s->kind = "hooks";
    return STK_OK;
}

int source_read_open(struct source *s, const struct source_options *o, stk_error *e)
{
    const stk_read_hooks *h = o->read_hooks;
    s->count = h->count(h->user);
    source_default_fields(s, true);
    s->labels_missing = true; /* read() returns the label, so a sample is read even if its image is cached */
    const int rc = source_hooks_count(s->count, e);
    return rc == STK_OK ? open_hooks(s, &read_ops, h, sizeof *h, e) : rc;
}

int source_fill_open(struct source *s, const struct source_options *o, stk_error *e)
{
    const stk_fill_hooks *h = o->fill_hooks;
    s->count = h->count(h->user);
    int rc = source_hooks_count(s->count, e);
    if (rc == STK_OK)
        rc = take_fields(s, h, e);
    return rc == STK_OK ? open_hooks(s, &fill_ops, h, sizeof *h, e) : rc;
}
