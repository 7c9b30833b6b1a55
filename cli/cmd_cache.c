/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_cache.c -- stoker cache: lists the cache folder, and deletes from it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "base/json.h"
#include "out.h"
#include "table.h"

struct row {
    char *source, *kind;
    int64_t entries, bytes, used;
};

struct listing {
    struct row *rows;
    size_t n, cap;
    int64_t bytes;
    int no_memory;
};

/* ------------------------------------------------------------------ collecting */

static int add(void *user, const stk_cached *c)
{
    struct listing *l = user;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 16;
        struct row *rows = realloc(l->rows, cap * sizeof *rows);
        l->no_memory = !rows;
        if (!rows)
            return 1;
        l->rows = rows;
        l->cap = cap;
    }
    struct row *r = &l->rows[l->n++];
    *r = (struct row){strdup(c->source), strdup(c->kind), c->entries, c->bytes, c->used};
    l->bytes += c->bytes;
    l->no_memory = !r->source || !r->kind;
    return l->no_memory;
}

static void done(struct listing *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->rows[i].source);
        free(l->rows[i].kind);
    }
    free(l->rows);
}

/* Sorts by source, then by kind. */
static int by_source(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    const int rc = strcmp(x->source, y->source);
    return rc ? rc : strcmp(x->kind, y->kind);
}

/* ------------------------------------------------------------------ ls */

/* The folder that the options select; "" if the cache folder is off. */
static const char *folder_of(const struct args *a, stk_info *i)
{
    stk_info_get(i);
    if (!a->o.cache_dir || !a->o.cache_dir[0])
        return i->cache_dir;
    return strcmp(a->o.cache_dir, "off") == 0 ? "" : a->o.cache_dir;
}

static void print_text(const struct listing *l, const char *folder)
{
    struct table t = {0};
    if (!folder[0]) {
        puts("the cache folder is off: nothing is cached");
        return;
    }
    if (l->n == 0) {
        printf("%s: nothing is cached there\n", folder);
        return;
    }
    table_head(&t, "<source", "<kind", ">entries", ">size", "<last used", NULL);
    for (size_t i = 0; i < l->n; i++) {
        const struct row *r = &l->rows[i];
        const time_t used = (time_t)r->used;
        struct tm tm;
        char when[32] = "";
        if (localtime_r(&used, &tm))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
        table_row(&t, r->source[0] ? r->source : "(unknown)", r->kind, out_count(r->entries).s, out_bytes(r->bytes).s,
                  when, NULL);
    }
    table_print(&t, stdout);
    printf("\n%s in %s\n", out_bytes(l->bytes).s, folder);
}

static void print_json(const struct listing *l, const char *folder)
{
    struct json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "cache_dir", folder);
    json_int(&j, "bytes", l->bytes);
    json_open(&j, "caches", '[');
    for (size_t i = 0; i < l->n; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "source", l->rows[i].source);
        json_text(&j, "kind", l->rows[i].kind);
        json_int(&j, "entries", l->rows[i].entries);
        json_int(&j, "bytes", l->rows[i].bytes);
        json_int(&j, "used", l->rows[i].used);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

static int list(const struct args *a)
{
    struct listing l = {0};
    stk_info info;
    stk_error e;
    int end = END_GOOD;
    const int rc = stk_cache_list(a->o.cache_dir, add, &l, &e);
    if (rc != STK_OK) {
        end = out_fail("cache", rc, &e);
    } else if (l.no_memory) {
        out_say("cache", "no memory");
        end = END_MACHINE;
    } else {
        if (l.n > 1)
            qsort(l.rows, l.n, sizeof *l.rows, by_source);
        (a->json ? print_json : print_text)(&l, folder_of(a, &info));
    }
    done(&l);
    return end;
}

/* ------------------------------------------------------------------ clear */

static int clear(const struct args *a)
{
    stk_error e;
    int64_t bytes = 0;
    const char *source = a->second, *kind = a->kind;
    if (!source && !kind && !a->all) {
        out_say("cache", "clear needs SRC, --kind KIND or --all; `stoker cache ls` lists what is cached");
        return END_USAGE;
    }
    const int rc = stk_cache_clear(a->o.cache_dir, kind, source, &bytes, &e);
    if (rc != STK_OK)
        return out_fail("cache", rc, &e);
    if (a->json) {
        struct json j = {.f = stdout};
        json_open(&j, NULL, '{');
        json_int(&j, "deleted_bytes", bytes);
        json_close(&j, '}');
    } else {
        printf("deleted %s%s\n", out_bytes(bytes).s,
               bytes ? "" : "; `stoker cache ls` lists what is cached, and for which source");
    }
    return END_GOOD;
}

static int run(struct args *a)
{
    const int lists = strcmp(a->operand, "ls") == 0;
    if (!lists && strcmp(a->operand, "clear") != 0) {
        out_say("cache", "unknown action '%s'; use `stoker cache ls` or `stoker cache clear`", a->operand);
        return END_USAGE;
    }
    if (lists && (a->second || a->kind || a->all)) {
        out_say("cache",
                "ls lists the whole cache folder, or that of --cache-dir; SRC, --kind and --all are for clear");
        return END_USAGE;
    }
    return lists ? list(a) : clear(a);
}

#define AT(member) offsetof(struct args, member)

static const struct args_option options[] = {
    {"kind", 0, ARGS_TEXT, 0, AT(kind), 0, 0, NULL, "KIND", "only this kind: index, checkpoints, bytes, dct or pixels",
     "all"},
    {"all", 0, ARGS_ON, 0, AT(all), 0, 0, NULL, NULL, "everything, of every dataset", NULL},
    {"cache-dir", 0, ARGS_TEXT, 0, AT(o.cache_dir), 0, 0, NULL, "DIR", "use another cache folder",
     "`stoker info` shows it"},
    {"json", 0, ARGS_ON, 0, AT(json), 0, 0, NULL, NULL, "print one JSON document and nothing else", NULL},
    {0},
};

static const char *const examples[] = {
    "stoker cache ls",
    "list what is cached for each dataset, its size, and when it was last used",
    "stoker cache ls --cache-dir /nvme/cache",
    "list another cache folder",
    "stoker cache clear train/",
    "delete everything cached for this dataset; the dataset itself is not touched",
    "stoker cache clear --kind pixels",
    "delete the cached pixels of every dataset, and keep everything else",
    "stoker cache clear --all",
    "delete everything; the next run starts without any cache",
    NULL,
};

const struct command cmd_cache = {
    .name = "cache",
    .operand = "ls|clear",
    .second = "SRC",
    .summary = "list or delete the contents of the cache folder",
    .about =
        "Lists the contents of the cache folder by dataset and kind, or deletes some of it. The kinds are index (the "
        "names and positions of samples), checkpoints (positions inside JPEG files where decoding can start), and "
        "bytes, "
        "dct and pixels (what --cache stores with --cache-dir). Deleting is safe at any time: running programs keep "
        "the "
        "files they have open, and later runs create what they need again.",
    .options = options,
    .examples = examples,
    .run = run,
};
