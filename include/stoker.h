/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stoker.h -- a data loader for training: threads read, decode, transform, shuffle and batch samples.
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
 * Rules for all functions:
 *   - Zero selects the default of every option. A struct that is zero except for a source is valid.
 *   - A function that can fail returns STK_OK or another stk_code. It fills *e only on failure; e may be NULL. Other
 *     functions return a count, an index, a length or a pointer; -1 and NULL mean "none".
 *   - Options, and the data they point to, are copied during the call unless a comment says otherwise.
 *   - A callback that returns non-zero stops the function that called it. Functions that write files, stk_pack and
 *     stk_unpack, then return STK_STOPPED, because their result is incomplete. The others return STK_OK.
 *   - Text written to (buf, n) is null-terminated and truncated to fit. The result is its full length, as in snprintf.
 *   - Sizes are in bytes, times in seconds. The library never prints, never aborts and sets no signal handler.
 *   - Samples depend only on (seed, epoch, position). Threads, ranks, caches and batch size do not change them.
 *   - In a forked child, every call on an inherited loader fails: with STK_EFORK, or with -1, 0, NULL or an empty text
 *     if the function returns no code. Closing the loader does nothing. The child may open its own loader.
 *   - Later versions may add members at the end of structs that _sized functions take or hooks receive. Other structs
 *     do not grow. A _sized function takes the size of the struct that the caller was compiled with. Call the inline
 *     function instead; it passes that size. Members that the library does not know must be zero.
 */
#ifndef STOKER_H
#define STOKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STK_API __attribute__((visibility("default")))

#define STK_VERSION_MAJOR 0
#define STK_VERSION_MINOR 1
#define STK_VERSION_PATCH 0

/* ------------------------------------------------------------------ errors */
#define STK_CODES(X)                                                                                                   \
    X(OK, 0, "success")                                                                                                \
    X(END, 1, "end of the epoch, or of a list")                                                                        \
    X(AGAIN, 2, "not ready yet")                                                                                       \
    X(STOPPED, 3, "the loader was stopped")                                                                            \
    X(EUSAGE, 16, "wrong argument")                                                                                    \
    X(EDATA, 17, "bad sample")                                                                                         \
    X(EROTTEN, 18, "too many bad samples")                                                                             \
    X(EIO, 19, "cannot read or write")                                                                                 \
    X(ENOTFOUND, 20, "no such file or folder")                                                                         \
    X(ENOMEM, 21, "not enough memory")                                                                                 \
    X(ECHANGED, 22, "the state belongs to another dataset")                                                            \
    X(EFORK, 23, "the loader belongs to the parent process")                                                           \
    X(EBUILD, 24, "not in this build")                                                                                 \
    X(EBUG, 25, "a bug in stoker")                                                                                     \
    X(EDEVICE, 26, "the GPU cannot be used")
#define STK_CODE_ENUM(name, value, words) STK_##name = value,
typedef enum stk_code { STK_CODES(STK_CODE_ENUM) } stk_code;

/* An error. The struct belongs to the caller. */
typedef struct stk_error {
    int code;         /* stk_code */
    int os_error;     /* errno; 0 if the system did not report an error */
    int64_t sample;   /* -1 if no sample is at fault */
    char stage[16];   /* "read", "decode", "transform", ... */
    char path[1024];  /* the file; if it does not fit, only the end of it */
    char reason[640]; /* why, and what to do about it */
    char text[1700];  /* everything in one line: "path: reason" */
} stk_error;

STK_API const char *stk_code_words(int code); /* as above, for example "bad sample" */

/* ------------------------------------------------------------------ fields and arrays */
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

/* What a field of a sample contains. */
typedef enum stk_kind {
    STK_KIND_DEFAULT = 0, /* detected from the data */
    STK_IMAGE,
    STK_INT,    /* one int64 */
    STK_FLOAT,  /* one float32 */
    STK_TENSOR, /* numbers of any type and shape */
    STK_BYTES,
    STK_TEXT,
    STK_JSON,
    /* These follow the image through the ops. Rows of boxes, masks and keypoints are ragged. */
    STK_MASK,  /* one integer for every pixel */
    STK_MASKS, /* a mask for every box */
    STK_BOXES, /* float32 rows of 4 numbers, in the format of the column, or as ConvertBoundingBoxFormat says */
    STK_POINTS /* float32 rows of x and y, and an optional third number that is copied */
} stk_kind;

/* An array, as in DLPack. */
typedef struct stk_array {
    const char *name;
    void *data;
    stk_dtype dtype;
    stk_kind kind; /* set in batches; ignored in arrays that the caller passes */
    int ndim;
    const int64_t *shape;
    const int64_t *strides; /* in elements; NULL: dense, in row-major order */
    int device;             /* DLPack's device type: 1 is the CPU. The caller may also pass 0 for the CPU */
    int device_id;          /* which device of that type; 0 on the CPU */
    void *ready;            /* the event to wait for before using data (CUDA: a cudaEvent_t); NULL: data is ready */
} stk_array;

/* A column of a source: the value that every sample has under one name. */
typedef struct stk_column {
    const char *name;
    stk_kind kind;
    stk_dtype dtype; /* dtype, ndim and shape: only for numbers */
    int ndim;
    const int64_t *shape; /* of one sample; -1 where samples differ */
    int label;            /* non-zero: the column is the field "label", unless `fields` says otherwise */
} stk_column;

