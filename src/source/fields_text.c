/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields_text.c -- parses  [name =] column [: kind [pad [= number]]] [? default], ...
 */
#include "source/fields_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "source/source_ops.h"

struct reader {
    const char *text, *at;
    stk_error *e;
};

static int fail(const struct reader *r, const char *expected)
{
    return error_set(r->e, STK_EUSAGE, "open", "fields: expected %s at \"%.24s\" in \"%.200s\"", expected,
                     r->at[0] ? r->at : "the end", r->text);
}

static void skip_spaces(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')
        r->at++;
}

static bool accept(struct reader *r, char c)
{
    skip_spaces(r);
    if (*r->at != c)
        return false;
    r->at++;
    skip_spaces(r);
    return true;
}

/* A name ends before any character of `stops`. In quotes it may contain anything but a quote. */
static int word(struct reader *r, const char *stops, char *to, size_t room, const char *expected)
{
    skip_spaces(r);
    const bool quoted = *r->at == '"';
    const char *begin = quoted ? r->at + 1 : r->at;
    size_t n = quoted ? strcspn(begin, "\"") : strcspn(begin, stops);
    if (quoted && begin[n] == 0)
        return fail(r, "a closing quote");
    const size_t whole = n;
    while (!quoted && n > 0 && begin[n - 1] == ' ')
        n--;
    if ((n == 0 && !quoted) || n >= room)
        return fail(r, n >= room ? "a shorter name" : expected);
    memcpy(to, begin, n);
    to[n] = 0;
    r->at = begin + whole + (quoted ? 1 : 0);
    skip_spaces(r);
    return STK_OK;
}

static const struct {
    const char *name;
    stk_kind kind; /* in the source */
    bool words;
    enum follow follow;
} kinds[] = {
    {.name = "image", .kind = STK_IMAGE},
    {.name = "int", .kind = STK_INT},
    {.name = "float", .kind = STK_FLOAT},
    {.name = "tensor", .kind = STK_TENSOR},
    {.name = "bytes", .kind = STK_BYTES},
    {.name = "text", .kind = STK_TEXT},
    {.name = "json", .kind = STK_JSON},
    {.name = "class", .kind = STK_INT, .words = true},
    {.name = "mask", .kind = STK_BYTES, .follow = FOLLOW_MASK},
    {.name = "masks", .kind = STK_TENSOR, .follow = FOLLOW_MASKS},
    {.name = "boxes", .kind = STK_TENSOR, .follow = FOLLOW_BOXES},
    {.name = "keypoints", .kind = STK_TENSOR, .follow = FOLLOW_POINTS},
};

static const char *const box_formats[] = {[BOX_XYXY] = "xyxy", [BOX_XYWH] = "xywh", [BOX_CXCYWH] = "cxcywh"};

static int read_shape(struct reader *r, struct field_text *out)
{
    out->shaped = true;
    if (accept(r, ')'))
        return STK_OK;
    do {
        char *end = NULL;
        if (out->ndim == FIELD_DIMS)
            return fail(r, "fewer dimensions");
        skip_spaces(r);
        if (accept(r, '*')) {
            out->shape[out->ndim++] = -1;
            continue;
        }
        const long long n = isdigit((unsigned char)*r->at) ? strtoll(r->at, &end, 10) : 0;
        if (!end || n < 1)
            return fail(r, "a number above 0 or * for each dimension");
        r->at = end;
        out->shape[out->ndim++] = n;
    } while (accept(r, ','));
    return accept(r, ')') ? STK_OK : fail(r, "\")\"");
}

static int read_pad(struct reader *r, struct field_text *out)
{
    if (strncmp(r->at, "pad", 3) != 0)
        return STK_OK;
    r->at += 3;
    out->pads = true;
    return accept(r, '=') ? word(r, " ,?", out->pad, sizeof out->pad, "a number") : STK_OK;
}

