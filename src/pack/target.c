/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c -- where packed samples go.
 *
 * While a run writes, the folder contains .stoker-pack.journal. Each shard passes through three steps:
 *
 *   1. .shard-000000.tar.part is written.
 *   2. It is renamed to shard-000000.tar.
 *   3. The journal gets a line for it.
 *
 * After the last shard, stoker.json is written and the journal is removed. A run that finds a journal continues after
 * its last shard. A run that finds a stoker.json with the same recipe has nothing to do. pack.c writes the index next
 * to the shards, .stoker-*.index.
 */
#include "pack/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "pack/place.h"
#include "source/recognise.h"

static const struct target_format *const formats[] = {&target_tar, &target_tfrecord, &target_hdf5, &target_npy,
                                                      &target_folder};

/* ------------------------------------------------------------------ stoker.json */

/* Writes each option of the recipe, "name=value", as a member. */
static int write_options(struct json *j, const char *recipe)
{
    char *const words = strdup(recipe), *next;
    json_open(j, "options", '{');
    for (char *p = words; p && *p; p = next) {
        const size_t n = strcspn(p, "\t"), equals = strcspn(p, "=");
        next = p + n + (p[n] != 0);
        p[n] = p[equals] = 0;
        json_text(j, p, p + equals + 1);
    }
    json_close(j, '}');
    free(words);
    return words ? 0 : -1;
}

