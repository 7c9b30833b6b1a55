/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_index.h -- the positions of all samples in their shards: one block of memory, and its cache file.
 */
#ifndef RECORDS_INDEX_H
#define RECORDS_INDEX_H

#include <string.h>

#include "base/file.h"
#include "source/index.h"
#include "source/records.h"

#define RECORDS_MAGIC UINT64_C(0x3930726b74736472) /* in this machine's byte order; the digits are the version */

enum { RECORDS_EXTRA = 1, RECORDS_LABELS = 2, RECORDS_KEYS = 4, RECORDS_TIMELESS = 8 };

struct records_head {
    uint64_t magic, bytes, checksum;
    uint64_t format, has; /* id of the format; RECORDS_* */
    uint64_t n, n_shards, n_parts, n_classes, survey_bytes, pool_bytes;
};

struct record_shard {
    uint64_t name_at; /* the path */
    int64_t bytes;
    int64_t raw;   /* decompressed bytes, if it is compressed */
    uint64_t form; /* enum stream_form */
    int64_t first; /* index of its first sample */
    struct stamp stamp;
};

struct records_index {
    struct records_head *head; /* the block */
    struct record_shard *shards;
    struct part *parts;       /* n x n_parts */
    struct part_extra *extra; /* n x n_parts; NULL: none */
    int64_t *label;           /* LABEL_NONE: the sample has none; NULL: scanning finds no labels */
    uint64_t *key_at;         /* n; the spelling follows each key; NULL: samples are named by their index */
    uint64_t *part_name_at, *class_at;
    uint8_t *survey; /* of the format, for all shards */
    char *pool;      /* strings, each terminated by 0; the names of the shards come last */
};

/* Allocates a zeroed block for the counts in head. Returns 0, or -1. */
int records_init(struct records_index *x, const struct records_head *head);
/* Turns a block from malloc into an index. Returns 0 and takes the block, or -1 if records_seal did not write it. */
int records_adopt(struct records_index *x, void *block, size_t bytes);
/* Sets the checksum. */
void records_seal(struct records_index *x);
void records_done(struct records_index *x); /* accepts a zeroed index; may be called twice */

/* Returns 0 if the file contains an index of this format and of these shards, and they have not changed. */
int records_load(struct records_index *x, const char *file, uint32_t format, const struct names *paths);
/* The same for a file of this owner. `is` decides whether shard i is the unchanged file at path, and may update the
 * stamp of the shard. */
int records_load_as(struct records_index *x, const char *file, enum file_owner whose, uint32_t format,
                    const struct names *paths, bool (*is)(struct records_index *x, uint64_t i, const char *path));
/* The same for the index stored next to the shards; fails if its labels do not fit the given classes. Saving writes it
 * there, without modification times if the shards are a pack. */
int records_load_beside(struct records_index *x, uint32_t format, const struct names *paths,
                        const struct names *classes);
int records_save_beside(const struct records_index *x, uint32_t format, const struct names *paths, bool timeless,
                        stk_error *e);
/* The index of the shard that contains sample i. */
int64_t records_shard(const struct records_index *x, int64_t i);
/* How sample i spells the suffix of its image; "": as usual. */
const char *records_spelling(const struct records_index *x, int64_t i);
/* Why a part is bad; NULL: it is good. */
const char *records_bad_reason(const struct records_index *x, const struct part *p);

/* ------------------------------------------------------------------ building */

/* Loads the index of these shards from the cache if it is up to date; otherwise builds and caches it. */
int records_open_index(struct records_index *x, const struct record_format *f, const struct source *s,
                       const struct source_options *o, const struct names *paths, struct source_tally *t, stk_error *e);

/* What scanning found in one shard. */
struct record_list {
    struct names part_names, label_names;
    struct buf items;   /* struct record_item */
    struct buf keys;    /* each followed by its spelling, both terminated by 0; of all samples or of none */
    struct buf labels;  /* uint32_t per sample: index in label_names + 1; 0: none */
    struct buf reasons; /* each terminated by 0 */
    struct buf survey;  /* of the format */
    int64_t n;
    bool keyed;
    struct stamp stamp;
    bool stable; /* the stamp is reliable: see index_stamp() */
    int64_t bytes, raw;
    uint64_t form; /* enum stream_form */
};

struct record_item {
    int64_t sample;
    uint32_t name;
    struct part part;
    struct part_extra extra;
};
enum { RECORD_ALL = -1 }; /* as name: the item marks the whole sample as bad */

void record_list_done(struct record_list *l);
/* The next of several keys. */
static inline const char *record_next_key(const char *key)
{
    key += strlen(key) + 1;
    return key + strlen(key) + 1;
}
/* Merges image parts of several formats into one, "image", if no sample has two. If samples are only images, their
 * folders become classes. Returns 0, or -1: out of memory. */
int records_groups(struct record_list *lists, uint32_t n);
/* Builds the index from the lists of all shards. Labels must be among the given classes, if there are any. */
int records_join(struct records_index *x, const struct record_format *f, const struct names *paths,
                 struct record_list *lists, const struct names *given, stk_error *e);

/* ------------------------------------------------------------------ the window of a scan */

/* The bytes of a shard that the scan sees at a time. */
struct records_window {
    int fd;
    struct buf buf;
    int64_t at;            /* position of its first byte in the shard */
    size_t want;           /* how much to read at a time; less if much is skipped */
    int os_error;          /* of the last read that failed; 0: none */
    struct stream *stream; /* NULL: the shard is not compressed */
    char broken[128];      /* why the stream ended too early; empty: it did not */
    stk_error refused;     /* why it cannot be decompressed although it is not damaged */
};

/* w is zeroed; c is for streams. */
int records_window_init(struct records_window *w, int fd, enum stream_form form, struct stream_cache *c, stk_error *e);
void records_window_done(struct records_window *w);
int64_t records_window_end(const struct records_window *w);        /* the position after the bytes seen last */
const char *records_window_broken(const struct records_window *w); /* NULL: not broken */

#endif