/* The value of one sample in a column: dense numbers if dtype is set; otherwise bytes, text or an encoded image. */
typedef struct stk_cell {
    const void *bytes; /* NULL: no value */
    size_t n;          /* bytes */
    stk_dtype dtype;
    int ndim;
    int64_t shape[8];
    const char *file; /* cells() may set this instead of bytes: the path of a file with the value; n is its size */
} stk_cell;

/* ------------------------------------------------------------------ options */
typedef enum stk_layout { STK_LAYOUT_DEFAULT = 0, STK_NCHW, STK_NHWC } stk_layout;
/* How a batch holds images of different sizes. pad: rows are padded with zeros, at the right and at the bottom, to the
 * largest height and width of the batch, and "NAME.sizes" has the height and width of every row (int64). list: a ragged
 * field. The same holds for masks. */
typedef enum stk_sizes { STK_SIZES_DEFAULT = 0, STK_SIZES_SAME, STK_SIZES_PAD, STK_SIZES_LIST } stk_sizes;

typedef enum stk_fidelity { STK_FIDELITY_DEFAULT = 0, STK_EXACT, STK_DRAFT } stk_fidelity;
typedef enum stk_on_error { STK_ON_ERROR_DEFAULT = 0, STK_RAISE, STK_SKIP, STK_REPLACE } stk_on_error;
typedef enum stk_reader { STK_READER_DEFAULT = 0, STK_READER_PREAD, STK_READER_URING } stk_reader;
typedef enum stk_cpu { STK_CPU_DEFAULT = 0, STK_CPU_C, STK_CPU_AVX2, STK_CPU_AVX512 } stk_cpu;
typedef enum stk_cache {
    STK_CACHE_DEFAULT = 0, /* none */
    STK_CACHE_NONE,
    STK_CACHE_BYTES,  /* encoded files, unchanged */
    STK_CACHE_DCT,    /* JPEG coefficients */
    STK_CACHE_PIXELS, /* pixels before the first random op */
    STK_CACHE_AUTO    /* chosen by the loader; stk_explain reports the choice */
} stk_cache;
/* Which part of decoding JPEGs a GPU does. The CPU decodes what the GPU cannot, such as progressive JPEGs and other
 * formats, into the same batches. */
typedef enum stk_device_work {
    STK_DEVICE_WORK_DEFAULT = 0, /* auto */
    STK_DEVICE_WORK_AUTO,        /* decode, for a share of the rows that depends on the load; stk_explain reports it */
    STK_DEVICE_WORK_NONE,        /* none: the GPU only normalises, and converts type and layout */
    STK_DEVICE_WORK_IDCT,        /* everything after the Huffman codes, if the ops only crop, resize and flip */
    STK_DEVICE_WORK_DECODE       /* the Huffman codes, too; of every other file before its checkpoints are known */
} stk_device_work;

typedef struct stk_options {
    /* Source. Set one of source, sources, arrays, the three kinds of hooks (see "callbacks") and opened. */
    const char *source;         /* a folder, list or container, detected by its contents; "tar:x" forces a kind */
    const char *const *sources; /* several sources of any kind, joined, with the fields that all of them have */
    int n_sources;
    const stk_array *arrays; /* first dimension: samples. Not copied; must outlive the loader or source */
    int n_arrays;
    const struct stk_read_hooks *read_hooks;
    const struct stk_fill_hooks *fill_hooks;
    const struct stk_cells_hooks *cells_hooks;
    /* From stk_source_open. Set classes, index_beside, max_bytes, fields and source_fields there, not here. */
    const struct stk_source *opened;
    const char *const *classes; /* class names in the order of their indices; NULL: as found */
    int n_classes;
    int index_beside;  /* also write the index of shards next to them, so that copies of the folder have it */
    int64_t max_bytes; /* a larger file is a bad sample; 0: 1 GiB */

    /* Fields: "[name =] column [: kind] [? default], ..." with the kinds image, int, float, class, text, bytes, json,
     * tensor, mask, masks, boxes, keypoints and each:TYPE, or a type with a shape: "x:float32(28,28)". NULL: the image
     * as "image", the label as "label", and all other columns under their own names. */
    const char *fields;
    /* The fields of `source`, or of each of `sources` (NULL: all). `fields` then selects from these names. */
    const char *const *source_fields;
    const int64_t *subset; /* only these samples, in this order; NULL: all */
    int64_t n_subset;
    int64_t take; /* only the first n samples; 0: all */

    /* Ops, and the form of images. */
    const char *ops;              /* "Resize(256) | CenterCrop(224) | Normalize" */
    const struct stk_op_hook *op; /* runs on every finished row */
    stk_dtype dtype;              /* of images: float32 (the default), float16, bfloat16 or uint8 */
    stk_layout layout;            /* default: NCHW */
    stk_sizes sizes;              /* default: same, all images of a batch have one size */
    stk_fidelity fidelity;        /* default: exact, Pillow's pixels bit for bit. draft: decode large JPEGs smaller */
    int no_exif;                  /* ignore the EXIF orientation */
    int64_t max_pixels;           /* a larger image is a bad sample; 0: 256 million */

    /* Batches. */
    int64_t batch_size; /* per rank; 0: 1 */
    int drop_last;
    int pad_last; /* fill the last batch with repeated rows; "valid" is false there */

    /* Order. */
    int shuffle;
    uint64_t seed;
    int64_t steps_per_epoch; /* batches in an epoch, made of repeated passes over the samples; 0: one pass */
    const double *weights;   /* one per sample: the sample at each position of an epoch is drawn by weight */
    int64_t n_weights;
    /* stk_loader_set_order gives the order; the loader neither shuffles it nor splits it by rank. The random draws of a
     * row depend on its position and on rank and world_size. */
    int sampled;
    /* One weight for each of `sources`: every position takes a sample from one of them, by weight. Each source repeats
     * its samples in passes of its own, which continue across epochs. An epoch has as many positions as all sources
     * have samples, unless steps_per_epoch is set. `subset` must list samples in the order of `sources`. */
    const double *mix;
    int n_mix;
    const int64_t *mix_counts; /* how many consecutive samples belong to each weight; NULL: as in `sources` */

    /* Errors. */
    stk_on_error on_error; /* default: raise */
    double max_bad;        /* share of bad samples in an epoch that skip and replace accept; 0: 0.01; negative: none */
    int keep_empty;        /* with skip and one rank: deliver a batch without rows if all its samples are bad */
    const struct stk_log_hook *log; /* receives warnings */

    /* Resources. */
    int threads;       /* at most; 0: what affinity, cgroup and local ranks allow */
    int64_t memory;    /* limit in bytes for batches, scratch and caches; 0: a quarter of free memory / local ranks */
    stk_reader reader; /* default: pread, or io_uring if files are not in the page cache */
    stk_cpu cpu;       /* default: the best instruction set of this machine */
    int idle;          /* prefetch nothing before the first stk_next: the caller makes batches with stk_loader_make */
    const struct stk_allocator *allocator; /* allocates batches; NULL: the system's */

    /* Caches: what the first epoch keeps for later ones, in memory, or in cache_dir if that is given. Rows that need no
     * decoding are kept in memory only. Samples of hooks are assumed to be the same in every epoch. */
    stk_cache cache;       /* default: none */
    const char *cache_dir; /* also for indexes. NULL: STOKER_CACHE_DIR, else the user's folder; "off": write nothing */
    int64_t cache_size;    /* bytes that cache_dir may hold; 0: half of what its disk can spare */
    int cache_shared;      /* a descriptor of shared memory (memfd_create), which loaders in several processes use as
                            * one cache in memory of its size; 0: none. The caller closes it. */

    /* Ranks. */
    int rank, world_size; /* default: rank 0 of 1 */

    /* Where batches are: "cuda" or "cuda:N" for the memory of a GPU; "cpu" or NULL: host memory. Text, bytes, JSON, and
     * "index", "position" and "valid" stay in host memory. Cannot be combined with `allocator`. */
    const char *device;
    stk_device_work device_work; /* default: auto; without a GPU it must be that or none */
} stk_options;

