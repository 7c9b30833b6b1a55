/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_show.c -- stoker show: a contact sheet of what training sees.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "file.h"
#include "out.h"
#include "show.h"
#include "stop.h"

#define SPACE " \t\n\v\f\r"

int show_no_memory(stk_error *e, const char *what)
{
    *e = (stk_error){.code = STK_ENOMEM, .sample = -1};
    snprintf(e->text, sizeof e->text, "no memory for %s", what);
    return STK_ENOMEM;
}

/* ------------------------------------------------------------------ pixels to look at */

size_t show_op_length(const char *op)
{
    int depth = 0;
    size_t i = 0;
    for (; op[i] && !(op[i] == '|' && depth == 0); i++)
        depth += (op[i] == '(' || op[i] == '[') - (op[i] == ')' || op[i] == ']');
    return i;
}

int show_makes_floats(const char *op)
{
    static const char *const names[] = {"Normalize", "ToTensor", "ToDtype"};
    op += strspn(op, SPACE);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t n = strlen(names[i]);
        if (strncmp(op, names[i], n) == 0 && !isalnum((unsigned char)op[n]))
            return 1;
    }
    return 0;
}

/* Blanks out ops that produce floats, which cannot be shown. Such ops change values, never positions, so the pixels
 * are those that the op would have received. Blanks keep the columns in
 * error messages as typed. */
static void blank_floats(char *ops)
{
    char *bar = NULL; /* the last one that stays */
    for (char *op = ops, *next; *op; op = next) {
        char *end = op + show_op_length(op);
        next = end + (*end == '|');
        if (!show_makes_floats(op)) {
            bar = end;
            continue;
        }
        memset(op, ' ', (size_t)(next - op));
        if (bar && !*next && next == end)
            *bar = ' ';
    }
}

/* Whether rows are combined, which needs floats: from 0 to 1, without Normalize. */
int show_mixes(const char *ops)
{
    return strstr(ops, "MixUp") || strstr(ops, "Mixup") || strstr(ops, "CutMix");
}

/* Fails with the same error as training would. */
static int check_ops(stk_options o, stk_error *e)
{
    stk_loader *l = NULL;
    o.batch_size = 1;
    o.threads = 1;
    const int rc = stk_open(&l, &o, e);
    stk_close(l);
    return rc;
}

static int has_boxes(stk_loader *l)
{
    stk_batch *b;
    if (stk_loader_get(l, NULL, NULL, 0, 0, &b, NULL) != STK_OK)
        return 0;
    const int has = show_has_boxes(b);
    stk_release(b);
    return has;
}

/* Boxes are drawn by their corners. */
static int open_again(stk_options *o, const char *ops, stk_loader **l, stk_error *e)
{
    const char *corners = "ConvertBoundingBoxFormat(XYXY)";
    const size_t n = strlen(ops) + strlen(corners) + 4;
    char *text = malloc(n);
    if (!text)
        return show_no_memory(e, "the ops");
    snprintf(text, n, "%s%s%s", ops, ops[strspn(ops, SPACE)] ? " | " : "", corners);
    o->ops = text;
    stk_close(*l);
    *l = NULL;
    const int rc = stk_open(l, o, e);
    free(text);
    return rc;
}

int show_open(const struct args *a, stk_options o, stk_loader **l, stk_error *e)
{
    const int refused = check_ops(o, e);
    if (refused != STK_OK)
        return refused;
    char *ops = strdup(o.ops ? o.ops : "");
    if (!ops)
        return show_no_memory(e, "the ops");
    blank_floats(ops);
    o.ops = ops;
    o.dtype = show_mixes(ops) ? STK_FLOAT32 : STK_UINT8;
    o.layout = STK_NHWC;
    o.drop_last = 0;
    int rc = stk_open(l, &o, e);
    if (rc == STK_OK && has_boxes(*l))
        rc = open_again(&o, ops, l, e);
    free(ops);
    return rc == STK_OK ? stk_set_epoch(*l, a->epoch, e) : rc;
}

