/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stoker.c -- the public functions: they check arguments, fill in defaults and call the part that does the work.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "cache/cache.h"
#include "cache/folder.h"
#include "format/unzstd.h"
#include "loader.h"
#include "read/io_uring.h"
#include "transform/noise.h"

#define STRING_OF(x)        #x
#define VERSION_OF(a, b, c) STRING_OF(a) "." STRING_OF(b) "." STRING_OF(c)

const char *stk_version(void)
{
    return VERSION_OF(STK_VERSION_MAJOR, STK_VERSION_MINOR, STK_VERSION_PATCH);
}

/* ------------------------------------------------------------------ options */

enum { THREADS_MAX = 1024 };

static int usage(stk_error *e, const char *words)
{
    return error_set(e, STK_EUSAGE, "open", "%s", words);
}

int options_copy(void *to, size_t known, const void *from, size_t size, stk_error *e)
{
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    const char *tail = from;
    for (size_t i = known; i < size; i++)
        if (tail[i] != 0)
            return usage(e, "an option is set that this version of the library does not know; update the library");
    return STK_OK;
}

static int check_source(const stk_options *o, stk_error *e)
{
    const int given = (o->source != NULL) + (o->sources != NULL) + (o->arrays != NULL) + (o->read_hooks != NULL) +
                      (o->fill_hooks != NULL) + (o->cells_hooks != NULL) + (o->opened != NULL);
    if (given == 0)
        return usage(e, "no source: set source, sources, arrays, opened, or hooks");
    if (given > 1)
        return usage(e, "more than one source: set only one of source, sources, arrays, opened, and hooks");
    if ((o->read_hooks && (!o->read_hooks->count || !o->read_hooks->read)) ||
        (o->fill_hooks && (!o->fill_hooks->count || !o->fill_hooks->fill)) ||
        (o->cells_hooks && (!o->cells_hooks->count || !o->cells_hooks->cells)))
        return usage(e, "hooks of a source need count(), and read(), fill() or cells()");
    if (o->opened && (o->classes || o->fields || o->source_fields || o->index_beside || o->max_bytes))
        return usage(e, "the source is open already: set classes, fields, source_fields, index_beside and max_bytes in "
                        "stk_source_open");
    if (o->take < 0 || o->n_subset < 0 || o->n_arrays < 0 || o->n_classes < 0)
        return usage(e, "take, n_subset, n_arrays or n_classes is negative");
    if (o->op && !o->op->run)
        return usage(e, "op has no function: set op->run");
    if (o->allocator && (!o->allocator->alloc || !o->allocator->free))
        return usage(e, "allocator lacks a function: set alloc and free");
    return STK_OK;
}

static int check_form(const stk_options *o, stk_error *e)
{
    const stk_dtype t = o->dtype;
    if (t != STK_FLOAT32 && t != STK_FLOAT16 && t != STK_BFLOAT16 && t != STK_UINT8)
        return usage(e, "dtype must be float32, float16, bfloat16 or uint8");
    if (o->layout != STK_NCHW && o->layout != STK_NHWC)
        return usage(e, "layout must be NCHW or NHWC");
    if ((int)o->sizes < STK_SIZES_SAME || (int)o->sizes > STK_SIZES_LIST)
        return usage(e, "sizes must be same, pad or list");
    if (o->fidelity != STK_EXACT && o->fidelity != STK_DRAFT)
        return usage(e, "fidelity must be exact or draft");
    if ((int)o->reader < STK_READER_DEFAULT || (int)o->reader > STK_READER_URING)
        return usage(e, "reader must be pread or uring, or 0 to let the loader choose");
    if ((int)o->cache < STK_CACHE_NONE || (int)o->cache > STK_CACHE_AUTO)
        return usage(e, "cache must be none, bytes, dct, pixels or auto");
    if ((int)o->device_work < STK_DEVICE_WORK_AUTO || (int)o->device_work > STK_DEVICE_WORK_DECODE)
        return usage(e, "device_work must be auto, none, idct or decode");
    if (o->device_work > STK_DEVICE_WORK_NONE && (!o->device || strcmp(o->device, "cpu") == 0))
        return usage(e, "device_work needs a GPU: set device as well, or leave device_work out");
    if (o->cache_size < 0)
        return usage(e, "cache_size is negative; set a size in bytes, or 0 for the default");
    if ((int)o->on_error < STK_RAISE || (int)o->on_error > STK_REPLACE)
        return usage(e, "on_error must be raise, skip or replace");
    if (!(o->max_bad <= 1)) /* also if it is NaN */
        return usage(e,
                     "max_bad must be at most 1: it is a share of the samples; a negative value allows no bad sample");
    if (o->max_pixels < 0 || o->max_bytes < 0)
        return usage(e, "max_pixels or max_bytes is negative; set a limit, or 0 for the default");
    return STK_OK;
}

