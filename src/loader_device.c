/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_device.c -- sends whole batches to a device.
 *
 * The last worker of a batch sends it, so that the copy overlaps with both the workers and the caller. A batch with bad
 * rows, or with rows that must be joined first, is sent when it is delivered. If sending fails in a worker, delivering
 * tries it again and reports the error.
 */
#include "loader_device.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "loader.h"

/* Smaller fields, such as labels, are also kept in host memory, so that reading them does not wait for the device. */
enum { SMALL = 64 << 10 };

/* The device's memory for prefetched batches; more only if two batches need more. Less if the device finishes rows,
 * which takes memory as well. */
enum { DEVICE_BYTES = 1 << 30, DEVICE_BYTES_LESS = 768 << 20 };

/* ------------------------------------------------------------------ open and close */

int loader_device_open(struct stk_loader *l, stk_error *e)
{
    const char *device = l->options.device;
    if (!device || strcmp(device, "cpu") == 0)
        return STK_OK;
    if (l->options.allocator)
        return error_set(e, STK_EUSAGE, "device",
                         "device and allocator cannot be combined: batches are in the memory of the GPU; set only one");
    const int rc = cuda_open(&l->device.cuda, device, e);
    l->device.bytes = rc == STK_OK && !l->op.run; /* an op of the caller works on finished rows */
    return rc;
}

void loader_device_close(struct stk_loader *l)
{
    cuda_send_done(&l->device.send);
    depot_close(l->device.depot);
    cuda_unref(l->device.cuda);
}

void loader_device_follow(const struct stk_loader *l, struct depot *host)
{
    if (l->device.cuda)
        host->hooks = (struct memory_hooks){
            .user = l->device.cuda, .open = cuda_fence_new, .close = cuda_fence_free, .reuse = cuda_fence_wait};
}

static int open_depot(const struct stk_loader *l, struct depot **out, int64_t rows, int keep, stk_error *e)
{
    const struct loader_device *d = &l->device;
    const stk_allocator allocator = {.user = d->cuda, .alloc = cuda_device_alloc, .free = cuda_device_free};
    const int rc = depot_open(out, d->fields, d->n_fields, l->index, rows, keep, &allocator, e);
    if (rc != STK_OK)
        return rc;
    (*out)->hooks = (struct memory_hooks){.user = d->cuda,
                                          .open = cuda_fence_new,
                                          .close = cuda_fence_free,
                                          .release = cuda_fence_release,
                                          .use = cuda_fence_use,
                                          .read = cuda_fence_read};
    (*out)->device = CUDA_DLPACK;
    (*out)->device_id = d->cuda->index;
    return STK_OK;
}

/* ------------------------------------------------------------------ fields */

static bool is_text(const struct field *f)
{
    return f->what == STK_TEXT || f->what == STK_BYTES || f->what == STK_JSON;
}

/* Whether a field goes to the device. Text, its offsets, and the fields that number the rows do not. */
static bool is_sent(const struct stk_loader *l, const struct field *fields, int i)
{
    if (i == l->index || i == l->position || i == l->valid)
        return false;
    for (int k = 0; i > l->valid && k < l->index; k++)
        if (fields[k].kind == FIELD_RAGGED && is_text(&fields[k]) && i >= fields[k].beside &&
            i <= fields[k].beside + field_is_flat(&fields[k]))
            return false;
    return !is_text(&fields[i]);
}

/* The image in the batch, after the kernel has converted its bytes. */
static void image_field(const stk_options *o, struct field *f)
{
    const int64_t h = f->shape[0], w = f->shape[1], channels = f->shape[2];
    const int64_t shape[2][3] = {{h, w, channels}, {channels, h, w}};
    memcpy(f->shape, shape[o->layout == STK_NCHW], sizeof shape[0]);
    f->dtype = o->dtype;
    f->bytes = (size_t)(h * w * channels) * dtype_bytes(o->dtype);
}

int loader_device_fields(struct stk_loader *l, const struct field *fields, int n, stk_error *e)
{
    struct loader_device *d = &l->device;
    d->n_fields = n;
    memcpy(d->fields, fields, (size_t)n * sizeof *fields);
    for (int i = 0; i < n; i++) {
        struct field *f = &d->fields[i];
        d->sent[i] = is_sent(l, fields, i);
        d->joins |= f->kind == FIELD_RAGGED;
        if (i == l->image && d->bytes)
            image_field(&l->options, f);
        if (!d->sent[i] || f->kind == FIELD_RAGGED)
            f->kind = FIELD_OPEN; /* gets its memory when it is sent, or shares that of the host */
        if (f->kind != FIELD_OPEN)
            d->batch_bytes += f->bytes * (size_t)l->options.batch_size;
    }
    if (l->image < 0 || !d->bytes)
        return cuda_send_init(&d->send, d->cuda, NULL, e);
    const struct field *image = &fields[l->image];
    const struct cuda_levels levels = {.tables = plan_tables(l->plan, l->options.dtype),
                                       .element = dtype_bytes(l->options.dtype),
                                       .channels = (int)image->shape[2],
                                       .planar = l->options.layout == STK_NCHW};
    d->plain = !levels.tables && (levels.channels == 1 || !levels.planar);
    int rc = cuda_send_init(&d->send, d->cuda, d->plain ? NULL : &levels, e);
    if (rc == STK_OK && d->pitch)
        rc = loader_parcel_open(l, &levels, e);
    if (rc != STK_OK || (d->plain && !d->pitch) || image->kind == FIELD_OPEN)
        return rc;
    return cuda_send_reserve(&d->send, image->bytes * (size_t)l->options.batch_size, e);
}

