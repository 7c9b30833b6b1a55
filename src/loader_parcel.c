/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_parcel.c -- rows that the device finishes.
 *
 * A worker reads the Huffman codes of a JPEG, or finds its coefficients in a cache or a pack. Instead of pixels, it
 * puts the coefficients that the crop takes into the row, with the tables of the resize (cuda/parcel.h). The device
 * does the rest, to the same bits. Other rows are finished on the CPU, in the same batch: other formats, several scans,
 * damage, EXIF rotations, ops other than crop, resize and flip, and coefficients that do not fit into a row.
 *
 * Once the checkpoints of a file are known, the device can also decode its Huffman codes: then the coded bytes of the
 * crop are copied. Before that, every other file is sent as its whole scan. Only the device can detect that such a scan
 * is damaged (loader_again.c). The CPU decodes the other files, which makes their checkpoints.
 *
 * The device finishes the first rows of each batch; `share` says how many, in 16ths of the batch. With
 * device_work=auto, it starts at 0 and depends on what the workers and the caller wait for. Then files become rows for
 * the device only as codes: making coefficients from them takes the CPU almost as long as making pixels. Coefficients
 * that a cache or a pack already has are merely copied.
 */
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "cuda/parcel_sync.h"
#include "decode/dct_image.h"
#include "decode/jpeg_groups.h"
#include "loader.h"

_Static_assert(sizeof(struct parcel_group) == sizeof(struct jpeg_group) &&
                   (int)PARCEL_CODE_BYTES == (int)JPEG_GROUP_CODES && (int)PARCEL_SCAN_HEAD == (int)JPEG_SCAN_HEAD &&
                   (int)PARCEL_CHUNK == (int)DCT_CHUNK,
               "the device reads what the host writes");

enum {
    ROOM_LEAST = 192 << 10, /* bytes of a row's body: the coefficients of most photos of half a megapixel */
    SMALL_TIMES = 16,       /* its size, at most, that a small row takes with device_work=auto */
    SHARES = 16,
    PACE_BATCHES = 16, /* between decisions */
};

static const size_t SCRATCH_MOST = (size_t)384 << 20, SCRATCH_LEAST = (size_t)16 << 20, SCRATCH_EACH = (size_t)1 << 20;

/* ------------------------------------------------------------------ open */

/* NULL: the device may finish rows. */
static const char *why_whole(const struct stk_loader *l, const struct field *image)
{
    if (l->options.device_work == STK_DEVICE_WORK_NONE)
        return "as device_work asks";
    if (source_field(l->source, l->image)->kind != FIELD_ENCODED)
        return "because images are not JPEGs";
    if (l->options.sizes != STK_SIZES_SAME)
        return "because images differ in size";
    if (!l->device.bytes || l->soft >= 0)
        return "because an op works on finished rows";
    if (l->copies > 1)
        return "because there are several views";
    if (l->follow.n > 0)
        return "because masks or boxes follow the images";
    if (image->kind == FIELD_OPEN || image->shape[2] != 3)
        return "because images differ in size or are not RGB";
    return NULL;
}

void loader_parcel_lay(struct stk_loader *l, struct field *fields)
{
    struct loader_device *d = &l->device;
    d->whole = l->image >= 0 ? why_whole(l, &fields[l->image]) : "";
    if (d->whole)
        return;
    struct field *f = &fields[l->image];
    /* With auto, the rows of small images do not pay for room that the device may never use. */
    const size_t most = f->bytes < ROOM_LEAST / SMALL_TIMES ? f->bytes * SMALL_TIMES : ROOM_LEAST;
    const size_t least = l->options.device_work == STK_DEVICE_WORK_AUTO ? most : ROOM_LEAST;
    const size_t room = f->bytes > least ? f->bytes : least;
    d->pitch = (room + PARCEL_ALIGN - 1) / PARCEL_ALIGN * PARCEL_ALIGN + PARCEL_ALIGN;
    f->bytes = d->pitch;
    atomic_init(&d->share, l->options.device_work == STK_DEVICE_WORK_AUTO ? 0 : SHARES);
}

