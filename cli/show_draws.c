/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show_draws.c -- one sample under several draws, op by op: a row of images for every op, a column for every draw.
 *
 * An op's draws depend on nothing that follows it, so the image between two ops is the result of the ops up to there.
 * Row k is therefore loaded with the first k ops, or with op k alone (--each).
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "out.h"
#include "show.h"

enum { MAX_OPS = 64, HEADING = 30, BELOW = 30 + GRID_FOOTNOTE_LINE, WORDS = 160, TEXT = 2048 };

struct stage {
    char ops[TEXT], name[TEXT]; /* what is loaded; the op that was added last */
    int n;                      /* draws loaded */
    struct show_view views[SHOW_MAX_DRAWS];
    char words[SHOW_MAX_DRAWS][WORDS]; /* what the op drew */
    char drawn[STK_DRAWN_BYTES];       /* of the last draw */
};

struct draws {
    struct args *a;
    int n; /* stages; the first one is the whole image */
    struct stage *stages;
    stk_loader *names; /* of the whole image: it knows the classes */
    char path[1024], class[256];
};

/* ------------------------------------------------------------------ what an op drew, in words */

/* Appends a value, with numbers rounded to three digits. */
static void add_value(struct text_out *t, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        if (isdigit((unsigned char)p[i]) || p[i] == '-') {
            char *end;
            const double v = strtod(p + i, &end);
            const size_t length = (size_t)(end - p) - i;
            if (memchr(p + i, '.', length) || memchr(p + i, 'e', length))
                text_put(t, "%.3g", v);
            else
                text_put(t, "%.*s", (int)length, p + i);
            i += length;
            continue;
        }
        const char c[2] = {p[i] == '[' ? '(' : p[i] == ']' ? ')' : p[i], 0};
        if (c[0] != '"')
            text_put(t, "%s", c);
        i++;
    }
}