/* ------------------------------------------------------------------ loader */
typedef struct stk_loader stk_loader;
typedef struct stk_batch stk_batch;
typedef struct stk_source stk_source;

STK_API int stk_open_sized(stk_loader **out, const stk_options *o, size_t size, stk_error *e);
static inline int stk_open(stk_loader **out, const stk_options *o, stk_error *e)
{
    return stk_open_sized(out, o, sizeof *o, e);
}
/* Closes a loader, even in the middle of an epoch. No other call may be running or follow. NULL is allowed. */
STK_API void stk_close(stk_loader *l);

/* Returns the next batch, in order. STK_END ends the epoch; the next call starts the next epoch. Several threads may
 * call it: each batch, and each STK_END, goes to one of them. After an error, the next call returns the next batch. */
STK_API int stk_next(stk_loader *l, stk_batch **out, stk_error *e);
/* The same, but returns STK_AGAIN if nothing is ready within `ms` milliseconds. A negative `ms` waits forever. With a
 * device, a batch that is ready may have to be waited for a little longer, until the device has decoded its files. */
STK_API int stk_next_wait(stk_loader *l, stk_batch **out, int ms, stk_error *e);
STK_API void stk_stop(stk_loader *l); /* from any thread: waiting and later calls of stk_next return STK_STOPPED */

STK_API int64_t stk_length(const stk_loader *l);       /* batches of this rank in an epoch; 0 with `sampled` */
STK_API int64_t stk_loader_count(const stk_loader *l); /* samples, after `subset` and `take` */
STK_API int64_t stk_loader_epoch(stk_loader *l);       /* the epoch of the next batch */
STK_API int stk_set_epoch(stk_loader *l, int64_t epoch, stk_error *e); /* the current epoch: no effect */
STK_API uint64_t stk_loader_fingerprint(const stk_loader *l);          /* of its source, `subset` and `take` */
STK_API const stk_source *stk_loader_source(const stk_loader *l);      /* lives as long as the loader; do not close */

/* With options.sampled: sets the samples of the current or the next epoch, in order (0 to stk_loader_count - 1). Their
 * batches have batch_size rows. With `starts`, batch i has the rows starts[i] to starts[i + 1] - 1, at most batch_size.
 * Call it once for each epoch. stk_set_epoch and stk_state_set discard the given orders. */
STK_API int stk_loader_set_order(stk_loader *l, int64_t epoch, const int64_t *samples, int64_t n, const int64_t *starts,
                                 int64_t n_batches, stk_error *e);
/* Makes the rows of n samples (as in the field "index") exactly as an epoch has them, in the caller's thread. It does
 * not change the order. With weights, steps_per_epoch, mix or sampled, a sample may occur several times in an epoch,
 * with new random draws each time; positions (as in the field "position") select one occurrence. If positions is NULL,
 * it is the first occurrence. If samples is NULL, the rows are those at the positions; with `sampled`, give samples. */
STK_API int stk_loader_get(stk_loader *l, const int64_t *samples, const int64_t *positions, int64_t n, int64_t epoch,
                           stk_batch **out, stk_error *e);
