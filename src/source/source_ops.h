/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_ops.h -- what all kinds of sources share, inside source/.
 *
 * An opener (source_*_open) fills the source that source_open allocated: ops, kind, count, fields, classes, state. If
 * it fails after it set ops, ops->close frees what it left.
 */
#ifndef SOURCE_OPS_H
#define SOURCE_OPS_H

#include <stdatomic.h>

#include "base/names.h"
#include "source/source.h"

/* Bytes that were read earlier: how many, and a time before the read. */
struct source_read {
    size_t bytes;
    int64_t since;
};

struct source_ops {
    void (*close)(struct source *s);
    const struct source *(*source_at)(const struct source *s, int64_t i); /* NULL: s is not joined */
    size_t (*path)(const struct source *s, int64_t i, char *buf, size_t n);
    size_t (*key)(const struct source *s, int64_t i, char *buf, size_t n);
    const char *(*suffix)(const struct source *s, int64_t i); /* NULL: none */
    int64_t (*label)(const struct source *s, int64_t i);
    int64_t (*bytes)(const struct source *s, int64_t i);
    int (*read)(const struct source *s, struct reading *r, int64_t i, stk_error *e);
    int (*peek)(const struct source *s, struct reading *r, int64_t i, size_t n, stk_error *e); /* NULL: read */
    /* r is NULL if nothing was read. NULL: samples have no identity. */
    uint64_t (*identity)(const struct source *s, int64_t i, const struct source_read *r);
    bool (*file)(const struct source *s, int64_t i, int *dir, char *path, size_t n);    /* NULL: no files */
    bool (*extent)(const struct source *s, int64_t i, bool direct, struct extent *out); /* NULL: no shards */
    /* Required if file or extent is set. */
    int (*read_from)(const struct source *s, struct reading *r, int64_t i, const uint8_t *bytes, size_t n,
                     stk_error *e);
    void (*prefetch)(const struct source *s, int64_t i); /* NULL: not in memory */
    int (*copy)(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e);
    int (*fill_row)(const struct source *s, const stk_row *row, void *const *to, stk_error *e); /* NULL: by fields */
    uint64_t (*fingerprint)(const struct source *s);
    const struct source_tally *(*tally)(const struct source *s);
    void (*memory)(const struct source *s, size_t *held, size_t *most); /* NULL: none */
    const char *(*class_name)(const struct source *s, int i);
    int64_t (*count_identical)(const struct source *s, int64_t i); /* NULL: 1 */
    const struct blocks *(*blocks)(const struct source *s);        /* NULL: any order is as good */
};

struct source {
    atomic_int refs;
    const struct source_ops *ops;
    const char *kind;
    int64_t count;
    int64_t max_bytes;
    struct field fields[FIELD_MAX];
    int n_fields;
    struct names classes; /* given by the caller */
    int n_classes;        /* given or found */
    char *location;       /* NULL: none */
    bool has_keys;        /* keys name groups of files */
    bool is_pack;
    bool has_key_column; /* of a pack: keys are a column */
    bool keys_are_files; /* of a pack: keys are file names */
    bool has_image;      /* even if `fields` leaves it out */
    bool labels_missing; /* the label of some samples is known only after reading */
    bool mask_files;     /* a field has the path of a mask */
    void *state;         /* of the kind */
    const int64_t *joined_starts;
    int n_joined;
    char *unshared;       /* fields that not all joined sources have; NULL: none */
    char *unused_columns; /* of a list; NULL: none */
};

enum source_form { SOURCE_FOLDER, SOURCE_CLASSES, SOURCE_FILES, SOURCE_FILE, SOURCE_LIST, SOURCE_CONTAINER };

int source_dir_open(struct source *s, const struct source_options *o, const char *path, enum source_form form,
                    stk_error *e);
/* A single image file. */
int source_file_open(struct source *s, const struct source_options *o, const char *path, stk_error *e);
int source_list_open(struct source *s, const struct source_options *o, const char *path, stk_error *e);
/* A list whose rows contain values and no paths. */
int source_table_open(struct source *s, const struct source_options *o, const char *path, int fd, stk_error *e);
int source_array_open(struct source *s, const struct source_options *o, stk_error *e);
int source_join_open(struct source *s, const struct source_options *o, stk_error *e);
int source_read_open(struct source *s, const struct source_options *o, stk_error *e);  /* read_hooks */
int source_fill_open(struct source *s, const struct source_options *o, stk_error *e);  /* fill_hooks */
int source_cells_open(struct source *s, const struct source_options *o, stk_error *e); /* cells_hooks */
/* Fails unless the count() of hooks returned at least 1. */
int source_hooks_count(int64_t count, stk_error *e);

/* Openers of containers get the files in order, and the text after the ? or NULL. */
int source_tar_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e);
bool source_tfrecord_is(const uint8_t *p, size_t n); /* whether a file starts with a TFRecord */
int source_tfrecord_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                         stk_error *e);
bool source_coco_is(const uint8_t *p, size_t n); /* whether a file starts like annotations in COCO's format */
int source_coco_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                     stk_error *e);
/* Folders of images with annotations, and whether a folder is one. */
bool source_voc_is(const char *folder);
int source_voc_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e);
bool source_yolo_is(const char *folder);
int source_yolo_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                     stk_error *e);
bool source_pairs_is(const char *folder);
int source_pairs_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                      stk_error *e);
bool source_cityscapes_is(const char *folder);
int source_cityscapes_open(struct source *s, const struct source_options *o, const struct names *paths,
                           const char *query, stk_error *e);
int source_zip_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e);
int source_npy_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e);
int source_hdf5_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                     stk_error *e);
int source_npz_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e);
int source_raw_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e);
int source_text_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                     stk_error *e);
int source_tokens_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                       stk_error *e);

/* ------------------------------------------------------------------ shared implementations of source_ops */

/* Sets the default fields: an encoded image and, if labels is true, a label. */
void source_default_fields(struct source *s, bool labels);
/* "sample 17", for sources without files. */
size_t source_numbered_path(const struct source *s, int64_t i, char *buf, size_t n);
const char *source_given_class(const struct source *s, int i);
/* -1, for sources that know a label or a size only after reading. */
int64_t source_unknown(const struct source *s, int64_t i);
/* The field that is the source's label; NULL: it was not asked for. */
const struct field *source_label_field(const struct source *s);
/* A stored label. LABEL_NONE becomes the label field's default, or -1 without one. */
#define LABEL_NONE INT64_MIN
int64_t source_label_or_default(const struct source *s, int64_t stored);
/* Asks r->allow, if it is set, for `held` bytes and `copies` copies of a file before the file is read. io_read()
 * reports any error of the file itself. */
int source_allow_file(const struct source *s, const struct reading *r, int dir, const char *path, size_t held,
                      int copies, stk_error *e);
/* Copies n encoded bytes of the caller into r->file, followed by IO_SLACK zeros. name: the field, or NULL. */
int source_keep_bytes(const struct source *s, struct reading *r, const char *name, const void *bytes, size_t n,
                      stk_error *e);
/* A tally of zeros. */
const struct source_tally *source_empty_tally(const struct source *s);

#endif
