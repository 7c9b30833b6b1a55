/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show_one.c -- one sample on a sheet: as it is stored, and as training sees it in several epochs.
 *
 * Both are loaded from the source, as a subset of one sample. The original is measured first, because its size
 * determines the Resize that shows it as a whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "out.h"
#include "show.h"

enum { COLUMNS = 3, ROWS = 2, DRAWS = COLUMNS * ROWS };

struct one {
    struct args *a;
    stk_loader *loader; /* of the one sample */
    char path[1024], name[256];
    stk_finding finding;
    int width, height; /* of the whole image */
    struct show_view original, draws[DRAWS];
    char drawn[DRAWS][STK_DRAWN_BYTES];
    int n_draws;
};

/* ------------------------------------------------------------------ the original */

static int keep_finding(void *user, const stk_finding *f)
{
    struct one *o = user;
    o->finding = *f;
    return 1;
}

stk_options show_only(const struct args *a)
{
    stk_options p = a->o;
    p.subset = &a->index;
    p.n_subset = 1;
    p.take = 0;
    p.batch_size = 1;
    p.on_error = STK_RAISE; /* there is no other sample to continue with */
    p.rank = 0;
    p.world_size = 1;
    return p;
}

/* Width and height after rotation by EXIF. */
static void upright(struct one *o)
{
    const int turned = o->finding.orientation >= 5 && !o->a->o.no_exif;
    o->width = turned ? o->finding.height : o->finding.width;
    o->height = turned ? o->finding.width : o->finding.height;
}

/* Pixels in an array have no header, but all have one size and need no ops. */
static int measure_array(struct one *o, stk_options p, stk_error *e)
{
    struct show_view v = {0};
    stk_loader *l = NULL;
    p.ops = NULL;
    int rc = show_open(o->a, p, &l, e);
    if (rc == STK_OK)
        rc = show_next(l, &v, e);
    o->width = v.first.w;
    o->height = v.first.h;
    show_release(&v);
    stk_close(l);
    return rc;
}

static int measure(struct one *o, const stk_options *p, stk_error *e)
{
    stk_scan_options scan = args_scan(o->a);
    scan.take = 0;
    scan.subset = p->subset;
    scan.n_subset = p->n_subset;
    scan.each = keep_finding;
    scan.user = o;
    stk_source *s;
    int rc = args_open_source(o->a, &s, e);
    if (rc == STK_OK)
        rc = stk_scan(s, &scan, e);
    stk_source_close(s);
    if (rc != STK_OK)
        return rc;
    upright(o);
    return o->width > 0 && o->height > 0 ? STK_OK : measure_array(o, *p, e);
}

static int load_original(struct one *o, stk_error *e)
{
    stk_options p = show_only(o->a);
    int rc = measure(o, &p, e);
    if (rc != STK_OK)
        return rc;
    char ops[64];
    const int w = o->width, h = o->height;
    const int longer = w > h ? w : h, side = ROWS * (GRID_SIDE + GRID_CAPTION + GRID_GAP) - GRID_CAPTION - GRID_GAP;
    const int to_w = (int)((int64_t)w * side / longer), to_h = (int)((int64_t)h * side / longer);
    snprintf(ops, sizeof ops, "Resize((%d, %d))", to_h > 0 ? to_h : 1, to_w > 0 ? to_w : 1);
    p.ops = ops;
    stk_loader *l = NULL;
    rc = show_open(o->a, p, &l, e);
    if (rc == STK_OK)
        rc = show_next(l, &o->original, e);
    stk_close(l);
    return rc;
}

/* ------------------------------------------------------------------ the draws */

/* Checks the index here, because the library's error would mention a subset, which the user did not type. */
int show_check_index(const struct args *a, stk_error *e)
{
    stk_source *s;
    const int rc = args_open_source(a, &s, e);
    if (rc != STK_OK)
        return rc;
    const int64_t n = stk_source_count(s);
    stk_source_close(s);
    if (a->index < n)
        return STK_OK;
    *e = (stk_error){.code = STK_EUSAGE, .sample = -1};
    snprintf(e->text, sizeof e->text, "there is no sample %s; the source has %s, counted from 0", out_count(a->index).s,
             out_count(n).s);
    return STK_EUSAGE;
}

static int load_draws(struct one *o, stk_error *e)
{
    int rc = show_open(o->a, show_only(o->a), &o->loader, e);
    while (rc == STK_OK && o->n_draws < DRAWS) {
        struct show_view *v = &o->draws[o->n_draws];
        rc = show_next(o->loader, v, e);
        if (rc == STK_OK)
            rc = stk_loader_drawn(o->loader, &o->a->index, NULL, stk_batch_epoch(v->batch), o->drawn[o->n_draws++],
                                  sizeof o->drawn[0], e);
        if (rc == STK_END)
            rc = STK_OK; /* the next epoch follows */
    }
    if (rc != STK_OK)
        return rc;
    stk_source_path(stk_loader_source(o->loader), o->a->index, o->path, sizeof o->path);
    show_name(o->loader, &o->draws[0], 0, o->name, sizeof o->name);
    return STK_OK;
}

/* ------------------------------------------------------------------ the sheet */