/* Makes n rows from position `first` of an epoch, in the caller's thread, as stk_next would deliver them: caches and
 * on_error apply. samples: NULL uses the loader's own order. It does not change the order. Before each row, its index
 * is written to *row, unless row is NULL. STK_AGAIN: all samples are bad and the batch is left out. */
STK_API int stk_loader_make(stk_loader *l, int64_t epoch, int64_t first, const int64_t *samples, int64_t n,
                            int64_t *row, stk_batch **out, stk_error *e);
/* Describes the batch that comes `ahead` batches after the next one, in this epoch or a later one: its epoch, its first
 * position, and its number of rows. If `ahead` is -1, it is the last delivered batch. STK_END: the batch is unknown. */
STK_API int stk_loader_span(stk_loader *l, int64_t ahead, int64_t *epoch, int64_t *first, int64_t *n, stk_error *e);
/* With options.idle: skips the next batch as if it was delivered. STK_END: skipped the end of the epoch. */
STK_API int stk_loader_pass(stk_loader *l, stk_error *e);
/* Writes the random draws of one row of stk_loader_get, as JSON. sample or position may be NULL, as above.
 *     {"sample": 17, "size": [375, 500], "ops": [{"op": "RandomResizedCrop", "top": 3, "left": 5, "height": 100,
 *      "width": 90, "size": [224, 224]}, {"op": "RandomHorizontalFlip", "flip": true}, {"op": "Normalize"}]}
 * The first "size" is the height and width of the image before the ops; 0 without an image. If there is a fill or an op
 * hook, the member "fill" or "op" is its stk_row.random. */
#define STK_DRAWN_BYTES 16384
STK_API int stk_loader_drawn(stk_loader *l, const int64_t *sample, const int64_t *position, int64_t epoch, char *buf,
                             size_t n, stk_error *e);
/* Writes how MixUp, CutMix or Mixup combine a row of a batch, as JSON; {} without these ops. The batch has `rows` good
 * rows, the first at position `first`; stk_loader_get returns them as they are before these ops.
 *     {"lam": 0.4375, "box": [0, 12, 96, 180], "partner": 6}
 * lam is the share of the row, and partner the row that has the rest. CutMix has a box (left, top, right, bottom). */
STK_API int stk_loader_blended(stk_loader *l, int64_t first, int64_t rows, int64_t row, int64_t epoch, char *buf,
                               size_t n, stk_error *e);

/* The state is JSON of less than 300 bytes. It counts delivered batches, not prefetched ones. After stk_state_set, the
 * next batch is the one that would have followed, even if the number of ranks has changed. */
STK_API size_t stk_state_get(stk_loader *l, char *buf, size_t n);
STK_API int stk_state_set(stk_loader *l, const char *text, stk_error *e);

/* ------------------------------------------------------------------ batches */
/* A batch belongs to the caller: it is writable, never overwritten, and stays valid after stk_close. Any thread may
 * release it; in a forked child, releasing does nothing. Its fields are "image" (or the names of the arrays) and, if
 * the source has labels, "label" (int64). stk_field also finds "index" (which sample; int64), "position" (in the epoch,
 * over all ranks; int64) and "valid" (bool), which stk_batch_n_fields does not count.
 * A ragged field (text, bytes, numbers of an open shape) has all its rows in one array, one after the other. Row i goes
 * from "NAME.offsets"[i] to [i + 1] (int64), counted along the first dimension. If other dimensions differ, too, the
 * values are flat, and "NAME.shapes" has the shape of every row. A padded field has equal rows and "NAME.lengths".
 * Masks, boxes and keypoints of a view are "VIEW.NAME". If the view makes n images (VIEW*n), their ragged fields have
 * n rows for each sample: offsets[n * i] and the following belong to sample i. */
STK_API int64_t stk_samples(const stk_batch *b); /* rows */
STK_API int64_t stk_batch_epoch(const stk_batch *b);
STK_API int stk_batch_n_fields(const stk_batch *b);
STK_API const stk_array *stk_field(const stk_batch *b, const char *name); /* NULL: no such field */
STK_API const stk_array *stk_field_at(const stk_batch *b, int i);         /* i is from 0; NULL: no such field */
STK_API void stk_retain(stk_batch *b);                                    /* each call needs one more stk_release */
STK_API void stk_release(stk_batch *b);                                   /* NULL is allowed */

/* The memory of one field, kept without the rest of the batch. It may outlive both batch and loader. */
typedef struct stk_memory stk_memory;
STK_API stk_memory *stk_batch_retain_field(const stk_batch *b, const char *name); /* NULL: no such field */
STK_API void stk_memory_retain(stk_memory *m);
STK_API void stk_memory_release(stk_memory *m); /* NULL is allowed */

/* Batches in the memory of a GPU: a copy may still be writing them when stk_next returns, and the caller's streams may
 * still read them at the release. Before a stream (cudaStream_t) uses a batch or a field, pass the stream to
 * stk_batch_use or stk_memory_use. The stream then waits for the data; the caller does not. When the last reference is
 * released, work may still be queued on these streams. The memory is reused after that work, so a stream must exist
 * until it is done. Without a GPU, these do nothing. */
STK_API int stk_batch_use(const stk_batch *b, void *stream, stk_error *e);
STK_API int stk_memory_use(stk_memory *m, void *stream, stk_error *e);
/* Copies the first n bytes of a field to host memory, and waits until that is done. */
STK_API int stk_memory_read(stk_memory *m, void *to, size_t n, stk_error *e);

