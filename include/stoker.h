/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stoker.h -- training data, read, decoded, transformed, shuffled and batched by threads.
 *
 *     stk_options o = { .source = "train/", .batch_size = 256, .shuffle = 1,
 *                       .ops = "RandomResizedCrop(224) | RandomHorizontalFlip | Normalize" };
 *     stk_error e;
 *     stk_loader *loader;
 *     if (stk_open(&loader, &o, &e) != STK_OK)
 *         return fprintf(stderr, "%s\n", e.text), 1;
 *
 *     stk_batch *b;
 *     int rc;
 *     while ((rc = stk_next(loader, &b, &e)) == STK_OK) {
 *         const stk_array *x = stk_field(b, "image");
 *         train(x->data, stk_field(b, "label")->data, stk_samples(b));
 *         stk_release(b);
 *     }
 *     stk_close(loader);
 *
 * Rules that hold everywhere:
 *   - A zeroed struct with a source in it is valid: zero is the default of every option.
 *   - Functions that can fail return a code of stk_code and fill *e, which may be NULL and is written only on failure.
 *     Nothing is printed, nothing aborts, no signal handler is set.
 *   - The result depends on (seed, epoch, position) alone: threads, ranks, caches and batch size change nothing.
 *   - After fork() every call on an inherited loader fails: with STK_EFORK, or, where it returns no code, with -1, 0,
 *     NULL or an empty text. Closing it does nothing. The child may open its own.
 */
#ifndef STOKER_H
#define STOKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define STK_API __attribute__((visibility("default")))
#else
#define STK_API
#endif

#define STK_VERSION_MAJOR 0
#define STK_VERSION_MINOR 1
#define STK_VERSION_PATCH 0

/* ------------------------------------------------------------------ errors */

#define STK_CODES(X)                                                                                                   \
    X(OK, 0, "success")                                                                                                \
    X(END, 1, "end of the epoch")                                                                                      \
    X(AGAIN, 2, "not ready yet")                                                                                       \
    X(STOPPED, 3, "the loader was stopped")                                                                            \
    X(EUSAGE, 16, "wrong argument")                                                                                    \
    X(EDATA, 17, "bad sample")                                                                                         \
    X(EROTTEN, 18, "too many bad samples")                                                                             \
    X(EIO, 19, "cannot read or write")                                                                                 \
    X(ENOTFOUND, 20, "no such file or folder")                                                                         \
    X(ENOMEM, 21, "not enough memory")                                                                                 \
    X(ECHANGED, 22, "the data set is not the one this state is about")                                                 \
    X(EFORK, 23, "the loader belongs to the parent process")                                                           \
    X(EBUILD, 24, "not in this build")                                                                                 \
    X(EBUG, 25, "a bug in stoker")

typedef enum stk_code {
#define STK_CODE_ENUM(name, value, words) STK_##name = value,
    STK_CODES(STK_CODE_ENUM)
#undef STK_CODE_ENUM
} stk_code;

/* What went wrong, in the caller's own memory. */
typedef struct stk_error {
    int code;         /* stk_code */
    int os_error;     /* errno, 0 when the system is not to blame */
    int64_t sample;   /* -1 when no sample is to blame */
    char stage[16];   /* "read", "decode", "transform", ... */
    char path[1024];  /* the file, raw bytes; its end when longer */
    char reason[640]; /* why, and what to do about it */
    char text[1700];  /* all of it in one line: "path: reason" */
} stk_error;

STK_API const char *stk_code_words(int code);

/* ------------------------------------------------------------------ options */

typedef enum stk_dtype {
    STK_DTYPE_DEFAULT = 0, /* float32 */
    STK_FLOAT32,
    STK_FLOAT16,
    STK_BFLOAT16,
    STK_UINT8,
    STK_INT8,
    STK_INT16,
    STK_UINT16,
    STK_INT32,
    STK_UINT32,
    STK_INT64,
    STK_UINT64,
    STK_FLOAT64,
    STK_BOOL
} stk_dtype;

