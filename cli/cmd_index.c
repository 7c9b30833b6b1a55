/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_index.c -- stoker index: finds the position of every sample, once.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/json.h"
#include "out.h"

static void report_json(const struct args *a, const stk_source *s, const stk_overview *v, const char *fields)
{
    struct json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "source", a->operand);
    json_text(&j, "kind", stk_source_kind(s));
    json_int(&j, "samples", stk_source_count(s));
    json_int(&j, "classes", stk_source_n_classes(s));
    json_text(&j, "fields", fields);
    json_int(&j, "bytes", v->bytes);
    json_bool(&j, "cached", v->index_cached);
    json_real(&j, "seconds", v->index_s);
    json_int(&j, "index_bytes", v->index_bytes);
    out_json_error(&j);
    json_close(&j, '}');
}

/* What was read per second: the files of a folder, the lines of a list, else the bytes of shards. */
static struct out_text pace_of(const stk_source *s, const stk_overview *v)
{
    const int64_t samples = (int64_t)((double)stk_source_count(s) / v->index_s);
    if (strncmp(stk_source_kind(s), "folder", 6) == 0)
        return out_some(samples, "file", "files");
    if (strncmp(stk_source_kind(s), "list", 4) == 0)
        return out_some(samples, "line", "lines");
    return out_bytes((int64_t)((double)v->bytes / v->index_s));
}

static void report(const struct args *a, const stk_source *s, const stk_overview *v, const char *fields)
{
    out_name(stdout, a->operand);
    printf(": %s, %s", stk_source_kind(s), out_some(stk_source_count(s), "sample", "samples").s);
    if (stk_source_n_classes(s))
        printf(" in %s", out_some(stk_source_n_classes(s), "class", "classes").s);
    printf(", %s\n", out_bytes(v->bytes).s);
    if (fields[0])
        printf("  fields  %s\n", fields);
    if (v->index_bytes == 0) {
        puts("  index   none: the position of a row follows from its index");
        return;
    }
    printf("  index   %s, %s%s", out_bytes(v->index_bytes).s, v->index_cached ? "loaded in " : "made in ",
           out_seconds(v->index_s).s);
    if (!v->index_cached && v->index_s > 0)
        printf(" (%s per second)", pace_of(s, v).s);
    putchar('\n');
}

static int run(struct args *a)
{
    stk_source *s;
    stk_error e = {.sample = -1};
    stk_overview v;
    char fields[2048];
    const int rc = args_open_source(a, &s, &e);
    if (rc != STK_OK)
        return out_fail("index", rc, &e);
    stk_source_overview(s, &v);
    stk_source_fields(s, fields, sizeof fields);
    (a->json ? report_json : report)(a, s, &v, fields);
    stk_source_close(s);
    return END_GOOD;
}

static const struct args_option options[] = {
    {"beside", 0, ARGS_ON, 0, offsetof(struct args, o.index_beside), 0, 0, NULL, NULL,
     "also write the index to the folder of the shards, so that copies of the folder have it", NULL},
    {0},
};

static const char *const examples[] = {
    "stoker index 'train-{0000..1023}.tar'",
    "read through the shards once, with all threads; later runs open them in a fraction of a second",
    "stoker index big.tfrecord --cache-dir /nvme/cache",
    "store the index there; later commands with the same --cache-dir find it",
    "stoker index '/data/train-*.tar' --beside",
    "also write .stoker-….index next to the shards, for copies of the folder (cp -p, rsync -a)",
    NULL,
};

const struct command cmd_index = {
    .name = "index",
    .operand = "SRC",
    .summary = "build the index of a dataset now, so that later runs open it at once",
    .about = "Opens a source and builds its index, unless it is in the cache. Prints what it found, and how fast. The "
             "index is stored in the cache folder (`stoker info` shows where). Every use of the index checks that the "
             "source has not changed. `stoker cache clear SRC --kind index` deletes it. With --beside, the index is "
             "also written to the folder of the shards.",
    .groups = FOR_SOURCE | FOR_JSON,
    .without = {"take", "max-pixels", "cache", "cache-size", "reader", "cpu"},
    .options = options,
    .examples = examples,
    .run = run,
};