bool loader_parcel_decodes(const struct stk_loader *l)
{
    return l->device.pitch > 0 && l->options.device_work != STK_DEVICE_WORK_IDCT;
}

int loader_parcel_open(struct stk_loader *l, const struct cuda_levels *levels, stk_error *e)
{
    const size_t rows = (size_t)l->options.batch_size, least = SCRATCH_LEAST / SCRATCH_EACH,
                 most = SCRATCH_MOST / SCRATCH_EACH;
    const size_t bytes = (rows < least ? least : rows < most ? rows : most) * SCRATCH_EACH;
    return cuda_send_parcels(&l->device.send, levels, bytes, SCRATCH_LEAST, loader_parcel_decodes(l), e);
}

/* ------------------------------------------------------------------ one row */

static struct parcel *parcel_of(const struct stk_loader *l, const struct stk_batch *b, int64_t row)
{
    return (struct parcel *)(void *)(batch_row(b, l->image, row + 1) - PARCEL_ALIGN);
}

void loader_parcel_begin(const struct stk_loader *l, struct stk_batch *b, int64_t row)
{
    parcel_of(l, b, row)->kind = PARCEL_PIXELS;
}

/* Coefficients probably fit: they take one and a half times as much as the file, and those of a crop its share. */
static bool may_fit(const struct stk_loader *l, const struct making *m, bool dct)
{
    const struct head *h = &m->image.head;
    const double share = (double)m->want.crop.w * m->want.crop.h / ((double)h->w * h->h);
    return share * (double)m->image.n * (dct ? 1.0 : 1.5) < (double)l->device.pitch;
}

/* Whether the device is to decode the whole scan of a file without checkpoints. These are other files in each epoch, so
 * that all get theirs. Rows that the caller asked for, and those that are made again, do not wait for the device. Nor
 * do files that a cache is about to keep: it must not keep damaged ones. */
static bool wants_scan(const struct stk_loader *l, const struct worker *w, const struct making *m)
{
    const struct draw *d = m->draw;
    const bool kept = l->cache.what == STK_CACHE_BYTES && !w->from_cache;
    const int64_t remade = atomic_load_explicit(&l->device.remade, memory_order_relaxed);
    if (remade > 16 && remade * 16 > atomic_load_explicit(&l->device.scans, memory_order_relaxed))
        return false; /* the device cannot decode these files, for some reason */
    return loader_parcel_decodes(l) && !kept && !l->device.joins && !l->order.sampled &&
           w != &l->workers[l->options.threads] && w->checkpoint_bytes == 0 && m->image.n < l->device.pitch &&
           hash_mix(d->sample, d->epoch) % 2 == 0;
}

/* Lends the checkpoints of a file. Sets what the row may have; returns false if it is nothing. */
static bool choose(struct stk_loader *l, struct worker *w, const struct making *m, int64_t row, struct dct_region *out)
{
    const struct desk_image *im = &m->image;
    const struct head *h = &im->head;
    const bool dct = im->form == DESK_DCT || h->dct;
    const int share = atomic_load_explicit(&l->device.share, memory_order_relaxed);
    if (row * SHARES >= share * l->options.batch_size || m->plain || m->kept_bytes > 0 || h->orientation != 1 ||
        (im->form != DESK_FILE && im->form != DESK_DCT) || h->format != STK_JPEG || m->want.crop.w > PARCEL_STRIP)
        return false;
    if (!dct)
        loader_checkpoints_lend(l, w, m);
    out->codes = !dct && w->checkpoint_bytes > 0 && loader_parcel_decodes(l);
    out->scan = !dct && wants_scan(l, w, m);
    out->coefficients = (dct || l->options.device_work != STK_DEVICE_WORK_AUTO) && may_fit(l, m, dct);
    return out->codes || out->scan || out->coefficients;
}

static bool make_region(const struct worker *w, const struct making *m, struct dct_region *region)
{
    const struct desk_image *im = &m->image;
    struct want want = m->want;
    want.ranges = im->form == DESK_FILE && w->desk.ranges.n > 0 ? &w->desk.ranges : NULL;
    return decode_region(w->desk.decoder, im->bytes, im->n, &im->head, &want, im->form == DESK_DCT, region);
}