/* ------------------------------------------------------------------ statistics */
/* The stage that limits the loader; consumer: the caller takes batches more slowly than they are made. */
typedef enum stk_limit {
    STK_LIMIT_UNKNOWN = 0,
    STK_LIMIT_READ,
    STK_LIMIT_DECODE,
    STK_LIMIT_TRANSFORM,
    STK_LIMIT_OP,
    STK_LIMIT_CONSUMER
} stk_limit;

typedef struct stk_stats {
    double seconds;                             /* since stk_open */
    double waited_s;                            /* time that callers waited in stk_next */
    double read_s, decode_s, transform_s, op_s; /* summed over the threads */
    double idle_s;                              /* time that threads had no work, summed over the threads */
    int threads;
    stk_limit limit;
    int64_t batches, samples, bad; /* batches and samples delivered; bad samples found */
    int64_t warnings;              /* images that the codec decoded with a warning */
    int64_t read_bytes;
    int64_t memory_bytes, memory_limit;                   /* held by the loader now; the limit */
    int64_t kept_bytes;                                   /* in batches that the caller holds */
    int64_t cache_entries, cache_bytes, cache_disk_bytes; /* entries; their bytes in memory and on disk */
    int64_t cache_hits, cache_misses;
    /* With a device. The times of copies and kernels may include waits for the caller's own kernels. */
    int64_t device_bytes, copied_bytes; /* memory of the device that the loader holds now; bytes sent to the device */
    double copy_s, kernel_s;
    double stream_waited_s; /* time that streams waited for batches */
    int64_t device_samples; /* images whose pixels the device makes; those of dropped batches count, too */
    int64_t device_decoded; /* those of them whose Huffman codes the device decoded */
} stk_stats;

STK_API int stk_stats_get_sized(stk_loader *l, stk_stats *s, size_t size);
static inline int stk_stats_get(stk_loader *l, stk_stats *s)
{
    return stk_stats_get_sized(l, s, sizeof *s);
}
/* One source of a mixture. */
typedef struct stk_mix_stats {
    double share;      /* of the positions, 0 to 1 */
    int64_t samples;   /* in the source */
    int64_t delivered; /* over all epochs and ranks, with repeats */
} stk_mix_stats;

/* Returns the i-th source of a mixture, from 0; STK_END after the last. */
STK_API int stk_loader_mix(stk_loader *l, int i, stk_mix_stats *out);
/* The error of the i-th bad sample since stk_open, from 0: each sample once, at most 1,000. STK_END after the last. */
STK_API int stk_loader_bad_sample(stk_loader *l, int64_t i, stk_error *out);
STK_API size_t stk_explain(stk_loader *l, char *buf, size_t n); /* what the loader chose, and why */

/* ------------------------------------------------------------------ sources */
/* A source gives access to samples without a loader. It is immutable and thread-safe. Options are as in stk_options. */
typedef struct stk_source_options {
    const char *source;
    const char *const *sources;
    const stk_array *arrays;
    int n_sources, n_arrays;
    const struct stk_read_hooks *read_hooks;
    const struct stk_fill_hooks *fill_hooks;
    const struct stk_cells_hooks *cells_hooks;
    const char *const *classes;
    int n_classes, index_beside;
    const char *fields;
    const char *const *source_fields;
    int64_t max_bytes, max_pixels; /* stk_source_image and stk_scan use max_pixels and no_exif */
    int no_exif, threads;          /* building the index uses threads and memory */
    int64_t memory;
    const char *cache_dir;
} stk_source_options;

STK_API int stk_source_open_sized(stk_source **out, const stk_source_options *o, size_t size, stk_error *e);
static inline int stk_source_open(stk_source **out, const stk_source_options *o, stk_error *e)
{
    return stk_source_open_sized(out, o, sizeof *o, e);
}
STK_API void stk_source_close(stk_source *s); /* NULL is allowed. Loaders that use the source keep it */

STK_API const char *stk_source_kind(const stk_source *s); /* "folder of classes", "list", ... */
STK_API int64_t stk_source_count(const stk_source *s);    /* samples */
STK_API int stk_source_n_classes(const stk_source *s);
STK_API const char *stk_source_class(const stk_source *s, int i);           /* name; NULL: no such class */
STK_API size_t stk_source_fields(const stk_source *s, char *buf, size_t n); /* in the syntax of stk_options.fields */
/* A hash of the relative path, size and label of every sample. The first call may have to examine every file. */
STK_API uint64_t stk_source_fingerprint(const stk_source *s);
STK_API int64_t stk_source_label(const stk_source *s, int64_t sample); /* -1: none, or known only after reading */
/* The path is as the user would type it. The key is the path within the source. stk_source_find compares all keys. */
STK_API size_t stk_source_path(const stk_source *s, int64_t sample, char *buf, size_t n);
STK_API size_t stk_source_key(const stk_source *s, int64_t sample, char *buf, size_t n);
STK_API int64_t stk_source_find(const stk_source *s, const char *key); /* the sample with this key; -1: none */

/* What a source contains besides samples. Filling it may examine every file. The strings live as long as the source. */
typedef struct stk_overview {
    int64_t bytes; /* of all samples */
    /* Counts of files and folders. `beside`: images next to class folders, which ignored_other counts, too. */
    int64_t ignored_hidden, ignored_other, ignored_loops, unreadable, empty_classes, missing, beside;
    int index_cached;     /* the index came from the cache */
    double index_s;       /* time to build or load the index */
    int64_t index_bytes;  /* memory of the index */
    const char *columns;  /* columns of a list that `fields` may add: "caption, score"; NULL: none */
    const char *left_out; /* fields that only some of the joined sources have, and why; NULL: none */
} stk_overview;

