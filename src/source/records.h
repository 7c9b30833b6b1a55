/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h -- samples inside larger files (shards): groups of files in a tar, TFRecords, lines of text.
 *
 * A format is a table of functions (struct record_format) in its own source_*.c. It finds the samples of a shard (scan:
 * one pass, shards in parallel), their columns (find_columns), and the meaning of a sample's bytes (parse).
 * source_records.c turns it into a source: index, its cache, random access, errors.
 *
 * A sample has parts, at most one of each name: the files of a group in a tar ("jpg", "cls"), or the payload of a
 * TFRecord (""). The index of all samples is one block of memory, and its cache file is a copy of the block:
 *
 *     head | shards[n_shards] | parts[n * n_parts] | extra[n * n_parts]? | label[n]? | key_at[n]?
 *          | part_name_at[n_parts] | class_at[n_classes] | survey | pool
 */
#ifndef RECORDS_H
#define RECORDS_H

#include "format/stream.h"
#include "source/columns.h"
#include "source/source_ops.h"

enum { RECORD_PARTS = 64 };

/* The position of a part in its shard. bytes == PART_NONE: the sample has no such part; bytes < PART_NONE: the sample
 * is bad. */
struct part {
    int64_t at, bytes;
};
enum { PART_NONE = -1 };

/* What a format stores during the scan for reading the part later, such as decompressed size and checksum. */
struct part_extra {
    uint64_t a, b;
};

/* ------------------------------------------------------------------ scanning */

/* One shard while one thread scans it. The result is cached for runs with other options, so scanning ignores max_bytes;
 * reading checks it. */
struct record_scan {
    const char *path;
    int64_t bytes; /* of the shard; INT64_MAX for a compressed stream, whose length is unknown before its end */
    struct records_window *window;
    struct record_list *list;
};

/* Returns n bytes from `at`, valid until the next call. *got is less than n only at the end of the shard, or after an
 * error that record_failed reports. Skipped bytes are not read if possible. n should be at most RECORD_PEEK, since it
 * is allocated. In a compressed stream, going back before the bytes of the last call is slow. A damaged stream ends at
 * the damage, and a bad sample is added after the others. */
enum { RECORD_PEEK = 1 << 20 };
const uint8_t *record_peek(struct record_scan *sc, int64_t at, size_t n, size_t *got);
bool record_failed(const struct record_scan *sc, stk_error *e);

/* These return 0, or -1: out of memory. */
/* Starts a sample. Without a key (NULL) it is named by its index in the shard. */
int record_begin(struct record_scan *sc, const char *key, size_t n);
/* Adds a part to the current sample; it replaces a part of the same name. extra may be NULL. */
int record_part(struct record_scan *sc, const char *name, size_t n, struct part p, const struct part_extra *extra);
/* Sets how the current sample spells the suffix of its image ("JPG"); only the first call for a sample counts. */
int record_spelling(struct record_scan *sc, const char *suffix, size_t n);
/* Sets the label of the current sample, if scanning finds it: an integer as text, or the name of a class. */
int record_label(struct record_scan *sc, const char *text, size_t n);
/* Stores what find_columns needs to know about the shard. */
int record_survey(struct record_scan *sc, const void *p, size_t n);
/* Marks the current sample as bad; reading it fails with this reason. Damage between samples also becomes a bad sample,
 * so that it is never skipped silently. */
int record_bad(struct record_scan *sc, int64_t at, const char *reason);

/* ------------------------------------------------------------------ what a format provides */

/* A sample after it was read. */
struct record {
    int64_t sample;
    const char *shard;
    struct {
        const uint8_t *bytes; /* followed by IO_SLACK zeros; NULL: the sample has no such part */
        size_t n;
        int64_t at;
        struct part_extra extra;
    } parts[RECORD_PARTS];
};

struct record_format {
    const char *kind;   /* "tar shards" */
    uint32_t id;        /* stored in the index; must change whenever scan changes, so that old indexes are rebuilt */
    bool extra, labels; /* parts have an extra; scanning finds labels */
    bool groups;        /* samples are groups of files: see records_groups() */
    /* Detects from its first bytes how a whole shard is compressed; NULL: gzip or zstd, by signature. */
    enum stream_form (*compression)(const uint8_t *first, size_t n);
    /* Adds the samples of one shard. Damage inside becomes a bad sample. Fails only if the shard cannot be read at
     * all. */
    int (*scan)(struct record_scan *sc, stk_error *e);
    /* Adds the survey of another shard to that of all shards before it. Returns 0, or -1: out of memory. NULL: there
     * are no surveys. */
    int (*join)(struct buf *all, const uint8_t *one, size_t n);
    /* Adds the columns, from the survey or from some samples (records_read). NULL: every part is a column, and its name
     * determines the kind. */
    int (*find_columns)(const struct source *s, struct columns *c, stk_error *e);
    /* Called when the fields are known: allocates with malloc what parse needs. NULL: nothing. */
    int (*prepare)(const struct source *s, const struct columns *c, void **state, stk_error *e);
    /* Decompresses the parts into r->derived. NULL: they are stored uncompressed. */
    int (*decompress)(const struct source *s, struct reading *r, struct record *rec, stk_error *e);
    /* Fills r->cells[f] from the parts, for every field f of s that has a column. Called from several threads. Cells
     * may point into r->derived. NULL: part p is column p. */
    int (*parse)(const struct source *s, struct reading *r, const struct record *rec, stk_error *e);
};

/* Opens shards, in this order, as one source. */
int source_records_open(struct source *s, const struct source_options *o, const struct record_format *f,
                        const struct names *paths, stk_error *e);
/* Reads all parts of a sample into r->file. */
int records_read(const struct source *s, struct reading *r, int64_t i, struct record *out, stk_error *e);
const void *records_state(const struct source *s); /* what prepare allocated */
int records_n_parts(const struct source *s);
const uint8_t *records_survey(const struct source *s, size_t *n);
const char *records_part_name(const struct source *s, int p);

#endif