/* ------------------------------------------------------------------ memory */

int64_t loader_device_depth(const struct stk_loader *l, int64_t depth)
{
    const int64_t bytes = (int64_t)l->device.batch_bytes, all = l->device.pitch ? DEVICE_BYTES_LESS : DEVICE_BYTES;
    const int64_t fit = bytes > 0 ? all / bytes - 2 : depth;
    return depth < fit ? depth : fit > 1 ? fit : 1;
}

static int no_memory(const struct stk_loader *l, int batches, stk_error *e)
{
    const struct cuda *c = l->device.cuda;
    const int64_t mib = 1 << 20, need = batches * (int64_t)l->device.batch_bytes;
    return error_set(e, STK_ENOMEM, "device",
                     "cuda:%d (%s) has too little free memory: %d batch%s of %lld rows need%s %lld MiB; use a smaller "
                     "batch_size, keep fewer batches, or free memory that other programs use",
                     c->index, c->name, batches, batches == 1 ? "" : "es", (long long)l->options.batch_size,
                     batches == 1 ? "s" : "", (long long)((need + mib - 1) / mib));
}

int loader_device_fill(struct stk_loader *l, int64_t *depth, int64_t *most, stk_error *e)
{
    struct loader_device *d = &l->device;
    int rc = open_depot(l, &d->depot, l->options.batch_size, (int)*depth + 1, e);
    if (rc == STK_OK && depot_fill(d->depot, NULL) != STK_OK) {
        depot_close(d->depot);
        *depth = *most = 1;
        rc = open_depot(l, &d->depot, l->options.batch_size, 2, e);
        if (rc == STK_OK && depot_fill(d->depot, NULL) != STK_OK)
            rc = no_memory(l, 2, e);
    }
    if (rc == STK_OK)
        depot_keep(d->depot, (int)*most + 2);
    return rc;
}

/* ------------------------------------------------------------------ sending */

static size_t array_bytes(const stk_array *a)
{
    size_t n = dtype_bytes(a->dtype);
    for (int i = 0; i < a->ndim; i++)
        n *= (size_t)a->shape[i];
    return n;
}

/* Describes field i of the twin, which has the shape of the batch in host memory. */
static void describe(const struct stk_loader *l, struct stk_batch *twin, const struct stk_batch *b, int i)
{
    const struct loader_device *d = &l->device;
    stk_array *a = &twin->arrays[i];
    *a = b->arrays[i];
    memcpy(twin->shapes[i], b->shapes[i], sizeof twin->shapes[i]);
    a->shape = twin->shapes[i];
    if (!d->sent[i])
        return;
    a->device = CUDA_DLPACK;
    a->device_id = d->cuda->index;
    if (i != l->image || !d->bytes)
        return;
    const int64_t *from = b->shapes[i];
    const bool planar = l->options.layout == STK_NCHW;
    const int64_t shape[2][3] = {{from[1], from[2], from[3]}, {from[3], from[1], from[2]}};
    memcpy(&twin->shapes[i][1], shape[planar], sizeof shape[0]);
    a->dtype = l->options.dtype;
}

/* Adds field i to what is sent. false: no memory. */
static bool add_item(const struct stk_loader *l, struct stk_batch *twin, const struct stk_batch *b, int i,
                     struct cuda_item *item)
{
    stk_array *to = &twin->arrays[i];
    const size_t bytes = array_bytes(to);
    if (!twin->memory[i])
        twin->memory[i] = depot_memory(twin->depot, i, bytes > 0 ? bytes : 1);
    if (!twin->memory[i])
        return false;
    to->data = twin->memory[i]->data;
    to->ready = cuda_fence_event(twin->memory[i]->fence);
    *item = (struct cuda_item){.from = b->arrays[i].data,
                               .to = to->data,
                               .from_fence = b->memory[i]->fence,
                               .to_fence = twin->memory[i]->fence,
                               .bytes = array_bytes(&b->arrays[i])};
    if (item->bytes <= SMALL && i != l->image) {
        twin->memory[i]->source = b->memory[i];
        stk_memory_retain(b->memory[i]);
    }
    if (i == l->image && l->device.bytes && (!l->device.plain || l->device.pitch)) {
        item->pitch = l->device.pitch;
        item->bytes = item->pitch ? item->pitch * (size_t)b->rows : item->bytes;
        item->rows = (uint32_t)b->rows;
        item->pixels = (uint32_t)(b->shapes[i][1] * b->shapes[i][2]);
    }
    return true;
}

