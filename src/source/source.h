/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h -- which samples there are, and their bytes.
 *
 * A source is opened once and then only read, from any thread. It is recognised by looking: a
 * folder, a list file; arrays in memory and hooks are given. Each kind is a table of functions
 * (struct source_ops) in its own shard_*.c.
 */
#ifndef SOURCE_H
#define SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sample.h"

struct blocks;
struct gunzip;
struct source;

struct source_options {
    const char *path; /* or one of the next two */
    const stk_array *arrays;
    int n_arrays;
    const stk_source_hooks *hooks;
    const char *const *paths; /* several, joined */
    int n_paths;
    const char *const *classes; /* NULL: as found */
    int n_classes;
    int threads;            /* for scanning */
    const char *cache_dir;  /* as in stk_options */
    const char *fields;     /* as in stk_options; NULL: all */
    const char *const *own; /* of path, or of each of paths: its own fields, of which `fields` choose; NULL: none */
    bool all_columns;       /* also of a list of files, of which it is else the picture and the label */
    bool index_beside;      /* as in stk_options */
    const char *beside;     /* of a folder that was packed: its fields, which lie in files beside the pictures */
    int64_t max_bytes;      /* of one file; a larger one is a bad sample; 0: no limit */
    int64_t memory;         /* of which a share may be held for what is packed; 0: no limit */
};

/* What was found beside the samples. */
struct source_tally {
    int64_t ignored_hidden, ignored_other, ignored_loops, unreadable, empty_classes, missing;
    int64_t beside; /* of ignored_other: pictures that lie beside class folders */
    int64_t bytes;
    bool index_cached;
    double index_s;
    int64_t index_bytes;
};

int source_open(struct source **out, const struct source_options *o, stk_error *e);
void source_close(struct source *s); /* also NULL */

const char *source_kind(const struct source *s); /* "folder of classes", ... */
int64_t source_count(const struct source *s);
/* Fingerprint (relative path, size, label of every sample) and tally need the size of every file: whoever asks first
 * has all of them looked at, by all threads, since a cached index may be older than a file. Opening and reading do
 * without. */
uint64_t source_fingerprint(const struct source *s);
const struct source_tally *source_tally(const struct source *s);
/* Bytes that are held for what was unpacked and for unpacking, beside readings: now, and at most. */
void source_memory(const struct source *s, size_t *held, size_t *most);
int source_n_classes(const struct source *s);
const char *source_class(const struct source *s, int i);

/* Where sources were joined, fields that not all of them have, with words; NULL: none. */
const char *source_left_out(const struct source *s);
/* Columns of a list that are there on request, where nothing was asked for; NULL: none. */
const char *source_spare(const struct source *s);
/* How many sources were joined to this one, 0: none; *first: where the samples of each begin, and the end. */
int source_parts(const struct source *s, const int64_t **first);

/* The fields of every sample: the picture first, then "label", when there are any. */
int source_n_fields(const struct source *s);
const struct field *source_field(const struct source *s, int f);
/* The same as the source has it that sample i is of: of several that were joined, each reads in its own way. */
const struct field *source_field_at(const struct source *s, int64_t i, int f);
bool source_is_label(const struct field *f); /* one that the source knows, or a column of its own (column >= 0) */
bool source_reads_at(const struct source *s, int64_t i);
/* All of them in the form of stk_options.fields; the length as snprintf. */
size_t source_fields_text(const struct source *s, char *buf, size_t n);
bool source_pictured(const struct source *s); /* has a picture, also where `fields` leave it out */
bool source_reads(const struct source *s);    /* what there is besides the picture comes with source_read */

/* Stretches of samples to be had one after the other, since they lie in files that are packed as a whole; NULL: the
 * order is all one. */
const struct blocks *source_blocks(const struct source *s);

/* Path of a sample as the user would type it, or "sample 17" where there are no files; returns
 * the length as snprintf does. */
size_t source_path(const struct source *s, int64_t i, char *buf, size_t n);
/* The path below the source's own folder, the key of the sample. */
size_t source_key(const struct source *s, int64_t i, char *buf, size_t n);
/* Whether samples have keys of their own, and fields behind them, as in a tar; keys in a column, as arrays of a pack
 * have; and whether they are a pack's. */
bool source_keyed(const struct source *s);
bool source_named(const struct source *s);
bool source_packed(const struct source *s);
bool source_files(const struct source *s);               /* a pack whose samples are called by the names of files */
int64_t source_label(const struct source *s, int64_t i); /* -1: none, or not known before reading */
/* Samples from i on that are the same in all but name, because none of their values was ever stored; 1 or more. */
int64_t source_alike(const struct source *s, int64_t i);
int64_t source_bytes(const struct source *s, int64_t i); /* looked up when not known yet; -1: missing, or no file */