STK_API void stk_source_overview_sized(const stk_source *s, stk_overview *v, size_t size);
static inline void stk_source_overview(const stk_source *s, stk_overview *v)
{
    stk_source_overview_sized(s, v, sizeof *v);
}
/* Calls each() with every field of a sample as it is stored: images encoded, numbers as numbers. The cell is valid only
 * during the call. A non-zero result stops. */
STK_API int stk_source_cells(const stk_source *s, int64_t sample,
                             int (*each)(void *user, const char *name, stk_kind kind, const stk_cell *c), void *user,
                             stk_error *e);
/* Decodes the image of a sample to RGB, 3 bytes per pixel. Free *pixels with stk_free. */
STK_API int stk_source_image(const stk_source *s, int64_t sample, uint8_t **pixels, int *width, int *height,
                             int64_t *label, stk_error *e);

typedef enum stk_format { STK_FORMAT_UNKNOWN = 0, STK_JPEG, STK_PNG, STK_WEBP } stk_format;

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
#define STK_N_ODDITIES                 13
#define STK_ODD_ENUM(name, bit, words) STK_ODD_##name = 1 << (bit),
enum { STK_ODDITIES(STK_ODD_ENUM) };

/* The result of examining one sample. */
typedef struct stk_finding {
    int64_t sample, bytes, label; /* label: -1 if none */
    const char *path;
    stk_format format;
    int width, height, channels, bits; /* as stored */
    int orientation;                   /* EXIF, 1 to 8 */
    unsigned odd;                      /* STK_ODD_* */
    int warnings;                      /* how many the codec gave; 0 if not decoded */
    int code;                          /* STK_OK, or why the sample is bad */
    const char *reason;                /* why the sample is bad, in words */
    int needs_memory;                  /* failed only because `memory` was too small */
    int64_t run;                       /* how many samples this finding covers, from this one on; 1 without `runs` */
} stk_finding;

typedef struct stk_scan_options {
    int decode;            /* decode every image; 0: read only the headers */
    int runs;              /* report consecutive samples that were never written (HDF5) as one finding */
    const int64_t *subset; /* subset, n_subset, take, memory, threads and cpu are as in stk_options */
    int64_t n_subset, take, memory;
    int threads;
    stk_cpu cpu;
    int (*each)(void *user, const stk_finding *f); /* in order, from the calling thread; non-zero stops; may be NULL */
    void *user;
} stk_scan_options;

/* Examines all samples of a source. */
STK_API int stk_scan_sized(const stk_source *s, const stk_scan_options *o, size_t size, stk_error *e);
static inline int stk_scan(const stk_source *s, const stk_scan_options *o, stk_error *e)
{
    return stk_scan_sized(s, o, sizeof *o, e);
}

/* ------------------------------------------------------------------ callbacks */
/* Hooks are functions of the caller. Several threads call them at the same time. A hook that takes a stk_error returns
 * STK_OK, or fills *e and returns another code. count() returns the number of samples. close() may be NULL; it is
 * called exactly once, even if opening fails. The data of `user` must live until then. A hook may call its loader,
 * except for functions that wait for rows: stk_next, stk_loader_get, stk_set_epoch, stk_state_set, stk_close. */

/* One row, as a hook sees it. */
typedef struct stk_row {
    int thread; /* 0 to n - 1 for the n threads of the loader; n for a thread that calls stk_loader_get or stk_next */
    int64_t epoch, position, sample, label;
    uint64_t random;        /* a random number for this row, the same for any number of threads */
    const stk_array *image; /* op hook: the finished row; NULL in fill() */
    void *to;               /* op hook: where to write the result; equals image->data if `result` is NULL */
} stk_row;

/* A source that returns the encoded bytes of an image. */
typedef struct stk_read_hooks {
    void *user;
    int64_t (*count)(void *user);
    void (*close)(void *user);
    /* Sets *bytes, *n and *label. The bytes must stay valid until the next call with the same thread number. */
    int (*read)(void *user, int thread, int64_t sample, const void **bytes, size_t *n, int64_t *label, stk_error *e);
} stk_read_hooks;

/* A source that writes rows into the batch. */
typedef struct stk_fill_hooks {
    void *user;
    int64_t (*count)(void *user);
    void (*close)(void *user);
    int (*fill)(void *user, const stk_row *row, void *const *to, stk_error *e); /* writes field i to to[i] */
    const stk_array *fields; /* of one sample: name, dtype, ndim, shape; dense */
    int n_fields;
} stk_fill_hooks;

/* A source of named columns. `fields` in the options selects among them. */
typedef struct stk_cells_hooks {
    void *user;
    int64_t (*count)(void *user);
    void (*close)(void *user);
    /* Sets cells[0] to cells[n - 1] to the values of the columns wanted[0] to wanted[n - 1]. The values must stay valid
     * until the next call with the same thread number. */
    int (*cells)(void *user, int thread, int64_t sample, const int *wanted, int n, stk_cell *cells, stk_error *e);
    const stk_column *columns;
    int n_columns;
    /* The rest is optional. */
    size_t (*key)(void *user, int64_t sample, char *buf, size_t n);  /* a sample's key */
    size_t (*path)(void *user, int64_t sample, char *buf, size_t n); /* its name in errors; NULL: the key */
    const char *kind;                                                /* what stk_source_kind returns; not copied */
    uint64_t fingerprint;                                            /* a hash of the data */
    /* Samples that are best read together form blocks. This is the first sample of each block: ascending, from 0. A
     * shuffle then visits the blocks in random order, and shuffles every `window` samples of that sequence. NULL: all
     * samples are shuffled together. */
    const int64_t *blocks;
    int64_t n_blocks, window;
} stk_cells_hooks;

