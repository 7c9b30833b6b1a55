/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h -- the samples of a dataset and their bytes.
 *
 * A source is opened once. After that it is only read, from any thread. Paths are recognised by their content: a
 * folder, a list, or a container. Arrays in memory and hooks are passed in. Each kind of source is a table of functions
 * (struct source_ops) in its own source_*.c.
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

/* Set exactly one of path, paths, arrays and the three kinds of hooks. */
struct source_options {
    const char *path;
    const stk_array *arrays;
    int n_arrays;
    const stk_read_hooks *read_hooks;
    const stk_fill_hooks *fill_hooks;
    const stk_cells_hooks *cells_hooks;
    const char *const *paths; /* several sources, joined */
    int n_paths;
    const char *const *classes; /* NULL: as found */
    int n_classes;
    int threads;                   /* for scanning */
    const char *cache_dir;         /* as in stk_options */
    const char *fields;            /* as in stk_options; NULL: all */
    const char *const *own_fields; /* one text for path or for each of paths; `fields` then chooses among them */
    bool all_columns;              /* a list of files yields all its columns, not only the image and the label */
    bool index_beside;             /* as in stk_options */
    const char *sidecar_fields;    /* of a packed folder: the fields stored in files next to the images */
    int64_t max_bytes;             /* of one file; a sample with a larger one is bad; 0: no limit */
    int64_t memory;                /* decompressed data may hold a share of it; 0: no limit */
};

/* What scanning found besides the samples. */
struct source_tally {
    int64_t ignored_hidden, ignored_other, ignored_loops, unreadable, empty_classes, missing;
    int64_t beside; /* images next to class folders; also counted in ignored_other */
    int64_t bytes;
    bool index_cached;
    double index_s;
    int64_t index_bytes;
};

int source_open(struct source **out, const struct source_options *o, stk_error *e);
/* Adds an owner. Every owner calls source_close. */
struct source *source_ref(struct source *s);
void source_close(struct source *s); /* accepts NULL */

const char *source_kind(const struct source *s); /* "folder of classes", ... */
int64_t source_count(const struct source *s);
/* The fingerprint covers path, size and label of every sample. Fingerprint and tally need the size of every file, and a
 * cached index may be out of date. So the first call stats all files, on all threads. Opening and reading do not. */
uint64_t source_fingerprint(const struct source *s);
const struct source_tally *source_tally(const struct source *s);
/* Bytes of decompressed data and decompressors, without struct reading: now, and at most. */
void source_memory(const struct source *s, size_t *held, size_t *most);
int source_n_classes(const struct source *s);
const char *source_class(const struct source *s, int i);

/* A readable list of the fields that not all joined sources have; NULL: none. */
const char *source_unshared_fields(const struct source *s);
/* The columns of a list that were not asked for; NULL: none. */
const char *source_unused_columns(const struct source *s);
/* How many sources were joined; 0: this is a single source. (*starts)[i] is the first sample of source i; the last
 * element is the end. */
int source_joined(const struct source *s, const int64_t **starts);

/* The fields of every sample: the image first, then "label", as far as they exist. */
int source_n_fields(const struct source *s);
const struct field *source_field(const struct source *s, int f);
/* The same field in the joined source that sample i belongs to: each source reads in its own way. */
const struct field *source_field_at(const struct source *s, int64_t i, int f);
/* Whether f is the source's label, or a column of the container that serves as the label (column >= 0). */
bool source_is_label(const struct field *f);
/* Writes all fields in the form of stk_options.fields; returns the length as snprintf does. */
size_t source_fields_text(const struct source *s, char *buf, size_t n);
bool source_has_image(const struct source *s);    /* even if `fields` leaves it out */
bool source_reads_fields(const struct source *s); /* source_read provides fields other than the image */
bool source_reads_fields_at(const struct source *s, int64_t i);

/* Ranges of samples that should be read together, because they share a compressed file; NULL: any order is as good. */
const struct blocks *source_blocks(const struct source *s);

/* The path of a sample as the user would type it, or "sample 17" without files; returns the length as snprintf does. */
size_t source_path(const struct source *s, int64_t i, char *buf, size_t n);
/* The sample's key: its path below the source's folder. */
size_t source_key(const struct source *s, int64_t i, char *buf, size_t n);
/* The suffix of a sample's image in a group of files, if it is not "jpg", "png" or "webp"; NULL: none. */
const char *source_suffix(const struct source *s, int64_t i);
bool source_has_keys(const struct source *s);       /* keys name groups of files, as in a tar: KEY.FIELD */
bool source_has_key_column(const struct source *s); /* keys are a column, as in the arrays of a pack */
bool source_is_pack(const struct source *s);
bool source_keys_are_files(const struct source *s);      /* a pack whose keys are file names */
int64_t source_label(const struct source *s, int64_t i); /* -1: none, or unknown before reading */
/* How many samples from i on differ only in their names, because none of their values was ever stored; at least 1. */
int64_t source_count_identical(const struct source *s, int64_t i);
int64_t source_bytes(const struct source *s, int64_t i); /* calls stat if unknown; -1: missing, or not a file */