typedef enum stk_layout { STK_LAYOUT_DEFAULT = 0, STK_NCHW, STK_NHWC } stk_layout;
typedef enum stk_fidelity { STK_FIDELITY_DEFAULT = 0, STK_EXACT, STK_DRAFT } stk_fidelity;
typedef enum stk_on_error { STK_ON_ERROR_DEFAULT = 0, STK_RAISE, STK_SKIP, STK_REPLACE } stk_on_error;
typedef enum stk_reader { STK_READER_DEFAULT = 0, STK_READER_PREAD, STK_READER_URING } stk_reader;
typedef enum stk_cpu { STK_CPU_DEFAULT = 0, STK_CPU_C, STK_CPU_AVX2, STK_CPU_AVX512 } stk_cpu;
typedef enum stk_cache {
    STK_CACHE_DEFAULT = 0, /* none */
    STK_CACHE_NONE,
    STK_CACHE_BYTES,  /* files as they are */
    STK_CACHE_DCT,    /* JPEG coefficients */
    STK_CACHE_PIXELS, /* after the last op that is the same in every epoch */
    STK_CACHE_AUTO    /* what pays; stk_explain says what */
} stk_cache;
typedef enum stk_format { STK_FORMAT_UNKNOWN = 0, STK_JPEG, STK_PNG, STK_WEBP } stk_format;

/* What a field of a sample is. */
typedef enum stk_kind {
    STK_KIND_DEFAULT = 0, /* by looking */
    STK_IMAGE,
    STK_INT,    /* one number, int64 */
    STK_FLOAT,  /* one number, float32 */
    STK_TENSOR, /* numbers */
    STK_BYTES,
    STK_TEXT,
    STK_JSON
} stk_kind;

/* An array, as in DLPack: strides count elements, NULL means dense. */
typedef struct stk_array {
    const char *name;
    void *data;
    stk_dtype dtype;
    int ndim;
    int device; /* DLPack's device type; 1 is host memory */
    const int64_t *shape;
    const int64_t *strides;
} stk_array;

/* One row, as a hook sees it in the worker's thread. Threads count from 0 to the number of threads: the last one is
 * whoever calls stk_get. A hook may ask its loader anything, but not call what waits for rows, such as its own:
 * stk_next, stk_get, stk_set_epoch, stk_state_set, stk_close. */
typedef struct stk_row {
    int thread;
    int64_t epoch, position, sample, label;
    uint64_t random;        /* the row's own random number: the same for any number of threads */
    const stk_array *image; /* finished, for the op hook; NULL in fill() */
    void *to;               /* where the op's result goes: image->data itself when it works in place */
} stk_row;

/* What every sample has under a name: kind, and for numbers their type and the shape of one sample, -1 where samples
 * differ. label: is what is called "label" unless fields say otherwise. */
typedef struct stk_column {
    const char *name;
    stk_kind kind;
    stk_dtype dtype;
    int ndim;
    const int64_t *shape;
    int label;
} stk_column;

/* What one sample has of a column: numbers of a type, dense; or, without one, bytes, text or an encoded picture. */
typedef struct stk_cell {
    const void *bytes; /* NULL: it has none */
    size_t n;          /* bytes */
    stk_dtype dtype;
    int ndim;
    int64_t shape[8];
    const char *file; /* from cells(), instead of bytes: the path of the file that holds them, n bytes long */
} stk_cell;

/* A source of the caller's own, in one of three ways; all are called from many threads at once, and return
 * STK_OK, or fill *e and return another code.
 * read() puts a pointer to the encoded bytes of a sample, valid until the next call from the same
 * thread slot. fill() writes a sample straight into the row of its batch: `fields` describes the arrays of one
 * sample (name, dtype, ndim, shape; dense), to[i] is where field i goes. cells() puts what a sample has of some of the
 * `columns` (their numbers are wanted[0] to wanted[n - 1]), valid as long as what read() puts; fields are made of them
 * as stk_options.fields says. */
typedef struct stk_source_hooks {
    void *user;
    int64_t (*count)(void *user);
    int (*read)(void *user, int thread, int64_t sample, const void **bytes, size_t *n, int64_t *label, stk_error *e);
    void (*close)(void *user); /* may be NULL; called once, also when opening fails */
    const stk_array *fields;
    int n_fields;
    int (*fill)(void *user, const stk_row *row, void *const *to, stk_error *e);
    const stk_column *columns;
    int n_columns;
    int (*cells)(void *user, int thread, int64_t sample, const int *wanted, int n, stk_cell *cells, stk_error *e);
    /* With cells, if known: a sample's key and its name in errors (both as snprintf; no path: the key), the source's
     * name, a hash of the data. */
    size_t (*key)(void *user, int64_t sample, char *buf, size_t n);
    size_t (*path)(void *user, int64_t sample, char *buf, size_t n);
    const char *kind;
    uint64_t fingerprint;
    /* With cells: the first samples of blocks that are read as a whole, from 0 on, copied. Blocks then come in shuffled
     * order, and every `window` samples of that sequence are shuffled among themselves. 0: all are shuffled. */
    const int64_t *blocks;
    int64_t n_blocks, window;
} stk_source_hooks;

