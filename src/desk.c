/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.c -- what one thread works with, within its share of the budget.
 *
 * Between samples a desk holds at most its share: buffers stay as large as they were, since the next
 * sample is likely to need as much, but together they may not outgrow the share. What a large picture
 * took in its turn goes back before the next one's.
 */
#include "desk.h"

#include <string.h>

#include "base/error.h"
#include "base/size.h"

static int charge(struct desk *d, size_t need, stk_error *e)
{
    return d->budget ? budget_enter(d->budget, need, &d->in_turn, e) : STK_OK;
}

/* For sources that learn the size of a sample only while reading it. */
static int allow(void *user, size_t bytes, stk_error *e)
{
    return charge(user, bytes, e);
}

int desk_init(struct desk *d, int thread, struct budget *b, bool codecs, stk_cpu cpu, stk_error *e)
{
    *d = (struct desk){.budget = b, .serial = -1, .reading = {.thread = thread, .allow = allow, .user = d}};
    return codecs ? decoder_new(&d->decoder, cpu, e) : STK_OK;
}

static void drop(struct desk *d)
{
    reading_done(&d->reading);
    buf_done(&d->spare);
    arena_done(&d->arena);
}

void desk_done(struct desk *d)
{
    drop(d);
    decoder_free(d->decoder);
    d->decoder = NULL;
}

size_t desk_held(const struct desk *d)
{
    const struct reading *r = &d->reading;
    return r->file.cap + r->derived.cap + r->spare[0].cap + r->spare[1].cap + d->spare.cap + d->arena.cap;
}

uint8_t *desk_blank(struct desk *d, size_t n)
{
    enum { SLACK = IMAGE_SLACK };
    struct buf *f = &d->reading.file;
    if (d->budget && desk_held(d) > d->budget->share)
        drop(d);
    if (n > SIZE_MAX / 2 || charge(d, n + SLACK, NULL) != STK_OK || buf_reserve(f, n + SLACK))
        return NULL;
    f->len = n;
    memset(f->data + n, 0, SLACK);
    return f->data;
}

/* What the file takes, charged alike, whoever has read it, and what was made of it. */
static size_t file_bytes(const struct desk *d)
{
    const struct reading *r = &d->reading;
    return size_add(d->lent && r->file.len == 0 ? r->n_bytes : r->file.len, r->derived.len);
}

struct buf *desk_spare(struct desk *d, size_t most, size_t foreign)
{
    if (charge(d, size_add(size_add(most, foreign), file_bytes(d)), NULL) != STK_OK)
        return NULL;
    if (d->spare.cap > most)
        buf_done(&d->spare);
    d->spare.len = 0;
    d->spare.max = most;
    return &d->spare;
}

/* Of the picture; where there is none, of the record or the line that the fields are of. */
static size_t bytes_of(const struct reading *r)
{
    return r->n_bytes > 0 ? r->n_bytes : r->file.len > 0 ? r->file.len : r->derived.len;
}

static int read_plainly(struct desk *d, const struct source *s, int64_t i, stk_error *e)
{
    d->reading.probe = ahead_probes(d->ahead);
    const int rc = source_read(s, &d->reading, i, e);
    d->read = bytes_of(&d->reading);
    if (rc == STK_OK)
        ahead_note(d->ahead, d->reading.cold, d->reading.file.len);
    return rc;
}

/* Bytes that were read ahead of their turn. */
static int borrow(struct desk *d, const struct source *s, int64_t i, const struct ahead_file *f, stk_error *e)
{
    d->parts = f->parts;
    d->read = f->read;
    return source_read_from(s, &d->reading, i, f->bytes, f->n, e);
}

int desk_read(struct desk *d, const struct source *s, int64_t i, stk_error *e)
{
    struct ahead_file f;
    if (d->budget && desk_held(d) > d->budget->share)
        drop(d);
    d->reading.derived.len = 0; /* another source's, where several are joined */
    d->lent = ahead_take(d->ahead, d->serial, i, &f);
    int rc = charge(d, source_read_bytes(s, i), e);
    if (rc == STK_OK)
        rc = d->lent ? borrow(d, s, i, &f, e) : read_plainly(d, s, i, e);
    d->all_read = rc == STK_OK;
    return rc;
}

int desk_read_rest(struct desk *d, const struct source *s, int64_t i, stk_error *e)
{
    d->reading.rest = true;
    const int rc = desk_read(d, s, i, e);
    d->reading.rest = false;
    return rc;
}

int desk_label(const struct desk *d, const struct source *s, int64_t i, int64_t *label, stk_error *e)
{
    int rc = STK_OK;
    *label = d->reading.label;
    for (int f = 0; f < source_n_fields(s) && rc == STK_OK; f++) {
        const struct field *of = source_field_at(s, i, f);
        const struct cell *c = &d->reading.cells[f];
        if (of->column < 0 || !source_is_label(of))
            continue;
        *label = -1;
        if (c->bytes || of->has_fill)
            rc = field_store(of, c, label, e);
    }
    return rc;
}

const struct parts *desk_parts(const struct desk *d)
{
    return d->parts.n > 0 ? &d->parts : NULL;
}

bool desk_had_parts(struct desk *d)
{
    const bool had = d->parts.n > 0;
    if (had)
        desk_clear(d);
    return had;
}

int desk_reserve(struct desk *d, size_t scratch, size_t foreign, stk_error *e)
{
    const size_t need = size_add(size_add(scratch, foreign), size_add(file_bytes(d), d->spare.len));
    const int rc = charge(d, need, e);
    if (rc != STK_OK)
        return rc;
    if (d->budget && scratch < d->arena.cap && size_add(desk_held(d), foreign) > d->budget->share)
        arena_done(&d->arena);
    return arena_reserve(&d->arena, scratch) == 0 ? STK_OK : error_nomem(e, "decode", scratch);
}

void desk_clear(struct desk *d)
{
    ahead_done(d->ahead, d->serial);
    d->serial = -1;
    d->lent = d->all_read = false;
    d->parts.n = 0;
    d->spare.len = 0;
    if (!d->in_turn)
        return;
    drop(d);
    budget_leave(d->budget, &d->in_turn);
}
