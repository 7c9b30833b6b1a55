/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c -- the options that several commands share, one row each.
 */
#include "args.h"

static const struct args_word dtypes[] = {
    {"float32", STK_FLOAT32}, {"float16", STK_FLOAT16}, {"bfloat16", STK_BFLOAT16}, {"uint8", STK_UINT8}, {0}};
static const struct args_word layouts[] = {{"NCHW", STK_NCHW}, {"NHWC", STK_NHWC}, {0}};
static const struct args_word sizes[] = {
    {"same", STK_SIZES_SAME}, {"pad", STK_SIZES_PAD}, {"list", STK_SIZES_LIST}, {0}};
static const struct args_word fidelities[] = {{"exact", STK_EXACT}, {"draft", STK_DRAFT}, {0}};
static const struct args_word policies[] = {{"raise", STK_RAISE}, {"skip", STK_SKIP}, {"replace", STK_REPLACE}, {0}};
static const struct args_word works[] = {{"auto", STK_DEVICE_WORK_AUTO},
                                         {"none", STK_DEVICE_WORK_NONE},
                                         {"idct", STK_DEVICE_WORK_IDCT},
                                         {"decode", STK_DEVICE_WORK_DECODE},
                                         {0}};
static const struct args_word caches[] = {{"none", STK_CACHE_NONE}, {"bytes", STK_CACHE_BYTES},
                                          {"dct", STK_CACHE_DCT},   {"pixels", STK_CACHE_PIXELS},
                                          {"auto", STK_CACHE_AUTO}, {0}};
static const struct args_word readers[] = {
    {"auto", STK_READER_DEFAULT}, {"pread", STK_READER_PREAD}, {"uring", STK_READER_URING}, {0}};
static const struct args_word cpus[] = {{"c", STK_CPU_C}, {"avx2", STK_CPU_AVX2}, {"avx512", STK_CPU_AVX512}, {0}};

#define AT(member) offsetof(struct args, member)
#define ANY        INT64_MAX