/* Runs on every finished row, and may change it. With a result (dtype, ndim, shape) it makes row->to of row->image. */
typedef struct stk_op_hook {
    void *user;
    int (*run)(void *user, const stk_row *row, stk_error *e);
    const stk_array *result;
} stk_op_hook;

/* Where the memory of batches comes from, when not from the system. Aligned to 64 bytes. Called from any thread, for
 * as long as a batch lives, also after stk_close; it may not call the loader. */
typedef struct stk_allocator {
    void *user;
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *p, size_t bytes);
} stk_allocator;

/* Hears warnings, from any thread, until stk_close has returned. */
typedef struct stk_log_hook {
    void *user;
    void (*line)(void *user, const char *text);
} stk_log_hook;

typedef struct stk_options {
    /* What to read: one of source, arrays, hooks. */
    const char *source;      /* folder, list, ...: recognised by looking; a prefix settles doubt */
    const stk_array *arrays; /* first dimension: the samples; read in place, must outlive the loader */
    int n_arrays;
    const stk_source_hooks *hooks;
    const char *const *classes; /* fixes names and indices; NULL: as found */
    int n_classes;
    int64_t take;          /* only the first n samples; 0: all */
    const int64_t *subset; /* only these samples, in this order; copied; NULL: all */
    int64_t n_subset;

    /* What to do with it. */
    const char *ops;       /* "Resize(256) | CenterCrop(224) | Normalize" */
    const stk_op_hook *op; /* runs on every finished row; NULL: none */
    stk_dtype dtype;       /* of the images; float32 */
    stk_layout layout;     /* NCHW */
    stk_fidelity fidelity; /* exact: Pillow's pixels, bit for bit; draft: large JPEGs are decoded smaller */
    int no_exif;           /* leave pictures as stored */
    int64_t max_pixels;    /* a larger picture is a bad sample; 256 million */
    int64_t max_bytes;     /* a larger file is a bad sample; 1 GiB */

    /* How to hand it over. */
    int64_t batch_size; /* per rank; 1 */
    int shuffle;
    int drop_last;
    int pad_last; /* a full last batch, "valid" false in the repeated rows */
    uint64_t seed;
    int rank, world_size;  /* 0 of 1 */
    stk_on_error on_error; /* raise */
    double max_bad; /* share of the samples of an epoch that may be bad under skip and replace; 0.01; negative: none */

    /* What it may use. */
    int threads;    /* 0: what affinity and cgroup allow */
    int64_t memory; /* bytes for ring, scratch and caches; 0: a quarter of what is free, divided by local ranks */
    const char *cache_dir; /* NULL: STOKER_CACHE_DIR, else the user's cache folder; "off": write nothing */
    stk_reader reader;     /* pread, or io_uring where files are cold; one of them, always */
    stk_cpu cpu;           /* the best this CPU has */
    const stk_allocator *allocator;
    const stk_log_hook *log;

    /* Another order. */
    const double *weights; /* one per sample: every position of an epoch is a draw by weight; copied */
    int64_t n_weights;
    int64_t steps_per_epoch; /* an epoch has so many batches; without weights the samples come pass after pass */
    int sampled;             /* epochs are what stk_set_order says; neither shuffled nor split by rank */

    const char *const *sources; /* several of what `source` is one of, of any kinds, joined: fields that all have */
    int n_sources;

    /* What is kept from the first epoch for the later ones: in memory, or in cache_dir when that is given. Rows that
     * need no decoding are kept as they are, in memory. Samples of hooks are taken to be the same in every epoch. */
    stk_cache cache;
    int64_t cache_size; /* bytes that cache_dir may hold; 0: half of what its disk can spare */

    /* Which fields a sample has, where the source has columns: "[name =] column [: kind] [? default], ..." with the
     * kinds image, int, float, class, text, bytes, json, tensor, or a type with a shape: "x:float32(28,28)". NULL: the
     * picture as "image", the label as "label", and all other columns under their own names. */
    const char *fields;

    /* One weight for each of `sources`: every position of an epoch is of one of them, by weight. Each goes through its
     * own samples pass after pass, over all epochs, and none comes again before all of its source came. An epoch has as
     * many positions as there are samples in all, unless steps_per_epoch says otherwise. A subset has the samples of
     * each source together, in the order of the sources. Copied. */
    const double *mix;
    int n_mix;
    const int64_t *mix_counts; /* how many samples are of each, one after the other, when not as in `sources`; copied */
    /* Writes the index of shards beside them, too, where every later opening finds it, also of a copy. */
    int index_beside;
    /* As `fields`, of `source` alone, or one for each of `sources` (NULL: as it is): what its columns are called, so
     * that sources of other names go together. `fields` then chooses of these. */
    const char *const *source_fields;
    int keep_empty; /* skip: with one rank, too, deliver a batch whose samples were all bad, as one without rows */
} stk_options;

