/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_check.c -- checks that the files of a pack are unchanged and contain as many samples as its stoker.json says.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "pack/outfile.h"
#include "source/recognise.h"
#include "source/source.h"

struct checking {
    const char *pack;
    int dir;
    int (*each)(void *user, const char *name, const char *reason, int64_t bytes);
    void *user;
};

/* Checks one file. Non-zero: stop. */
static int check_one(const struct checking *c, struct json_value v, struct buf *name)
{
    int64_t bytes = 0, found = 0;
    uint64_t sum = 0, is = 0;
    char reason[160] = "";
    stk_error e = {0};
    name->len = 0;
    if (!json_get_text(json_find(v, "name"), name) || !json_get_int(json_find(v, "bytes"), &bytes) ||
        !json_get_hex(json_find(v, "checksum"), &sum))
        return c->each(c->user, pack_manifest_name, "lacks the name, size or checksum of a file; pack again", 0);
    const char *file = (const char *)name->data;
    if (outfile_check(c->dir, file, &found, &is, &e) != STK_OK)
        snprintf(reason, sizeof reason, "%.150s", e.reason);
    else if (found != bytes)
        snprintf(reason, sizeof reason, "has %lld bytes, but %lld were written", (long long)found, (long long)bytes);
    else if (is != sum)
        snprintf(reason, sizeof reason, "has the checksum %016llx, but was written with %016llx",
                 (unsigned long long)is, (unsigned long long)sum);
    return c->each(c->user, file, reason[0] ? reason : NULL, found);
}

/* Compares the number of samples that a reader finds with the number that was packed. A pack that cannot be opened is
 * reported elsewhere. */
static int check_count(const struct checking *c, int64_t packed, int64_t *files)
{
    struct source *s = NULL;
    stk_error ignored;
    char reason[96];
    const struct source_options o = {.path = c->pack, .threads = 1};
    const int rc = source_open(&s, &o, &ignored);
    const int64_t found = rc == STK_OK ? source_count(s) : packed;
    source_close(s);
    if (found == packed)
        return 0;
    snprintf(reason, sizeof reason, "says that the pack has %lld samples, but a reader finds %lld", (long long)packed,
             (long long)found);
    ++*files; /* stoker.json */
    return c->each(c->user, pack_manifest_name, reason, 0);
}

static int check_all(const struct checking *c, const struct buf *text, int64_t *files, stk_error *e)
{
    const struct json_value manifest = json_document(text->data, text->len);
    struct buf name = {0};
    int64_t version, packed;
    int stopped = 0;
    if (!json_get_int(json_find(manifest, "stoker_pack"), &version))
        return STK_OK;
    for (struct json_value v = json_first(json_find(manifest, "shards")); v.p && !stopped; v = json_next(v)) {
        stopped = check_one(c, v, &name);
        ++*files;
    }
    buf_done(&name);
    if (!stopped && json_get_int(json_find(manifest, "samples"), &packed))
        stopped = check_count(c, packed, files);
    return stopped ? error_set(e, STK_STOPPED, "verify", "stopped") : STK_OK;
}

int stk_pack_check(const char *pack, int (*each)(void *user, const char *name, const char *reason, int64_t bytes),
                   void *user, int64_t *files, stk_error *e)
{
    struct buf text = {0};
    *files = 0;
    const int dir = open(pack, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) /* not a pack */
        return STK_OK;
    int rc = pack_manifest_read(dir, &text, e);
    if (rc == STK_OK)
        rc = check_all(&(struct checking){pack, dir, each, user}, &text, files, e);
    else if (rc == STK_ENOTFOUND)
        rc = STK_OK;
    buf_done(&text);
    close(dir);
    return rc;
}
