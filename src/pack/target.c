/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c -- where packed samples go.
 *
 *     the first run             .stoker-pack.journal, .shard-000000.tar.part -> shard-000000.tar -> a line in the
 * journal the last shard is whole   stoker.json; the journal goes
 *
 * A run that finds the journal goes on behind the last shard that it tells of; one that finds stoker.json of the same
 * recipe has nothing to do. The index beside the shards, .stoker-*.index, is made of them by who packs: see pack.c.
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
#include "base/note.h"

const char target_note[] = "stoker.json";

static const struct target_format *const formats[] = {&target_tar, &target_tfrecord, &target_hdf5, &target_npy,
                                                      &target_folder};

/* ------------------------------------------------------------------ the note */

/* Words of the recipe, "name=value", as members. */
static void tell_options(struct note *n, const char *recipe)
{
    struct buf word = {0};
    note_open(n, "options", '{');
    for (const char *p = recipe; *p;) {
        const size_t length = strcspn(p, "\t"), equals = strcspn(p, "=");
        word.len = 0;
        if (buf_add(&word, p, length) || buf_add(&word, "", 1)) {
            n->failed = true;
            break;
        }
        word.data[equals] = 0;
        note_text(n, (const char *)word.data, (const char *)word.data + equals + 1);
        p += length + (p[length] != 0);
    }
    note_close(n, '}');
    buf_done(&word);
}

static void tell_shards(struct note *n, const struct journal *j)
{
    note_open(n, "shards", '[');
    for (int64_t i = 0; i < j->n; i++) {
        const struct shard_line *s = &j->shards[i];
        note_open(n, NULL, '{');
        note_text(n, "name", s->name);
        note_int(n, "samples", s->samples);
        note_int(n, "bytes", s->bytes);
        note_hex(n, "checksum", s->sum);
        note_close(n, '}');
    }
    note_close(n, ']');
}

static int write_note(struct target *t, stk_error *e)
{
    struct note n = {0};
    note_open(&n, NULL, '{');
    note_int(&n, "stoker_pack", 1);
    note_text(&n, "format", t->format->name);
    note_int(&n, "samples", t->written);
    note_int(&n, "left_out", t->bad);
    note_int(&n, "bytes", t->bytes);
    note_int(&n, "source_bytes", t->bytes_in);
    note_hex(&n, "source", t->o.fingerprint);
    tell_options(&n, t->o.recipe);
    if (t->o.fields)
        note_text(&n, "fields", t->o.fields);
    note_text(&n, "names", t->o.files ? "files" : "keys");
    note_open(&n, "classes", '[');
    for (int i = 0; i < t->o.n_classes; i++)
        note_text(&n, NULL, t->o.classes[i]);
    note_close(&n, ']');
    tell_shards(&n, &t->journal);
    note_close(&n, '}');
    const int rc =
        n.failed ? error_nomem(e, "write", n.text.cap) : outfile_write(t->dir, target_note, n.text.data, n.text.len, e);
    note_done(&n);
    return rc;
}

/* A small file below dir, whole; false: there is none, or it cannot be read. */
static bool read_small(int dir, const char *name, struct buf *out)
{
    enum { MOST = 256 << 20, STEP = 1 << 16 };
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && out->len < MOST) {
        n = buf_reserve(out, out->len + STEP) ? -1 : read(fd, out->data + out->len, STEP);
        out->len += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    return n == 0;
}

/* Counts of what an earlier run has finished; false: the note does not tell. */
static bool take_counts(struct target *t, struct note_value v)
{
    t->complete = true;
    for (struct note_value s = note_first(note_find(v, "shards")); s.p; s = note_next(s))
        t->shards++;
    return note_get_int(note_find(v, "samples"), &t->written) && note_get_int(note_find(v, "left_out"), &t->bad) &&
           note_get_int(note_find(v, "bytes"), &t->bytes) && note_get_int(note_find(v, "source_bytes"), &t->bytes_in);
}

/* The recipe that the options of a note were written from, in the order of the one that there is now. */
static bool recipe_of(struct note_value options, const char *now, struct buf *out)
{
    char name[64];
    for (const char *p = now; *p;) {
        const size_t length = strcspn(p, "\t"), equals = strcspn(p, "=");
        snprintf(name, sizeof name, "%.*s", (int)(equals < sizeof name ? equals : sizeof name - 1), p);
        if (buf_printf(out, "%s%s=", out->len ? "\t" : "", name) || !note_get_text(note_find(options, name), out))
            return false;
        p += length + (p[length] != 0);
    }
    return out->len > 0;
}