/* ------------------------------------------------------------------ loader */

typedef struct stk_loader stk_loader;
typedef struct stk_batch stk_batch;

STK_API int stk_open_sized(stk_loader **out, const stk_options *o, size_t size, stk_error *e);
static inline int stk_open(stk_loader **out, const stk_options *o, stk_error *e)
{
    return stk_open_sized(out, o, sizeof *o, e);
}
STK_API void stk_close(stk_loader *l); /* also NULL, also in the middle; once, and last */

/* The next batch, in order; STK_END ends the epoch, the next call begins the next one. From several
 * threads at once each batch goes to one of them, and so does STK_END: that one tells the others. */
STK_API int stk_next(stk_loader *l, stk_batch **out, stk_error *e);
/* The same, but STK_AGAIN when nothing is ready within ms milliseconds; < 0 waits for ever. */
STK_API int stk_next_wait(stk_loader *l, stk_batch **out, int ms, stk_error *e);
/* From any thread: all waiting and later calls of stk_next return STK_STOPPED. */
STK_API void stk_stop(stk_loader *l);

/* With options.sampled: the samples of the current epoch or the next, in order (0 to stk_count - 1; copied), in
 * batches of batch_size, or of the rows from starts[i] to starts[i + 1], at most batch_size each. Once for each
 * epoch; stk_set_epoch and stk_state_set forget what was given. */
STK_API int stk_set_order(stk_loader *l, int64_t epoch, const int64_t *samples, int64_t n, const int64_t *starts,
                          int64_t n_batches, stk_error *e);
/* Up to batch_size samples (as in the field "index") as they are in that epoch, made now, in the caller's thread; the
 * order is not disturbed. What the order can repeat is made as its first time (repeat 0). */
STK_API int stk_get(stk_loader *l, const int64_t *samples, int64_t n, int64_t epoch, stk_batch **out, stk_error *e);
/* The same at positions of the epoch, as in the field "position": with weights, steps_per_epoch or sampled the random
 * choices depend on them. samples may be NULL: what the order has there, unless it is the caller's own. */
STK_API int stk_get_at(stk_loader *l, const int64_t *samples, const int64_t *positions, int64_t n, int64_t epoch,
                       stk_batch **out, stk_error *e);
/* What was drawn for one of them (either may be NULL, as above), as JSON text:
 *     {"sample": 17, "size": [375, 500], "ops": [{"op": "RandomResizedCrop", "top": 3, "left": 5, "height": 100,
 *      "width": 90, "size": [224, 224]}, {"op": "RandomHorizontalFlip", "flip": true}, {"op": "Normalize"}]}
 * "size" is the picture's height and width before the ops, 0 where there is none; "fill" and "op", where there are such
 * hooks, are the numbers they get in stk_row.random. */
#define STK_DRAWN_BYTES 4096
STK_API int stk_drawn(stk_loader *l, const int64_t *sample, const int64_t *position, int64_t epoch, char *buf, size_t n,
                      stk_error *e);

STK_API int64_t stk_length(const stk_loader *l); /* batches in an epoch without bad samples, here; 0 when sampled */
STK_API int64_t stk_count(const stk_loader *l);  /* samples */
STK_API int64_t stk_epoch(stk_loader *l);        /* the epoch of the next batch */
STK_API int stk_set_epoch(stk_loader *l, int64_t epoch, stk_error *e); /* the current one: no change */
STK_API int stk_n_classes(const stk_loader *l);
STK_API const char *stk_class_name(const stk_loader *l, int i);
STK_API uint64_t stk_fingerprint(const stk_loader *l);
/* The fields of its batches, as in stk_options; returns the length as snprintf does. */
STK_API size_t stk_fields(const stk_loader *l, char *buf, size_t n);
/* Path of a sample, raw bytes, ended by 0; returns its length as snprintf does. */
STK_API size_t stk_path(const stk_loader *l, int64_t sample, char *buf, size_t n);
/* The same below the source's own folder: the key of the sample. */
STK_API size_t stk_key(const stk_loader *l, int64_t sample, char *buf, size_t n);

/* ------------------------------------------------------------------ batches */