static struct parcel_pass pass_of(const struct plan_pass *p)
{
    return (struct parcel_pass){.first = p->first, .weights = p->weights, .taps = p->taps};
}

static struct parcel describe(const struct job *j, const struct plan_passes *passes, const struct dct_region *region)
{
    const struct rect *crop = &j->want.crop;
    return (struct parcel){
        .kind = region->whole   ? PARCEL_SCAN
                : region->coded ? PARCEL_CODED
                                : PARCEL_COEFFICIENTS,
        .every = region->whole ? 0 : region->every,
        .out_w = j->w,
        .out_h = j->h,
        .components = region->components,
        .halves_columns = region->halves_columns,
        .halves_rows = region->halves_rows,
        .across = region->across,
        .down = region->down,
        .left = region->x * (region->halves_columns ? 16 : 8),
        .top = region->y * (region->halves_rows ? 16 : 8),
        .w = region->w,
        .h = region->h,
        .crop_x = crop->x,
        .crop_y = crop->y,
        .crop_w = crop->w,
        .crop_h = crop->h,
        .flip_x = j->flip_x && passes->x.taps == 0,
        .flip_y = j->flip_y,
        .across_first = passes->across_first,
        .x = pass_of(&passes->x),
        .y = pass_of(&passes->y),
    };
}

bool loader_parcel_make(struct stk_loader *l, struct worker *w, struct making *m, int64_t row)
{
    const struct job *j = w->jobs;
    uint8_t *body = batch_row(w->to, l->image, row);
    const size_t room = l->device.pitch - PARCEL_ALIGN;
    struct plan_passes passes;
    struct dct_region region = {0};
    if (!choose(l, w, m, row, &region) || !plan_passes(j, body, room, &passes))
        return false;
    const size_t at = parcel_aligned(passes.used + sizeof m->draw->repeat);
    region.to = body + at;
    region.room = room > at ? room - at : 0; /* 0: the tables fill the row */
    if (!make_region(w, m, &region))
        return false;
    struct parcel p = describe(j, &passes, &region);
    p.region = (uint32_t)at;
    if (cuda_parcel_scratch(&p) > l->device.send.parcels.scratch_bytes)
        return false;
    memcpy(body + at - sizeof m->draw->repeat, &m->draw->repeat, sizeof m->draw->repeat);
    *parcel_of(l, w->to, row) = p;
    atomic_fetch_add_explicit(&l->device.finished, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->device.decoded, region.coded, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->device.scans, region.whole, memory_order_relaxed);
    return true;
}

/* ------------------------------------------------------------------ whole scans */

bool loader_parcel_is_scan(const struct stk_loader *l, const struct stk_batch *b, int64_t row)
{
    return parcel_of(l, b, row)->kind == PARCEL_SCAN;
}

bool loader_parcel_is_damaged(const struct stk_loader *l, const struct stk_batch *b, int64_t row)
{
    return ((volatile struct parcel *)parcel_of(l, b, row))->damaged != 0;
}

struct pick loader_parcel_undo(struct stk_loader *l, const struct stk_batch *b, int64_t row)
{
    struct pick p;
    uint64_t repeat;
    memcpy(&p.index, batch_row(b, l->index, row), sizeof p.index);
    memcpy(&repeat, batch_row(b, l->image, row) + parcel_of(l, b, row)->region - sizeof repeat, sizeof repeat);
    p.repeat = (int64_t)repeat;
    atomic_fetch_sub_explicit(&l->device.finished, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&l->device.decoded, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->device.remade, 1, memory_order_relaxed);
    return p;
}

/* ------------------------------------------------------------------ the share */

/* Not idle_ns: a worker counts its waiting when that ends, and the ring lets some wait for minutes. */
static uint64_t busy_ns(const struct stk_loader *l)
{
    uint64_t sum = 0;
    for (int i = 0; i < l->options.threads; i++)
        sum += atomic_load_explicit(&l->workers[i].count.busy_ns, memory_order_relaxed);
    return sum;
}