static int check_amounts(const stk_options *o, stk_error *e)
{
    if (o->batch_size < 1 || o->batch_size > INT32_MAX)
        return error_set(e, STK_EUSAGE, "open", "batch_size is %lld; it must be between 1 and %d",
                         (long long)o->batch_size, INT32_MAX);
    if (o->drop_last && o->pad_last)
        return usage(e, "drop_last and pad_last cannot be combined; set only one");
    if (o->world_size < 1 || o->rank < 0 || o->rank >= o->world_size)
        return error_set(e, STK_EUSAGE, "open",
                         "rank is %d and world_size is %d; rank must be from 0 to world_size - 1", o->rank,
                         o->world_size);
    if (o->threads < 1 || o->threads > THREADS_MAX)
        return error_set(e, STK_EUSAGE, "open", "threads is %d; it must be between 1 and %d, or 0 for the default",
                         o->threads, THREADS_MAX);
    if (o->memory < 0)
        return usage(e, "memory is negative; set a limit in bytes, or 0 for the default");
    return STK_OK;
}

static int check_order(const stk_options *o, stk_error *e)
{
    if (o->steps_per_epoch < 0 || o->n_weights < 0)
        return usage(e, "steps_per_epoch or n_weights is negative");
    if (o->weights && o->shuffle)
        return usage(e, "weights and shuffle cannot be combined, because weights already draw at random; set only one");
    if (o->sampled && (o->weights || o->shuffle || o->steps_per_epoch || o->mix))
        return usage(e, "sampled cannot be combined with shuffle, weights, mix or steps_per_epoch: "
                        "stk_loader_set_order gives the order");
    if (o->mix && o->weights)
        return usage(e, "mix and weights cannot be combined: mix draws sources, weights draw samples; set only one");
    return STK_OK;
}

static void fill_in(stk_options *o, const struct machine *m)
{
    if (o->dtype == STK_DTYPE_DEFAULT)
        o->dtype = STK_FLOAT32;
    if (o->layout == STK_LAYOUT_DEFAULT)
        o->layout = STK_NCHW;
    if (o->sizes == STK_SIZES_DEFAULT)
        o->sizes = STK_SIZES_SAME;
    if (o->fidelity == STK_FIDELITY_DEFAULT)
        o->fidelity = STK_EXACT;
    if (o->device_work == STK_DEVICE_WORK_DEFAULT)
        o->device_work = STK_DEVICE_WORK_AUTO;
    if (o->cache == STK_CACHE_DEFAULT)
        o->cache = STK_CACHE_NONE;
    if (o->on_error == STK_ON_ERROR_DEFAULT)
        o->on_error = STK_RAISE;
    if (o->max_bad == 0)
        o->max_bad = 0.01;
    if (o->max_pixels == 0)
        o->max_pixels = 256 * 1000 * 1000;
    if (o->max_bytes == 0)
        o->max_bytes = o->opened ? o->opened->max_bytes : (int64_t)1 << 30;
    if (o->batch_size == 0)
        o->batch_size = 1;
    if (o->world_size == 0)
        o->world_size = 1;
    if (o->threads == 0)
        o->threads = machine_threads(m);
    if (o->memory == 0)
        o->memory = machine_memory(m);
}

void options_close(const stk_options *o)
{
    if (o->read_hooks && o->read_hooks->close)
        o->read_hooks->close(o->read_hooks->user);
    if (o->fill_hooks && o->fill_hooks->close)
        o->fill_hooks->close(o->fill_hooks->user);
    if (o->cells_hooks && o->cells_hooks->close)
        o->cells_hooks->close(o->cells_hooks->user);
}

int options_take(stk_options *to, const stk_options *from, size_t size, struct machine *m, stk_error *e)
{
    if (!from)
        return usage(e, "no options");
    int rc = options_copy(to, sizeof *to, from, size, e);
    if (rc == STK_OK)
        rc = check_source(to, e);
    machine_look(m);
    fill_in(to, m);
    if (rc == STK_OK)
        rc = check_form(to, e);
    if (rc == STK_OK)
        rc = check_amounts(to, e);
    if (rc == STK_OK)
        rc = check_order(to, e);
    if (rc == STK_OK)
        rc = cpu_choose(to->cpu, &to->cpu, e);
    if (rc != STK_OK)
        options_close(to);
    return rc;
}

