/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_unpack.c -- stoker unpack: extracts the files of tar shards.
 */
#include <stdio.h>

#include "args.h"
#include "base/json.h"
#include "out.h"
#include "progress.h"
#include "stop.h"

struct unpacking {
    const struct args *a;
    struct progress progress;
    int64_t files;
};

static int each(void *user, const char *name, const char *reason, int64_t bytes)
{
    struct unpacking *u = user;
    (void)bytes;
    if (reason) {
        progress_clear(&u->progress);
        out_name(stderr, name);
        fputs(": ", stderr);
        out_name(stderr, reason);
        putc('\n', stderr);
    }
    progress_at(&u->progress, ++u->files);
    return stop_asked();
}

static void report(const struct args *a, const stk_pack_report *r, int complete)
{
    if (a->json) {
        struct json j = {.f = stdout};
        json_open(&j, NULL, '{');
        json_text(&j, "source", a->operand);
        json_text(&j, "output", a->second);
        json_int(&j, "files", r->samples);
        json_int(&j, "left_out", r->bad);
        json_int(&j, "bytes", r->bytes_out);
        json_real(&j, "seconds", r->seconds);
        json_bool(&j, "complete", complete);
        out_json_error(&j);
        json_close(&j, '}');
        return;
    }
    out_name(stdout, a->second);
    printf(": %s from %s, %s, in %s\n", out_some(r->samples, "file", "files").s,
           out_some(r->shards, "archive", "archives").s, out_bytes(r->bytes_out).s, out_seconds(r->seconds).s);
}

static int run(struct args *a)
{
    struct unpacking u = {.a = a};
    stk_error e = {.sample = -1};
    stk_pack_report r = {0};
    const stk_unpack_options o = {
        .out = a->second, .force = a->pack.force, .threads = a->o.threads, .each = each, .user = &u};
    progress_begin(&u.progress, "unpack", 0);
    const int rc = stk_unpack(a->operand, &o, &r, &e);
    progress_end(&u.progress);
    int end = END_GOOD;
    if (stop_asked())
        end = END_INTERRUPTED;
    else if (rc == STK_EDATA)
        end = END_BAD;
    else if (rc != STK_OK)
        end = out_fail("unpack", rc, &e);
    if (end == END_BAD)
        out_say("unpack", "%s left out", out_some(r.bad, "file was", "files were").s);
    if (end == END_GOOD || end == END_BAD || (a->json && end == END_INTERRUPTED))
        report(a, &r, rc == STK_OK);
    return end;
}

static const struct args_option options[] = {
    {"force", 0, ARGS_ON, 0, offsetof(struct args, pack.force), 0, 0, NULL, NULL,
     "overwrite existing files that have other bytes", NULL},
    {"threads", 0, ARGS_INT, 0, offsetof(struct args, o.threads), 0, INT32_MAX, NULL, "N",
     "use at most N threads, one per archive", "all CPUs that this process may use"},
    {"json", 0, ARGS_ON, 0, offsetof(struct args, json), 0, 0, NULL, NULL, "print one JSON document and nothing else",
     NULL},
    {0},
};

static const char *const examples[] = {
    "stoker unpack packed photos",
    "extract the files that were packed, under their own names; byte for byte, unless packing changed them",
    "stoker unpack 'shards/train-{0000..0127}.tar' train",
    "extract the files of any tar archives; no file is written outside train/",
    NULL,
};

const struct command cmd_unpack = {
    .name = "unpack",
    .operand = "SRC",
    .second = "OUT",
    .both = 1,
    .summary = "extract the files of a pack, or of any tar shards",
    .about =
        "Extracts the files of tar archives into a folder. The files of a pack get their original names. "
        "Images packed with --as dct become JPEG files again, with the same pixels. Files whose names lead outside the "
        "folder, or through a link, are not written; they are reported. Existing "
        "files with the same bytes are kept, so that the same command continues after an interruption. For packs in "
        "formats other than tar, use `stoker pack SRC OUT --to folder`.",
    .ends_1 = "if some files could not be written",
    .options = options,
    .examples = examples,
    .run = run,
};