/* Lists the kinds, and suggests the nearest. */
static int unknown_kind(struct reader *r, const char *name)
{
    struct nearest like = {.word = name};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        nearest_try(&like, kinds[i].name, strlen(kinds[i].name));
    for (int t = STK_FLOAT32; t <= STK_BOOL; t++)
        nearest_try(&like, dtype_name((stk_dtype)t), strlen(dtype_name((stk_dtype)t)));
    return error_set(r->e, STK_EUSAGE, "open",
                     "fields: unknown kind %.32s in \"%.200s\"; kinds are image, int, float, class, text, bytes, json, "
                     "tensor, mask, masks, boxes, keypoints, types such as float32(3,4), and each:TYPE%s",
                     name, r->text, nearest_hint(&like));
}

static stk_dtype find_dtype(const char *name)
{
    for (int t = STK_FLOAT32; t <= STK_BOOL; t++)
        if (strcmp(name, dtype_name((stk_dtype)t)) == 0)
            return (stk_dtype)t;
    return STK_DTYPE_DEFAULT;
}

/* The words in the brackets of boxes, or the type in those of a mask. */
static int read_words(struct reader *r, struct field_text *out)
{
    char name[32];
    const bool boxes = out->follow == FOLLOW_BOXES;
    do {
        const char *const at = r->at;
        const int rc = word(r, " ,)", name, sizeof name, boxes ? "a box format" : "a type");
        if (rc != STK_OK)
            return rc;
        bool known = boxes && strcmp(name, "relative") == 0;
        out->relative |= known;
        for (int i = BOX_XYXY; boxes && i <= BOX_CXCYWH; i++)
            if (strcmp(name, box_formats[i]) == 0) {
                out->box_format = (enum box_format)i;
                known = true;
            }
        if (!boxes) {
            out->dtype = find_dtype(name);
            known = out->dtype == STK_UINT8 || out->dtype == STK_INT32 || out->dtype == STK_INT64;
        }
        r->at = known ? r->at : at;
        if (!known)
            return fail(r, boxes ? "xyxy, xywh, cxcywh or relative" : "uint8, int32 or int64");
    } while (boxes && accept(r, ','));
    return accept(r, ')') ? STK_OK : fail(r, "\")\"");
}

/* Sets what the name of a kind says. false: there is no such kind. */
static bool set_kind(const char *name, struct field_text *out)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(name, kinds[i].name) == 0) {
            out->kind = kinds[i].kind;
            out->words = kinds[i].words;
            out->follow = kinds[i].follow;
            return true;
        }
    const bool each = strncmp(name, "each:", 5) == 0;
    out->dtype = find_dtype(each ? name + 5 : name);
    out->kind = out->dtype ? STK_TENSOR : STK_KIND_DEFAULT;
    out->follow = each ? FOLLOW_EACH : FOLLOW_NONE;
    return out->dtype != STK_DTYPE_DEFAULT;
}

static int read_kind(struct reader *r, struct field_text *out)
{
    char name[32];
    int rc = word(r, " (,?", name, sizeof name, "a kind");
    if (rc != STK_OK)
        return rc;
    if (!set_kind(name, out))
        return unknown_kind(r, name);
    if (accept(r, '('))
        rc = out->follow == FOLLOW_BOXES || out->follow == FOLLOW_MASK ? read_words(r, out) : read_shape(r, out);
    if (rc == STK_OK && out->shaped && (out->kind != STK_TENSOR || out->follow == FOLLOW_MASKS))
        return fail(r, "no shape for this kind");
    return rc == STK_OK ? read_pad(r, out) : rc;
}