int options_source(const stk_options *o, bool all_columns, struct source **out, stk_error *e)
{
    if (o->opened) {
        *out = source_ref(o->opened->source);
        return STK_OK;
    }
    const struct source_options s = {
        .path = o->source,
        .paths = o->sources,
        .n_paths = o->n_sources,
        .arrays = o->arrays,
        .n_arrays = o->n_arrays,
        .read_hooks = o->read_hooks,
        .fill_hooks = o->fill_hooks,
        .cells_hooks = o->cells_hooks,
        .classes = o->classes,
        .n_classes = o->n_classes,
        .threads = o->threads,
        .cache_dir = o->cache_dir,
        .fields = o->fields,
        .own_fields = o->source_fields,
        .all_columns = all_columns,
        .index_beside = o->index_beside != 0,
        .max_bytes = o->max_bytes,
        .memory = o->memory,
    };
    const int rc = source_open(out, &s, e);
    if (rc != STK_OK)
        options_close(o);
    return rc;
}

int options_check_subset(const int64_t *subset, int64_t n, int64_t count, stk_error *e)
{
    for (int64_t i = 0; subset && i < n; i++)
        if (subset[i] < 0 || subset[i] >= count)
            return error_set(e, STK_EUSAGE, "open", "subset names sample %lld, but the source has %lld samples",
                             (long long)subset[i], (long long)count);
    return STK_OK;
}

struct decode_limits options_limits(const stk_options *o)
{
    return (struct decode_limits){.max_pixels = o->max_pixels, .no_exif = o->no_exif != 0};
}

/* ------------------------------------------------------------------ the loader */

int stk_open_sized(stk_loader **out, const stk_options *o, size_t size, stk_error *e)
{
    *out = NULL;
    stk_options options;
    struct machine machine;
    int rc = options_take(&options, o, size, &machine, e);
    if (rc != STK_OK)
        return rc;
    struct stk_loader *l = calloc(1, sizeof *l);
    if (!l) {
        options_close(&options);
        return error_nomem(e, "open", sizeof *l);
    }
    l->options = options;
    l->machine = machine;
    rc = loader_open(l, e);
    if (rc != STK_OK) {
        loader_close(l);
        return rc;
    }
    *out = l;
    return STK_OK;
}

void stk_close(stk_loader *l)
{
    /* A forked child does not have the threads, and a lock may be held: leave the loader as it is. */
    if (l && loader_check(l, NULL) == STK_OK)
        loader_close(l);
}

void stk_stop(stk_loader *l)
{
    if (l && loader_check(l, NULL) == STK_OK)
        ring_stop(&l->ring);
}

/* Whether this process opened the loader: a forked child must not wait for its locks. */
static bool is_mine(const stk_loader *l)
{
    return loader_check(l, NULL) == STK_OK;
}

int64_t stk_length(const stk_loader *l)
{
    if (!is_mine(l))
        return -1;
    if (l->order.sampled)
        return 0;
    return order_batches(&(struct order){.n = l->order.n,
                                         .batch_size = l->order.batch_size,
                                         .world = l->order.world,
                                         .drop_last = l->order.drop_last,
                                         .resumed_epoch = -1},
                         0);
}

int64_t stk_loader_count(const stk_loader *l)
{
    return is_mine(l) ? l->order.samples : -1;
}

uint64_t stk_loader_fingerprint(const stk_loader *l)
{
    return is_mine(l) ? loader_fingerprint(l) : 0;
}

const stk_source *stk_loader_source(const stk_loader *l)
{
    return is_mine(l) ? &l->lent : NULL;
}

/* ------------------------------------------------------------------ images, hashing */

int stk_encode_sized(const uint8_t *pixels, int width, int height, int channels, size_t stride,
                     const stk_encode_options *o, size_t size, void **out, size_t *n, stk_error *e)
{
    *out = NULL;
    *n = 0;
    if (!pixels || !o)
        return error_set(e, STK_EUSAGE, "encode", "pixels or options is NULL; set both");
    if (width < 1 || height < 1 || (channels != 1 && channels != 3))
        return error_set(
            e, STK_EUSAGE, "encode",
            "cannot encode %d x %d pixels of %d channels; an image has at least 1 x 1 pixels of 1 or 3 channels", width,
            height, channels);
    if (stride < (size_t)width * (size_t)channels)
        return error_set(e, STK_EUSAGE, "encode", "stride is %zu bytes, less than a row of %d pixels", stride, width);
    stk_encode_options filled;
    const int rc = options_copy(&filled, sizeof filled, o, size, e);
    if (rc != STK_OK)
        return rc;
    if (filled.quality < 0 || filled.quality > 100)
        return error_set(e, STK_EUSAGE, "encode", "quality is %d; it must be between 1 and 100, or 0 for 90",
                         filled.quality);
    if (filled.quality == 0)
        filled.quality = 90;
    const struct image im = {
        .px = (uint8_t *)(uintptr_t)pixels, .stride = stride, .w = width, .h = height, .channels = channels};
    return encode_pixels(&im, &filled, out, n, e);
}

