/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recognise.c -- finds out what kind of source a name refers to, by its prefix or its content.
 *
 * If a source cannot be read, the error says what it is and what can be read. If a name does not exist, the error
 * suggests a similar one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/image_file.h"
#include "base/io.h"
#include "format/stream.h"
#include "source/recognise.h"

static const char SUPPORTED[] =
    "Stoker reads images, folders of images, lists (.txt .csv .tsv .jsonl) and containers (docs/formats.md)";

/* ------------------------------------------------------------------ containers */

/* In the order in which they are tried. */
static const struct container containers[] = {
    {.prefix = "tar:",
     .what = "tar shards",
     .suffixes = {".tar", ".tgz", ".tzst"},
     .compressible = true,
     .magic = "ustar",
     .magic_bytes = 5,
     .magic_at = 257,
     .open = source_tar_open},
    {.prefix = "tfrecord:",
     .what = "TFRecord files",
     .suffixes = {".tfrecord", ".tfrecords", ".tfrec", ".tfrecord.gz", ".tfrecords.gz"},
     .is = source_tfrecord_is,
     .compressible = true,
     .open = source_tfrecord_open},
    {
        .prefix = "hdf5:",
        .what = "HDF5 files",
        .suffixes = {".h5", ".hdf5", ".hdf"},
        .magic = "\x89HDF\r\n\x1a\n",
        .magic_bytes = 8,
        .open = source_hdf5_open,
    },
    {.prefix = "npy:",
     .what = "npy files",
     .suffixes = {".npy"},
     .magic = "\x93NUMPY",
     .magic_bytes = 6,
     .open = source_npy_open},
    {.prefix = "npz:", .what = "npz archives", .suffixes = {".npz"}, .open = source_npz_open},
    {.prefix = "zip:",
     .what = "zip archives",
     .suffixes = {".zip"},
     .magic = "PK\3\4",
     .magic_bytes = 4,
     .open = source_zip_open},
    {.prefix = "coco:", .what = "COCO annotations", .is = source_coco_is, .open = source_coco_open},
    {.prefix = "voc:", .what = "folders in VOC's format", .is_folder = source_voc_is, .open = source_voc_open},
    {.prefix = "cityscapes:",
     .what = "Cityscapes' folders",
     .is_folder = source_cityscapes_is,
     .open = source_cityscapes_open},
    {.prefix = "pairs:",
     .what = "folders of images and masks",
     .is_folder = source_pairs_is,
     .open = source_pairs_open},
    {.prefix = "yolo:",
     .what = "folders in YOLO's format",
     .suffixes = {".yaml", ".yml"},
     .is_folder = source_yolo_is,
     .open = source_yolo_open},
    {.prefix = "raw:", .what = "raw binary files", .open = source_raw_open},
    {.prefix = "tokens:", .what = "token files", .open = source_tokens_open},
    {.prefix = "text:", .what = "lines of text", .compressible = true, .open = source_text_open},
    {.prefix = "parquet:", .what = "Parquet files", .suffixes = {".parquet"}, .magic = "PAR1", .magic_bytes = 4},
    {.prefix = "arrow:", .what = "Arrow files", .suffixes = {".arrow"}, .magic = "ARROW1", .magic_bytes = 6},
};
enum { N_CONTAINERS = sizeof containers / sizeof containers[0] };

static bool begins_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *s, const char *suffix)
{
    const size_t n = strlen(s), k = strlen(suffix);
    return n >= k && strcasecmp(s + n - k, suffix) == 0;
}

static const struct container *by_prefix(const char *source)
{
    for (size_t i = 0; i < N_CONTAINERS; i++)
        if (begins_with(source, containers[i].prefix))
            return &containers[i];
    return NULL;
}

static size_t without_digits(const char *s, size_t n)
{
    while (n > 0 && s[n - 1] >= '0' && s[n - 1] <= '9')
        n--;
    return n;
}

/* The length of a name without the suffix "-00003-of-00128" of a numbered shard. */
static size_t without_number(const char *s)
{
    const size_t n = strlen(s), of = without_digits(s, n);
    if (of == n || of < 4 || memcmp(s + of - 4, "-of-", 4) != 0)
        return n;
    const size_t dash = without_digits(s, of - 4);
    return dash < of - 4 && dash > 0 && s[dash - 1] == '-' ? dash - 1 : n;
}