/* A batch is the caller's: writable, never overwritten, also after stk_close; any thread may
 * release it (in a forked child that does nothing). Fields: "image" (or the arrays' own names) and "label" int64, where
 * the source has labels; and, not counted by stk_n_fields but there by name: "index" (the sample) and "position" (in
 * the epoch, over all ranks), int64, and "valid", bool. */
STK_API int64_t stk_samples(const stk_batch *b);
STK_API int64_t stk_batch_epoch(const stk_batch *b);
STK_API int stk_n_fields(const stk_batch *b);
STK_API const stk_array *stk_field(const stk_batch *b, const char *name);
STK_API const stk_array *stk_field_at(const stk_batch *b, int i);
/* What a field is; STK_TENSOR for those that come on request. The values of a ragged field (text, bytes, numbers with
 * an open shape) of all rows lie one after the other, and where row i has its own is told by "NAME.offsets", int64,
 * from [i] to [i + 1], counted along the first dimension. Padded ones have rows of one length, and "NAME.lengths".
 * Where more dimensions than the first differ, values lie flat and "NAME.shapes" has the shape of every row. */
STK_API stk_kind stk_field_kind(const stk_batch *b, int i);
STK_API void stk_retain(stk_batch *b);
STK_API void stk_release(stk_batch *b); /* also NULL */

/* Keeps the memory of one field alive without the rest of the batch. The handle may outlive both. */
typedef struct stk_memory stk_memory;
STK_API stk_memory *stk_field_retain(const stk_batch *b, int i);
/* The number of a field by its name, also of those that come on request; -1: there is none. */
STK_API int stk_field_number(const stk_batch *b, const char *name);
STK_API void stk_memory_retain(stk_memory *m);
STK_API void stk_memory_release(stk_memory *m); /* also NULL */

/* ------------------------------------------------------------------ state */

/* Writes the state as JSON text, under 300 bytes with its 0; returns its length. It counts what was delivered. */
STK_API size_t stk_state_get(stk_loader *l, char *buf, size_t n);
/* The next batch is the one that would have followed; also for another number of ranks. */
STK_API int stk_state_set(stk_loader *l, const char *text, stk_error *e);

/* ------------------------------------------------------------------ seeing */

typedef struct stk_stats {
    double seconds;                /* since open */
    double waited_s;               /* of it: callers in stk_next, with nothing ready */
    int64_t batches, samples, bad; /* delivered */
    int64_t read_bytes;
    double read_s, decode_s, transform_s, op_s; /* summed over the threads */
    double idle_s;                              /* threads with nothing to do: the caller is the slower side */
    int threads;
    int64_t memory_bytes; /* held by the loader now */
    int64_t memory_limit;
    int64_t kept_bytes;                                   /* batches that are with the caller */
    int64_t warnings;                                     /* pictures decoded with complaints of the codec */
    int64_t cache_entries, cache_bytes, cache_disk_bytes; /* that are kept; in memory; on disk */
    int64_t cache_hits, cache_misses;
} stk_stats;

STK_API int stk_stats_get_sized(stk_loader *l, stk_stats *s, size_t size);
static inline int stk_stats_get(stk_loader *l, stk_stats *s)
{
    return stk_stats_get_sized(l, s, sizeof *s);
}
/* One of the sources of a mixture. */
typedef struct stk_mixed {
    double share;    /* of the positions */
    int64_t samples; /* that it has */
    int64_t came;    /* of its samples in what was delivered until here: over all epochs and ranks, each time counted */
} stk_mixed;

/* The i-th source of a mixture, from 0 on; 0: there is none. */
STK_API int stk_mixed_get_sized(stk_loader *l, int i, stk_mixed *out, size_t size);
static inline int stk_mixed_get(stk_loader *l, int i, stk_mixed *out)
{
    return stk_mixed_get_sized(l, i, out, sizeof *out);
}
/* What limits the loader: "read", "decode", "transform", "op" or "consumer". */
STK_API const char *stk_limit(stk_loader *l);
/* What was chosen, and why: lines of text; returns the length as snprintf does. */
STK_API size_t stk_explain(stk_loader *l, char *buf, size_t n);
/* The i-th bad sample since open (each once, the first 1,000): its error; 0 when there is none. */
STK_API int stk_bad_sample(stk_loader *l, int64_t i, stk_error *out);

/* ------------------------------------------------------------------ caches on disk */