static void write_shards(struct json *j, const struct journal *journal)
{
    json_open(j, "shards", '[');
    for (int64_t i = 0; i < journal->n; i++) {
        const struct shard_line *s = &journal->shards[i];
        json_open(j, NULL, '{');
        json_text(j, "name", s->name);
        json_int(j, "samples", s->samples);
        json_int(j, "bytes", s->bytes);
        json_hex(j, "checksum", s->sum);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static int write_manifest(struct target *t, stk_error *e)
{
    char *text = NULL;
    size_t n = 0;
    struct json j = {.f = open_memstream(&text, &n)};
    if (!j.f)
        return error_nomem(e, "write", 1);
    json_open(&j, NULL, '{');
    json_int(&j, "stoker_pack", 1);
    json_text(&j, "format", t->format->name);
    json_int(&j, "samples", t->written);
    json_int(&j, "left_out", t->bad);
    json_int(&j, "bytes", t->bytes);
    json_int(&j, "source_bytes", t->bytes_in);
    json_hex(&j, "source", t->o.fingerprint);
    const bool failed = write_options(&j, t->o.recipe);
    if (t->o.fields)
        json_text(&j, "fields", t->o.fields);
    json_text(&j, "names", t->o.files ? "files" : "keys");
    json_open(&j, "classes", '[');
    for (int i = 0; i < t->o.n_classes; i++)
        json_text(&j, NULL, t->o.classes[i]);
    json_close(&j, ']');
    write_shards(&j, &t->journal);
    json_close(&j, '}');
    const int rc =
        fclose(j.f) || failed ? error_nomem(e, "write", n) : outfile_write(t->dir, pack_manifest_name, text, n, e);
    free(text);
    return rc;
}

/* Takes the counts of a finished run. False: a count is missing. */
static bool take_counts(struct target *t, struct json_value v)
{
    t->complete = true;
    for (struct json_value s = json_first(json_find(v, "shards")); s.p; s = json_next(s))
        t->shards++;
    return json_get_int(json_find(v, "samples"), &t->written) && json_get_int(json_find(v, "left_out"), &t->bad) &&
           json_get_int(json_find(v, "bytes"), &t->bytes) && json_get_int(json_find(v, "source_bytes"), &t->bytes_in);
}

/* Rebuilds the recipe from the options in stoker.json, in the order of the recipe `now`. */
static bool recipe_of(struct json_value options, const char *now, struct buf *out)
{
    char name[64];
    for (const char *p = now; *p;) {
        const size_t length = strcspn(p, "\t"), equals = strcspn(p, "=");
        snprintf(name, sizeof name, "%.*s", (int)(equals < sizeof name ? equals : sizeof name - 1), p);
        if (buf_printf(out, "%s%s=", out->len ? "\t" : "", name) || !json_get_text(json_find(options, name), out))
            return false;
        p += length + (p[length] != 0);
    }
    return out->len > 0;
}

/* Compares an existing stoker.json with this run: it is complete, or it was made with other options. */
static int read_manifest(struct target *t, stk_error *e)
{
    struct buf text = {0}, recipe = {0};
    int rc = pack_manifest_read(t->dir, &text, e);
    if (rc == STK_ENOTFOUND) {
        rc = STK_OK;
    } else if (rc == STK_OK) {
        const struct json_value v = json_document(text.data, text.len);
        if (!recipe_of(json_find(v, "options"), t->o.recipe, &recipe))
            rc = error_set(e, STK_EUSAGE, "open", "has a stoker.json of another version; --force starts again");
        else if (strcmp((const char *)recipe.data, t->o.recipe) != 0)
            rc = journal_differs((const char *)recipe.data, t->o.recipe, e);
        else if (!take_counts(t, v))
            rc = error_set(e, STK_EUSAGE, "open", "has a damaged stoker.json; --force starts again");
    }
    buf_done(&text);
    buf_done(&recipe);
    return rc;
}

/* ------------------------------------------------------------------ opening */

/* Whether a name begins like the file of a column. */
static bool is_column(const struct target *t, const char *name)
{
    for (int i = 0; i < t->o.n_columns && t->o.to == STK_TO_NPY; i++) {
        const size_t n = strlen(t->o.columns[i].name);
        if (strncmp(name, t->o.columns[i].name, n) == 0 &&
            (strncmp(name + n, ".npy", 4) == 0 || strncmp(name + n, ".offsets.npy", 12) == 0))
            return true;
    }
    return false;
}

/* Whether packing makes files of this name, complete or not. */
static bool is_ours(const struct target *t, const char *name)
{
    const char *bare = name[0] == '.' ? name + 1 : name;
    return strncmp(name, ".stoker-", 8) == 0 || strncmp(bare, pack_manifest_name, strlen(pack_manifest_name)) == 0 ||
           strncmp(bare, "shard-", 6) == 0 || strncmp(bare, "images.npy", 10) == 0 ||
           strncmp(bare, "labels.npy", 10) == 0 || strncmp(bare, "data.h5", 7) == 0 || is_column(t, bare);
}

/* Removes the files that stoker.json lists. */
static void remove_listed(const struct target *t)
{
    struct buf text = {0}, name = {0};
    if (pack_manifest_read(t->dir, &text, NULL) == STK_OK) {
        const struct json_value v = json_document(text.data, text.len);
        for (struct json_value s = json_first(json_find(v, "shards")); s.p; s = json_next(s)) {
            name.len = 0;
            if (json_get_text(json_find(s, "name"), &name) && name.len > 0 && !strchr((const char *)name.data, '/'))
                unlinkat(t->dir, (const char *)name.data, 0);
        }
    }
    buf_done(&text);
    buf_done(&name);
}

/* Looks at the files of the folder: removes ours if asked to, and reports whether there are others. */
static int look_around(struct target *t, bool remove, bool *others, stk_error *e)
{
    DIR *d = place_list(t->dir, ".");
    if (!d)
        return error_os(e, errno, "open", "cannot read the folder");
    *others = false;
    if (remove) {
        remove_listed(t);
        target_folder_clear(t->dir);
    }
    for (const struct dirent *entry; (entry = readdir(d));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (remove && is_ours(t, name))
            unlinkat(t->dir, name, 0);
        else if (!is_ours(t, name))
            *others = true;
    }
    closedir(d);
    return STK_OK;
}

void target_sweep(struct target *t)
{
    DIR *d = place_list(t->dir, ".");
    for (const struct dirent *entry; d && (entry = readdir(d));) {
        const char *name = entry->d_name, *end = strrchr(name, '.');
        if (strncmp(name, ".stoker-", 8) == 0 && strcmp(end, ".tmp") == 0)
            unlinkat(t->dir, name, 0);
    }
    if (d)
        closedir(d);
}

static int open_folder(struct target *t, stk_error *e)
{
    t->dir = place_root(t->o.out, &t->made_folder);
    if (t->dir < 0)
        return error_os(e, errno, "open", "cannot create or open the folder");
    t->open = 1;
    return STK_OK;
}

/* Counts the shards of an earlier run that are still complete. A shard that differs from its line in the journal, and
 * all after it, are written again. */
static int take_shards(struct target *t, stk_error *e)
{
    int64_t good = 0;
    struct stat st;
    for (; good < t->journal.n && t->format->measure; good++) { /* targets without shards start again */
        const struct shard_line *s = &t->journal.shards[good];
        if (fstatat(t->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) || st.st_size != s->bytes)
            break;
        t->written += s->samples;
        t->bytes += s->bytes;
        t->next = s->next;
        t->bad = s->bad;
        t->bytes_in = s->bytes_in;
    }
    return good < t->journal.n ? journal_cut(&t->journal, good, e) : STK_OK;
}

static int choose(struct target *t, stk_error *e)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i]->to == t->o.to)
            t->format = formats[i];
    return t->format ? STK_OK : error_set(e, STK_EUSAGE, "open", "unknown target");
}

