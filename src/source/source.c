/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c -- the functions of source.h, which call the kind of source, and what the kinds share.
 */
#include "source/source.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/blocks.h"
#include "base/error.h"
#include "base/io.h"
#include "base/size.h"
#include "format/gunzip.h"
#include "source/index.h"
#include "source/mask_files.h"
#include "source/source_ops.h"

/* ------------------------------------------------------------------ shared by the kinds of sources */

void source_default_fields(struct source *s, bool labels)
{
    s->fields[0] =
        (struct field){.name = "image", .kind = FIELD_ENCODED, .dtype = STK_UINT8, .what = STK_IMAGE, .column = -1};
    s->fields[1] = (struct field){.name = "label",
                                  .kind = FIELD_TENSOR,
                                  .dtype = STK_INT64,
                                  .bytes = sizeof(int64_t),
                                  .what = STK_INT,
                                  .column = -1,
                                  .label = true,
                                  .named = true};
    s->n_fields = labels ? 2 : 1;
}

size_t source_numbered_path(const struct source *s, int64_t i, char *buf, size_t n)
{
    (void)s;
    const int length = snprintf(buf, n, "sample %lld", (long long)i);
    return length > 0 ? (size_t)length : 0;
}

const struct field *source_label_field(const struct source *s)
{
    for (int f = 0; f < s->n_fields; f++)
        if (s->fields[f].label)
            return &s->fields[f];
    return NULL;
}

int64_t source_label_or_default(const struct source *s, int64_t stored)
{
    const struct field *f = stored == LABEL_NONE ? source_label_field(s) : NULL;
    int64_t value = stored == LABEL_NONE ? -1 : stored;
    if (f && f->has_fill)
        memcpy(&value, f->fill, sizeof value);
    return value;
}

const char *source_given_class(const struct source *s, int i)
{
    return names_at(&s->classes, (uint32_t)i);
}

int64_t source_unknown(const struct source *s, int64_t i)
{
    (void)s, (void)i;
    return -1;
}

int source_keep_bytes(const struct source *s, struct reading *r, const char *name, const void *bytes, size_t n,
                      stk_error *e)
{
    if (n > (size_t)s->max_bytes)
        return error_set(e, STK_EDATA, "read", "%s%shas %zu bytes, more than the %lld that max_bytes allows",
                         name ? name : "", name ? " " : "", n, (long long)s->max_bytes);
    r->file.len = 0;
    const int rc = r->allow ? r->allow(r->user, n + IO_SLACK, e) : STK_OK;
    if (rc != STK_OK)
        return rc;
    if (buf_reserve(&r->file, n + IO_SLACK))
        return error_nomem(e, "read", n);
    memcpy(r->file.data, bytes, n);
    memset(r->file.data + n, 0, IO_SLACK);
    r->file.len = n;
    r->bytes = r->file.data;
    r->n_bytes = n;
    return STK_OK;
}

int source_allow_file(const struct source *s, const struct reading *r, int dir, const char *path, size_t held,
                      int copies, stk_error *e)
{
    struct stat st;
    if (!r->allow || fstatat(dir, path, &st, 0) != 0 || !S_ISREG(st.st_mode) || (int64_t)st.st_size > s->max_bytes)
        return STK_OK;
    for (int i = 0; i < copies; i++)
        held = size_add(held, size_add((size_t)st.st_size, IO_SLACK));
    return r->allow(r->user, held, e);
}

const struct source_tally *source_empty_tally(const struct source *s)
{
    (void)s;
    static const struct source_tally nothing;
    return &nothing;
}

/* ------------------------------------------------------------------ calling the kind */

const char *source_kind(const struct source *s)
{
    return s->kind;
}

int64_t source_count(const struct source *s)
{
    return s->count;
}

uint64_t source_fingerprint(const struct source *s)
{
    return s->ops->fingerprint(s);
}

const struct source_tally *source_tally(const struct source *s)
{
    return s->ops->tally(s);
}

void source_memory(const struct source *s, size_t *held, size_t *most)
{
    *held = *most = 0;
    if (s->ops->memory)
        s->ops->memory(s, held, most);
}

int source_n_classes(const struct source *s)
{
    return s->n_classes;
}

const char *source_class(const struct source *s, int i)
{
    return i >= 0 && i < s->n_classes ? s->ops->class_name(s, i) : NULL;
}

int source_joined(const struct source *s, const int64_t **starts)
{
    *starts = s->joined_starts;
    return s->n_joined;
}

int source_n_fields(const struct source *s)
{
    return s->n_fields;
}

const struct field *source_field(const struct source *s, int f)
{
    return &s->fields[f];
}

bool source_has_image(const struct source *s)
{
    return s->has_image;
}

bool source_reads_fields(const struct source *s)
{
    for (int f = 0; f < s->n_fields; f++)
        if (s->fields[f].column >= 0 && s->fields[f].what != STK_IMAGE)
            return true;
    return s->labels_missing;
}

static const struct source *source_at(const struct source *s, int64_t i)
{
    return s->ops->source_at ? s->ops->source_at(s, i) : s;
}

const struct field *source_field_at(const struct source *s, int64_t i, int f)
{
    return &source_at(s, i)->fields[f];
}

bool source_reads_fields_at(const struct source *s, int64_t i)
{
    return source_reads_fields(source_at(s, i));
}

const char *source_unshared_fields(const struct source *s)
{
    return s->unshared;
}

const char *source_unused_columns(const struct source *s)
{
    return s->unused_columns;
}