/* What is kept of one data set, of one kind: "index", "points", "bytes", "dct", "pixels". */
typedef struct stk_cached {
    const char *source; /* "" when it is not known */
    const char *kind;
    int64_t entries, bytes;
    int64_t used; /* last, in seconds since 1970 */
} stk_cached;

/* Calls each() for everything in a folder of caches (NULL: as in stk_options); non-zero stops. */
STK_API int stk_cache_list(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user,
                           stk_error *e);
/* Deletes what is of that kind and that source (NULL: any), also while loaders use it: they go on. */
STK_API int stk_cache_clear(const char *cache_dir, const char *kind, const char *source, int64_t *bytes, stk_error *e);

/* ------------------------------------------------------------------ scanning */

/* What is known of a sample without, or after, decoding it. */
typedef struct stk_finding {
    int64_t sample;
    int64_t bytes;
    int64_t label; /* -1: none */
    const char *path;
    stk_format format;
    int width, height;  /* as stored */
    int channels, bits; /* as stored */
    int orientation;    /* EXIF, 1 to 8 */
    unsigned odd;       /* STK_ODD_* */
    int warnings;       /* complaints of the codec, when decoded */
    int code;           /* STK_OK, or why it is bad */
    const char *reason; /* words, when it is bad */
    int needs_memory;   /* it is bad for want of memory alone: with more it may be good */
    int64_t run;        /* samples, from this one on, that it is about; 1 unless `runs` */
} stk_finding;

#define STK_ODDITIES(X)                                                                                                \
    X(GREY, 0, "grey")                                                                                                 \
    X(ALPHA, 1, "alpha")                                                                                               \
    X(PALETTE, 2, "palette")                                                                                           \
    X(CMYK, 3, "CMYK")                                                                                                 \
    X(DEEP, 4, "more than 8 bits")                                                                                     \
    X(PROGRESSIVE, 5, "progressive")                                                                                   \
    X(ARITHMETIC, 6, "arithmetic coding")                                                                              \
    X(INTERLACED, 7, "interlaced")                                                                                     \
    X(ANIMATED, 8, "animated")                                                                                         \
    X(ROTATED, 9, "rotated by EXIF")                                                                                   \
    X(ICC, 10, "colour profile")                                                                                       \
    X(SUFFIX, 11, "suffix of another kind")                                                                            \
    X(LOSSLESS, 12, "lossless JPEG")
enum {
#define STK_ODD_ENUM(name, bit, words) STK_ODD_##name = 1 << (bit),
    STK_ODDITIES(STK_ODD_ENUM)
#undef STK_ODD_ENUM
};
#define STK_N_ODDITIES 13

/* What a source has besides its samples. */
typedef struct stk_overview {
    const char *kind; /* "folder of classes", "list", ... */
    int64_t samples, bytes;
    int n_classes;
    uint64_t fingerprint;
    int64_t ignored_hidden, ignored_other, ignored_loops, unreadable, empty_classes, missing;
    int64_t beside;       /* of ignored_other: pictures that lie beside class folders */
    int index_cached;     /* the index came from the cache */
    double index_s;       /* how long the index took */
    int64_t index_bytes;  /* memory it takes */
    const char *fields;   /* as in stk_options */
    const char *columns;  /* of a list, that `fields` may ask for besides: "caption, score"; NULL: none */
    const char *left_out; /* of sources that are joined: fields that not all of them have, with words; NULL: none */
} stk_overview;

typedef struct stk_scan_options {
    int decode; /* decode every picture wholly; else only look at the headers */
    void (*begin)(void *user, const stk_overview *v, const char *const *class_names); /* once, first; may be NULL */
    int (*each)(void *user, const stk_finding *f); /* every sample, in order, one at a time; non-zero stops */
    void *user;
    int runs; /* one call for several good samples of which nothing was ever stored, as in HDF5 */
} stk_scan_options;

/* Goes over all samples of o->source with o->threads threads; ops are not run. */
STK_API int stk_scan_sized(const stk_options *o, size_t o_size, const stk_scan_options *s, size_t s_size, stk_error *e);
static inline int stk_scan(const stk_options *o, const stk_scan_options *s, stk_error *e)
{
    return stk_scan_sized(o, sizeof *o, s, sizeof *s, e);
}

/* ------------------------------------------------------------------ a source alone */

/* What samples there are, without a loader. It is only read, from any thread. */
typedef struct stk_source stk_source;