/* The length of a name without ".gz" or ".zst". */
static size_t without_compression(const char *path)
{
    const size_t n = strlen(path);
    return ends_with(path, ".gz") ? n - 3 : ends_with(path, ".zst") ? n - 4 : n;
}

const struct container *container_find(const char *prefix)
{
    const struct container *c = by_prefix(prefix);
    return c && strcmp(c->prefix, prefix) == 0 ? c : NULL;
}

const struct container *container_by_suffix(const char *path)
{
    const size_t plain = without_compression(path), n = path[plain] ? plain : without_number(path);
    for (size_t i = 0; i < N_CONTAINERS; i++)
        for (const char *const *suffix = containers[i].suffixes; *suffix; suffix++) {
            const size_t k = strlen(*suffix);
            if (n >= k && strncasecmp(path + n - k, *suffix, k) == 0 && (containers[i].compressible || !path[plain]))
                return &containers[i];
        }
    return NULL;
}

static const struct container *by_magic(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < N_CONTAINERS; i++) {
        const struct container *c = &containers[i];
        if (c->magic && n >= (size_t)c->magic_at + c->magic_bytes &&
            memcmp(p + c->magic_at, c->magic, c->magic_bytes) == 0)
            return c;
        if (c->is && c->is(p, n))
            return c;
    }
    return NULL;
}

static int not_read(const char *what, stk_error *e)
{
    return error_set(e, STK_EUSAGE, "open", "%s are not supported; %s", what, SUPPORTED);
}

/* Expands the path into the files of container c. */
static int take_container(struct recognised *r, const struct container *c, stk_error *e)
{
    r->form = SOURCE_CONTAINER;
    r->container = c;
    if (!c->open)
        return error_set(e, STK_EUSAGE, "open", "%s are read only from Python, with pyarrow: stoker.Loader(\"%.200s\")",
                         c->what, r->path);
    return pattern_files(r->path, &r->paths, e);
}

/* ------------------------------------------------------------------ unsupported files */

static const struct {
    const char *prefix, *what;
} foreign_prefixes[] = {
    {"http://", "web addresses"},
    {"https://", "web addresses"},
    {"s3://", "object stores"},
    {"gs://", "object stores"},
};

static const struct {
    const char *begins, *what;
    unsigned short n;
} foreign_magic[] = {
    {"%PDF", "PDF documents", 4},
    {"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", "ArrayRecord files (Grain's)", 8},
    {"BZh", "files compressed with bzip2", 3},
    {"\xfd"
     "7zXZ",
     "files compressed with xz", 5},
    {"7z\xbc\xaf", "7z archives", 4},
    {"Rar!", "rar archives", 4},
};

/* Their suffixes say more than their first bytes: files of torch start like zip archives. */
static const struct {
    const char *suffix, *what;
} foreign_suffixes[] = {
    {".json", "JSON documents that are neither COCO annotations nor one object per line (.jsonl)"},
    {".beton", "FFCV's files"},
    {".mds", "MosaicML's shards"},
    {".mdb", "LMDB databases"},
    {".lmdb", "LMDB databases"},
    {".rec", "MXNet's RecordIO files"},
    {".pt", "torch's saved objects"},
    {".pth", "torch's saved objects"},
    {".pkl", "pickles"},
    {".pickle", "pickles"},
};

static const char *foreign(const char *path, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < sizeof foreign_magic / sizeof foreign_magic[0]; i++)
        if (n >= foreign_magic[i].n && memcmp(p, foreign_magic[i].begins, foreign_magic[i].n) == 0)
            return foreign_magic[i].what;
    for (size_t i = 0; i < sizeof foreign_suffixes / sizeof foreign_suffixes[0]; i++)
        if (ends_with(path, foreign_suffixes[i].suffix))
            return foreign_suffixes[i].what;
    return NULL;
}

/* ------------------------------------------------------------------ suggestions */

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

