/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_table.h -- HDF5 files as a table of samples and columns.
 *
 * Samples are either rows of all datasets with the same first dimension, or groups that contain the same datasets. The
 * text after the ? in the source's name says more:
 *
 *     group=train           only this group; column names are relative to it
 *     samples=groups        or rows, if both are possible
 *     image=photos&label=y  only these datasets, under these names
 *
 * Each member of a compound dataset is a column: dataset.member.
 */
#ifndef HDF5_TABLE_H
#define HDF5_TABLE_H

#include "format/hdf5_listed.h"
#include "source/columns.h"
#include "source/source_ops.h"

enum { HDF5_COLUMNS = 256 };

struct hdf5_file {
    char *path;
    struct hdf5_view view;
    int64_t group;            /* the group that is read */
    int64_t first, count;     /* samples */
    struct hdf5_names groups; /* the samples, if those are groups */
    /* For rows one per column. For groups one per sample and column, with 0 dimensions if the sample lacks it. */
    struct hdf5_array *arrays;
    size_t n_arrays;
};

struct hdf5_table {
    bool groups;          /* samples are groups */
    char group[1024 + 1]; /* the group that is read: "" or ends with / */
    bool named;           /* the query names the columns */
    struct names names;   /* the datasets, by column */
    struct columns columns;
    struct hdf5_file *files;
    int n_files;
    int64_t count, ignored;
    struct hdf5_rows *rows;
    size_t work; /* bytes that decompressing a chunk may use while the files are opened */
};

/* How many bytes reading may use: for the value, and for decompressing it. */
struct hdf5_limits {
    int64_t max_bytes;
    size_t work;
};

/* Opens all files and finds the columns. hdf5_table_done closes them, even after a failure. */
int hdf5_table_open(struct hdf5_table *t, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e);
void hdf5_table_done(struct hdf5_table *t);

const struct hdf5_file *hdf5_table_file(const struct hdf5_table *t, int64_t i);
/* The array that contains column c of sample i, and the row. NULL: the sample has no such value. */
const struct hdf5_array *hdf5_table_array(const struct hdf5_table *t, int64_t i, int c, int64_t *row);
/* Reads column c of sample i, bytes or numbers, into b, followed by IO_SLACK zeros. *p is NULL if the sample has no
 * such value. Returns NULL, or what is wrong, such as HDF5_COSTS. */
const char *hdf5_table_value(const struct hdf5_table *t, int64_t i, int c, const struct hdf5_limits *limits,
                             struct buf *b, const uint8_t **p, size_t *n);
/* The same for an encoded image; avoids reading the padding of the row. */
const char *hdf5_table_image(const struct hdf5_table *t, int64_t i, int c, const struct hdf5_limits *limits,
                             struct buf *b, const uint8_t **p, size_t *n);
/* The size of the value, if it is known without reading it; -1: unknown. */
int64_t hdf5_table_bytes(const struct hdf5_table *t, int64_t i, int c, size_t work);
/* Sets an error of column c. */
int hdf5_table_fail(const struct hdf5_table *t, int c, const char *why, stk_error *e);

/* hdf5_find.c: decides from the first file whether samples are groups, and which columns they have. */
int hdf5_find(struct hdf5_table *t, struct hdf5_file *f, const struct source_options *o, const char *query,
              stk_error *e);
/* Finds the group in another file, and the groups in it if those are the samples. */
int hdf5_find_group(const struct hdf5_table *t, struct hdf5_file *f, stk_error *e);
/* Guesses from name, type and shape of a dataset. */
bool hdf5_is_text(const struct hdf5_array *a);
bool hdf5_is_label(const struct hdf5_array *a, const char *name);
bool hdf5_is_pixels(const struct hdf5_array *a, const char *name);
bool hdf5_may_be_encoded(const struct hdf5_array *a);

#endif