STK_API int stk_source_open_sized(stk_source **out, const stk_options *o, size_t size, stk_error *e);
static inline int stk_source_open(stk_source **out, const stk_options *o, stk_error *e)
{
    return stk_source_open_sized(out, o, sizeof *o, e);
}
STK_API void stk_source_close(stk_source *s); /* also NULL */
STK_API const char *stk_source_kind(const stk_source *s);
STK_API int64_t stk_source_count(const stk_source *s);
STK_API uint64_t stk_source_fingerprint(const stk_source *s);
STK_API int stk_source_n_classes(const stk_source *s);
STK_API const char *stk_source_class(const stk_source *s, int i);
STK_API size_t stk_source_fields(const stk_source *s, char *buf, size_t n); /* as stk_fields */
STK_API int64_t stk_source_label(const stk_source *s, int64_t sample);      /* -1: none */
/* As the user would type it; below the source's own folder. Both as stk_path. */
STK_API size_t stk_source_path(const stk_source *s, int64_t sample, char *buf, size_t n);
STK_API size_t stk_source_key(const stk_source *s, int64_t sample, char *buf, size_t n);
/* The sample of a key, or -1; goes over all keys. */
STK_API int64_t stk_source_find(const stk_source *s, const char *key);
/* What is stored of a sample, field by field: bytes as they are (a picture is not decoded), numbers as numbers. What it
 * lends lives during the call; non-zero stops. */
STK_API int stk_source_cells(stk_source *s, int64_t sample,
                             int (*each)(void *user, const char *name, stk_kind kind, const stk_cell *c), void *user,
                             stk_error *e);
/* How it was found: kind, samples, bytes, index; needs no file but the index. */
STK_API void stk_source_overview_sized(const stk_source *s, stk_overview *v, size_t size);
static inline void stk_source_overview(const stk_source *s, stk_overview *v)
{
    stk_source_overview_sized(s, v, sizeof *v);
}
/* The whole picture, 3 bytes a pixel, in memory that stk_free gives back. */
STK_API int stk_source_picture(stk_source *s, int64_t sample, uint8_t **pixels, int *width, int *height, int64_t *label,
                               stk_error *e);

/* ------------------------------------------------------------------ pictures */

/* Encodes 8-bit interleaved pixels (1 or 3 channels; rows `stride` bytes apart) into memory that
 * stk_free gives back. quality 1 to 100, 0: 90; subsample: 4:2:0 chroma (JPEG). */
typedef struct stk_encode_options {
    stk_format format;
    int quality;
    int subsample;
    int progressive;
    int lossless; /* WebP */
} stk_encode_options;

STK_API int stk_encode_sized(const uint8_t *pixels, int width, int height, int channels, size_t stride,
                             const stk_encode_options *o, size_t o_size, void **out, size_t *n, stk_error *e);
static inline int stk_encode(const uint8_t *pixels, int width, int height, int channels, size_t stride,
                             const stk_encode_options *o, void **out, size_t *n, stk_error *e)
{
    return stk_encode_sized(pixels, width, height, channels, stride, o, sizeof *o, out, n, e);
}
STK_API void stk_free(void *p);

/* ------------------------------------------------------------------ packing */

/* What pictures become. What neither changes its pixels nor its format keeps its very bytes. */
typedef enum stk_as {
    STK_AS_DEFAULT = 0, /* keep */
    STK_AS_KEEP,        /* their own format; without resize and ops their very bytes */
    STK_AS_JPEG,        /* JPEG of several scans: written anew with the same coefficients, in one */
    STK_AS_WEBP,
    STK_AS_PNG,
    STK_AS_RAW, /* rows x columns x 3 bytes, as npy; all of one size */
    STK_AS_DCT  /* JPEG without its codes: larger, decoded in a fraction of the time to the same pixels */
} stk_as;

typedef enum stk_to {
    STK_TO_DEFAULT = 0, /* tar */
    STK_TO_TAR,         /* shards as WebDataset has them: key.jpg, key.cls, ... */
    STK_TO_TFRECORD,    /* shards of tf.train.Example */
    STK_TO_HDF5,        /* data.h5: images, labels */
    STK_TO_NPY,         /* images.npy, labels.npy; pictures of one size */
    STK_TO_FOLDER       /* files, in class folders where there are classes */
} stk_to;

/* How far it is, or what it will take; what is not known yet is 0. */
typedef struct stk_pack_report {
    int64_t total;               /* samples to pack */
    int64_t samples, bad;        /* packed; left out (on_error: skip) */
    int64_t resumed;             /* of the samples: found there, from an earlier run */
    int64_t bytes_in, bytes_out; /* read of the source; written */
    int64_t shards;
    double seconds;          /* of this run */
    int64_t expected_bytes;  /* to be written in all, reckoned from a few samples */
    double expected_seconds; /* that are left */
    int64_t free_bytes;      /* on the disk of the target */
} stk_pack_report;

