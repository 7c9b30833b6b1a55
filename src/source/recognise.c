/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recognise.c -- what a source's name stands for, by its prefix or by looking.
 *
 * Whatever cannot be read gets an error that says what it is and what can be read; a name that
 * does not exist, one that says what may have been meant.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/error.h"
#include "source/io.h"
#include "source/picture.h"
#include "source/shard.h"

static const char READ_HERE[] = "folders of pictures and lists (.txt .csv .tsv .jsonl) are";

/* ------------------------------------------------------------------ what is not read */

static const struct {
    const char *prefix, *what;
} foreign_prefixes[] = {
    {"tar:", "tar shards"},
    {"tfrecord:", "TFRecord files"},
    {"hdf5:", "HDF5 files"},
    {"npy:", "npy arrays in files"},
    {"npz:", "npz archives"},
    {"parquet:", "Parquet files"},
    {"pack:", "packs"},
    {"http://", "web addresses"},
    {"https://", "web addresses"},
    {"s3://", "object stores"},
    {"gs://", "object stores"},
};

static const struct {
    const char *suffix, *what;
} foreign_suffixes[] = {
    {".tar", "tar shards"},
    {".tar.gz", "tar shards"},
    {".tgz", "tar shards"},
    {".tfrecord", "TFRecord files"},
    {".tfrecords", "TFRecord files"},
    {".tfrec", "TFRecord files"},
    {".h5", "HDF5 files"},
    {".hdf5", "HDF5 files"},
    {".npy", "npy arrays in files"},
    {".npz", "npz archives"},
    {".parquet", "Parquet files"},
    {".arrow", "Arrow files"},
    {".zip", "zip archives"},
    {".json", "JSON documents that are not one object per line (.jsonl)"},
};

static const struct {
    const char *magic, *what;
    unsigned short n, at;
} foreign_magic[] = {
    {"ustar", "tar shards", 5, 257},
    {"\x89HDF\r\n\x1a\n", "HDF5 files", 8, 0},
    {"\x93NUMPY", "npy arrays in files", 6, 0},
    {"PK\3\4", "npz and zip archives", 4, 0},
    {"PAR1", "Parquet files", 4, 0},
    {"ARROW1", "Arrow files", 6, 0},
    {"\x1f\x8b", "compressed files", 2, 0},
    {"%PDF", "PDF documents", 4, 0},
};

static int not_read(const char *what, stk_error *e)
{
    return error_set(e, STK_EUSAGE, "open", "%s are not read by this version; %s", what, READ_HERE);
}

static bool ends_with(const char *s, const char *suffix)
{
    const size_t n = strlen(s), k = strlen(suffix);
    return n >= k && strcasecmp(s + n - k, suffix) == 0;
}

static const char *foreign_by_suffix(const char *path)
{
    for (size_t i = 0; i < sizeof foreign_suffixes / sizeof foreign_suffixes[0]; i++)
        if (ends_with(path, foreign_suffixes[i].suffix))
            return foreign_suffixes[i].what;
    return NULL;
}

static const char *foreign_by_magic(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < sizeof foreign_magic / sizeof foreign_magic[0]; i++) {
        const size_t at = foreign_magic[i].at, k = foreign_magic[i].n;
        if (n >= at + k && memcmp(p + at, foreign_magic[i].magic, k) == 0)
            return foreign_magic[i].what;
    }
    return NULL;
}

/* ------------------------------------------------------------------ what may have been meant */

static void collect(struct names *s, const char *folder)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        uint32_t ignored;
        if (entry->d_name[0] != '.' && names_add(s, entry->d_name, strlen(entry->d_name), &ignored) < 0)
            break;
    }
    if (dir)
        closedir(dir);
}

/* Goes up to the nearest folder that exists, and looks for a name like the one that is not in it. */
static int not_found(const char *path, stk_error *e)
{
    char above[PATH_MAX];
    size_t n = strlen(path);
    memcpy(above, path, n + 1);
    for (;;) {
        while (n > 1 && above[n - 1] == '/')
            above[--n] = 0;
        char *slash = strrchr(above, '/');
        const char *folder = !slash ? "." : slash == above ? "/" : above, *name = slash ? slash + 1 : above;
        if (slash)
            *slash = 0;
        struct stat st;
        if (stat(folder, &st) == 0 || folder != above) {
            struct names siblings = {0};
            collect(&siblings, folder);
            const char *near = names_nearest(&siblings, name);
            error_set(e, STK_ENOTFOUND, "open", "no such file or folder: there is no %.100s in %.200s%s%.100s%s", name,
                      folder, near ? "; is " : "", near ? near : "", near ? " meant?" : "");
            names_done(&siblings);
            return STK_ENOTFOUND;
        }
        n = strlen(above);
    }
}