static int begin(struct target *t, stk_error *e)
{
    bool others = false;
    int rc = look_around(t, t->o.force, &others, e);
    const bool begun = faccessat(t->dir, journal_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
                       faccessat(t->dir, pack_manifest_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (rc == STK_OK && others && !begun && !t->o.force)
        rc = error_set(e, STK_EUSAGE, "open",
                       "contains other files; choose a new folder, or write next to them with --force");
    if (rc == STK_OK)
        rc = read_manifest(t, e);
    if (rc == STK_OK && t->complete)
        unlinkat(t->dir, journal_name, 0); /* the last run was killed before it removed the journal */
    if (rc != STK_OK || t->complete)
        return rc;
    rc = journal_open(&t->journal, t->dir, t->o.recipe, e);
    if (rc == STK_OK)
        rc = take_shards(t, e);
    if (rc == STK_OK && t->format->begin)
        rc = t->format->begin(t, e);
    return rc;
}

int target_open(struct target *t, const struct target_options *o, stk_error *e)
{
    *t = (struct target){.o = *o};
    int rc = choose(t, e);
    if (rc == STK_OK)
        rc = open_folder(t, e);
    if (rc == STK_OK)
        rc = begin(t, e);
    if (rc != STK_OK)
        error_at(e, o->out, -1);
    return rc;
}

/* ------------------------------------------------------------------ shards */

static int end_shard(struct target *t, stk_error *e)
{
    int rc = t->format->end ? t->format->end(t, e) : STK_OK;
    if (rc == STK_OK)
        rc = outfile_finish(&t->file, e);
    if (rc != STK_OK)
        return rc;
    struct shard_line s = {.samples = t->in_shard,
                           .bytes = t->file.bytes,
                           .sum = t->file.sum,
                           .next = t->next,
                           .bad = t->bad,
                           .bytes_in = t->bytes_in};
    memcpy(s.name, t->file.name, sizeof s.name);
    t->bytes += s.bytes;
    t->in_shard = 0;
    t->file.bytes = 0;
    return journal_add(&t->journal, &s, e);
}

static int add_to_shard(struct target *t, const struct packed *p, stk_error *e)
{
    size_t bytes = 0;
    int rc = t->format->measure(t, p, &bytes, e);
    if (rc == STK_OK && t->in_shard > 0 && t->file.bytes + (int64_t)bytes > t->o.shard_size)
        rc = end_shard(t, e);
    if (rc == STK_OK && t->in_shard == 0) {
        char name[OUTFILE_NAME];
        snprintf(name, sizeof name, "shard-%06lld.%s", (long long)t->journal.n, t->format->suffix);
        rc = outfile_open(&t->file, t->dir, name, e);
    }
    return rc == STK_OK ? t->format->write(t, p, e) : rc;
}

int target_add(struct target *t, const struct packed *p, stk_error *e)
{
    t->touched = true;
    const int rc = t->format->measure ? add_to_shard(t, p, e) : t->format->write(t, p, e);
    if (rc != STK_OK)
        return rc;
    t->in_shard++;
    t->written++;
    t->next++;
    t->bytes_in += p->bytes_in;
    return STK_OK;
}

void target_skip(struct target *t)
{
    t->next++;
    t->bad++;
}

int target_end(struct target *t, stk_error *e)
{
    int rc = STK_OK;
    if (!t->format->measure)
        rc = t->format->end(t, e);
    else if (t->in_shard > 0)
        rc = end_shard(t, e);
    if (rc == STK_OK)
        rc = write_manifest(t, e);
    t->shards = t->journal.n;
    if (rc == STK_OK)
        journal_remove(&t->journal);
    return rc;
}

int64_t target_bytes(const struct target *t)
{
    return t->bytes + t->file.bytes;
}

void target_done(struct target *t)
{
    if (t->format && t->format->close)
        t->format->close(t);
    outfile_done(&t->file);
    buf_done(&t->made);
    if (t->journal.open && t->journal.n == 0 && (t->format->measure || !t->touched))
        journal_remove(&t->journal); /* there is nothing to continue from */
    journal_done(&t->journal);
    if (t->open)
        close(t->dir);
    if (t->made_folder)
        rmdir(t->o.out); /* fails if it contains anything */
    *t = (struct target){0};
}