const struct args_option args_common[] = {
    {"ops", 0, ARGS_TEXT, FOR_PIXELS, AT(o.ops), 0, 0, NULL, "TEXT",
     "apply these ops to every image: \"Resize(256) | CenterCrop(224)\"", "none"},
    {"fidelity", 0, ARGS_WORD, FOR_PIXELS, AT(o.fidelity), 0, 0, fidelities, "HOW",
     "exact: Pillow's pixels, bit for bit; draft: decode large JPEGs at a smaller size", "exact"},
    {"no-exif", 0, ARGS_ON, FOR_PIXELS, AT(o.no_exif), 0, 0, NULL, NULL,
     "ignore the EXIF orientation: do not rotate images", NULL},
    {"seed", 0, ARGS_UINT64, FOR_PIXELS, AT(o.seed), 0, 0, NULL, "N", "determines the order and every random op", "0"},
    {"shuffle", 0, ARGS_ON, FOR_PIXELS, AT(o.shuffle), 0, 0, NULL, NULL, "shuffle, with a new order in every epoch",
     NULL},
    {"no-shuffle", 0, ARGS_OFF, FOR_PIXELS, AT(o.shuffle), 0, 0, NULL, NULL, "use the order of the source", NULL},

    {"dtype", 0, ARGS_WORD, FOR_FORM, AT(o.dtype), 0, 0, dtypes, "TYPE", "float32, float16, bfloat16 or uint8",
     "float32"},
    {"sizes", 0, ARGS_WORD, FOR_FORM, AT(o.sizes), 0, 0, sizes, "HOW",
     "if the images of a batch differ in size: same (report an error), pad or list", "same"},
    {"layout", 0, ARGS_WORD, FOR_FORM, AT(o.layout), 0, 0, layouts, "ORDER", "NCHW or NHWC", "NCHW"},

    {"batch-size", 0, ARGS_INT64, FOR_LOADER, AT(o.batch_size), 1, INT32_MAX, NULL, "N",
     "samples per batch, on each rank", "1"},
    {"epochs", 0, ARGS_INT64, FOR_LOADER, AT(epochs), 1, INT32_MAX, NULL, "N", "how many times to read all samples",
     "1"},
    {"drop-last", 0, ARGS_ON, FOR_LOADER, AT(o.drop_last), 0, 0, NULL, NULL,
     "leave out the last batch if it is not full", NULL},
    {"no-drop-last", 0, ARGS_OFF, FOR_LOADER, AT(o.drop_last), 0, 0, NULL, NULL,
     "keep the last batch even if it is not full", NULL},
    {"pad-last", 0, ARGS_ON, FOR_LOADER, AT(o.pad_last), 0, 0, NULL, NULL, "fill the last batch with repeated rows",
     NULL},
    {"mix", 0, ARGS_WEIGHTS, FOR_LOADER, AT(mix), 0, 0, NULL, "WEIGHTS",
     "draw from several SRC by these weights: 0.7,0.3", "one after the other"},
    {"device", 0, ARGS_TEXT, FOR_LOADER, AT(o.device), 0, 0, NULL, "DEV",
     "deliver batches in the memory of this GPU: cuda, or cuda:N", "cpu"},
    {"device-work", 0, ARGS_WORD, FOR_LOADER, AT(o.device_work), 0, 0, works, "WHAT",
     "which part of decoding JPEGs this GPU does: none, idct (all after the Huffman codes), decode (all) or auto",
     "auto"},
    {"rank", 0, ARGS_INT, FOR_LOADER, AT(o.rank), 0, INT32_MAX, NULL, "R", "the rank of this process, from 0", "0"},
    {"world-size", 0, ARGS_INT, FOR_LOADER, AT(o.world_size), 1, INT32_MAX, NULL, "W", "the number of ranks", "1"},

    {"on-error", 0, ARGS_WORD, FOR_ERRORS, AT(o.on_error), 0, 0, policies, "DO",
     "what to do with a bad sample: raise, skip or replace (pack: raise or skip)", "raise"},
    {"max-bad", 0, ARGS_SHARE, FOR_ERRORS, AT(o.max_bad), 0, 0, NULL, "SHARE",
     "the share of bad samples that skip and replace accept in an epoch", "1%"},

    {"state", 0, ARGS_TEXT, FOR_STATE, AT(state), 0, 0, NULL, "FILE",
     "continue from this state if the file exists; save the state there at the end", NULL},
    {"stop-after", 0, ARGS_INT64, FOR_STATE, AT(stop_after), 1, ANY, NULL, "N", "stop after N batches", NULL},
    {"each-sample", 0, ARGS_ON, FOR_EACH, AT(each_sample), 0, 0, NULL, NULL,
     "print a line for every sample instead of every epoch", NULL},

    {"take", 0, ARGS_INT64, FOR_SOURCE, AT(o.take), 1, ANY, NULL, "N", "use only the first N samples", "all"},
    {"classes", 0, ARGS_CLASSES, FOR_SOURCE, AT(o.classes), 0, 0, NULL, "NAMES",
     "use these classes: a,b,c, or @FILE with one per line", "as found"},
    {"fields", 0, ARGS_FIELDS, FOR_SOURCE, AT(o.fields), 0, 0, NULL, "TEXT",
     "select fields: \"image=jpg, cls:int, caption:text\"; once for all SRC, or once for each",
     "all; for several SRC, the fields that all of them have"},
    {"threads", 0, ARGS_INT, FOR_SOURCE, AT(o.threads), 0, INT32_MAX, NULL, "N", "use at most N threads",
     "all CPUs that this process may use"},
    {"memory", 0, ARGS_SIZE, FOR_SOURCE, AT(o.memory), 0, 0, NULL, "SIZE",
     "the limit for batches, scratch and caches: 512M, 2GiB", "a quarter of what is free"},
    {"max-pixels", 0, ARGS_INT64, FOR_SOURCE, AT(o.max_pixels), 1, ANY, NULL, "N",
     "treat images with more pixels as bad samples", "256000000"},
    {"max-bytes", 0, ARGS_SIZE, FOR_SOURCE, AT(o.max_bytes), 0, 0, NULL, "SIZE", "treat larger files as bad samples",
     "1GiB"},
    {"cache", 0, ARGS_WORD, FOR_SOURCE, AT(o.cache), 0, 0, caches, "WHAT",
     "keep data of the first epoch for later ones: bytes, dct, pixels or auto; in memory, or in --cache-dir if it is "
     "given",
     "none"},
    {"cache-dir", 0, ARGS_TEXT, FOR_SOURCE, AT(o.cache_dir), 0, 0, NULL, "DIR",
     "the folder for indexes and other cached data; off: write nothing", "`stoker info` shows it"},
    {"cache-size", 0, ARGS_SIZE, FOR_SOURCE, AT(o.cache_size), 0, 0, NULL, "SIZE", "the limit of the cache folder",
     "half of what the disk can spare"},
    {"reader", 0, ARGS_WORD, FOR_SOURCE, AT(o.reader), 0, 0, readers, "HOW",
     "how to read files: pread, uring, or auto, which uses io_uring if files are not in the page cache", "auto"},
    {"cpu", 0, ARGS_WORD, FOR_SOURCE, AT(o.cpu), 0, 0, cpus, "SET", "instruction set: c, avx2 or avx512",
     "the best of this machine"},
    {"json", 0, ARGS_ON, FOR_JSON, AT(json), 0, 0, NULL, NULL, "print one JSON document and nothing else", NULL},
    {0},
};