/* What a note that is there means for this run. */
static int read_note(struct target *t, stk_error *e)
{
    struct buf text = {0}, recipe = {0};
    int rc = STK_OK;
    if (read_small(t->dir, target_note, &text)) {
        const struct note_value v = note_document(text.data, text.len);
        if (!recipe_of(note_find(v, "options"), t->o.recipe, &recipe))
            rc = error_set(e, STK_EUSAGE, "open", "has a stoker.json that is not of this version: --force begins anew");
        else if (strcmp((const char *)recipe.data, t->o.recipe) != 0)
            rc = journal_differs((const char *)recipe.data, t->o.recipe, e);
        else if (!take_counts(t, v))
            rc = error_set(e, STK_EUSAGE, "open", "has a stoker.json that is damaged: --force begins anew");
    }
    buf_done(&text);
    buf_done(&recipe);
    return rc;
}

/* ------------------------------------------------------------------ opening */

/* Whether a name is that of a file of a column, or begins so. */
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

/* Names that packing makes, finished or not. */
static bool is_ours(const struct target *t, const char *name)
{
    const char *bare = name[0] == '.' ? name + 1 : name;
    return strncmp(name, ".stoker-", 8) == 0 || strncmp(bare, target_note, sizeof target_note - 1) == 0 ||
           strncmp(bare, "shard-", 6) == 0 || strncmp(bare, "images.npy", 10) == 0 ||
           strncmp(bare, "labels.npy", 10) == 0 || strncmp(bare, "data.h5", 7) == 0 || is_column(t, bare);
}

/* The files that a note tells of. */
static void remove_noted(const struct target *t)
{
    struct buf text = {0}, name = {0};
    if (read_small(t->dir, target_note, &text)) {
        const struct note_value v = note_document(text.data, text.len);
        for (struct note_value s = note_first(note_find(v, "shards")); s.p; s = note_next(s)) {
            name.len = 0;
            if (note_get_text(note_find(s, "name"), &name) && name.len > 0 && !strchr((const char *)name.data, '/'))
                unlinkat(t->dir, (const char *)name.data, 0);
        }
    }
    buf_done(&text);
    buf_done(&name);
}

/* Goes over what is in the folder: removes ours, or says whether there is anything else. */
static int look_around(struct target *t, bool remove, bool *others, stk_error *e)
{
    const int fd = openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        const int rc = error_os(e, errno, "open", "cannot read the folder");
        if (fd >= 0)
            close(fd);
        return rc;
    }
    *others = false;
    if (remove) {
        remove_noted(t);
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
    const int fd = openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (const struct dirent *entry; d && (entry = readdir(d));) {
        const char *name = entry->d_name, *end = strrchr(name, '.');
        if (strncmp(name, ".stoker-", 8) == 0 && strcmp(end, ".tmp") == 0)
            unlinkat(t->dir, name, 0);
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

static int open_folder(struct target *t, stk_error *e)
{
    char part[4096];
    const size_t n = strlen(t->o.out);
    if (n == 0 || n >= sizeof part)
        return error_os(e, ENAMETOOLONG, "open", "cannot make this folder");
    memcpy(part, t->o.out, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != 0)
            continue;
        part[i] = 0;
        t->made_folder = mkdir(part, 0777) == 0;
        if (!t->made_folder && errno != EEXIST)
            return error_os(e, errno, "open", "cannot make the folder %s", part);
        part[i] = i < n ? '/' : 0;
    }
    t->dir = open(t->o.out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->dir < 0)
        return error_os(e, errno, "open", "cannot open the folder");
    t->open = 1;
    return STK_OK;
}

/* Shards that are not as the journal has them, and all behind them, are made again. */
static int take_shards(struct target *t, stk_error *e)
{
    int64_t good = 0;
    struct stat st;
    for (; good < t->journal.n && t->format->measure; good++) { /* all else begins anew */
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
    return t->format ? STK_OK : error_set(e, STK_EUSAGE, "open", "there is no such target");
}

static int begin(struct target *t, stk_error *e)
{
    bool others = false;
    int rc = look_around(t, t->o.force, &others, e);
    const bool begun = faccessat(t->dir, journal_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
                       faccessat(t->dir, target_note, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (rc == STK_OK && others && !begun && !t->o.force)
        rc = error_set(e, STK_EUSAGE, "open",
                       "has other files in it: give a new folder, or --force to write beside them");
    if (rc == STK_OK)
        rc = read_note(t, e);
    if (rc == STK_OK && t->complete)
        unlinkat(t->dir, journal_name, 0); /* the last run ended between the note and this */
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
    int rc = t->format->end(t, e);
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
        rc = write_note(t, e);
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
        journal_remove(&t->journal); /* there is nothing to go on from */
    journal_done(&t->journal);
    if (t->open)
        close(t->dir);
    if (t->made_folder)
        rmdir(t->o.out); /* stays where anything is in it */
    *t = (struct target){0};
}
