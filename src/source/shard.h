/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.h -- what the kinds of sources have in common, for the inside of source/.
 *
 * An opener (shard_*_open) fills the source that source_open made: ops, kind, count, fields,
 * classes, state. When it fails, ops->close takes what it left, if it had set ops.
 */
#ifndef SHARD_H
#define SHARD_H

#include "base/names.h"
#include "source/source.h"

/* What is known of bytes that were read: their number, and when they were not yet. */
struct source_read {
    size_t bytes;
    int64_t since;
};

struct source_ops {
    void (*close)(struct source *s);
    const struct source *(*of)(const struct source *s, int64_t i); /* NULL: all samples are its own */
    size_t (*path)(const struct source *s, int64_t i, char *buf, size_t n);
    size_t (*key)(const struct source *s, int64_t i, char *buf, size_t n);
    int64_t (*label)(const struct source *s, int64_t i);
    int64_t (*bytes)(const struct source *s, int64_t i);
    int (*read)(const struct source *s, struct reading *r, int64_t i, stk_error *e);
    int (*peek)(const struct source *s, struct reading *r, int64_t i, size_t n, stk_error *e); /* NULL: read */
    /* r: NULL where nothing was read. No function: samples have none. */
    uint64_t (*identity)(const struct source *s, int64_t i, const struct source_read *r);
    bool (*file)(const struct source *s, int64_t i, int *dir, char *path, size_t n);    /* NULL: no files */
    bool (*extent)(const struct source *s, int64_t i, bool direct, struct extent *out); /* NULL: no shards */
    /* NULL without both of these. */
    int (*lend)(const struct source *s, struct reading *r, int64_t i, const uint8_t *bytes, size_t n, stk_error *e);
    void (*near)(const struct source *s, int64_t i); /* NULL: nothing is in memory */
    int (*copy)(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e);
    int (*fill)(const struct source *s, const stk_row *row, void *const *to, stk_error *e); /* NULL: by fields */
    uint64_t (*fingerprint)(const struct source *s);
    const struct source_tally *(*tally)(const struct source *s);
    void (*memory)(const struct source *s, size_t *held, size_t *most); /* NULL: none */
    const char *(*class_name)(const struct source *s, int i);
    int64_t (*alike)(const struct source *s, int64_t i);    /* NULL: 1 */
    const struct blocks *(*blocks)(const struct source *s); /* NULL: samples may be had in any order */
};

struct source {
    const struct source_ops *ops;
    const char *kind;
    int64_t count;
    int64_t max_bytes;
    struct field fields[FIELD_MAX];
    int n_fields;
    struct names classes; /* those that were given */
    int n_classes;        /* those that there are */
    char *place;          /* NULL: nowhere */
    bool keyed, packed;   /* samples have keys of their own, as groups of files have; that packing gave them */
    bool pictured;        /* has a picture, also where fields leave it out */
    bool named, files;    /* keys are a column of the pack; they are names of files */
    bool gaps;            /* nothing is read but labels, which some samples lack: reading says so */
    void *state;          /* of the kind */
    const int64_t *parts; /* first samples of those joined, and the end; NULL: none */
    int n_parts;
    char *left_out; /* fields that not all of those joined have; NULL: none */
    char *spare;    /* columns of a list that nobody asked for; NULL: none */
};

enum source_form { SOURCE_FOLDER, SOURCE_CLASSES, SOURCE_FILES, SOURCE_FILE, SOURCE_LIST, SOURCE_CONTAINER };

int shard_dir_open(struct source *s, const struct source_options *o, const char *path, enum source_form form,
                   stk_error *e);
/* One image file: a source of one sample. */
int shard_file_open(struct source *s, const struct source_options *o, const char *path, stk_error *e);
int shard_list_open(struct source *s, const struct source_options *o, const char *path, stk_error *e);
/* A list whose lines are values and name no files. */
int shard_rows_open(struct source *s, const struct source_options *o, const char *path, int fd, stk_error *e);
int shard_array_open(struct source *s, const struct source_options *o, stk_error *e);
int shard_join_open(struct source *s, const struct source_options *o, stk_error *e);
int shard_cells_open(struct source *s, const struct source_options *o, stk_error *e); /* hooks with cells */
int shard_hooks_open(struct source *s, const struct source_options *o, stk_error *e);
int shard_hooks_count(const stk_source_hooks *h, int64_t *count, stk_error *e); /* refuses none */

/* Containers: their files in order, and what stood behind the ?, or NULL. */
int shard_tar_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                   stk_error *e);
bool shard_record_is(const uint8_t *p, size_t n);
int shard_record_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                      stk_error *e);
int shard_zip_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                   stk_error *e);
int shard_npy_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                   stk_error *e);
int shard_hdf5_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e);
int shard_npz_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                   stk_error *e);
int shard_raw_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                   stk_error *e);
int shard_text_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e);
int shard_tokens_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                      stk_error *e);

/* The usual fields: an encoded picture, and a label where there are labels. */
void shard_fields(struct source *s, bool labels);
/* "sample 17", for what has no files. */
size_t shard_path(const struct source *s, int64_t i, char *buf, size_t n);
/* Names as they were given. */
const char *shard_class(const struct source *s, int i);
/* The field that is the source's label; NULL: it is not asked for. */
const struct field *shard_label_field(const struct source *s);
/* A label as it is kept: what stands for LABEL_NONE, a sample that has none, is the field's, or -1. */
#define LABEL_NONE INT64_MIN
int64_t shard_label(const struct source *s, int64_t kept);
/* Asks r->allow, if there is one, for `held` bytes and so many copies of a file, before it is read. What is wrong with
 * the file io_read() reports. */
int shard_allow_file(const struct source *s, const struct reading *r, int dir, const char *path, size_t held,
                     int copies, stk_error *e);
/* Nothing was found beside the samples. */
const struct source_tally *shard_tally(const struct source *s);

#endif
