/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h -- samples that lie inside larger files (shards): members of a tar, TFRecords, lines of text.
 *
 * A format is a table of functions (struct record_format) in its own shard_*.c. It says where the samples of a shard
 * lie (scan: one pass, shards in parallel), which columns they have (look), and what a sample's bytes mean (parse).
 * shard_records.c makes a source of it: index, its cache, random access, errors.
 *
 * A sample has parts, at most one of each name: the members of a group in a tar ("jpg", "cls"), the payload of a
 * TFRecord (""). The index of all samples is one block of memory, and its file is that block:
 *
 *     head | shards[n_shards] | parts[n * n_parts] | extra[n * n_parts]? | label[n]? | key_at[n + 1]?
 *          | part_name_at[n_parts] | class_at[n_classes] | notes | pool
 */
#ifndef RECORDS_H
#define RECORDS_H

#include "format/stream.h"
#include "source/columns.h"
#include "source/shard.h"

enum { RECORD_PARTS = 64 };

/* Where a part lies in its shard. bytes is PART_NONE: the sample has no such part; below it: the sample is bad. */
struct part {
    int64_t at, bytes;
};
enum { PART_NONE = -1 };

/* What a format wants to know again when it reads the part: raw size and checksum, say. */
struct part_extra {
    uint64_t a, b;
};

/* ------------------------------------------------------------------ scanning */

/* One shard while it is scanned, by one thread. What is found is kept for runs with other options: so no sample is too
 * large here, but only where it is read. */
struct record_scan {
    const char *path;
    int64_t bytes; /* of the shard; INT64_MAX where that is not known before its end: it is a compressed stream */
    struct record_window *window;
    struct record_list *list;
};

/* n bytes from `at`, lent until the next call; fewer only at the end of the shard, or after an error, which
 * record_failed tells. In a compressed stream going back by more than what the last call lent is slow; one that is
 * damaged ends there, which becomes a bad sample behind the others. What lies between is not read where it need not
 * be. n should be at most RECORD_PEEK: so much memory is taken. */
enum { RECORD_PEEK = 1 << 20 };
const uint8_t *record_peek(struct record_scan *sc, int64_t at, size_t n, size_t *got);
bool record_failed(const struct record_scan *sc, stk_error *e);

/* What follows returns 0, or -1: no memory. */
/* Begins a sample; key NULL: it is called by its number in the shard. */
int record_begin(struct record_scan *sc, const char *key, size_t n);
/* A part of the sample that was begun last; one of the same name takes the place of an earlier one. extra may be NULL.
 */
int record_part(struct record_scan *sc, const char *name, size_t n, struct part p, const struct part_extra *extra);
/* The label of the sample that was begun last, where scanning tells it: a whole number as text, or the name of a class.
 */
int record_label(struct record_scan *sc, const char *text, size_t n);
/* What the format wants to know of the shard when columns are looked for. */
int record_note(struct record_scan *sc, const void *p, size_t n);
/* The sample that was begun last is bad: whoever reads it is told why. What is broken between samples is such a sample,
 * too, so that nothing is passed over in silence. */
int record_bad(struct record_scan *sc, int64_t at, const char *reason);

/* ------------------------------------------------------------------ what a format brings */

/* A sample as it was read. */
struct record {
    int64_t sample;
    const char *shard;
    struct {
        const uint8_t *bytes; /* followed by IO_SLACK zeros; NULL: it has none of that name */
        size_t n;
        int64_t at;
        struct part_extra extra;
    } parts[RECORD_PARTS];
};

struct record_format {
    const char *kind;   /* "tar shards" */
    uint32_t number;    /* of the index's file: another one is made anew. Changes when scan does */
    bool extra, labels; /* parts have an extra; labels come from scanning */
    bool groups;        /* samples are groups of files: see records_groups */
    /* How a shard that begins so is packed as a whole; NULL: as gzip or zstd, by their marks. */
    enum stream_form (*packed)(const uint8_t *first, size_t n);
    /* Adds the samples of one shard. What is wrong inside of it is a bad sample; an error is a shard that cannot be
     * read at all. */
    int (*scan)(struct record_scan *sc, stk_error *e);
    /* Joins the notes of another shard to those of the shards before it; 0, or -1: no memory. NULL: there are none. */
    int (*join)(struct buf *all, const uint8_t *one, size_t n);
    /* Adds the columns, from the notes or by looking at some samples (records_read). NULL: every part is a column,
     * known by its name. */
    int (*look)(const struct source *s, struct columns *c, stk_error *e);
    /* Once the fields are bound: makes what parse needs beside the sample, from malloc. NULL: nothing. */
    int (*ready)(const struct source *s, const struct columns *c, void **state, stk_error *e);
    /* Makes of the parts what they stand for, in r->made, before they are taken for anything; NULL: they are as they
     * lie. */
    int (*unpack)(const struct source *s, struct reading *r, struct record *rec, stk_error *e);
    /* Fills r->cells[f] for every field f of s with a column, out of the parts; NULL: part p is column p. From many
     * threads; r->made is for what has to be made, and lives as long as the cells. */
    int (*parse)(const struct source *s, struct reading *r, const struct record *rec, stk_error *e);
};

/* Opens shards as one source, in this order. */
int shard_records_open(struct source *s, const struct source_options *o, const struct record_format *f,
                       const struct names *paths, stk_error *e);
/* Reads all parts of a sample into r->file. */
int records_read(const struct source *s, struct reading *r, int64_t i, struct record *out, stk_error *e);
const void *records_state(const struct source *s); /* what ready made */
int records_n_parts(const struct source *s);
const uint8_t *records_notes(const struct source *s, size_t *n);
const char *records_part_name(const struct source *s, int p);

#endif
