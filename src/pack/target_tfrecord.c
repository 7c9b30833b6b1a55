/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_tfrecord.c -- packs to TFRecord shards: one Example per sample, with the feature names of TensorFlow's own
 * datasets.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/example.h"
#include "format/tfrecord.h"
#include "pack/target.h"

static int begin(struct target *t, stk_error *e)
{
    t->state = calloc(1, sizeof(struct example_out));
    return t->state ? STK_OK : error_nomem(e, "write", sizeof(struct example_out));
}

static void close_target(struct target *t)
{
    if (t->state)
        example_out_done(t->state);
    free(t->state);
    t->state = NULL;
}

static void add_text(struct example_out *x, const char *name, const char *text)
{
    example_out_bytes(x, name, text, strlen(text));
}

static void add_image(struct example_out *x, const struct packed *p)
{
    static const char *const formats[] = {
        [STK_FORMAT_UNKNOWN] = "raw", [STK_JPEG] = "jpeg", [STK_PNG] = "png", [STK_WEBP] = "webp"};
    const struct packed_field *f = &p->fields[p->image];
    const int64_t w = p->w, h = p->h, channels = p->channels;
    example_out_bytes(x, "image/encoded", packed_bytes(p, f) + f->head_bytes, f->n - f->head_bytes);
    add_text(x, "image/format", formats[p->format]);
    if (w > 0) {
        example_out_ints(x, "image/height", &h, 1);
        example_out_ints(x, "image/width", &w, 1);
        example_out_ints(x, "image/channels", &channels, 1);
    }
}

static int add_integers(struct example_out *x, const struct packed_field *f, const uint8_t *from, int64_t *values,
                        size_t n, stk_error *e)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = dtype_integer(f->dtype, from + i * dtype_bytes(f->dtype));
        if (f->dtype == STK_UINT64 && values[i] < 0)
            return error_set(e, STK_EDATA, "pack",
                             "%s has the value %" PRIu64 ", but an integer of an Example is at most %" PRId64
                             "; pack to another target",
                             f->column, (uint64_t)values[i], INT64_MAX);
    }
    example_out_ints(x, f->column, values, n);
    return STK_OK;
}

/* Integers of any width become int64; float32 stays. Types that an Example does not have become bytes. */
static int add_numbers(struct example_out *x, const struct packed *p, const struct packed_field *f, stk_error *e)
{
    const uint8_t *from = packed_bytes(p, f) + f->head_bytes;
    const size_t n = (f->n - f->head_bytes) / dtype_bytes(f->dtype);
    if (f->dtype == STK_FLOAT16 || f->dtype == STK_BFLOAT16 || f->dtype == STK_FLOAT64) {
        example_out_bytes(x, f->column, from, f->n - f->head_bytes);
        return STK_OK;
    }
    int64_t *values = malloc(n * sizeof *values + 1);
    if (!values)
        return error_nomem(e, "write", n * sizeof *values);
    int rc = STK_OK;
    if (f->dtype == STK_FLOAT32) {
        memcpy(values, from, n * sizeof(float));
        example_out_floats(x, f->column, (const float *)(const void *)values, n);
    } else {
        rc = add_integers(x, f, from, values, n, e);
    }
    free(values);
    return rc;
}

/* Whether packing writes this feature itself. The value in the source may describe another image. */
static bool is_written(const struct packed *p, const char *name)
{
    static const char *const written[] = {"image/encoded",  "image/format",      "image/height",    "image/width",
                                          "image/channels", "image/class/label", "image/class/text"};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
        if (strcmp(name, written[i]) == 0)
            return p->image >= 0;
    return false;
}

/* Whether the label is among the fields. Its value may be -1, for a sample without a class. */
static bool has_label(const struct packed *p)
{
    for (int i = 0; i < p->n_fields; i++)
        if (strcmp(p->fields[i].name, "cls") == 0)
            return true;
    return false;
}

static bool has_column(const struct packed *p, const char *name)
{
    for (int i = 0; i < p->n_fields; i++)
        if (strcmp(p->fields[i].column, name) == 0)
            return true;
    return false;
}

static int add_others(struct example_out *x, const struct packed *p, stk_error *e)
{
    int rc = STK_OK;
    for (int i = 0; i < p->n_fields && rc == STK_OK; i++) {
        const struct packed_field *f = &p->fields[i];
        if (i == p->image || strcmp(f->name, "cls") == 0 || is_written(p, f->column))
            continue;
        if (f->dtype)
            rc = add_numbers(x, p, f, e);
        else
            example_out_bytes(x, f->column, packed_bytes(p, f), f->n);
    }
    return rc;
}

static int measure(struct target *t, const struct packed *p, size_t *bytes, stk_error *e)
{
    static const uint8_t blank[TFRECORD_HEAD];
    struct example_out *x = t->state;
    if (!has_column(p, "image/filename")) /* first, because readers look for it there */
        example_out_bytes(x, "image/filename", p->key.data, p->key.len);
    if (p->image >= 0)
        add_image(x, p);
    if (has_label(p)) {
        example_out_ints(x, "image/class/label", &p->label, 1);
        if (p->label >= 0 && p->label < t->o.n_classes)
            add_text(x, "image/class/text", t->o.classes[p->label]);
    }
    int rc = add_others(x, p, e);
    t->made.len = 0;
    if (rc == STK_OK && (buf_add(&t->made, blank, sizeof blank) || example_out_end(x, &t->made) ||
                         tfrecord_frame(crc32c_choose(STK_CPU_DEFAULT), &t->made)))
        rc = error_nomem(e, "write", p->bytes.len);
    *bytes = t->made.len;
    return rc;
}

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    (void)p;
    return outfile_add(&t->file, t->made.data, t->made.len, e);
}

const struct target_format target_tfrecord = {
    .to = STK_TO_TFRECORD,
    .name = "tfrecord",
    .suffix = "tfrecord",
    .measure = measure,
    .begin = begin,
    .write = put,
    .close = close_target,
};