struct parcel_choice loader_parcel_choose(int share, struct parcel_load load)
{
    int step = 0;
    const char *why = "the workers keep up";
    if (load.device > 0.005 && load.device > load.waited / 2) {
        step = -2;
        why = "the program waits for the GPU";
    } else if (load.waited > 0.01 && load.idle < 0.5 && load.taken < 0.3) {
        why = "the GPU can make few of the rows yet";
    } else if (load.waited > 0.01 && load.idle < 0.5) {
        step = load.waited > 0.1 ? 4 : 2;
        why = "the program waits for batches";
    } else if (load.idle < 0.1 && load.cores > 0.9) {
        step = 1;
        why = "the workers take nearly all cores";
    } else if (load.waited <= 0.005 && load.idle > 0.3) {
        step = load.idle > 0.6 ? -2 : -1;
        why = "the workers have time left, and work on the GPU slows training down";
    } else if (load.waited > 0.01) {
        why = "the program waits for batches, but not for the CPU";
    }
    const int next = share + step;
    return (struct parcel_choice){next < 0 ? 0 : next < SHARES ? next : SHARES, why};
}

void loader_parcel_pace(struct stk_loader *l)
{
    struct loader_device *d = &l->device;
    struct loader_pace *p = &d->pace;
    if (l->options.device_work != STK_DEVICE_WORK_AUTO)
        return;
    pthread_mutex_lock(&l->lock);
    if (++p->batches >= PACE_BATCHES) {
        const uint64_t now = now_ns(), busy_now = busy_ns(l);
        const double passed = (double)(now - p->since_ns) + 1, threads = l->options.threads;
        const double busy = (double)(busy_now - p->busy_ns) / passed / threads;
        const int share = atomic_load_explicit(&d->share, memory_order_relaxed);
        const int64_t finished = atomic_load_explicit(&d->finished, memory_order_relaxed);
        const double wanted = (double)(p->batches * l->options.batch_size * share) / SHARES;
        const struct parcel_load load = {.waited = (double)(l->waited_ns - p->waited_ns) / passed,
                                         .device = (double)(d->waited_ns - p->device_ns) / passed,
                                         .idle = 1 - busy,
                                         .cores = busy * threads / machine_threads(&l->machine),
                                         .taken = share ? (double)(finished - p->finished) / wanted : 1};
        if (p->since_ns) {
            const struct parcel_choice next = loader_parcel_choose(share, load);
            atomic_store_explicit(&d->share, next.share, memory_order_relaxed);
            p->why = next.why;
        }
        *p = (struct loader_pace){.since_ns = now,
                                  .waited_ns = l->waited_ns,
                                  .busy_ns = busy_now,
                                  .device_ns = d->waited_ns,
                                  .finished = finished,
                                  .why = p->why};
    }
    pthread_mutex_unlock(&l->lock);
}

void loader_parcel_explain(struct stk_loader *l, struct buf *b)
{
    const struct loader_device *d = &l->device;
    if (!d->pitch) {
        buf_printf(b, "           JPEGs are decoded and transformed on the CPU, %s\n", d->whole);
        return;
    }
    const stk_device_work work = l->options.device_work;
    if (work == STK_DEVICE_WORK_AUTO) {
        pthread_mutex_lock(&l->lock);
        const char *why = d->pace.why;
        pthread_mutex_unlock(&l->lock);
        buf_printf(b, "           device_work=auto: the GPU may decode %d of 16 rows, because %s\n",
                   atomic_load_explicit(&d->share, memory_order_relaxed), why ? why : "no time was measured yet");
    } else {
        buf_printf(b, "           the GPU does everything after the Huffman codes of JPEGs%s, as device_work asks\n",
                   work == STK_DEVICE_WORK_DECODE ? ", and decodes their codes as soon as it can" : "");
    }
    buf_printf(b, "           images so far: %lld finished by the GPU, %lld of them decoded there\n",
               (long long)atomic_load_explicit(&d->finished, memory_order_relaxed),
               (long long)atomic_load_explicit(&d->decoded, memory_order_relaxed));
}
