/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_cat.c -- stoker cat: one sample, field by field.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "base/json.h"
#include "file.h"
#include "out.h"
#include "table.h"
#include "value.h"

struct printing {
    const struct args *a;
    struct table table;
    struct json json;
    int found;
    int end;
};

static const char *kind_name(stk_kind k, const stk_cell *c)
{
    static const char *const names[] = {"", "image", "int", "float", "tensor", "bytes", "text", "json"};
    return c->bytes ? names[k] : "missing";
}

static const char *dtype_words(stk_dtype t)
{
    static const char *const names[] = {"",       "float32", "float16", "bfloat16", "uint8",  "int8",    "int16",
                                        "uint16", "int32",   "uint32",  "int64",    "uint64", "float64", "bool"};
    return names[t];
}

static void shape_text(const stk_cell *c, char *buf, size_t n)
{
    const int scalar = c->ndim == 0 || (c->ndim == 1 && c->shape[0] == 1);
    size_t at = (size_t)snprintf(buf, n, "%s%s", dtype_words(c->dtype), scalar ? "" : "(");
    if (scalar)
        return;
    for (int i = 0; i < c->ndim && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%" PRId64, i ? ", " : "", c->shape[i]);
    if (at < n)
        snprintf(buf + at, n - at, ")");
}

/* Prints a number and returns its size; -1 for a type that it cannot print. */
static int number(stk_dtype t, const void *at, char *buf, size_t n)
{
    switch (t) {
#define NUMBER(dtype, type, format, as)                                                                                \
    case dtype: {                                                                                                      \
        type v;                                                                                                        \
        memcpy(&v, at, sizeof v);                                                                                      \
        snprintf(buf, n, format, (as)v);                                                                               \
        return (int)sizeof v;                                                                                          \
    }
        NUMBER(STK_UINT8, uint8_t, "%d", int)
        NUMBER(STK_INT8, int8_t, "%d", int)
        NUMBER(STK_BOOL, uint8_t, "%d", int)
        NUMBER(STK_UINT32, uint32_t, "%" PRIu32, uint32_t)
        NUMBER(STK_UINT64, uint64_t, "%" PRIu64, uint64_t)
        NUMBER(STK_INT16, int16_t, "%d", int)
        NUMBER(STK_UINT16, uint16_t, "%d", int)
        NUMBER(STK_INT32, int32_t, "%" PRId32, int32_t)
        NUMBER(STK_INT64, int64_t, "%" PRId64, int64_t)
        NUMBER(STK_FLOAT32, float, "%g", double)
        NUMBER(STK_FLOAT64, double, "%g", double)
#undef NUMBER
    default:
        return -1;
    }
}

static void glance_at_numbers(const stk_cell *c, char *buf, size_t n)
{
    enum { SHOWN = 6 };
    const char *p = c->bytes;
    size_t at = 0, done = 0;
    for (int i = 0; i < SHOWN && done < c->n; i++) {
        char word[32];
        const int step = number(c->dtype, p + done, word, sizeof word);
        if (step < 0)
            return;
        done += (size_t)step;
        at += (size_t)snprintf(buf + at, n - at, "%s%s", i ? " " : "", word);
        if (at + sizeof word >= n)
            break;
    }
    if (done < c->n)
        snprintf(buf + at, n - at, " …");
}

/* The start of the value, on one line. */
static void glance(stk_kind kind, const stk_cell *c, char *buf, size_t n)
{
    buf[0] = 0;
    if (!c->bytes)
        return;
    if (c->dtype && kind != STK_IMAGE) {
        glance_at_numbers(c, buf, n);
    } else if (!c->dtype && (kind == STK_TEXT || kind == STK_JSON || kind == STK_INT || kind == STK_FLOAT)) {
        const int k = c->n < 60 ? (int)c->n : 60;
        snprintf(buf, n, "%.*s%s", k, (const char *)c->bytes, (size_t)k < c->n ? " …" : "");
        for (char *p = buf; *p; p++)
            if ((unsigned char)*p < 0x20)
                *p = ' ';
    }
}

/* Whether the bytes contain no control characters, which a terminal would interpret. */
static int is_plain(const stk_cell *c)
{
    const unsigned char *p = c->bytes;
    for (size_t i = 0; i < c->n; i++)
        if ((p[i] < 0x20 && p[i] != '\n' && p[i] != '\t' && p[i] != '\r') || p[i] == 0x7f)
            return 0;
    return 1;
}

/* Writes the bytes as they are to a file or to stdout; to a terminal only text. */
static int give(struct printing *p, const stk_cell *c)
{
    stk_error e;
    if (!p->a->output && isatty(STDOUT_FILENO) && !is_plain(c)) {
        out_say("cat", "%s is not text, so it is not printed on a terminal; use -o FILE, or a pipe", p->a->pack.field);
        return END_USAGE;
    }
    if (p->a->output) {
        const int rc = file_write(p->a->output, c->bytes, c->n, &e);
        return rc == STK_OK ? END_GOOD : out_fail("cat", rc, &e);
    }
    return fwrite(c->bytes, 1, c->n, stdout) == c->n ? END_GOOD : END_MACHINE;
}

static int each(void *user, const char *name, stk_kind kind, const stk_cell *c)
{
    struct printing *p = user;
    char seen[128], shape[160] = "";
    if (p->a->pack.field) {
        if (strcmp(p->a->pack.field, name) != 0)
            return 0;
        p->found = 1;
        if (c->bytes)
            p->end = give(p, c);
        else
            out_say("cat", "this sample has no value for the field %s", name);
        return 1;
    }
    glance(kind, c, seen, sizeof seen);
    if (c->dtype)
        shape_text(c, shape, sizeof shape);
    if (p->a->json) {
        json_open(&p->json, NULL, '{');
        json_text(&p->json, "name", name);
        json_text(&p->json, "kind", kind_name(kind, c));
        json_text(&p->json, "type", c->dtype ? shape : NULL);
        json_int(&p->json, "bytes", (int64_t)c->n);
        json_text(&p->json, "value", seen[0] ? seen : NULL);
        json_close(&p->json, '}');
    } else {
        table_row(&p->table, name, kind_name(kind, c), c->dtype ? shape : "", out_count((int64_t)c->n).s, seen, NULL);
    }
    return 0;
}

/* An index if there is such a sample, else a key. Digits that start with 0 (000017) are tried as a key first. */
static int64_t find(const stk_source *s, const char *word)
{
    int64_t i;
    const int number = value_int64(word, 0, stk_source_count(s) - 1, &i) == 0;
    if (number && (word[0] != '0' || !word[1]))
        return i;
    const int64_t keyed = stk_source_find(s, word);
    return keyed < 0 && number ? i : keyed;
}

static int print(struct printing *p, stk_source *s, int64_t sample)
{
    char path[4096], key[4096];
    stk_error e = {.sample = -1};
    stk_source_path(s, sample, path, sizeof path);
    stk_source_key(s, sample, key, sizeof key);
    const int whole = !p->a->pack.field;
    if (whole && p->a->json) {
        json_open(&p->json, NULL, '{');
        json_int(&p->json, "sample", sample);
        json_text(&p->json, "path", path);
        json_text(&p->json, "key", key);
        json_open(&p->json, "fields", '[');
    } else if (whole) {
        printf("sample %" PRId64 "  ", sample);
        out_name(stdout, path);
        putchar('\n');
        table_head(&p->table, "<field", "<kind", "<type", ">bytes", "<value", NULL);
    }
    const int rc = stk_source_cells(s, sample, each, p, &e);
    if (whole && !p->a->json)
        table_print(&p->table, stdout);
    if (rc != STK_OK)
        p->end = out_fail("cat", rc, &e);
    if (whole && p->a->json) {
        json_close(&p->json, ']');
        out_json_error(&p->json);
        json_close(&p->json, '}');
    }
    return p->end;
}

static int run(struct args *a)
{
    struct printing p = {.a = a, .json = {.f = stdout}};
    stk_source *s;
    stk_error e = {.sample = -1};
    const int rc = args_open_source(a, &s, &e);
    if (rc != STK_OK)
        return out_fail("cat", rc, &e);
    const int64_t sample = find(s, a->second);
    if (sample < 0 || sample >= stk_source_count(s)) {
        out_say("cat", "there is no sample '%s'; the source has %s; give an index, from 0, or a key", a->second,
                out_some(stk_source_count(s), "sample", "samples").s);
        p.end = END_USAGE;
    } else if (a->output && !a->pack.field) {
        out_say("cat", "-o writes one field; name it with --field, for example --field image");
        p.end = END_USAGE;
    } else {
        p.end = print(&p, s, sample);
    }
    if (a->pack.field && p.end == END_GOOD && !p.found) {
        char fields[2048];
        stk_source_fields(s, fields, sizeof fields);
        out_say("cat", "there is no field %s; the fields are %s", a->pack.field, fields);
        p.end = END_USAGE;
    }
    stk_source_close(s);
    return p.end;
}

static const struct args_option options[] = {
    {"field", 0, ARGS_TEXT, 0, offsetof(struct args, pack.field), 0, 0, NULL, "NAME",
     "print the bytes of this field, as they are stored", "a table of all fields"},
    {"output", 'o', ARGS_TEXT, 0, offsetof(struct args, output), 0, 0, NULL, "FILE", "write the bytes to FILE",
     "stdout"},
    {0},
};

static const char *const examples[] = {
    "stoker cat packed 17",
    "show the fields of sample 17, with their kinds and sizes",
    "stoker cat packed n01443537_goldfish/n01443537_10025",
    "show a sample by its key; messages print the key at the end of the path",
    "stoker cat shards.tar 17 --field image -o x.jpg",
    "write the stored bytes of the image to a file",
    NULL,
};

const struct command cmd_cat = {
    .name = "cat",
    .operand = "SRC",
    .second = "SAMPLE",
    .both = 1,
    .summary = "show the stored fields of one sample",
    .about = "Shows the fields of one sample as they are stored, before any decoding. SAMPLE is its index, from 0, or "
             "its key. With --field, prints the bytes of one field.",
    .groups = FOR_SOURCE | FOR_JSON,
    .without = {"take", "max-pixels", "cache", "cache-size", "reader", "cpu"},
    .options = options,
    .examples = examples,
    .run = run,
};
