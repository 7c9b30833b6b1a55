/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c -- writes the files of tar shards below a folder.
 *
 * Each shard is unpacked by one thread. The files of a pack get their original names (pack/keys.h), and a label that is
 * also the name of the folder is not written to a file. A DCT image becomes a JPEG with the same coefficients. A shard
 * that is compressed as a whole is read as a stream, one file at a time in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "decode/dct_image.h"
#include "decode/decode.h"
#include "format/stream.h"
#include "format/tar.h"
#include "loader.h"
#include "pack/keys.h"
#include "pack/place.h"
#include "source/recognise.h"

struct unpacking {
    stk_unpack_options o;
    struct recognised *from;
    int dir;
    pthread_mutex_t lock; /* protects the rest */
    stk_pack_report report;
    bool stopped;
    int rc; /* of the first error; an error of the machine comes before one of the data */
    stk_error error;
};

/* One shard. */
struct archive {
    struct unpacking *all;
    int fd;
    int64_t bytes;
    struct stream_cache *cache; /* if it is compressed as a whole, else NULL */
    struct stream *stream;
    stk_error broken;  /* the error of the stream, or zeroed */
    struct buf window; /* for headers */
    struct buf file;   /* from the stream, or a DCT image */
    struct buf jpeg;   /* made from it */
    struct buf name, key;
    bool first; /* the file is the first with its key */
};

static const uint8_t *peek(void *user, int64_t at, size_t n, size_t *got)
{
    struct archive *a = user;
    *got = 0;
    if (a->stream) {
        if (buf_reserve(&a->window, n) == 0 &&
            stream_read(a->stream, a->fd, a->window.data, n, at, got, &a->broken) != STK_OK && a->broken.code == 0)
            a->broken.code = STK_EDATA;
        return a->window.data;
    }
    *got = at >= a->bytes ? 0 : (int64_t)n > a->bytes - at ? (size_t)(a->bytes - at) : n;
    if (buf_reserve(&a->window, n) || !file_read_at(a->fd, a->window.data, *got, at))
        *got = 0;
    return a->window.data;
}

/* ------------------------------------------------------------------ names */

/* Where the dot after the key is, or n if there is none. */
static size_t key_bytes(const char *name, size_t n)
{
    const char *slash = memrchr(name, '/', n), *base = slash ? slash + 1 : name;
    const char *dot = memchr(base, '.', n - (size_t)(base - name));
    return dot ? (size_t)(dot - name) : n;
}

static bool is_dct(struct archive *a, const struct tar_member *m)
{
    size_t got;
    if (m->n_name < 4 || memcmp(m->name + m->n_name - 4, ".dct", 4) != 0)
        return false;
    const uint8_t *first = peek(a, m->at, DCT_FILE_HEAD, &got);
    return dct_image_is_file(first, got);
}

/* Sets a->name to the name of the file that is written; "jpg" replaces the suffix of a DCT image. Non-zero: out of
 * memory. */
static int find_name(struct archive *a, const struct tar_member *m, bool dct)
{
    const char *name = m->name, *suffix = dct ? "jpg" : "";
    size_t n = m->n_name - strlen(suffix);
    for (; n > 2 && name[0] == '.' && name[1] == '/'; n -= 2)
        name += 2;
    a->name.len = 0;
    const size_t k = key_bytes(name, n);
    if (!a->all->from->is_pack || k == n)
        return buf_add(&a->name, name, n) || buf_add_str(&a->name, suffix) || buf_add(&a->name, "", 1);
    a->first = a->key.len != k || memcmp(a->key.data, name, k) != 0;
    a->key.len = 0;
    char field[256];
    snprintf(field, sizeof field, "%.*s%s", (int)(n - k - 1), name + k + 1, suffix);
    if (buf_add(&a->key, name, k) || buf_add(&a->key, "", 1))
        return -1;
    a->key.len--;
    return keys_name((const char *)a->key.data, field, a->first, &a->name);
}

/* Whether this is a label file, such as cat/1.cls, whose class is also the name of its folder. */
static bool is_folder_label(struct archive *a, const struct tar_member *m)
{
    char text[24] = "";
    size_t got;
    const struct names *classes = &a->all->from->classes;
    const size_t k = key_bytes(m->name, m->n_name);
    if (!a->all->from->is_pack || m->n_name - k != 4 || memcmp(m->name + k, ".cls", 4) != 0 || m->bytes < 1 ||
        m->bytes >= (int64_t)sizeof text)
        return false;
    const uint8_t *content = peek(a, m->at, (size_t)m->bytes, &got);
    memcpy(text, content, got);
    char *end;
    const unsigned long long label = strtoull(text, &end, 10);
    if (*end || label >= classes->n)
        return false;
    const char *class = names_at(classes, (uint32_t)label);
    const size_t n = strlen(class);
    return a->name.len > n && memcmp(a->name.data, class, n) == 0 && a->name.data[n] == '/';
}

/* ------------------------------------------------------------------ files */