static int read_field(struct reader *r, struct field_text *out)
{
    const bool quoted = (skip_spaces(r), *r->at == '"');
    int rc = word(r, "=:?,", out->column, sizeof out->column, "a column");
    const size_t n = strlen(out->column);
    if (rc == STK_OK && !quoted && n > 4 && strcmp(out->column + n - 4, " pad") == 0)
        return fail(r, "a kind before pad (x:int64(*) pad=0)");
    snprintf(out->name, sizeof out->name, "%.*s", FIELD_NAME - 1, out->column);
    if (rc == STK_OK && accept(r, '='))
        rc = n < FIELD_NAME ? word(r, ":?,", out->column, sizeof out->column, "a column")
                            : fail(r, "a field's name of at most 63 bytes");
    if (rc == STK_OK && accept(r, ':'))
        rc = read_kind(r, out);
    if (rc == STK_OK && accept(r, '?')) {
        out->has_default = true;
        rc = word(r, ",", out->otherwise, sizeof out->otherwise, "a default");
    }
    return rc;
}

int fields_text_next(const char *text, const char **at, struct field_text *out, stk_error *e)
{
    struct reader r = {.text = text, .at = *at, .e = e};
    *out = (struct field_text){0};
    const int rc = read_field(&r, out);
    if (rc != STK_OK)
        return rc;
    skip_spaces(&r);
    if (*r.at && *r.at != ',')
        return fail(&r, "\",\"");
    *at = *r.at ? r.at + 1 : NULL;
    return STK_OK;
}

/* ------------------------------------------------------------------ choosing among own fields */

static int find_own(const char *own, const char *name, struct field_text *out, stk_error *e)
{
    struct nearest like = {.word = name};
    char near[FIELD_NAME];
    int rc = STK_OK;
    for (const char *at = own; at && rc == STK_OK;) {
        rc = fields_text_next(own, &at, out, e);
        if (rc == STK_OK && strcmp(out->name, name) == 0)
            return STK_OK;
        const char *before = like.found;
        nearest_try(&like, out->name, strlen(out->name));
        if (like.found != before)
            like.found = memcpy(near, out->name, sizeof near);
    }
    if (rc != STK_OK)
        return rc;
    return error_set(e, STK_EUSAGE, "open",
                     "there is no column %.60s; the source was opened with these fields: %.300s%s", name, own,
                     nearest_hint(&like));
}

static int write_shape(const struct field_text *t, struct buf *b)
{
    int rc = buf_add_str(b, "(");
    for (int d = 0; d < t->ndim; d++)
        rc |= t->shape[d] < 0 ? buf_printf(b, "%s*", d ? "," : "")
                              : buf_printf(b, "%s%lld", d ? "," : "", (long long)t->shape[d]);
    return rc | buf_add_str(b, ")");
}

static int write_words(const struct field_text *t, struct buf *b)
{
    if (t->follow == FOLLOW_MASK)
        return t->dtype ? buf_printf(b, "(%s)", dtype_name(t->dtype)) : 0;
    return buf_printf(b, "(%s%s)", box_formats[t->box_format], t->relative ? ", relative" : "");
}

static int write_kind(const struct field_text *t, struct buf *b)
{
    int rc = 0;
    if (t->follow == FOLLOW_EACH)
        rc |= buf_printf(b, ":each:%s", dtype_name(t->dtype));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && t->follow != FOLLOW_EACH; i++)
        if (t->kind == kinds[i].kind && t->words == kinds[i].words && t->follow == kinds[i].follow)
            rc |= buf_printf(b, ":%s", t->dtype && !t->follow ? dtype_name(t->dtype) : kinds[i].name);
    if (t->follow == FOLLOW_MASK || t->follow == FOLLOW_BOXES)
        rc |= write_words(t, b);
    else if (t->shaped)
        rc |= write_shape(t, b);
    if (t->pads)
        rc |= t->pad[0] ? buf_printf(b, " pad=%s", t->pad) : buf_add_str(b, " pad");
    return rc;
}

static int write_field(const struct field_text *t, struct buf *b)
{
    int rc = buf_printf(b, "%s\"%s\"=\"%s\"", b->len ? ", " : "", t->name, t->column) | write_kind(t, b);
    if (t->has_default)
        rc |= buf_printf(b, " ? \"%s\"", t->otherwise);
    return rc;
}

