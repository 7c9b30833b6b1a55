/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_set.h -- HDF5 files as samples with columns.
 *
 * Either samples are rows, of all datasets with the same first dimension; or samples are groups, each with the same
 * datasets. What follows the ? of the source's name says more:
 *
 *     group=train           only what is below it; names of columns begin there
 *     samples=groups        or rows, where that is in doubt
 *     image=photos&label=y  only these datasets, under these names
 *
 * A dataset of structures is a column a member: dataset.member.
 */
#ifndef HDF5_SET_H
#define HDF5_SET_H

#include "format/hdf5_listed.h"
#include "source/columns.h"
#include "source/shard.h"

enum { HDF5_COLUMNS = 256 };

/* One file. */
struct hdf5_file {
    char *path;
    struct hdf5_view view;
    int64_t group;            /* that is looked at */
    int64_t first, count;     /* samples */
    struct hdf5_names groups; /* that are the samples */
    /* Of rows, one a column; of groups, one a sample and column, and without a dimension where there is none. */
    struct hdf5_array *arrays;
    size_t n_arrays;
};

struct hdf5_set {
    bool groups;          /* samples are groups */
    char group[1024 + 1]; /* that is looked at; "" or ended by / */
    bool named;           /* columns were named */
    struct names names;   /* of the datasets, by column */
    struct columns columns;
    struct hdf5_file *files;
    int n_files;
    int64_t count, ignored;
    struct hdf5_rows *rows;
    size_t work; /* bytes that unpacking a chunk may take while the files are opened */
};

/* How much reading a value may take: of the value, and for unpacking. */
struct hdf5_ask {
    int64_t max_bytes;
    size_t unpack;
};

/* Opens all files, and says what the columns are. What it leaves is closed by hdf5_set_done. */
int hdf5_set_open(struct hdf5_set *t, const struct source_options *o, const struct names *paths, const char *query,
                  stk_error *e);
void hdf5_set_done(struct hdf5_set *t);

const struct hdf5_file *hdf5_set_file(const struct hdf5_set *t, int64_t i);
/* The array that column c of sample i is a row of, and which row. NULL: the sample has none. */
const struct hdf5_array *hdf5_set_array(const struct hdf5_set *t, int64_t i, int c, int64_t *row);
/* What column c of sample i is: bytes, or numbers, in b, with IO_SLACK zeros behind them; *p NULL: it has none. NULL,
 * or what is wrong; HDF5_COSTS is of that. */
const char *hdf5_set_value(const struct hdf5_set *t, int64_t i, int c, const struct hdf5_ask *ask, struct buf *b,
                           const uint8_t **p, size_t *n);
/* The same for a picture: what a row is padded with is not read where it need not be. */
const char *hdf5_set_picture(const struct hdf5_set *t, int64_t i, int c, const struct hdf5_ask *ask, struct buf *b,
                             const uint8_t **p, size_t *n);
/* The bytes of it, as far as they are told without reading it. */
int64_t hdf5_set_bytes(const struct hdf5_set *t, int64_t i, int c, size_t unpack);

/* hdf5_find.c: settles what samples are, and the columns, by the first file: groups, names, and names of columns. */
int hdf5_find(struct hdf5_set *t, struct hdf5_file *f, const struct source_options *o, const char *query, stk_error *e);
/* The group of another file, and the groups in it, that are its samples. */
int hdf5_find_group(const struct hdf5_set *t, struct hdf5_file *f, stk_error *e);
/* What a dataset is likely to be, by its name and form. */
bool hdf5_is_text(const struct hdf5_array *a);
bool hdf5_is_label(const struct hdf5_array *a, const char *name);
bool hdf5_is_pixels(const struct hdf5_array *a, const char *name);
bool hdf5_may_be_encoded(const struct hdf5_array *a);

#endif