static int as_bytes(struct show_view *v, const stk_array *x, stk_error *e)
{
    size_t n = 1;
    for (int d = 0; d < x->ndim; d++)
        n *= (size_t)x->shape[d];
    const float *from = x->data;
    v->own = malloc(n + 1);
    if (!v->own)
        return show_no_memory(e, "the images");
    for (size_t i = 0; i < n; i++)
        v->own[i] = (uint8_t)(from[i] <= 0 ? 0 : from[i] >= 1 ? 255 : from[i] * 255 + 0.5f);
    v->first.px = v->own;
    return STK_OK;
}

void show_release(struct show_view *v)
{
    stk_release(v->batch);
    free(v->own);
    *v = (struct show_view){0};
}

const stk_array *show_image(const stk_batch *b)
{
    const stk_array *x = stk_field(b, "image");
    for (int f = 0; !x; f++)
        x = stk_field_at(b, f)->kind == STK_IMAGE ? stk_field_at(b, f) : NULL;
    return x;
}

int show_next(stk_loader *l, struct show_view *v, stk_error *e)
{
    *v = (struct show_view){0};
    const int rc = stop_next(l, &v->batch, e);
    if (rc != STK_OK)
        return rc;
    const stk_array *x = show_image(v->batch), *y = stk_field(v->batch, "label");
    const stk_array *i = stk_field(v->batch, "index");
    const int64_t *shape = x->shape + x->ndim - 3;
    v->first = (struct sheet_image){x->data, .h = (int)shape[0], .w = (int)shape[1], .channels = (int)shape[2]};
    v->copies = 1;
    for (int d = 1; d < x->ndim - 3; d++) /* several images of a sample, one below the other */
        v->copies *= (int)x->shape[d];
    v->first.h *= v->copies;
    v->n = stk_samples(v->batch);
    if (y && y->dtype == STK_FLOAT32 && y->ndim == 2) {
        v->soft = y->data;
        v->n_soft = y->shape[1];
    } else {
        v->labels = y ? y->data : NULL;
    }
    v->samples = i ? i->data : NULL;
    return x->dtype == STK_FLOAT32 ? as_bytes(v, x, e) : STK_OK;
}

/* ------------------------------------------------------------------ the look */

/* The two classes that have most of a mixed image. */
static void mixed_name(const stk_source *s, const float *soft, int64_t n_soft, char *buf, size_t n)
{
    int64_t first = 0, second = -1;
    for (int64_t k = 1; k < n_soft; k++) {
        if (soft[k] > soft[first]) {
            second = first;
            first = k;
        } else if (second < 0 || soft[k] > soft[second]) {
            second = k;
        }
    }
    const int named = second >= 0 && n_soft <= stk_source_n_classes(s);
    int at = named ? snprintf(buf, n, "%s %.2f", stk_source_class(s, (int)first), (double)soft[first])
                   : snprintf(buf, n, "%" PRId64 ": %.2f", first, (double)soft[first]);
    at = at < (int)n ? at : (int)n - 1;
    if (second < 0 || soft[second] < 0.005f)
        return;
    if (named)
        snprintf(buf + at, n - (size_t)at, ", %s %.2f", stk_source_class(s, (int)second), (double)soft[second]);
    else
        snprintf(buf + at, n - (size_t)at, ", %" PRId64 ": %.2f", second, (double)soft[second]);
}

void show_name(const stk_loader *l, const struct show_view *v, int64_t row, char *buf, size_t n)
{
    const stk_source *s = stk_loader_source(l);
    if (v->soft) {
        mixed_name(s, v->soft + row * v->n_soft, v->n_soft, buf, n);
        return;
    }
    const int64_t label = v->labels ? v->labels[row] : -1;
    const char *class = label >= 0 && label < stk_source_n_classes(s) ? stk_source_class(s, (int)label) : NULL;
    if (class) {
        snprintf(buf, n, "%s", class);
    } else if (label >= 0) {
        snprintf(buf, n, "label %" PRId64, label);
    } else {
        char path[1024];
        stk_source_path(s, v->samples ? v->samples[row] : row, path, sizeof path);
        const char *slash = strrchr(path, '/');
        snprintf(buf, n, "%s", slash ? slash + 1 : path);
    }
}