static void describe(const struct one *o, char *buf, size_t n)
{
    static const char *const formats[] = {"", "JPEG", "PNG", "WebP"};
    const stk_finding *f = &o->finding;
    snprintf(buf, n,
             "%s  \xc2\xb7  sample %" PRId64 "  \xc2\xb7  %d x %d %s, %s  \xc2\xb7  seed %" PRIu64 "  \xc2\xb7  %s",
             o->name, o->a->index, o->width, o->height, f->format <= STK_WEBP ? formats[f->format] : "",
             out_bytes(f->bytes).s, o->a->o.seed, o->a->o.ops);
}

static void draw_draws(const struct one *o, struct sheet *s, int x0, int w, int h)
{
    for (int i = 0; i < o->n_draws; i++) {
        const struct show_view *v = &o->draws[i];
        char caption[48];
        const int x = x0 + i % COLUMNS * (w + GRID_GAP);
        const int y = GRID_MARGIN + GRID_HEAD + i / COLUMNS * (h + GRID_CAPTION + GRID_GAP);
        struct marks m;
        sheet_draw(s, x, y, w, h, &v->first, grid_paper);
        if (show_marks(v, 0, &m))
            marks_draw(s, x, y, w, h, v->first.w, v->first.h, &m, show_label, o->loader);
        snprintf(caption, sizeof caption, "epoch %" PRId64, stk_batch_epoch(v->batch));
        grid_caption(s, x, y + h, w, caption);
    }
}

static int draw(const struct one *o, struct sheet *s, stk_error *e)
{
    const struct sheet_image *left = &o->original.first;
    char under[2048];
    int w, h;
    struct marks_seen seen = {0};
    grid_fit(o->draws[0].first.w, o->draws[0].first.h, &w, &h);
    show_collect(&o->original, &seen);
    for (int i = 0; i < o->n_draws; i++)
        show_collect(&o->draws[i], &seen);
    const int legend = marks_legend(NULL, 0, 0, left->w, &seen, show_label, o->loader) * MARKS_LEGEND;
    const int rows_h = ROWS * (h + GRID_CAPTION + GRID_GAP) - GRID_GAP, left_h = left->h + GRID_CAPTION + legend;
    const int x = GRID_MARGIN + left->w + 2 * GRID_GAP;
    const int wide = x + COLUMNS * (w + GRID_GAP) - GRID_GAP + GRID_MARGIN;
    const int high = 2 * GRID_MARGIN + GRID_HEAD + (rows_h > left_h ? rows_h : left_h);
    if (sheet_init(s, wide, high, grid_paper))
        return show_no_memory(e, "the sheet");
    describe(o, under, sizeof under);
    grid_head(s, o->path, under);
    const int top = GRID_MARGIN + GRID_HEAD;
    struct marks m;
    sheet_draw(s, GRID_MARGIN, top, left->w, left->h, left, grid_paper);
    if (show_marks(&o->original, 0, &m))
        marks_draw(s, GRID_MARGIN, top, left->w, left->h, left->w, left->h, &m, show_label, o->loader);
    grid_caption(s, GRID_MARGIN, top + left->h, left->w, "the whole image");
    marks_legend(s, GRID_MARGIN, top + left->h + GRID_CAPTION, left->w, &seen, show_label, o->loader);
    draw_draws(o, s, x, w, h);
    return STK_OK;
}

static void report(const struct one *o, const struct sheet *s, size_t bytes)
{
    if (!o->a->json) {
        out_name(stdout, o->a->output);
        printf(": sample %" PRId64 ", %d x %d pixels, %s\n", o->a->index, s->w, s->h, out_bytes((int64_t)bytes).s);
        return;
    }
    struct json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "output", o->a->output);
    json_int(&j, "width", s->w);
    json_int(&j, "height", s->h);
    json_int(&j, "bytes", (int64_t)bytes);
    json_int(&j, "sample", o->a->index);
    json_text(&j, "caption", o->name);
    json_text(&j, "path", o->path);
    json_open(&j, "drawn", '[');
    for (int i = 0; i < o->n_draws; i++)
        json_raw(&j, NULL, o->drawn[i]);
    json_close(&j, ']');
    json_close(&j, '}');
}

int show_one(struct args *a)
{
    struct one *o = calloc(1, sizeof *o);
    struct sheet s = {0};
    stk_error e = {.sample = -1};
    size_t bytes = 0;
    if (!o)
        return out_fail("show", show_no_memory(&e, "the sheet"), &e);
    o->a = a;
    int rc = show_check_index(a, &e);
    if (rc == STK_OK)
        rc = load_draws(o, &e);
    if (rc == STK_OK)
        rc = load_original(o, &e);
    if (rc == STK_OK)
        rc = draw(o, &s, &e);
    if (rc == STK_OK)
        rc = show_write(a, &s, &bytes, &e);
    if (rc == STK_OK)
        report(o, &s, bytes);
    sheet_done(&s);
    for (int i = 0; i < o->n_draws; i++)
        show_release(&o->draws[i]);
    show_release(&o->original);
    stk_close(o->loader);
    free(o);
    if (rc == STK_STOPPED)
        return END_INTERRUPTED;
    return rc == STK_OK ? END_GOOD : out_fail("show", rc, &e);
}