/* Fills in the twin, and sends what it needs. */
static int send(struct stk_loader *l, struct stk_batch *twin, struct stk_batch *b, stk_error *e)
{
    struct cuda_item items[FIELD_MAX];
    int n = 0;
    twin->epoch = b->epoch;
    twin->first = b->first;
    twin->rows = b->rows;
    for (int i = 0; i < b->n_fields; i++) {
        describe(l, twin, b, i);
        if (!l->device.sent[i]) {
            twin->memory[i] = b->memory[i];
            stk_memory_retain(b->memory[i]);
        } else if (!add_item(l, twin, b, i, &items[n++])) {
            return no_memory(l, 1, e);
        }
    }
    return cuda_send(&l->device.send, items, n, e);
}

/* For stk_loader_get with more rows than a batch has: uses a depot that is closed at once. */
static struct stk_batch *take_twin(struct stk_loader *l, const struct stk_batch *b)
{
    struct depot *d = l->device.depot;
    const bool large = b->depot->rows > d->rows;
    if (large && open_depot(l, &d, b->depot->rows, 0, NULL) != STK_OK)
        return NULL;
    struct stk_batch *twin = depot_take(d);
    if (large)
        depot_close(d);
    return twin;
}

int loader_device_send(struct stk_loader *l, struct stk_batch *b, stk_error *e)
{
    const int checked = cuda_parcels_check(&l->device.send.parcels, e);
    if (b->twin || checked != STK_OK)
        return checked;
    struct stk_batch *twin = take_twin(l, b);
    if (!twin)
        return no_memory(l, 1, e);
    const int rc = send(l, twin, b, e);
    if (rc == STK_OK)
        b->twin = twin;
    else
        stk_release(twin);
    return rc;
}

void loader_device_whole(struct stk_loader *l, struct stk_batch *b, int64_t rows)
{
    if (l->device.joins)
        return;
    batch_set_rows(b, rows);
    loader_device_send(l, b, NULL);
}

void loader_device_unsend(struct stk_batch *b)
{
    stk_release(b->twin);
    b->twin = NULL;
}

int loader_device_settle(struct stk_loader *l, stk_error *e)
{
    int mode;
    struct cuda *c = l->device.cuda;
    const struct cuda_parcels *p = &l->device.send.parcels;
    int rc = p->damaged ? cuda_enter(c, &mode, e) : STK_OK;
    if (rc != STK_OK || !p->damaged)
        return rc;
    const int failed = c->api.stream_synchronize(c->stream);
    rc = failed == 0 ? cuda_parcels_check(p, e) : cuda_failed(&c->api, failed, "cannot finish the batches", e);
    cuda_leave(c, mode);
    return rc;
}

struct stk_batch *loader_device_take(struct stk_batch *b)
{
    struct stk_batch *twin = b->twin;
    b->twin = NULL;
    stk_release(b);
    return twin;
}

/* ------------------------------------------------------------------ statistics */

void loader_device_stats(struct stk_loader *l, stk_stats *s)
{
    struct loader_device *d = &l->device;
    int mode;
    const int entered = cuda_enter(d->cuda, &mode, NULL);
    pthread_mutex_lock(&d->cuda->lock);
    if (entered == STK_OK)
        cuda_send_count(&d->send);
    const int64_t timed = d->send.timed_bytes;
    const double share = timed > 0 ? (double)d->send.bytes / (double)timed : 1; /* of those that have not ended, too */
    s->copied_bytes = d->send.bytes;
    s->copy_s = share * d->send.copy_s;
    s->kernel_s = share * d->send.kernel_s;
    pthread_mutex_unlock(&d->cuda->lock);
    if (entered == STK_OK)
        cuda_leave(d->cuda, mode);
    s->device_samples = atomic_load_explicit(&d->finished, memory_order_relaxed);
    s->device_decoded = atomic_load_explicit(&d->decoded, memory_order_relaxed);
    s->device_bytes = atomic_load_explicit(&d->cuda->device_bytes, memory_order_relaxed);
    s->stream_waited_s = (double)atomic_load_explicit(&d->cuda->waited_ns, memory_order_relaxed) * 1e-9;
}

void loader_device_explain(struct stk_loader *l, struct buf *b)
{
    const struct loader_device *d = &l->device;
    buf_printf(b, "device     cuda:%d (%s), %.1f MiB per batch; a batch is copied as soon as it is complete\n",
               d->cuda->index, d->cuda->name, (double)d->batch_bytes / (1 << 20));
    if (l->image >= 0 && d->bytes && !d->plain)
        buf_printf(b, "           images cross the bus as bytes and become %s %s there\n", dtype_name(l->options.dtype),
                   l->options.layout == STK_NCHW ? "NCHW" : "NHWC");
    else if (l->image >= 0 && !d->bytes)
        buf_printf(b, "           images cross the bus as %s, because %s\n", dtype_name(l->options.dtype),
                   l->options.sizes == STK_SIZES_SAME ? "an op works on finished rows" : "they differ in size");
    if (l->image >= 0)
        loader_parcel_explain(l, b);
}