static stk_format format_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0))
        return STK_JPEG;
    if (dot && strcasecmp(dot, ".png") == 0)
        return STK_PNG;
    return dot && strcasecmp(dot, ".webp") == 0 ? STK_WEBP : STK_FORMAT_UNKNOWN;
}

int show_write(const struct args *a, const struct sheet *s, size_t *bytes, stk_error *e)
{
    const stk_format format = format_of(a->output);
    const stk_encode_options o = {.format = format, .quality = format == STK_WEBP ? 80 : 92}; /* much alike */
    void *file;
    int rc = stk_encode(s->px, s->w, s->h, 3, (size_t)s->w * 3, &o, &file, bytes, e);
    if (rc != STK_OK)
        return rc;
    rc = file_write(a->output, file, *bytes, e);
    stk_free(file);
    return rc;
}

/* ------------------------------------------------------------------ the grid */

static void describe(const struct args *a, const stk_loader *l, char *title, size_t title_n, char *under, size_t n)
{
    const int classes = stk_source_n_classes(stk_loader_source(l));
    snprintf(title, title_n, "%s", a->operand);
    int at = snprintf(under, n, "%s", out_some(stk_loader_count(l), "sample", "samples").s);
    if (classes > 0)
        at += snprintf(under + at, n - (size_t)at, ", %s", out_some(classes, "class", "classes").s);
    at += snprintf(under + at, n - (size_t)at, "  \xc2\xb7  epoch %" PRId64 "  \xc2\xb7  seed %" PRIu64, a->epoch,
                   a->o.seed);
    snprintf(under + at, n - (size_t)at, "  \xc2\xb7  %s", a->o.ops);
}

static int draw_grid(const struct args *a, stk_loader *l, const struct show_view *v, struct sheet *s, stk_error *e)
{
    enum { NAME = 1024 };
    char title[512], under[2048];
    describe(a, l, title, sizeof title, under, sizeof under);
    char *names = calloc((size_t)v->n, NAME);
    const char **captions = calloc((size_t)v->n, sizeof *captions);
    int rc = names && captions ? 0 : -1;
    for (int64_t i = 0; rc == 0 && i < v->n; i++) {
        show_name(l, v, i, names + i * NAME, NAME);
        captions[i] = names + i * NAME;
    }
    struct marks *marks = calloc((size_t)v->n, sizeof *marks);
    int marked = 0;
    for (int64_t i = 0; marks && i < v->n; i++)
        marked += show_marks(v, i, &marks[i]);
    struct grid g = {title, under, v->first, (int)v->n, a->columns, captions, marked ? marks : NULL, show_label, l};
    if (rc == 0)
        rc = grid_draw(s, &g);
    free(marks);
    free(captions);
    free(names);
    return rc == 0 ? STK_OK : show_no_memory(e, "the sheet");
}