/* Reports the outcome for a file. False: stop. */
static bool report(struct unpacking *u, const char *name, int64_t bytes, int rc, const stk_error *e)
{
    pthread_mutex_lock(&u->lock);
    u->report.samples += rc == STK_OK;
    u->report.bad += rc != STK_OK;
    u->report.bytes_out += rc == STK_OK ? bytes : 0;
    if (rc != STK_OK && (u->rc == STK_OK || (u->rc == STK_EDATA && rc != STK_EDATA))) {
        u->rc = rc;
        u->error = *e;
    }
    if (u->o.each && u->o.each(u->o.user, name, rc == STK_OK ? NULL : e->reason, bytes))
        u->stopped = true;
    /* A full or broken disk ends the run. A name that cannot be written does not. */
    u->stopped |= rc != STK_OK && rc != STK_EDATA && e->os_error != EEXIST && e->os_error != ELOOP &&
                  e->os_error != ENOTDIR && e->os_error != ENAMETOOLONG;
    const bool on = !u->stopped;
    pthread_mutex_unlock(&u->lock);
    return on;
}

static int cut_off(stk_error *e)
{
    return error_set(e, STK_EDATA, "unpack", "is cut off: the archive ends inside this file");
}

/* Reads a file of a stream into memory. */
static int take_file(struct archive *a, const struct tar_member *m, struct content *c, stk_error *e)
{
    enum { MOST = 1 << 30 };
    const size_t n = (size_t)m->bytes;
    size_t got = 0;
    if (m->bytes > MOST)
        return error_set(e, STK_EDATA, "unpack",
                         "has %" PRId64
                         " bytes, more than the limit of 1 GiB for files in compressed archives; decompress the "
                         "archive with gunzip or unzstd first",
                         m->bytes);
    if (buf_reserve(&a->file, n + 1))
        return error_nomem(e, "unpack", n);
    const int rc = stream_read(a->stream, a->fd, a->file.data, n, m->at, &got, e);
    *c = (struct content){.bytes = a->file.data, .n = m->bytes};
    return rc == STK_OK && got < n ? cut_off(e) : rc;
}

/* Turns a DCT image into a JPEG with the same coefficients. */
static int take_jpeg(struct archive *a, struct content *c, stk_error *e)
{
    const size_t n = (size_t)c->n;
    if (!c->bytes && buf_reserve(&a->file, n))
        return error_nomem(e, "unpack", n);
    if (!c->bytes && !file_read_at(c->fd, a->file.data, n, c->at))
        return error_os(e, errno, "unpack", "cannot read");
    a->jpeg.len = 0;
    const int rc = decode_dct_file_to_jpeg(a->file.data, n, &a->jpeg, e);
    *c = (struct content){.bytes = a->jpeg.data, .n = (int64_t)a->jpeg.len};
    return rc;
}

static bool unpack_file(struct archive *a, const struct tar_member *m)
{
    stk_error e = {0};
    const bool dct = is_dct(a, m);
    if (find_name(a, m, dct))
        return report(a->all, "", 0, error_nomem(&e, "unpack", m->n_name), &e);
    if (is_folder_label(a, m))
        return true;
    struct content c = {.fd = a->fd, .at = m->at, .n = m->bytes};
    const char *name = (const char *)a->name.data;
    int rc = STK_OK;
    if (a->stream)
        rc = take_file(a, m, &c, &e);
    else if (m->at > a->bytes || m->bytes > a->bytes - m->at)
        rc = cut_off(&e);
    if (rc == STK_OK && dct)
        rc = take_jpeg(a, &c, &e);
    if (rc == STK_OK)
        rc = place_file(a->all->dir, name, &c, a->all->o.force != 0, &e);
    return report(a->all, name, c.n, rc, &e);
}

static bool unpack_bad(struct archive *a, const struct tar_member *m, const char *shard)
{
    stk_error e = {0};
    const int rc = error_set(&e, STK_EDATA, "unpack", "%s, at byte %" PRId64, m->reason, m->header);
    error_at(&e, shard, -1);
    return report(a->all, shard, 0, rc, &e);
}

static void unpack_archive(struct archive *a, const char *shard)
{
    struct tar t = {.peek = peek, .user = a, .bytes = a->bytes};
    struct tar_member m;
    enum tar_found found = TAR_FILE;
    stk_error e = {0};
    for (bool on = true; on && (found = tar_next(&t, &m)) != TAR_END && found != TAR_NOMEM;) {
        if (found == TAR_FILE)
            on = unpack_file(a, &m);
        else if (found == TAR_BAD)
            on = unpack_bad(a, &m, shard);
    }
    if (found == TAR_NOMEM)
        report(a->all, shard, 0, error_nomem(&e, "unpack", 0), &e);
    else if (a->broken.code)
        report(a->all, shard, 0, a->broken.code, &a->broken);
    tar_done(&t);
}

