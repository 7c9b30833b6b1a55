/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_npz.c -- npz archives: zip archives of npy files, each a column.
 *
 *     npz:x.npz                                   all arrays
 *     npz:mnist.npz?image=x_train&label=y_train   some arrays, under these names
 *
 * The rows of an uncompressed array are read from the archive. A compressed array cannot be read at random, so opening
 * decompresses it into memory. All such arrays together must fit into max_bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/io.h"
#include "base/nearest_list.h"
#include "format/gunzip.h"
#include "format/zip.h"
#include "source/query.h"
#include "source/source_npy.h"

enum { STEP = 65536 };

struct archive {
    const char *path;
    int fd;
    struct buf lent; /* what peek() returned */
    struct zip zip;
    int n_taken;
    struct names all; /* all arrays, for error messages */
    int64_t *left;    /* bytes that may still be decompressed, for all archives */
};

/* ------------------------------------------------------------------ reading the archive */

static const uint8_t *peek(void *user, int64_t at, size_t n, size_t *got)
{
    struct archive *a = user;
    const ssize_t k = buf_reserve(&a->lent, n + 1) ? -1 : io_pread(a->fd, a->lent.data, n, at);
    *got = k < 0 ? 0 : (size_t)k;
    return a->lent.data;
}

static int begin(struct archive *a, const char *path, int64_t *left, stk_error *e)
{
    struct stat st;
    *a = (struct archive){.path = path, .fd = open(path, IO_OPEN_FLAGS), .left = left};
    if (a->fd < 0)
        return error_os(e, errno, "open", "cannot be opened");
    if (fstat(a->fd, &st) != 0)
        return error_os(e, errno, "open", "cannot be examined");
    if (!S_ISREG(st.st_mode))
        return error_set(e, STK_EUSAGE, "open", "is not a regular file; name the file itself");
    a->zip = (struct zip){.peek = peek, .user = a, .bytes = (int64_t)st.st_size};
    const char *reason = zip_begin(&a->zip);
    return reason ? error_set(e, STK_EUSAGE, "open", "%s", reason) : STK_OK;
}

static void end(struct archive *a)
{
    if (a->fd >= 0)
        close(a->fd);
    buf_done(&a->lent);
    names_done(&a->all);
}

/* ------------------------------------------------------------------ one member */

/* The name without .npy, as in NumPy; false: it is not an array. */
static bool stem(const struct zip_member *m, char *to, size_t room)
{
    if (m->n_name < 5 || m->n_name - 4 >= room || memcmp(m->name + m->n_name - 4, ".npy", 4) != 0)
        return false;
    memcpy(to, m->name, m->n_name - 4);
    to[m->n_name - 4] = 0;
    return true;
}

/* The name of its column; false: the query does not ask for it. */
static bool wanted(const char *query, const char *name, char *as)
{
    char value[QUERY_TEXT];
    for (int i = 0; query_at(query, i, as, value); i++)
        if (strcmp(value, name) == 0)
            return true;
    snprintf(as, QUERY_TEXT, "%s", name);
    return !query;
}

/* Decompresses into out, which has room for one byte more than expected. */
static enum gunzip_state decompress(struct archive *a, const struct zip_member *m, uint8_t *out)
{
    struct gunzip *z = gunzip_new(GUNZIP_DEFLATE);
    enum gunzip_state state = z ? GUNZIP_MORE : GUNZIP_NOMEM;
    size_t room = (size_t)m->raw + 1;
    uint8_t *to = out;
    for (int64_t done = 0; state == GUNZIP_MORE && room > 0 && done < m->bytes;) {
        size_t n = m->bytes - done < STEP ? (size_t)(m->bytes - done) : STEP;
        done += (int64_t)n;
        const uint8_t *p = peek(a, m->at + done - (int64_t)n, n, &n);
        state = gunzip_run(z, &p, &n, &to, &room);
    }
    gunzip_free(z);
    if (state != GUNZIP_END)
        return state;
    return room == 1 && crc32_choose(STK_CPU_DEFAULT)->of(out, (size_t)m->raw) == m->crc ? GUNZIP_END : GUNZIP_BAD;
}

