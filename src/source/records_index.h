/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_index.h -- where all samples of some shards lie: one block of memory, and the file that it is cached in.
 */
#ifndef RECORDS_INDEX_H
#define RECORDS_INDEX_H

#include "base/file.h"
#include "source/index.h"
#include "source/records.h"

#define RECORDS_MAGIC UINT64_C(0x3830726b74736472) /* in this machine's byte order; the digits are the version */

enum { RECORDS_EXTRA = 1, RECORDS_LABELS = 2, RECORDS_KEYS = 4, RECORDS_TIMELESS = 8 };

struct records_head {
    uint64_t magic, bytes, checksum;
    uint64_t format, has; /* number of the format; RECORDS_* */
    uint64_t n, n_shards, n_parts, n_classes, note_bytes, pool_bytes;
};

struct record_shard {
    uint64_t name_at; /* path as it can be opened */
    int64_t bytes;
    int64_t raw;   /* of what it unpacks to, where it is packed */
    uint64_t form; /* enum stream_form */
    int64_t first; /* sample */
    struct watch watch;
};

struct records_index {
    struct records_head *head; /* the block */
    struct record_shard *shards;
    struct part *parts;       /* n x n_parts */
    struct part_extra *extra; /* the same; NULL: none */
    int64_t *label;           /* LABEL_NONE: it has none; NULL: labels are not known from scanning */
    uint64_t *key_at;         /* n; NULL: samples are called by their number */
    uint64_t *part_name_at, *class_at;
    uint8_t *notes; /* of the format, joined */
    char *pool;     /* strings, each ended by 0; the names of the shards are the last */
};

/* A zeroed block for what head says (format, has, and all counts); 0, or -1. */
int records_init(struct records_index *x, const struct records_head *head);
/* Makes an index of a block from malloc; 0, and it belongs to x; or -1 when it is not what records_seal left. */
int records_adopt(struct records_index *x, void *block, size_t bytes);
/* Puts the checksum in. */
void records_seal(struct records_index *x);
void records_done(struct records_index *x); /* also zeroed, also twice */

/* 0 when there is an index in the file, of this format and these shards, which have not changed. */
int records_load(struct records_index *x, const char *file, uint32_t format, const struct names *paths);
/* The same of a file of this owner; `is` says whether shard i is the file at path, and has not changed; it may
 * enter what that file is here. */
int records_load_as(struct records_index *x, const char *file, enum file_owner whose, uint32_t format,
                    const struct names *paths, bool (*is)(struct records_index *x, uint64_t i, const char *path));
/* The same of the index that lies beside the shards, where labels are among these classes, if there are any; and
 * writing it there, without times if they are a pack's. */
int records_load_beside(struct records_index *x, uint32_t format, const struct names *paths,
                        const struct names *classes);
int records_save_beside(const struct records_index *x, uint32_t format, const struct names *paths, bool timeless,
                        stk_error *e);
/* The shard that sample i is in. */
int64_t records_shard(const struct records_index *x, int64_t i);
/* Why a part is bad; NULL: it is not. */
const char *records_why(const struct records_index *x, const struct part *p);

/* ------------------------------------------------------------------ building */

/* The index of these shards: from the cache where it is still true, else made and kept. */
int records_find(struct records_index *x, const struct record_format *f, const struct source *s,
                 const struct source_options *o, const struct names *paths, struct source_tally *t, stk_error *e);

/* What scanning has found in one shard. */
struct record_list {
    struct names part_names, label_names;
    struct buf items;   /* struct record_item */
    struct buf keys;    /* each ended by 0; of all samples or of none */
    struct buf labels;  /* uint32_t: number in label_names + 1, 0: none; of all samples */
    struct buf reasons; /* each ended by 0 */
    struct buf notes;   /* of the format */
    int64_t n;
    bool keyed;
    struct watch watch;
    bool settled; /* the watch can be relied on */
    int64_t bytes, raw;
    uint64_t form; /* enum stream_form */
};

struct record_item {
    int64_t sample;
    uint32_t name;
    struct part part;
    struct part_extra extra;
};
enum { RECORD_ALL = -1 }; /* an item whose part is bad, for all parts of its sample: name */

void record_list_done(struct record_list *l);
/* Pictures of several kinds become one part where no sample has two; pictures alone have the class of their folder.
 * 0, or -1: no memory. */
int records_groups(struct record_list *lists, uint32_t n);
/* Puts the lists of all shards together. given: classes that labels have to be among; none: as found. */
int records_join(struct records_index *x, const struct record_format *f, const struct names *paths,
                 struct record_list *lists, const struct names *given, stk_error *e);

#endif