/* Runs on every finished row and may change it. With `result` (dtype, ndim, shape) it turns row->image into row->to. */
typedef struct stk_op_hook {
    void *user;
    int (*run)(void *user, const stk_row *row, stk_error *e);
    const stk_array *result;
} stk_op_hook;

/* Allocates the memory of batches, aligned to 64 bytes. Any thread may call it as long as a batch exists, even after
 * stk_close. It must not call the loader. */
typedef struct stk_allocator {
    void *user;
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *p, size_t bytes);
    int cached; /* non-zero: it caches freed memory itself, so the loader frees memory at every release */
} stk_allocator;

/* Receives warnings from any thread, until stk_close returns. */
typedef struct stk_log_hook {
    void *user;
    void (*line)(void *user, const char *text);
} stk_log_hook;

/* ------------------------------------------------------------------ caches on disk */
/* What is cached of one dataset, by kind: "index", "checkpoints", "bytes", "dct" or "pixels". */
typedef struct stk_cached {
    const char *source, *kind;    /* source: "" if unknown */
    int64_t entries, bytes, used; /* used: the time of the last use, in seconds since 1970 */
} stk_cached;

/* Calls each() for everything in a cache folder (NULL: the default of stk_options). A non-zero result stops. */
STK_API int stk_cache_list(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user,
                           stk_error *e);
/* Deletes one kind (NULL: all) of one source (NULL: all), even while loaders use it. *bytes: deleted; may be NULL. */
STK_API int stk_cache_clear(const char *cache_dir, const char *kind, const char *source, int64_t *bytes, stk_error *e);

/* ------------------------------------------------------------------ packing */
/* The format of packed images. Without resize and ops, an image that already has that format keeps its bytes. */
typedef enum stk_as {
    STK_AS_DEFAULT = 0, /* keep */
    STK_AS_KEEP,        /* every image keeps its format */
    STK_AS_JPEG,        /* JPEGs of several scans, and STK_AS_DCT, become one scan with the same coefficients */
    STK_AS_WEBP,
    STK_AS_PNG,
    STK_AS_RAW, /* npy, rows x columns x 3 bytes; all images must have the same size */
    STK_AS_DCT  /* JPEG without entropy coding: larger, and decodes to the same pixels in a fraction of the time */
} stk_as;

typedef enum stk_to {
    STK_TO_DEFAULT = 0, /* tar */
    STK_TO_TAR,         /* shards in WebDataset's layout: key.jpg, key.cls, ... */
    STK_TO_TFRECORD,    /* shards of tf.train.Example */
    STK_TO_HDF5,        /* data.h5: images, labels */
    STK_TO_NPY,         /* images.npy, labels.npy; all images must have the same size */
    STK_TO_FOLDER       /* files, in class folders if there are classes */
} stk_to;

/* Progress, or an estimate; 0 if not known yet. */
typedef struct stk_pack_report {
    int64_t total, samples, bad; /* samples to pack; packed; left out as bad (on_error: skip) */
    int64_t resumed;             /* how many of `samples` an earlier run packed */
    int64_t bytes_in, bytes_out; /* read; written */
    int64_t shards;
    double seconds;          /* of this run */
    int64_t expected_bytes;  /* to be written in total, estimated from a few samples */
    double expected_seconds; /* left */
    int64_t free_bytes;      /* on the target's disk */
} stk_pack_report;

typedef struct stk_pack_options {
    const char *out; /* a folder; created if it does not exist */
    stk_to to;
    stk_as as;
    int quality;        /* of JPEG and WebP, 1 to 100; 0: 90. WebP of 100 is lossless */
    int64_t shard_size; /* bytes in a shard, at most; 0: 256 MiB. A larger sample gets a shard of its own */
    int resize_short;   /* shrink images so that the shorter side has at most this length; 0: do not */
    int resize_long;    /* the same for the longer side; set only one of the two */
    int baseline;       /* with keep: rewrite a JPEG of several scans as STK_AS_JPEG does */
    int force;          /* replace a pack that was made with other options; write into a folder with other files */
    /* Called from the calling thread: begin() once, before anything is written; progress() after every sample. Both may
     * be NULL. A non-zero result stops with STK_STOPPED; the same call continues later. */
    int (*begin)(void *user, const stk_pack_report *r);
    int (*progress)(void *user, const stk_pack_report *r);
    void *user;
} stk_pack_options;

/* Packs the samples of a source into a folder. r may be NULL. Of *o, only these are used: source (but not `opened`),
 * fields, subset, take, ops (not random), no_exif, max_pixels, shuffle, seed, errors, threads, memory, cpu, cache_dir.
 * After an interruption, the same call continues after the last complete shard. The result has the same bytes. */
STK_API int stk_pack_sized(const stk_options *o, size_t o_size, const stk_pack_options *p, size_t p_size,
                           stk_pack_report *r, size_t r_size, stk_error *e);
static inline int stk_pack(const stk_options *o, const stk_pack_options *p, stk_pack_report *r, stk_error *e)
{
    return stk_pack_sized(o, sizeof *o, p, sizeof *p, r, sizeof *r, e);
}

typedef struct stk_unpack_options {
    const char *out; /* a folder; created if it does not exist */
    int force;       /* overwrite existing files with different contents */
    int threads;     /* 0: what affinity and cgroup allow */
    /* Called for every file, from any thread, one call at a time. reason: why the file could not be written; NULL if it
     * was. A non-zero result stops. May be NULL. */
    int (*each)(void *user, const char *name, const char *reason, int64_t bytes);
    void *user;
} stk_unpack_options;