/* A hint on prefixes, if the path looks as if it had one. */
static const char *prefix_hint(const char *path)
{
    const size_t word = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789");
    if (word > 1 && path[word] == ':')
        return "; the prefixes are folder: files: list: tar: zip: tfrecord: hdf5: npy: npz: coco: voc: yolo: pairs: "
               "cityscapes: raw: "
               "tokens: text:";
    return "";
}

/* Finds the nearest folder that exists, and suggests a name in it. */
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
            struct nearest near = {.word = name};
            names_nearest(&siblings, &near);
            error_set(e, STK_ENOTFOUND, "open", "no such file or folder: there is no %.100s in %.200s%s%s", name,
                      folder, prefix_hint(path), nearest_hint(&near));
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

/* Whether a word of the text has the suffix of an image. */
static bool looks_like_list(const char *p, size_t n)
{
    if (memchr(p, 0, n))
        return false;
    size_t begin = 0;
    for (size_t i = 0; i < n; i++) {
        if (!strchr(" \t\r\n,;\"", p[i]))
            continue;
        if (i > begin && image_file_suffix(p + begin, i - begin))
            return true;
        begin = i + 1;
    }
    return n > begin && image_file_suffix(p + begin, n - begin);
}

static bool looks_like_text(const uint8_t *p, size_t n)
{
    return n > 0 && !memchr(p, 0, n);
}

/* The suffix takes precedence over the first bytes, because npz archives start like zip archives. */
static int recognise_file(struct recognised *r, stk_error *e)
{
    uint8_t first[4096];
    const ssize_t got = io_peek(AT_FDCWD, r->path, first, sizeof first);
    if (got < 0)
        return error_os(e, errno, "open", "cannot be read");
    const bool compressed = stream_form_of(first, (size_t)got) != STREAM_PLAIN;
    const size_t n = compressed ? stream_first(r->path, first, sizeof first) : (size_t)got;
    const struct container *c = container_by_suffix(r->path);
    if (!c && ends_with(r->path, ".json") && source_coco_is(first, n))
        c = by_prefix("coco:");
    const char *what = c ? NULL : foreign(r->path, first, n);
    if (what)
        return not_read(what, e);
    if (!c)
        c = by_magic(first, n);
    if (!c && compressed && looks_like_text(first, n) && strstr(r->path, ".txt."))
        c = by_prefix("text:");
    if (c && (c->compressible || !compressed))
        return take_container(r, c, e);
    if (compressed)
        return not_read("compressed files of this kind", e);
    if (image_file_magic(first, n) || image_file_suffix(r->path, strlen(r->path))) {
        r->form = SOURCE_FILE;
        return STK_OK;
    }
    r->form = SOURCE_LIST;
    const bool list = looks_like_list((const char *)first, n);
    if (!list && looks_like_text(first, n) && ends_with(r->path, ".txt"))
        return take_container(r, by_prefix("text:"), e);
    if (list || is_list_suffix(r->path))
        return STK_OK;
    return error_set(e, STK_EUSAGE, "open",
                     "is not recognised; %s, and numbers without a header as raw:FILE?dtype=uint8&shape=32,32,3 or "
                     "tokens:FILE?dtype=uint16&length=1024",
                     SUPPORTED);
}

/* ------------------------------------------------------------------ names */

static const struct {
    const char *prefix;
    enum source_form form;
} prefixes[] = {{"folder:", SOURCE_CLASSES}, {"files:", SOURCE_FILES}, {"list:", SOURCE_LIST}};

static const char *without_prefix(const char *source, enum source_form *form, bool *decided)
{
    *decided = false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (begins_with(source, prefixes[i].prefix)) {
            *form = prefixes[i].form;
            *decided = true;
            return source + strlen(prefixes[i].prefix);
        }
    return source;
}