typedef struct stk_pack_options {
    const char *out; /* a folder; made if need be */
    stk_to to;
    stk_as as;
    int quality;        /* of JPEG and WebP, 1 to 100; 0: 90. WebP of 100 is without loss */
    int64_t shard_size; /* bytes a shard may have; 0: 256 MiB. A larger sample has one of its own */
    int resize_short;   /* pictures whose shorter side is longer than that become smaller; 0: none do */
    int resize_long;    /* the same with the longer side; one of both */
    int baseline;       /* with keep: JPEG of several scans as with STK_AS_JPEG */
    int force;          /* begin anew where a pack with other options is; write beside other files */
    /* Called from the calling thread, when all is known but nothing written, and for every sample; may be NULL.
     * Non-zero stops: STK_STOPPED, and the same call goes on later. */
    int (*begin)(void *user, const stk_pack_report *r);
    int (*progress)(void *user, const stk_pack_report *r);
    void *user;
} stk_pack_options;

/* Packs the samples of o->source (its take, subset, classes, ops, shuffle, seed, on_error, threads and memory count)
 * into a folder. Ops must not be random. Stopped or killed, the same call goes on behind the last whole shard, and ends
 * with the same bytes. r may be NULL. */
STK_API int stk_pack_sized(const stk_options *o, size_t o_size, const stk_pack_options *p, size_t p_size,
                           stk_pack_report *r, size_t r_size, stk_error *e);
static inline int stk_pack(const stk_options *o, const stk_pack_options *p, stk_pack_report *r, stk_error *e)
{
    return stk_pack_sized(o, sizeof *o, p, sizeof *p, r, sizeof *r, e);
}

typedef struct stk_unpack_options {
    const char *out; /* a folder; made if need be */
    int force;       /* write over files that are there with other bytes */
    int threads;     /* 0: what affinity and cgroup allow */
    /* From any thread, one at a time, for every file: its name, and why it is not there (NULL: it is); may be NULL.
     * Non-zero stops. */
    int (*each)(void *user, const char *name, const char *reason, int64_t bytes);
    void *user;
} stk_unpack_options;

/* The files that tar shards hold, given as a pack, a file or a pattern: of a pack under the names they had, byte for
 * byte where they were kept. None is written outside of the folder. What is there already with the same bytes stays.
 * STK_EDATA when some could not be had; the rest is there. r, which may be NULL, counts files as samples. */
STK_API int stk_unpack_sized(const char *pack, const stk_unpack_options *o, size_t o_size, stk_pack_report *r,
                             size_t r_size, stk_error *e);
static inline int stk_unpack(const char *pack, const stk_unpack_options *o, stk_pack_report *r, stk_error *e)
{
    return stk_unpack_sized(pack, o, sizeof *o, r, sizeof *r, e);
}

/* Compares checksums and the number of samples with stoker.json. each() gets a file's name, its bytes and what is wrong
 * (NULL: nothing); non-zero stops. *files: how many there are; 0 for a folder pack, and for what is no pack. */
STK_API int stk_pack_check(const char *pack,
                           int (*each)(void *user, const char *name, const char *reason, int64_t bytes), void *user,
                           int64_t *files, stk_error *e);

/* ------------------------------------------------------------------ the library */

STK_API const char *stk_version(void);

typedef struct stk_info {
    const char *jpeg, *png, *webp; /* versions of the codecs, NULL when not built in */
    const char *cpu_in_use;        /* "c", "avx2", "avx512" */
    char cpu_has[128];
    int cpus_online, cpus_affinity;
    double cpus_quota;                  /* of the cgroup; 0: none */
    int threads;                        /* what would be chosen */
    int64_t memory_total, memory_limit; /* of the machine; of the cgroup, 0: none */
    int64_t memory;                     /* what would be chosen */
    char cache_dir[1024];
    char no_uring[160];      /* why files cannot be read through io_uring here; "": they can */
    const char *zlib, *zstd; /* versions of what unpacks shards, NULL when not built in */
    int local_ranks;         /* of this machine, which share threads and memory; 0: no launcher says */
} stk_info;

STK_API int stk_info_get_sized(stk_info *i, size_t size);
static inline int stk_info_get(stk_info *i)
{
    return stk_info_get_sized(i, sizeof *i);
}

/* 64-bit hash of bytes, the one used in checksums and fingerprints; chain it through seed. */
STK_API uint64_t stk_hash(const void *p, size_t n, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
