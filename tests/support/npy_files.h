/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy_files.h -- NumPy's files, made for tests below the temporary folder.
 */
#ifndef NPY_FILES_H
#define NPY_FILES_H

#include "source/source.h"
#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

/* shape as Python prints it: "(2, 3)". */
static inline size_t npy_bytes(uint8_t *to, const char *descr, const char *fortran, const char *shape, const void *data,
                               size_t n)
{
    char header[256];
    const int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, fortran, shape);
    memcpy(to, "\x93NUMPY\1\0", 8);
    to[8] = (uint8_t)length;
    to[9] = 0;
    memcpy(to + 10, header, (size_t)length);
    memcpy(to + 10 + length, data, n);
    return 10 + (size_t)length + n;
}

static inline void npy_file(const char *below, const char *descr, const char *fortran, const char *shape,
                            const void *data, size_t n)
{
    uint8_t file[4096];
    temp_bytes(below, file, npy_bytes(file, descr, fortran, shape, data, n));
}

/* "npy:%s?label=y.npy" with the path of the file. */
static inline struct source *open_named(const char *format, const char *below, const struct source_options *more)
{
    char name[PATH_MAX + 256];
    struct source *s = NULL;
    struct source_options o = more ? *more : (struct source_options){0};
    snprintf(name, sizeof name, "%.*s%s%s", (int)strcspn(format, "%"), format, temp_path(below),
             format + strcspn(format, "%") + 1);
    o.path = name;
    o.cache_dir = "off";
    memset(&error, 0, sizeof error);
    source_open(&s, &o, &error);
    return s;
}

static inline void refused(const char *format, const char *below, const char *words)
{
    struct source *s = open_named(format, below, NULL);
    CHECK(s == NULL);
    CHECK_SAYS(error.text, words);
    source_close(s);
}

#endif