void stk_free(void *p)
{
    free(p);
}

void stk_noise(float *out, size_t n, uint64_t seed, stk_noise_kind kind)
{
    (kind == STK_NOISE_UNIFORM ? noise_uniform : noise_normal)(out, seed, 0, n);
}

uint64_t stk_hash(const void *p, size_t n, uint64_t seed)
{
    return hash_bytes(p, n, seed);
}

/* ------------------------------------------------------------------ the machine */

static void look_for_uring(char *why_not, size_t n)
{
    struct uring *u;
    stk_error e = {0};
    uring_open(&u, 1, NULL, 0, &e);
    snprintf(why_not, n, "%.*s", (int)n - 1, e.reason);
    uring_close(u);
}

void stk_info_get_sized(stk_info *out, size_t size)
{
    struct machine m;
    machine_look(&m);
    stk_info i = {
        .jpeg = decode_version(STK_JPEG),
        .png = decode_version(STK_PNG),
        .webp = decode_version(STK_WEBP),
        .cpus_online = m.cpus_online,
        .cpus_affinity = m.cpus_affinity,
        .cpus_quota = m.cpus_quota,
        .threads = machine_threads(&m),
        .memory_total = m.memory_total,
        .memory_limit = m.memory_limit,
        .memory = machine_memory(&m),
        .local_ranks = m.local_ranks,
    };
    stk_cpu best = STK_CPU_C;
    cpu_choose(STK_CPU_DEFAULT, &best, NULL);
    i.cpu_in_use = cpu_name(best);
    snprintf(i.cpu_has, sizeof i.cpu_has, "c%s%s", m.avx2 ? " avx2" : "", m.avx512 ? " avx512" : "");
    source_cache_dir(NULL, i.cache_dir, sizeof i.cache_dir);
    look_for_uring(i.no_uring, sizeof i.no_uring);
    i.zlib = gunzip_version();
    i.zstd = unzstd_version();
    memset(out, 0, size);
    memcpy(out, &i, size < sizeof i ? size : sizeof i);
}

/* ------------------------------------------------------------------ the cache folder */

static bool is_kind(const char *kind)
{
    for (int k = 0; k < CACHE_KINDS; k++)
        if (strcmp(kind, cache_kind_name((enum cache_kind)k)) == 0)
            return true;
    return strcmp(kind, "index") == 0;
}

int stk_cache_list(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user, stk_error *e)
{
    char dir[PATH_MAX];
    source_cache_dir(cache_dir, dir, sizeof dir);
    if (!dir[0])
        return STK_OK;
    if (source_list_cached(dir, each, user) != 0)
        return STK_OK;
    const int why = folder_list(dir, each, user);
    return why ? error_os(e, why, "cache", "the cache folder %s cannot be read", dir) : STK_OK;
}

int stk_cache_clear(const char *cache_dir, const char *kind, const char *source, int64_t *bytes, stk_error *e)
{
    char dir[PATH_MAX], place[PATH_MAX];
    int64_t deleted = 0;
    int why = 0;
    if (kind && !is_kind(kind))
        return error_set(e, STK_EUSAGE, "cache",
                         "unknown kind of cache: %s; the kinds are index, checkpoints, bytes, dct and pixels", kind);
    if (source && source_locate(source, place, sizeof place))
        source = place;
    source_cache_dir(cache_dir, dir, sizeof dir);
    if (dir[0] && (!kind || strcmp(kind, "index") == 0))
        why = source_delete_cached(dir, source, &deleted);
    if (dir[0] && (!kind || strcmp(kind, "index") != 0)) {
        const int also = folder_clear(dir, kind, source, &deleted);
        why = also ? also : why;
    }
    if (bytes)
        *bytes = deleted;
    return why ? error_os(e, why, "cache", "some files in the cache folder %s cannot be deleted", dir) : STK_OK;
}