const struct blocks *source_blocks(const struct source *s)
{
    const struct blocks *b = s->ops->blocks ? s->ops->blocks(s) : NULL;
    return b && b->n > 0 ? b : NULL;
}

/* Whether there is a sample i; if not, its name becomes "". */
static bool exists(const struct source *s, int64_t i, char *buf, size_t n)
{
    const bool found = i >= 0 && i < s->count;
    if (!found && n)
        buf[0] = 0;
    return found;
}

size_t source_path(const struct source *s, int64_t i, char *buf, size_t n)
{
    return exists(s, i, buf, n) ? s->ops->path(s, i, buf, n) : 0;
}

size_t source_key(const struct source *s, int64_t i, char *buf, size_t n)
{
    return exists(s, i, buf, n) ? s->ops->key(s, i, buf, n) : 0;
}

const char *source_suffix(const struct source *s, int64_t i)
{
    return s->ops->suffix ? s->ops->suffix(s, i) : NULL;
}

bool source_has_keys(const struct source *s)
{
    return s->has_keys;
}

bool source_has_key_column(const struct source *s)
{
    return s->has_key_column;
}

bool source_keys_are_files(const struct source *s)
{
    return s->has_key_column && s->keys_are_files;
}

bool source_is_pack(const struct source *s)
{
    return s->is_pack;
}

bool source_is_label(const struct field *f)
{
    return f->label || (f->kind == FIELD_TENSOR && f->what == STK_INT && strcmp(f->name, "label") == 0);
}

int64_t source_label(const struct source *s, int64_t i)
{
    return s->ops->label(s, i);
}

int64_t source_bytes(const struct source *s, int64_t i)
{
    return s->ops->bytes(s, i);
}

void reading_done(struct reading *r)
{
    buf_done(&r->file);
    buf_done(&r->derived);
    buf_done(&r->masks);
    buf_done(&r->spare[0]);
    buf_done(&r->spare[1]);
    gunzip_free(r->gunzip);
    r->gunzip = NULL;
}

int source_read(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const int rc = s->ops->read(s, r, i, e);
    return rc == STK_OK && s->mask_files ? mask_files_read(s, r, i, e) : rc;
}

int source_peek(const struct source *s, struct reading *r, int64_t i, size_t n, stk_error *e)
{
    return s->ops->peek ? s->ops->peek(s, r, i, n, e) : s->ops->read(s, r, i, e);
}

bool source_file(const struct source *s, int64_t i, int *dir, char *path, size_t n)
{
    return s->ops->file && s->ops->file(s, i, dir, path, n);
}

bool source_extent(const struct source *s, int64_t i, bool direct, struct extent *out)
{
    return s->ops->extent && s->ops->extent(s, i, direct, out);
}

/* Whether the file system keeps its files in memory. */
static bool in_memory(int fd)
{
    const uint32_t tmpfs = 0x01021994, ramfs = 0x858458f6;
    struct statfs s;
    return fstatfs(fd, &s) == 0 && ((uint32_t)s.f_type == tmpfs || (uint32_t)s.f_type == ramfs);
}

/* Tries several samples, since some may be bad or in a compressed shard. */
enum source_access source_probe_access(const struct source *s)
{
    enum { TRIED = 32 };
    for (int64_t i = 0; i < s->count; i += s->count / TRIED + 1) {
        int dir;
        char path[PATH_MAX];
        struct extent x;
        if (source_file(s, i, &dir, path, sizeof path))
            return in_memory(dir) ? SOURCE_ACCESS_MEMORY : SOURCE_ACCESS_STORAGE;
        if (source_extent(s, i, false, &x))
            return in_memory(x.fd) ? SOURCE_ACCESS_MEMORY : SOURCE_ACCESS_STORAGE;
    }
    return SOURCE_ACCESS_NONE;
}

int source_read_from(const struct source *s, struct reading *r, int64_t i, const uint8_t *bytes, size_t n, stk_error *e)
{
    const int rc = s->ops->read_from(s, r, i, bytes, n, e);
    return rc == STK_OK && s->mask_files ? mask_files_read(s, r, i, e) : rc;
}

size_t source_read_bytes(const struct source *s, int64_t i)
{
    const int64_t bytes = s->ops->bytes(s, i);
    return bytes > 0 && bytes <= s->max_bytes ? (size_t)bytes + IO_SLACK : 0;
}

uint64_t source_identity(const struct source *s, int64_t i)
{
    return s->ops->identity ? s->ops->identity(s, i, NULL) : 0;
}

uint64_t source_identity_since(const struct source *s, int64_t i, size_t bytes, int64_t since)
{
    const struct source_read r = {bytes, since};
    return s->ops->identity ? s->ops->identity(s, i, &r) : 0;
}

const char *source_location(const struct source *s)
{
    return s->location;
}

int64_t source_count_identical(const struct source *s, int64_t i)
{
    return s->ops->count_identical ? s->ops->count_identical(s, i) : 1;
}

void source_prefetch(const struct source *s, int64_t i)
{
    if (s->ops->prefetch)
        s->ops->prefetch(s, i);
}

int source_copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    return s->ops->copy(s, r, i, f, to, e);
}

bool source_fills_rows(const struct source *s)
{
    return s->ops->fill_row != NULL;
}

int source_fill_row(const struct source *s, const stk_row *row, void *const *to, stk_error *e)
{
    return s->ops->fill_row(s, row, to, e);
}

void source_cache_dir(const char *option, char *buf, size_t n)
{
    index_cache_dir(option, buf, n);
}