/* What t says takes precedence. */
static void override(struct field_text *own, const struct field_text *t)
{
    memcpy(own->name, t->name, sizeof own->name);
    if (t->kind) {
        own->kind = t->kind;
        own->words = t->words;
        own->dtype = t->dtype;
        own->follow = t->follow;
        own->box_format = t->box_format;
        own->relative = t->relative;
        own->shaped = t->shaped;
        own->ndim = t->ndim;
        memcpy(own->shape, t->shape, sizeof own->shape);
        own->pads = t->pads;
        memcpy(own->pad, t->pad, sizeof own->pad);
    }
    if (t->has_default) {
        own->has_default = true;
        memcpy(own->otherwise, t->otherwise, sizeof own->otherwise);
    }
}

int fields_text_choose(const char *own, const char *fields, struct buf *out, stk_error *e)
{
    const char *text = fields && fields[0] ? fields : own;
    int rc = STK_OK;
    for (const char *at = text; at && rc == STK_OK;) {
        struct field_text t, from;
        rc = fields_text_next(text, &at, &t, e);
        from = t;
        if (rc == STK_OK && text != own) {
            rc = find_own(own, t.column, &from, e);
            override(&from, &t);
        }
        if (rc == STK_OK && write_field(&from, out))
            rc = error_nomem(e, "open", out->len);
    }
    return rc == STK_OK && buf_add(out, "", 1) ? error_nomem(e, "open", out->len) : rc;
}

/* ------------------------------------------------------------------ fields as text */

/* The shape of one entry: that of a row without its first dimension. */
static void set_entry(struct field_text *t, const struct field *f)
{
    t->ndim = f->ndim - 1;
    t->shaped = t->ndim > 0;
    for (int d = 1; d < f->ndim; d++)
        t->shape[d - 1] = f->shape[d];
}

static struct field_text kind_of(const struct field *f)
{
    struct field_text t = {.kind = f->what ? f->what : STK_TENSOR, .pads = f->pad};
    t.follow = f->follow;
    t.box_format = f->box_format;
    t.relative = f->relative;
    if (f->follow == FOLLOW_MASK) {
        t.kind = STK_BYTES;
        t.dtype = f->mask_dtype;
    } else if (f->follow == FOLLOW_EACH || f->follow == FOLLOW_POINTS) {
        t.dtype = f->dtype;
        set_entry(&t, f);
    } else if (!f->follow && t.kind == STK_TENSOR) {
        t.dtype = f->dtype;
        t.shaped = f->ndim > 0;
        t.ndim = f->ndim;
        memcpy(t.shape, f->shape, sizeof t.shape);
    }
    return t;
}

int fields_text_add(struct buf *b, const struct field *f, const char *column)
{
    struct field_text t = kind_of(f);
    t.has_default = f->has_fill && f->kind == FIELD_RAGGED; /* stored numbers are never missing */
    /* A name with a quote cannot be written. */
    snprintf(t.name, sizeof t.name, "%.*s", FIELD_NAME - 1, strchr(f->name, '"') ? column : f->name);
    snprintf(t.column, sizeof t.column, "%s", column);
    return write_field(&t, b) ? -1 : 0;
}

size_t source_fields_text(const struct source *s, char *buf, size_t n)
{
    struct buf b = {0};
    for (int i = 0; i < s->n_fields; i++) {
        struct field_text t = kind_of(&s->fields[i]);
        t.pads &= t.kind == STK_TENSOR;
        buf_printf(&b, "%s%s", i > 0 ? ", " : "", s->fields[i].name);
        write_kind(&t, &b);
    }
    const int length = snprintf(buf, n, "%.*s", (int)b.len, b.data ? (const char *)b.data : "");
    buf_done(&b);
    return length > 0 ? (size_t)length : 0;
}