/* One thread's means of reading. */
struct reading {
    int thread;           /* 0.. : which thread this is, for hooks */
    struct buf file;      /* reused */
    const uint8_t *bytes; /* the encoded picture after source_read */
    size_t n_bytes;
    int64_t label;
    struct cell cells[FIELD_MAX]; /* of the fields that have a column */
    int64_t number;               /* what a cell may point to that was made of a label */
    struct buf made;              /* for what is made of the file: inflated, put together; reused */
    struct buf aside[2];          /* stand in for file and made while a field is copied: cells lie in those; reused */
    struct gunzip *gunzip;        /* for bare deflate; had when first needed */
    bool rest;                    /* to be read: all fields but the picture, whose bytes came from elsewhere */
    bool probe;                   /* whether `cold` is to be found out where that is possible */
    bool cold;                    /* storage had to be waited for */
    const uint8_t *ahead;         /* bytes of a shard that somebody has read already; NULL: none */
    int64_t ahead_at, ahead_bytes;
    /* Asked before a sample of so many bytes is taken into memory, by sources that learn it only then; may be NULL. */
    int (*allow)(void *user, size_t bytes, stk_error *e);
    void *user;
};

void reading_done(struct reading *r); /* gives its memory back; it can be used again */

/* Reads the encoded bytes and the label of sample i. Errors name code, stage "read" and reason; the
 * caller adds path and sample. A file that is missing, empty, larger than max_bytes, changed while
 * being read or unreadable is an error of this sample, not of the source. */
int source_read(const struct source *s, struct reading *r, int64_t i, stk_error *e);
/* The same for the first n bytes at the most: enough for a header. */
int source_peek(const struct source *s, struct reading *r, int64_t i, size_t n, stk_error *e);
/* The file that sample i is: its path, from the open folder *dir on. false: it is none, or the path is too long. */
bool source_file(const struct source *s, int64_t i, int *dir, char *path, size_t n);
/* Where all that source_read takes of sample i lies together in a file, with direct as it should be, which may be
 * refused. false: nowhere, or not so; what is wrong with it source_read will say. */
bool source_extent(const struct source *s, int64_t i, bool direct, struct extent *out);
/* Whether others can read its samples, or some of them, by the last two; and whether there is storage to wait for. */
enum source_lies { SOURCE_HIDDEN, SOURCE_OPEN, SOURCE_IN_MEMORY };
enum source_lies source_lies(const struct source *s);
/* source_read with the bytes of the file or the extent, which were read elsewhere, are followed by zeros as those of
 * source_read are, and stay the lender's. */
int source_lend(const struct source *s, struct reading *r, int64_t i, const uint8_t *bytes, size_t n, stk_error *e);
/* How many bytes source_read will take for sample i, to be charged beforehand; 0 when that is not known. */
size_t source_read_bytes(const struct source *s, int64_t i);
/* Which state of which sample this is, by key, size and time of change: looked at now. 0 when it has none: no file, or
 * one that is being changed this very moment. */
uint64_t source_identity(const struct source *s, int64_t i);
/* The same for bytes that were read at some time after `since` (seconds since 1970): 0, too, when the file was changed
 * after that, or has not so many bytes. */
uint64_t source_identity_since(const struct source *s, int64_t i, size_t bytes, int64_t since);
/* Where the source is, whatever it was called; NULL: nowhere. Lives with the source. */
const char *source_place(const struct source *s);
/* The place that a source of this name would have; false: none. */
bool source_place_of(const char *name, char *buf, size_t n);
/* Sample i is about to be copied: what is in memory may be brought into the caches. */
void source_near(const struct source *s, int64_t i);
/* Writes a field of pixels or tensor kind without a column, of its own form. */
int source_copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e);

/* Whether the caller's own function writes whole rows; then only this is called for them. */
bool source_fills(const struct source *s);
int source_fill(const struct source *s, const stk_row *row, void *const *to, stk_error *e);

/* The indexes that a folder of caches holds: one call each, until one returns non-zero, which is returned. */
int source_cached(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user);
/* Deletes those of a place (NULL: all), and adds their bytes; 0, or the errno. */
int source_forget(const char *cache_dir, const char *place, int64_t *bytes);
/* The folder for caches that an option of stk_options means; "" when none is to be used. */
void source_cache_dir(const char *option, char *buf, size_t n);

#endif