static int load(struct archive *a, const struct zip_member *m, const char *name, uint8_t **out, stk_error *e)
{
    if (!gunzip_here())
        return error_set(e, STK_EUSAGE, "open", "%.100s is compressed, and this build has no zlib", name);
    if (m->raw > *a->left)
        return error_set(
            e, STK_EUSAGE, "open",
            "%.100s is compressed and needs %lld bytes of memory, more than the %lld that max_bytes allows; "
            "raise max_bytes, or write it with np.savez",
            name, (long long)m->raw, (long long)*a->left);
    *a->left -= m->raw;
    uint8_t *all = malloc((size_t)m->raw + 1);
    if (!all)
        return error_nomem(e, "open", (size_t)m->raw);
    const enum gunzip_state state = decompress(a, m, all);
    if (state != GUNZIP_END) {
        free(all);
        return state == GUNZIP_NOMEM
                   ? error_nomem(e, "open", STEP)
                   : error_set(e, STK_EUSAGE, "open", "%.100s is damaged and cannot be decompressed", name);
    }
    *out = all;
    return STK_OK;
}

/* Parses its header, from memory or from the archive, and describes its rows. */
static int rows_of(struct archive *a, const struct zip_member *m, const uint8_t *memory, const char *name,
                   struct npy *h, struct rows_array *rows, stk_error *e)
{
    const char *why = NULL;
    size_t n = m->raw < NPY_HEAD ? (size_t)m->raw : NPY_HEAD;
    const uint8_t *p = memory ? memory : peek(a, m->at, n, &n);
    if (npy_parse(p, n, (uint64_t)m->raw, h, &why) != 0)
        return error_set(e, STK_EUSAGE, "open", "%.100s: %s; choose other arrays, as in npz:x.npz?image=a&label=b",
                         name, why);
    const int rc = source_npy_rows(h, rows, e);
    rows->at += memory ? 0 : m->at;
    return rc;
}

static int take(struct source *s, struct archive *a, struct zip_member *m, const char *name, const char *as,
                stk_error *e)
{
    struct npy h;
    struct rows_array rows;
    uint8_t *memory = NULL;
    if (!m->reason)
        zip_locate(&a->zip, m);
    if (m->reason)
        return error_set(e, STK_EUSAGE, "open", "%.100s: %s", name, m->reason);
    int rc = m->deflated ? load(a, m, name, &memory, e) : STK_OK;
    if (rc == STK_OK)
        rc = rows_of(a, m, memory, name, &h, &rows, e);
    if (rc == STK_OK) {
        rows.name = as;
        rows.path = a->path;
        rows.memory = memory;
        rc = rows_add(s, &rows, e);
    }
    if (rc != STK_OK)
        free(memory);
    return rc;
}

/* ------------------------------------------------------------------ all members */

/* Every array that the query names must exist. */
static int check_named(const struct archive *a, const char *query, stk_error *e)
{
    char as[QUERY_TEXT], name[QUERY_TEXT];
    uint32_t ignored;
    for (int i = 0; query_at(query, i, as, name); i++) {
        if (names_find(&a->all, name, strlen(name), &ignored))
            continue;
        struct nearest_list all = {.like.word = name};
        for (uint32_t k = 0; k < a->all.n; k++)
            nearest_list_add(&all, names_at(&a->all, k));
        return nearest_list_error(&all, "has no", "array", e);
    }
    return a->n_taken ? STK_OK : error_set(e, STK_EUSAGE, "open", "contains no arrays");
}

static int add_archive(struct source *s, const char *path, const char *query, int64_t *left, stk_error *e)
{
    struct archive a;
    struct zip_member m;
    char name[QUERY_TEXT], as[QUERY_TEXT];
    uint32_t ignored;
    int rc = begin(&a, path, left, e);
    while (rc == STK_OK && zip_next(&a.zip, &m)) {
        if (m.n_name == 0 && m.reason)
            rc = error_set(e, STK_EUSAGE, "open", "%s", m.reason);
        else if (!stem(&m, name, sizeof name))
            continue;
        else if (names_add(&a.all, name, strlen(name), &ignored) < 0)
            rc = error_nomem(e, "open", strlen(name));
        else if (wanted(query, name, as)) {
            rc = take(s, &a, &m, name, as, e);
            a.n_taken++;
        }
    }
    if (rc == STK_OK)
        rc = check_named(&a, query, e);
    end(&a);
    if (rc != STK_OK)
        error_at(e, path, -1);
    return rc;
}

int source_npz_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e)
{
    int64_t left = s->max_bytes;
    int rc = query_check(query, NULL, e);
    if (rc == STK_OK)
        rc = rows_open(s, "npz archives", "row", e);
    for (uint32_t i = 0; i < paths->n && rc == STK_OK; i++)
        rc = add_archive(s, names_at(paths, i), query, &left, e);
    return rc == STK_OK ? rows_finish(s, o, e) : rc;
}