/* ------------------------------------------------------------------ files */

static bool is_list_suffix(const char *path)
{
    return ends_with(path, ".txt") || ends_with(path, ".csv") || ends_with(path, ".tsv") || ends_with(path, ".jsonl") ||
           ends_with(path, ".ndjson");
}

/* Text in which a word ends like a picture. */
static bool looks_like_list(const char *p, size_t n)
{
    if (memchr(p, 0, n))
        return false;
    size_t begin = 0;
    for (size_t i = 0; i < n; i++) {
        if (!strchr(" \t\r\n,;\"", p[i]))
            continue;
        if (i > begin && picture_suffix(p + begin, i - begin))
            return true;
        begin = i + 1;
    }
    return n > begin && picture_suffix(p + begin, n - begin);
}

static int recognise_file(const char *path, stk_error *e)
{
    uint8_t first[4096];
    const ssize_t got = io_peek(AT_FDCWD, path, first, sizeof first);
    if (got < 0)
        return error_os(e, errno, "open", "cannot be read");
    const size_t n = (size_t)got;
    const char *foreign = foreign_by_magic(first, n);
    if (!foreign && !is_list_suffix(path))
        foreign = foreign_by_suffix(path);
    if (foreign)
        return not_read(foreign, e);
    if (picture_magic(first, n))
        return error_set(e, STK_EUSAGE, "open",
                         "is a single picture; give its folder, or a list (.txt .csv .tsv .jsonl) that names it");
    if (is_list_suffix(path) || looks_like_list((const char *)first, n))
        return STK_OK;
    return error_set(e, STK_EUSAGE, "open", "is not recognised; %s read", READ_HERE);
}

/* ------------------------------------------------------------------ names */

static const struct {
    const char *prefix;
    enum source_form form;
} prefixes[] = {{"folder:", SOURCE_CLASSES}, {"files:", SOURCE_FILES}, {"list:", SOURCE_LIST}};

static bool begins_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static const char *without_prefix(const char *source, enum source_form *form, bool *settled)
{
    *settled = false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (begins_with(source, prefixes[i].prefix)) {
            *form = prefixes[i].form;
            *settled = true;
            return source + strlen(prefixes[i].prefix);
        }
    return source;
}

static int look(const char *path, enum source_form *form, bool settled, stk_error *e)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return error_os(e, errno, "open", "cannot be opened");
        const char *foreign = strpbrk(path, "*?{") ? foreign_by_suffix(path) : NULL;
        return foreign ? not_read(foreign, e) : not_found(path, e);
    }
    const bool folder = S_ISDIR(st.st_mode);
    if (!folder && !S_ISREG(st.st_mode))
        return error_set(e, STK_EUSAGE, "open", "is neither a folder nor a file");
    if (settled && folder != (*form != SOURCE_LIST))
        return error_set(e, STK_EUSAGE, "open", "is a %s", folder ? "folder, not a list" : "file, not a folder");
    if (settled)
        return STK_OK;
    *form = folder ? SOURCE_FOLDER : SOURCE_LIST;
    return folder ? STK_OK : recognise_file(path, e);
}

int recognise(const char *source, enum source_form *form, const char **path, stk_error *e)
{
    bool settled;
    *path = source;
    for (size_t i = 0; i < sizeof foreign_prefixes / sizeof foreign_prefixes[0]; i++)
        if (begins_with(source, foreign_prefixes[i].prefix))
            return not_read(foreign_prefixes[i].what, e);
    *path = without_prefix(source, form, &settled);
    if ((*path)[0] == 0)
        return error_set(e, STK_EUSAGE, "open", "the source has an empty name");
    if (strlen(*path) >= PATH_MAX)
        return error_set(e, STK_EUSAGE, "open", "the source's name is longer than the system allows");
    return look(*path, form, settled, e);
}