/* One thread's state for reading. */
struct reading {
    int thread;           /* index of the thread, passed to hooks */
    struct buf file;      /* reused */
    const uint8_t *bytes; /* the encoded image after source_read */
    size_t n_bytes;
    int64_t label;
    struct cell cells[FIELD_MAX]; /* of the fields that have a column */
    int64_t number;               /* memory for a cell that holds a renumbered label */
    struct buf derived;           /* data computed from the file: decompressed or assembled; reused */
    struct buf masks;             /* the files that fields name (mask_files.c) */
    struct buf spare[2];          /* replace file and derived while a field is copied, since cells point into them */
    struct gunzip *gunzip;        /* for raw deflate; created on first use */
    bool rest;                    /* read all fields but the image, whose bytes came from elsewhere */
    bool probe;                   /* set `cold` if possible */
    bool cold;                    /* the read waited for storage */
    const uint8_t *ahead;         /* bytes of a shard that were read ahead; NULL: none */
    int64_t ahead_at, ahead_bytes;
    /* Asks for permission to take a sample of `bytes` bytes into memory. Called by sources that learn the size only
     * while reading. May be NULL. */
    int (*allow)(void *user, size_t bytes, stk_error *e);
    void *user;
};

void reading_done(struct reading *r); /* frees its memory; it can be used again */

/* Reads the encoded bytes and the label of sample i. Errors set code, stage "read" and reason; the caller adds path and
 * sample. A file that is missing, empty, unreadable, larger than max_bytes, or that changes while it is read is an
 * error of this sample, not of the source. */
int source_read(const struct source *s, struct reading *r, int64_t i, stk_error *e);
/* Like source_read, but reads at most the first n bytes: enough for a header. */
int source_peek(const struct source *s, struct reading *r, int64_t i, size_t n, stk_error *e);
/* The file of sample i: its path, relative to the open folder *dir. false: the sample is not a file, or the path is too
 * long. */
bool source_file(const struct source *s, int64_t i, int *dir, char *path, size_t n);
/* The byte range of a file that holds everything source_read reads of sample i. direct asks for O_DIRECT, which may be
 * refused. false: there is no such range; source_read reports any error. */
bool source_extent(const struct source *s, int64_t i, bool direct, struct extent *out);
/* Whether the caller can read samples, or some of them, through source_file or source_extent, and from where. */
enum source_access { SOURCE_ACCESS_NONE, SOURCE_ACCESS_STORAGE, SOURCE_ACCESS_MEMORY };
enum source_access source_probe_access(const struct source *s);
/* Like source_read, but takes the bytes of the file or extent from the caller, who keeps them. They must be followed by
 * IO_SLACK zeros. */
int source_read_from(const struct source *s, struct reading *r, int64_t i, const uint8_t *bytes, size_t n,
                     stk_error *e);
/* How many bytes source_read will hold for sample i; 0: unknown. */
size_t source_read_bytes(const struct source *s, int64_t i);
/* A hash of key, size and modification time of sample i, from a new stat. 0: the sample has none, because it is not a
 * file or the file is being changed right now. */
uint64_t source_identity(const struct source *s, int64_t i);
/* The same for bytes that were read after `since` (seconds since 1970). Also 0 if the file was changed after that, or
 * has another size. */
uint64_t source_identity_since(const struct source *s, int64_t i, size_t bytes, int64_t since);
/* The absolute path of the source, whatever the user typed; NULL: it has none. Lives as long as the source. */
const char *source_location(const struct source *s);
/* The location that a source of this name would have; false: none. */
bool source_locate(const char *name, char *buf, size_t n);
/* Prefetches sample i, which will be copied soon, into the CPU caches if it is in memory. */
void source_prefetch(const struct source *s, int64_t i);
/* Copies a field of pixels or numbers that has no column. */
int source_copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e);

/* Whether the caller's own function writes whole rows. Then only source_fill_row is called for them. */
bool source_fills_rows(const struct source *s);
int source_fill_row(const struct source *s, const stk_row *row, void *const *to, stk_error *e);

/* Calls each for every index in a cache folder until it returns non-zero; returns that value. */
int source_list_cached(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user);
/* Deletes the indexes of a location (NULL: all) and adds up their bytes; returns 0 or an errno. */
int source_delete_cached(const char *cache_dir, const char *location, int64_t *bytes);
/* The cache folder that stk_options.cache_dir selects; "": no cache. */
void source_cache_dir(const char *option, char *buf, size_t n);

#endif