static void print_json(const struct args *a, const stk_loader *l, const struct show_view *v, const struct sheet *s,
                       size_t bytes)
{
    struct json j = {.f = stdout};
    char text[1024];
    json_open(&j, NULL, '{');
    json_text(&j, "output", a->output);
    json_int(&j, "width", s->w);
    json_int(&j, "height", s->h);
    json_int(&j, "bytes", (int64_t)bytes);
    json_int(&j, "epoch", a->epoch);
    json_open(&j, "samples", '[');
    for (int64_t i = 0; i < v->n; i++) {
        const int64_t sample = v->samples ? v->samples[i] : i;
        json_open(&j, NULL, '{');
        json_int(&j, "sample", sample);
        json_int(&j, "label", v->labels ? v->labels[i] : -1);
        show_name(l, v, i, text, sizeof text);
        json_text(&j, "caption", text);
        stk_source_path(stk_loader_source(l), sample, text, sizeof text);
        json_text(&j, "path", text);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

static int show_grid(struct args *a, stk_loader **l, stk_error *e)
{
    struct show_view v = {0};
    struct sheet s = {0};
    size_t bytes = 0;
    a->o.batch_size = (int64_t)a->columns * a->rows;
    int rc = show_open(a, a->o, l, e);
    if (rc == STK_OK)
        rc = show_next(*l, &v, e);
    if (rc == STK_OK)
        rc = draw_grid(a, *l, &v, &s, e);
    if (rc == STK_OK)
        rc = show_write(a, &s, &bytes, e);
    if (rc == STK_OK && a->json) {
        print_json(a, *l, &v, &s, bytes);
    } else if (rc == STK_OK) {
        out_name(stdout, a->output);
        printf(": %s, %d x %d pixels, %s\n", out_some(v.n, "sample", "samples").s, s.w, s.h,
               out_bytes((int64_t)bytes).s);
    }
    sheet_done(&s);
    show_release(&v);
    return rc;
}

static int run(struct args *a)
{
    struct out_log log;
    a->o.log = out_log_init(&log, "show");
    if (format_of(a->output) == STK_FORMAT_UNKNOWN) {
        out_say("show", "-o needs a file name that ends in .png, .jpg or .webp, not '%s'", a->output);
        return END_USAGE;
    }
    if (args_given(a, "index"))
        return a->draws || a->each ? show_draws(a) : show_one(a);
    if (a->draws || a->each) {
        out_say("show", "--draws and --each show one sample; give its index: --index 17");
        return END_USAGE;
    }
    stk_error e = {.sample = -1};
    stk_loader *l = NULL;
    const int rc = show_grid(a, &l, &e);
    stk_close(l);
    if (rc == STK_STOPPED)
        return END_INTERRUPTED;
    return rc == STK_OK ? END_GOOD : out_fail("show", rc, &e);
}

static void defaults(struct args *a)
{
    a->o.shuffle = 1;
    a->o.ops = "RandomResizedCrop(224) | RandomHorizontalFlip";
    a->output = "stoker-sheet.png";
    a->columns = 8;
    a->rows = 5;
}

#define AT(member) offsetof(struct args, member)
static const struct args_option options[] = {
    {"output", 'o', ARGS_TEXT, 0, AT(output), 0, 0, NULL, "FILE", "write the sheet to FILE: .png, .jpg or .webp", NULL},
    {"grid", 0, ARGS_GRID, 0, AT(columns), 0, 0, NULL, "CxR", "columns and rows", NULL},
    {"index", 0, ARGS_INT64, 0, AT(index), 0, INT64_MAX, NULL, "I",
     "show one sample: as it is stored, and as training sees it in several epochs", NULL},
    {"epoch", 0, ARGS_INT64, 0, AT(epoch), 0, INT32_MAX, NULL, "N", "which epoch; with --index, the first of several",
     "0"},
    {"draws", 0, ARGS_INT, 0, AT(draws), 1, SHOW_MAX_DRAWS, NULL, "N",
     "with --index: show the sample with N random draws, after each op, with the numbers drawn", NULL},
    {"each", 0, ARGS_ON, 0, AT(each), 0, 0, NULL, NULL, "with --draws: apply each op to the original image", NULL},
    {0},
};

static const char *const examples[] = {
    "stoker show train/ -o sheet.png",
    "show the first 40 images of an epoch, cropped and flipped as training sees them, with their classes",
    "stoker show train/ -o sheet.png --ops \"Resize(256) | CenterCrop(224)\" --no-shuffle --grid 10x4",
    "show the first 40 images of the source, as validation sees them",
    "stoker show train/ -o one.png --index 17 --epoch 3",
    "show sample 17 as it is stored, and as training sees it in epoch 3 and the next five",
    "stoker show train/ -o ops.png --index 17 --draws 8 --ops \"RandomRotation(30) | ColorJitter(0.5, 0.5)\"",
    "show sample 17 with eight different random draws, after each of the ops, with the numbers drawn",
    NULL,
};

const struct command cmd_show = {
    .name = "show",
    .operand = "SRC",
    .summary = "draw a contact sheet of what training sees, after the ops, with labels",
    .about = "Writes a contact sheet of what training sees: the exact pixels of the first samples of an epoch, after "
             "the ops, with their classes. Normalize, ToTensor and ToDtype are left out, because floats cannot be "
             "shown as colours.",
    .ends_1 = "for bad samples",
    .groups = FOR_SOURCE | FOR_PIXELS | FOR_ERRORS | FOR_JSON,
    .options = options,
    .examples = examples,
    .defaults = defaults,
    .run = run,
};