/* Extracts the files of tar shards, given as a pack, a file or a pattern. The files of a pack get their original names,
 * and their original bytes if the pack kept them; STK_AS_DCT becomes JPEG with the same pixels. Nothing is written
 * outside the folder. Existing files with the same bytes stay. STK_EDATA: some files could not be written; the others
 * were. r counts files as samples and may be NULL. */
STK_API int stk_unpack_sized(const char *pack, const stk_unpack_options *o, size_t o_size, stk_pack_report *r,
                             size_t r_size, stk_error *e);
static inline int stk_unpack(const char *pack, const stk_unpack_options *o, stk_pack_report *r, stk_error *e)
{
    return stk_unpack_sized(pack, o, sizeof *o, r, sizeof *r, e);
}

/* Checks a pack against the checksums and sample counts in stoker.json. each() gets a file's name, what is wrong (NULL:
 * nothing) and its size; non-zero stops. *files: how many were checked. It is 0 for packs of STK_TO_FOLDER, and for
 * sources that are not packs. */
STK_API int stk_pack_check(const char *pack,
                           int (*each)(void *user, const char *name, const char *reason, int64_t bytes), void *user,
                           int64_t *files, stk_error *e);

/* ------------------------------------------------------------------ ops without a source */
/* Ops that run on images in memory. Immutable and thread-safe. */
typedef struct stk_ops stk_ops;
/* dtype and layout are those of the result, as in stk_options. The ops may leave the size open. */
STK_API int stk_ops_open(stk_ops **out, const char *ops, stk_dtype dtype, stk_layout layout, stk_error *e);
STK_API void stk_ops_close(stk_ops *o); /* NULL is allowed */
/* The image is RGB, 3 bytes per pixel, without gaps. `random` determines all random draws. stk_ops_shape sets the shape
 * of the result; stk_ops_run writes the result to `to`. */
STK_API int stk_ops_shape(const stk_ops *o, int width, int height, uint64_t random, int64_t shape[3], stk_error *e);
STK_API int stk_ops_run(const stk_ops *o, const uint8_t *pixels, int width, int height, uint64_t random, void *to,
                        stk_error *e);

/* ------------------------------------------------------------------ the library */
STK_API const char *stk_version(void);
typedef struct stk_info {
    const char *jpeg, *png, *webp, *zlib, *zstd; /* versions of the libraries; NULL: not built in */
    const char *cpu_in_use;                      /* "c", "avx2", "avx512" */
    char cpu_has[128];
    int cpus_online, cpus_affinity;
    double cpus_quota;                  /* of the cgroup; 0: no quota */
    int local_ranks;                    /* processes that share this machine; 0: not started by a launcher */
    int threads;                        /* the default of stk_options.threads here */
    int64_t memory_total, memory_limit; /* of the machine; of the cgroup (0: no limit) */
    int64_t memory;                     /* the default of stk_options.memory here */
    char cache_dir[1024];
    char no_uring[160]; /* why io_uring cannot be used; "" if it can */
} stk_info;

STK_API void stk_info_get_sized(stk_info *i, size_t size);
static inline void stk_info_get(stk_info *i)
{
    stk_info_get_sized(i, sizeof *i);
}

typedef struct stk_gpu {
    char name[96], cuda[16]; /* cuda: the version that the driver supports, "13.0" */
    int64_t memory;
    int capability; /* 90: 9.0 */
} stk_gpu;

/* Describes "cuda:i". STK_END after the last one; another code if no GPU can be used. */
STK_API int stk_gpu_get(int i, stk_gpu *out, stk_error *e);

typedef struct stk_encode_options {
    stk_format format;
    int quality;                /* 1 to 100; 0: 90 */
    int subsample, progressive; /* JPEG: 4:2:0 chroma; several scans */
    int lossless;               /* WebP */
} stk_encode_options;

/* Encodes 8-bit interleaved pixels with 1 or 3 channels. Rows are `stride` bytes apart. Free *out with stk_free. */
STK_API int stk_encode_sized(const uint8_t *pixels, int width, int height, int channels, size_t stride,
                             const stk_encode_options *o, size_t o_size, void **out, size_t *n, stk_error *e);
static inline int stk_encode(const uint8_t *pixels, int width, int height, int channels, size_t stride,
                             const stk_encode_options *o, void **out, size_t *n, stk_error *e)
{
    return stk_encode_sized(pixels, width, height, channels, stride, o, sizeof *o, out, n, e);
}
STK_API void stk_free(void *p); /* NULL is allowed */

typedef enum stk_noise_kind {
    STK_NOISE_DEFAULT = 0, /* normal */
    STK_NOISE_NORMAL,      /* mean 0, standard deviation 1 */
    STK_NOISE_UNIFORM      /* in [0, 1) */
} stk_noise_kind;

/*
 * Writes the first n numbers of the random field that an op used. stk_loader_drawn reports its seed. The fields are:
 *     RandomErasing(value=random)   normal, in C, H, W order
 *     GaussianNoise                 normal, in H, W, C order
 *     ElasticTransform              uniform, for x and then for y, each in H, W order
 */
STK_API void stk_noise(float *out, size_t n, uint64_t seed, stk_noise_kind kind);

/* The 64-bit hash of checksums and fingerprints. To chain hashes, pass the previous one as the seed. */
STK_API uint64_t stk_hash(const void *p, size_t n, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