/* The path does not exist: perhaps it is a pattern. Its first file decides what it is. */
static int recognise_pattern(struct recognised *r, stk_error *e)
{
    struct names files = {0};
    const char *mark = strrchr(r->path, '?');
    if (!pattern_is(r->path))
        return not_found(r->path, e);
    if (mark && strchr(mark, '='))
        return error_set(e, STK_ENOTFOUND, "open",
                         "does not exist; if the text after the ? is a query, add the prefix of the format, as in "
                         "hdf5:x.h5%.100s",
                         mark);
    int rc = pattern_files(r->path, &files, e);
    const char *pattern = r->path;
    if (rc == STK_OK) {
        r->path = names_at(&files, 0);
        struct stat st;
        rc = stat(r->path, &st) != 0 ? not_found(r->path, e) : recognise_file(r, e);
        r->path = pattern;
    }
    names_done(&files);
    if (rc != STK_OK)
        return rc;
    if (r->form != SOURCE_CONTAINER)
        return error_set(e, STK_EUSAGE, "open",
                         "only containers can be named by a pattern; name images, lists and folders one by one");
    names_done(&r->paths);
    r->paths = (struct names){0};
    return pattern_files(r->path, &r->paths, e);
}

/* A folder with annotations, or any other. */
static int recognise_folder(struct recognised *r, stk_error *e)
{
    for (size_t i = 0; i < N_CONTAINERS; i++)
        if (containers[i].is_folder && containers[i].is_folder(r->path)) {
            uint32_t ignored;
            r->form = SOURCE_CONTAINER;
            r->container = &containers[i];
            return names_add(&r->paths, r->path, strlen(r->path), &ignored) < 0 ? error_nomem(e, "open", PATH_MAX)
                                                                                : STK_OK;
        }
    return STK_OK;
}

static int recognise_path(struct recognised *r, bool decided, stk_error *e)
{
    struct stat st;
    if (stat(r->path, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return error_os(e, errno, "open", "cannot be opened");
        return recognise_pattern(r, e);
    }
    const bool folder = S_ISDIR(st.st_mode);
    if (!folder && !S_ISREG(st.st_mode))
        return error_set(e, STK_EUSAGE, "open", "is neither a folder nor a regular file");
    if (decided && folder != (r->form != SOURCE_LIST))
        return error_set(e, STK_EUSAGE, "open", "is a %s", folder ? "folder, not a list" : "file, not a folder");
    if (decided)
        return STK_OK;
    r->form = SOURCE_FOLDER;
    if (folder && pack_folder_is(r->path))
        return pack_folder_read(r, e);
    return folder ? recognise_folder(r, e) : recognise_file(r, e);
}

/* Handles "tar:x?y". r->path becomes x, in memory of r. */
static int recognise_prefixed(struct recognised *r, const struct container *c, stk_error *e)
{
    const char *mark = strrchr(r->path, '?');
    if (mark && strchr(mark, '=')) {
        r->own = strndup(r->path, (size_t)(mark - r->path));
        r->query = strdup(mark + 1);
        if (!r->own || !r->query)
            return error_nomem(e, "open", strlen(r->path));
        r->path = r->own;
    }
    const int rc = take_container(r, c, e);
    for (uint32_t i = 0; rc == STK_OK && i < r->paths.n; i++) {
        struct stat st;
        if (stat(names_at(&r->paths, i), &st) != 0)
            return errno == ENOENT || errno == ENOTDIR ? not_found(names_at(&r->paths, i), e)
                                                       : error_os(e, errno, "open", "cannot be opened");
    }
    return rc;
}

int recognise(const char *source, struct recognised *r, stk_error *e)
{
    bool decided = false;
    *r = (struct recognised){.path = source};
    for (size_t i = 0; i < sizeof foreign_prefixes / sizeof foreign_prefixes[0]; i++)
        if (begins_with(source, foreign_prefixes[i].prefix))
            return not_read(foreign_prefixes[i].what, e);
    const struct container *c = by_prefix(source);
    r->path = c ? source + strlen(c->prefix) : without_prefix(source, &r->form, &decided);
    if (r->path[0] == 0)
        return error_set(e, STK_EUSAGE, "open", "the source has an empty name");
    if (strlen(r->path) >= PATH_MAX)
        return error_set(e, STK_EUSAGE, "open", "the name of the source is longer than the system allows");
    return c ? recognise_prefixed(r, c, e) : recognise_path(r, decided, e);
}

void recognised_done(struct recognised *r)
{
    names_done(&r->paths);
    names_done(&r->classes);
    free(r->query);
    free(r->fields);
    free(r->own);
    *r = (struct recognised){0};
}