static void add_member(struct text_out *t, const char *key, size_t n, struct json_value v, int *some)
{
    const size_t bytes = json_bytes(v);
    const int is_true = bytes == 4 && strncmp(v.p, "true", 4) == 0, is_false = bytes == 5 && *v.p == 'f';
    char word[48];
    const size_t factor = n > 7 && strncmp(key + n - 7, "_factor", 7) == 0 ? 7 : 0;
    if (n == 6 && strncmp(key, "fn_idx", 6) == 0)
        return; /* the order of the adjustments */
    snprintf(word, sizeof word, "%s%.*s%s", is_false ? "not " : "", (int)(n < 40 ? n - factor : 40), key,
             n == 4 && strncmp(key, "flip", 4) == 0 ? "ped" : "");
    for (char *c = word; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    text_put(t, "%s", (*some)++ ? ", " : "");
    if (strcmp(word, "magnitude") != 0)
        text_put(t, "%s", word);
    if (is_true || is_false)
        return;
    text_put(t, "%s", strcmp(word, "magnitude") != 0 ? " " : "");
    add_value(t, v.p, bytes);
}

/* The members of an object but the op's name: "angle 12.3, scale 1.1". Of ops inside: their names and members. */
static void add_drawn(struct text_out *t, struct json_value op, int depth)
{
    int some = 0;
    const char *end = op.p + json_bytes(op);
    for (const char *p = op.p + 1; p < end;) {
        p += strspn(p, " ,\n");
        if (*p != '"')
            return;
        const char *key = p + 1, *close = strchr(key, '"');
        if (!close)
            return;
        struct json_value v = {close + 1 + strspn(close + 1, " :"), op.end};
        const size_t n = (size_t)(close - key);
        if (n == 3 && strncmp(key, "ops", 3) == 0 && depth < 4) {
            for (struct json_value one = json_first(v); one.p; one = json_next(one)) {
                struct json_value name = json_find(one, "op");
                text_put(t, "%s", some++ ? ", " : "");
                if (name.p)
                    add_value(t, name.p, json_bytes(name));
                text_put(t, "%s", " ");
                add_drawn(t, one, depth + 1);
            }
        } else if (!(n == 2 && strncmp(key, "op", 2) == 0)) {
            add_member(t, key, n, v, &some);
        }
        p = v.p + json_bytes(v);
        if (json_bytes(v) == 0)
            return;
    }
}

static void describe_draw(struct stage *s, int draw)
{
    struct text_out t = {.buf = s->words[draw], .n = WORDS};
    struct json_value last = {0};
    for (struct json_value op = json_first(json_find(json_document(s->drawn, strlen(s->drawn)), "ops")); op.p;
         op = json_next(op)) {
        const struct json_value name = json_find(op, "op");
        if (!name.p || strncmp(name.p, "\"ConvertBoundingBoxFormat", 25) != 0) /* show_open adds it */
            last = op;
    }
    s->words[draw][0] = 0;
    if (last.p)
        add_drawn(&t, last, 0);
}

/* ------------------------------------------------------------------ loading */

/* Whether an op combines rows of a batch, which has one row here. */
static int mixes(const char *op, size_t n)
{
    char text[TEXT];
    snprintf(text, sizeof text, "%.*s", (int)n, op);
    return show_mixes(text);
}

static int split(struct draws *d, stk_error *e)
{
    const char *ops = d->a->o.ops, *op = ops;
    if (strchr(ops, ';') || strchr(ops, ':')) {
        *e = (stk_error){.code = STK_EUSAGE, .sample = -1};
        snprintf(e->text, sizeof e->text, "--draws shows one pipeline; give its ops without a name");
        return STK_EUSAGE;
    }
    snprintf(d->stages[0].name, TEXT, "as stored");
    for (d->n = 1; *op && d->n < MAX_OPS;) {
        const size_t n = show_op_length(op), before = d->a->each ? (size_t)(op - ops) : 0;
        struct stage *s = &d->stages[d->n];
        const size_t blank = strspn(op, " \t\n");
        if (!show_makes_floats(op) && blank < n && !mixes(op, n)) {
            snprintf(s->name, TEXT, "%.*s", (int)(n - blank), op + blank);
            for (size_t end = strlen(s->name); end > 0 && s->name[end - 1] == ' '; end--)
                s->name[end - 1] = 0;
            snprintf(s->ops, TEXT, "%.*s", (int)((size_t)(op - ops) + n - before), ops + before);
            d->n++;
        }
        op += n + (op[n] == '|');
    }
    return STK_OK;
}

/* Of an op that makes several images, as FiveCrop does, every column shows another one. */
static void pick_copy(struct show_view *v, int column)
{
    struct sheet_image *i = &v->first;
    i->h /= v->copies;
    i->px += (size_t)(column % v->copies) * (size_t)i->w * (size_t)i->h * (size_t)i->channels;
}

static int load(struct draws *d, struct stage *s, stk_error *e)
{
    stk_options o = show_only(d->a);
    stk_loader *l = NULL;
    o.ops = s->ops;
    int rc = show_open(d->a, o, &l, e);
    const int wanted = s == d->stages ? 1 : d->a->draws;
    while (rc == STK_OK && s->n < wanted) {
        struct show_view *v = &s->views[s->n];
        rc = show_next(l, v, e);
        if (rc == STK_END) {
            rc = STK_OK; /* the next epoch follows */
            continue;
        }
        if (rc == STK_OK)
            rc = stk_loader_drawn(l, &d->a->index, NULL, stk_batch_epoch(v->batch), s->drawn, sizeof s->drawn, e);
        if (rc == STK_OK)
            pick_copy(v, s->n);
        if (rc == STK_OK)
            describe_draw(s, s->n++);
    }
    if (rc == STK_OK && s == d->stages) {
        stk_source_path(stk_loader_source(l), d->a->index, d->path, sizeof d->path);
        show_name(l, &s->views[0], 0, d->class, sizeof d->class);
        d->names = l;
        return STK_OK;
    }
    stk_close(l);
    return rc;
}

/* ------------------------------------------------------------------ the sheet */

static void fit(const struct sheet_image *i, int side, int *w, int *h)
{
    const int longer = i->w > i->h ? i->w : i->h;
    *w = (int)((int64_t)i->w * side / longer);
    *h = (int)((int64_t)i->h * side / longer);
    *w = *w < 1 ? 1 : *w;
    *h = *h < 1 ? 1 : *h;
}

static int side_of(const struct draws *d)
{
    return d->a->draws <= 4 ? 224 : d->a->draws <= 6 ? 184 : 150;
}

/* The width of a column: that of the widest image. */
static int column_of(const struct draws *d)
{
    int most = 112, w, h;
    for (int k = 1; k < d->n; k++) {
        for (int i = 0; i < d->stages[k].n; i++) {
            fit(&d->stages[k].views[i].first, side_of(d), &w, &h);
            most = w > most ? w : most;
        }
    }
    return most;
}

/* The height of a row's tallest image. */
static int tallest(const struct stage *s, int side)
{
    int most = 1, w, h;
    for (int i = 0; i < s->n; i++) {
        fit(&s->views[i].first, side, &w, &h);
        most = h > most ? h : most;
    }
    return most;
}

/* An image and what belongs to it. */
static void draw_image(const struct draws *d, const struct show_view *v, struct sheet *to, const int at[4])
{
    struct marks m;
    sheet_draw(to, at[0], at[1], at[2], at[3], &v->first, grid_paper);
    if (show_marks(v, 0, &m))
        marks_draw(to, at[0], at[1], at[2], at[3], v->first.w, v->first.h, &m, show_label, d->names);
}

static int draw_row(const struct draws *d, const struct stage *s, struct sheet *to, int x, int y)
{
    const int side = side_of(d), high = tallest(s, side), wide = column_of(d);
    grid_caption(to, x, y, d->a->draws * (wide + GRID_GAP) - GRID_GAP, s->name);
    y += HEADING;
    for (int i = 0; i < s->n; i++) {
        int w, h;
        fit(&s->views[i].first, side, &w, &h);
        draw_image(d, &s->views[i], to, (const int[4]){x + i * (wide + GRID_GAP), y, w, h});
        grid_footnote(to, x + i * (wide + GRID_GAP), y + high, wide, s->words[i]);
    }
    return y + high + BELOW;
}

static int draw(const struct draws *d, struct sheet *to, stk_error *e)
{
    const int side = side_of(d), left = side > 184 ? side : 184;
    int w, h, rows = 0;
    struct marks_seen seen = {0};
    for (int k = 1; k < d->n; k++)
        rows += HEADING + tallest(&d->stages[k], side) + BELOW;
    for (int k = 0; k < d->n; k++)
        for (int i = 0; i < d->stages[k].n; i++)
            show_collect(&d->stages[k].views[i], &seen);
    fit(&d->stages[0].views[0].first, left, &w, &h);
    const int legend = marks_legend(NULL, 0, 0, w, &seen, show_label, d->names) * MARKS_LEGEND;
    const int first = HEADING + h + GRID_CAPTION + legend, x = GRID_MARGIN + w + 2 * GRID_GAP,
              top = GRID_MARGIN + GRID_HEAD;
    const int wide = x + d->a->draws * (column_of(d) + GRID_GAP) - GRID_GAP + GRID_MARGIN;
    if (sheet_init(to, wide, top + (rows > first ? rows : first) + GRID_MARGIN - GRID_GAP, grid_paper))
        return show_no_memory(e, "the sheet");
    char under[TEXT];
    snprintf(under, sizeof under,
             "%s  \xc2\xb7  sample %" PRId64 "  \xc2\xb7  %s from epoch %" PRId64 "  \xc2\xb7  seed %" PRIu64
             "  \xc2\xb7  %s",
             d->class, d->a->index, out_some(d->a->draws, "draw", "draws").s, d->a->epoch, d->a->o.seed,
             d->a->each ? "each op alone" : "op by op");
    grid_head(to, d->path, under);
    grid_caption(to, GRID_MARGIN, top, left, d->stages[0].name);
    draw_image(d, &d->stages[0].views[0], to, (const int[4]){GRID_MARGIN, top + HEADING, w, h});
    marks_legend(to, GRID_MARGIN, top + HEADING + h + GRID_GAP, w, &seen, show_label, d->names);
    for (int k = 1, y = top; k < d->n; k++)
        y = draw_row(d, &d->stages[k], to, x, y);
    return STK_OK;
}

static void report(const struct draws *d, const struct sheet *s, size_t bytes)
{
    if (!d->a->json) {
        out_name(stdout, d->a->output);
        printf(": sample %" PRId64 ", %s, %s, %d x %d pixels, %s\n", d->a->index, out_some(d->n - 1, "op", "ops").s,
               out_some(d->a->draws, "draw", "draws").s, s->w, s->h, out_bytes((int64_t)bytes).s);
        return;
    }
    struct json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "output", d->a->output);
    json_int(&j, "width", s->w);
    json_int(&j, "height", s->h);
    json_int(&j, "bytes", (int64_t)bytes);
    json_int(&j, "sample", d->a->index);
    json_text(&j, "caption", d->class);
    json_text(&j, "path", d->path);
    json_open(&j, "ops", '[');
    for (int k = 1; k < d->n; k++) {
        json_open(&j, NULL, '{');
        json_text(&j, "op", d->stages[k].name);
        json_open(&j, "drawn", '[');
        for (int i = 0; i < d->stages[k].n; i++)
            json_text(&j, NULL, d->stages[k].words[i]);
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

static int show(struct draws *d, stk_error *e)
{
    struct sheet s = {0};
    size_t bytes = 0;
    int rc = show_check_index(d->a, e);
    if (rc == STK_OK)
        rc = split(d, e);
    for (int k = 0; rc == STK_OK && k < d->n; k++)
        rc = load(d, &d->stages[k], e);
    if (rc == STK_OK)
        rc = draw(d, &s, e);
    if (rc == STK_OK)
        rc = show_write(d->a, &s, &bytes, e);
    if (rc == STK_OK)
        report(d, &s, bytes);
    sheet_done(&s);
    return rc;
}

int show_draws(struct args *a)
{
    stk_error e = {.sample = -1};
    struct draws d = {.a = a, .stages = calloc(MAX_OPS, sizeof *d.stages)};
    const int rc = d.stages ? show(&d, &e) : show_no_memory(&e, "the sheet");
    for (int k = 0; d.stages && k < MAX_OPS; k++)
        for (int i = 0; i < d.stages[k].n; i++)
            show_release(&d.stages[k].views[i]);
    stk_close(d.names);
    free(d.stages);
    if (rc == STK_STOPPED)
        return END_INTERRUPTED;
    return rc == STK_OK ? END_GOOD : out_fail("show", rc, &e);
}