static int open_stream(struct archive *a, stk_error *e)
{
    uint8_t first[STREAM_FIRST];
    const enum stream_form form = a->bytes >= STREAM_FIRST && file_read_at(a->fd, first, sizeof first, 0)
                                      ? stream_form_of(first, sizeof first)
                                      : STREAM_PLAIN;
    if (form == STREAM_PLAIN)
        return STK_OK;
    if (stream_missing(form))
        return error_set(e, STK_EBUILD, "unpack", "is compressed, but this build lacks %s", stream_missing(form));
    a->bytes = INT64_MAX;
    a->cache = stream_cache_new(64 << 20, STREAM_WORK_MOST);
    a->stream = a->cache ? stream_new(a->cache, form, true) : NULL;
    return a->stream ? STK_OK : error_nomem(e, "unpack", 64 << 20);
}

static void unpack_shard(void *user, int64_t i)
{
    struct unpacking *u = user;
    const char *shard = names_at(&u->from->paths, (uint32_t)i);
    struct archive a = {.all = u,
                        .fd = open(shard, O_RDONLY | O_NONBLOCK | O_CLOEXEC)}; /* O_NONBLOCK: it might be a FIFO */
    struct stat st;
    stk_error e = {0};
    pthread_mutex_lock(&u->lock);
    const bool stopped = u->stopped;
    pthread_mutex_unlock(&u->lock);
    if (a.fd < 0 || fstat(a.fd, &st)) {
        const int rc = error_os(&e, errno, "unpack", "cannot open");
        error_at(&e, shard, -1);
        report(u, shard, 0, rc, &e);
    } else if (!S_ISREG(st.st_mode)) {
        const int rc = error_set(&e, STK_EUSAGE, "unpack", "is not a regular file");
        error_at(&e, shard, -1);
        report(u, shard, 0, rc, &e);
    } else if (!stopped) {
        a.bytes = st.st_size;
        const int rc = open_stream(&a, &e);
        if (rc == STK_OK)
            unpack_archive(&a, shard);
        else
            report(u, shard, 0, rc, &e);
    }
    stream_free(a.stream);
    stream_cache_free(a.cache);
    buf_done(&a.file);
    buf_done(&a.jpeg);
    if (a.fd >= 0)
        close(a.fd);
    buf_done(&a.window);
    buf_done(&a.name);
    buf_done(&a.key);
}

/* ------------------------------------------------------------------ all of it */

static int find_shards(const char *pack, struct recognised *r, stk_error *e)
{
    int rc = recognise(pack, r, e);
    if (rc == STK_OK && (r->form != SOURCE_CONTAINER || strcmp(r->container->prefix, "tar:") != 0))
        rc = error_set(e, STK_EUSAGE, "unpack",
                       "contains no tar shards; to write the files of any source, use `stoker pack %s OUT --to folder`",
                       pack);
    if (rc != STK_OK)
        error_at(e, r->path, -1);
    return rc;
}

static int open_target(struct unpacking *u, stk_error *e)
{
    if (!u->o.out || !u->o.out[0])
        return error_set(e, STK_EUSAGE, "unpack", "there is no output folder: set `out`");
    bool made;
    u->dir = place_root(u->o.out, &made);
    if (u->dir >= 0)
        return STK_OK;
    const int rc = error_os(e, errno, "unpack", "cannot create or open the folder");
    error_at(e, u->o.out, -1);
    return rc;
}

static int unpack(struct unpacking *u, stk_error *e)
{
    struct machine m;
    machine_look(&m);
    int rc = open_target(u, e);
    if (rc != STK_OK)
        return rc;
    place_sweep(u->dir, PLACE_OLD_S);
    pool_for(u->o.threads > 0 ? u->o.threads : machine_threads(&m), u->from->paths.n, unpack_shard, u);
    close(u->dir);
    if (u->rc != STK_OK && e)
        *e = u->error;
    if (u->rc == STK_OK && u->stopped)
        return error_set(e, STK_STOPPED, "unpack", "stopped");
    return u->rc;
}

int stk_unpack_sized(const char *pack, const stk_unpack_options *o, size_t o_size, stk_pack_report *r, size_t r_size,
                     stk_error *e)
{
    struct recognised from = {0};
    struct unpacking u = {.from = &from, .dir = -1};
    const uint64_t began = now_ns();
    if (!pack || !o)
        return error_set(e, STK_EUSAGE, "unpack", "there is nothing to unpack, or there are no options: pass both");
    int rc = options_copy(&u.o, sizeof u.o, o, o_size, e);
    if (rc != STK_OK)
        return rc;
    pthread_mutex_init(&u.lock, NULL);
    rc = find_shards(pack, &from, e);
    if (rc == STK_OK)
        rc = unpack(&u, e);
    u.report.shards = from.paths.n;
    u.report.seconds = (double)(now_ns() - began) / 1e9;
    recognised_done(&from);
    pthread_mutex_destroy(&u.lock);
    if (r) {
        memset(r, 0, r_size);
        memcpy(r, &u.report, r_size < sizeof u.report ? r_size : sizeof u.report);
    }
    return rc;
}
