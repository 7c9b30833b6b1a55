/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_send.c -- sends batches to a device.
 *
 * All batches go through the one stream of the device, in the order in which they become whole:
 *
 *     wait for the streams that used the memory | copy | kernel | mark the fences
 *
 * A batch is enqueued as a whole, under the lock of the device. So one buffer for raw bytes is enough: the next copy
 * into it comes after the kernel that reads it.
 */
#include "cuda/cuda_send.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { BLOCK = 256, BLOCKS_EACH = 8 }; /* threads in a block; blocks for each multiprocessor */

/* ------------------------------------------------------------------ open and close */

/* Without tables, a byte stays what it is. */
static void fill_tables(const struct cuda_levels *v, uint8_t *to, size_t bytes)
{
    if (v->tables)
        memcpy(to, v->tables, bytes);
    for (size_t i = 0; !v->tables && i < bytes; i++)
        to[i] = (uint8_t)i;
}

static int put_tables(struct cuda_send *s, const struct cuda_levels *v, stk_error *e)
{
    uint8_t tables[3 * 256 * 4];
    s->table_bytes = 3 * 256 * v->element;
    fill_tables(v, tables, s->table_bytes);
    s->tables = cuda_device_alloc(s->c, s->table_bytes);
    if (!s->tables)
        return cuda_failed(&s->c->api, CUDA_OUT_OF_MEMORY, "cannot open the loader", e);
    int rc = s->c->api.copy_in((uint64_t)(uintptr_t)s->tables, tables, s->table_bytes, s->c->stream);
    if (rc == 0)
        rc = s->c->api.stream_synchronize(s->c->stream);
    return rc == 0 ? STK_OK : cuda_failed(&s->c->api, rc, "cannot copy to the GPU", e);
}

/* The name of a kernel that makes these numbers. */
static void name_kernel(const struct cuda_levels *v, const char *prefix, char *name, size_t n)
{
    const char *layout = v->channels == 1 ? "single" : v->planar ? "planar" : "interleaved";
    snprintf(name, n, "%s%s_%zu", prefix, layout, v->element);
}

static int find_kernel(struct cuda_send *s, const struct cuda_levels *v, stk_error *e)
{
    char name[32];
    name_kernel(v, "", name, sizeof name);
    const int rc = s->c->api.module_function(&s->kernel, s->c->module, name);
    return rc == 0 ? STK_OK : cuda_failed(&s->c->api, rc, "cannot find a kernel", e);
}

static int make_timings(struct cuda_send *s)
{
    int rc = 0;
    for (int i = 0; i < SEND_TIMINGS && rc == 0; i++) {
        struct cuda_timing *t = &s->timings[i];
        rc = s->c->api.event_create(&t->began, 0);
        if (rc == 0)
            rc = s->c->api.event_create(&t->copied, 0);
        if (rc == 0)
            rc = s->c->api.event_create(&t->ended, 0);
    }
    return rc;
}

int cuda_send_init(struct cuda_send *s, struct cuda *c, const struct cuda_levels *levels, stk_error *e)
{
    int mode;
    *s = (struct cuda_send){.c = c};
    int rc = cuda_enter(c, &mode, e);
    if (rc != STK_OK)
        return rc;
    const int failed = make_timings(s);
    if (failed != 0)
        rc = cuda_failed(&c->api, failed, "cannot create events", e);
    if (rc == STK_OK && levels)
        rc = put_tables(s, levels, e);
    if (rc == STK_OK && levels)
        rc = find_kernel(s, levels, e);
    cuda_leave(c, mode);
    return rc;
}

void cuda_send_done(struct cuda_send *s)
{
    int mode;
    if (!s->c)
        return;
    if (cuda_enter(s->c, &mode, NULL) == STK_OK) {
        s->c->api.stream_synchronize(s->c->stream);
        for (int i = 0; i < SEND_TIMINGS; i++) {
            void *const events[] = {s->timings[i].began, s->timings[i].copied, s->timings[i].ended};
            for (int k = 0; k < 3; k++)
                if (events[k])
                    s->c->api.event_destroy(events[k]);
        }
        cuda_leave(s->c, mode);
    }
    cuda_parcels_done(&s->parcels);
    if (s->raw)
        cuda_device_free(s->c, s->raw, s->raw_bytes);
    if (s->tables)
        cuda_device_free(s->c, s->tables, s->table_bytes);
    *s = (struct cuda_send){0};
}

/* ------------------------------------------------------------------ sending */

/* Replaces the buffer by a larger one, once nothing reads it any more. */
static int make_room(struct cuda_send *s, size_t bytes, stk_error *e)
{
    if (bytes <= s->raw_bytes)
        return STK_OK;
    s->c->api.stream_synchronize(s->c->stream);
    if (s->raw)
        cuda_device_free(s->c, s->raw, s->raw_bytes);
    s->raw = cuda_device_alloc(s->c, bytes);
    s->raw_bytes = s->raw ? bytes : 0;
    return s->raw ? STK_OK : cuda_failed(&s->c->api, CUDA_OUT_OF_MEMORY, "cannot send a batch", e);
}

int cuda_send_reserve(struct cuda_send *s, size_t raw, stk_error *e)
{
    int mode;
    int rc = cuda_enter(s->c, &mode, e);
    if (rc != STK_OK)
        return rc;
    pthread_mutex_lock(&s->c->lock);
    rc = make_room(s, raw, e);
    pthread_mutex_unlock(&s->c->lock);
    cuda_leave(s->c, mode);
    return rc;
}

int cuda_send_parcels(struct cuda_send *s, const struct cuda_levels *levels, size_t scratch, size_t least, bool codes,
                      stk_error *e)
{
    int mode;
    int rc = cuda_enter(s->c, &mode, e);
    if (rc != STK_OK)
        return rc;
    char finish[32];
    uint8_t tables[PARCEL_TABLES] = {0};
    name_kernel(levels, "finish_", finish, sizeof finish);
    fill_tables(levels, tables, 3 * 256 * levels->element);
    rc = cuda_parcels_init(&s->parcels, s->c, finish, tables, scratch, least, codes, e);
    cuda_leave(s->c, mode);
    return rc;
}

static double seconds(const struct cuda_send *s, void *from, void *to)
{
    float ms = 0;
    return s->c->api.event_elapsed(&ms, from, to) == 0 ? (double)ms * 1e-3 : 0;
}

/* Adds an earlier batch to the statistics. false: it is still under way. */
static bool count(struct cuda_send *s, struct cuda_timing *t)
{
    if (t->used && s->c->api.event_query(t->ended) != 0)
        return false;
    if (t->used) {
        s->timed_bytes += t->bytes;
        s->copy_s += seconds(s, t->began, t->copied);
        s->kernel_s += seconds(s, t->copied, t->ended);
    }
    t->used = 0;
    return true;
}

void cuda_send_count(struct cuda_send *s)
{
    for (int i = 0; i < SEND_TIMINGS; i++)
        count(s, &s->timings[i]);
}

/* NULL: all are in use, so this batch does not enter the statistics. */
static struct cuda_timing *next_timing(struct cuda_send *s)
{
    struct cuda_timing *t = &s->timings[s->next];
    if (!count(s, t))
        return NULL;
    t->bytes = 0;
    s->next = (s->next + 1) % SEND_TIMINGS;
    return t;
}

/* Makes numbers from the pixels of an item, in its layout. */
static int make_numbers(struct cuda_send *s, const struct cuda_item *item)
{
    uint64_t from = (uint64_t)(uintptr_t)s->raw, to = (uint64_t)(uintptr_t)item->to,
             tables = (uint64_t)(uintptr_t)s->tables;
    uint32_t pixels = item->pixels, rows = item->rows;
    void *arguments[] = {&from, &to, &tables, &pixels, &rows};
    const uint64_t fours = ((uint64_t)pixels + 3) / 4 * rows, blocks = (fours + BLOCK - 1) / BLOCK;
    const uint64_t most = (uint64_t)s->c->multiprocessors * BLOCKS_EACH;
    return s->c->api.launch(s->kernel, (unsigned)(blocks < most ? blocks : most), 1, 1, BLOCK, 1, 1, 0, s->c->stream,
                            arguments, NULL);
}

static struct cuda_rows rows_of(const struct cuda_item *item)
{
    return (struct cuda_rows){.at = item->from, .pitch = item->pitch, .rows = item->rows, .pixels = item->pixels};
}

/* The kernels for an item whose bytes are in s->raw. */
static int run_kernels(struct cuda_send *s, const struct cuda_item *item)
{
    if (!item->pitch)
        return make_numbers(s, item);
    const struct cuda_rows rows = rows_of(item);
    return cuda_parcels_run(&s->parcels, &rows, s->raw, item->to);
}

static int record(const struct cuda_send *s, void *event)
{
    return s->c->api.event_record(event, s->c->stream);
}

/* All copies, then the kernel. The item with pixels comes last. */
static int enqueue(struct cuda_send *s, const struct cuda_item *items, int n)
{
    struct cuda_timing *t = next_timing(s);
    int rc = t ? record(s, t->began) : 0;
    for (int i = 0; i < n && rc == 0; i++) {
        void *to = items[i].pixels ? s->raw : items[i].to;
        if (items[i].bytes > 0)
            rc = s->c->api.copy_in((uint64_t)(uintptr_t)to, items[i].from, items[i].bytes, s->c->stream);
        s->bytes += (int64_t)items[i].bytes;
        if (t)
            t->bytes += (int64_t)items[i].bytes;
    }
    if (rc == 0 && t)
        rc = record(s, t->copied);
    for (int i = 0; i < n && rc == 0; i++)
        if (items[i].pixels && items[i].bytes > 0)
            rc = run_kernels(s, &items[i]);
    if (rc == 0 && t)
        rc = record(s, t->ended);
    if (rc == 0 && t)
        t->used = 1;
    return rc;
}

static int send_all(struct cuda_send *s, const struct cuda_item *items, int n, stk_error *e)
{
    int rc = STK_OK;
    for (int i = 0; i < n && rc == STK_OK; i++) {
        const struct cuda_rows rows = rows_of(&items[i]);
        if (items[i].pitch)
            cuda_parcels_place(&s->parcels, &rows);
        if (items[i].pixels)
            rc = make_room(s, items[i].bytes, e);
        if (rc == STK_OK)
            rc = cuda_fence_reuse(items[i].to_fence, e);
    }
    if (rc != STK_OK)
        return rc;
    const int failed = enqueue(s, items, n);
    for (int i = 0; i < n && failed == 0 && rc == STK_OK; i++) {
        rc = cuda_fence_mark(items[i].from_fence, e);
        if (rc == STK_OK)
            rc = cuda_fence_mark(items[i].to_fence, e);
    }
    if (failed != 0)
        rc = cuda_failed(&s->c->api, failed, "cannot send a batch", e);
    if (rc != STK_OK) /* some copies may be under way without a mark */
        s->c->api.stream_synchronize(s->c->stream);
    return rc;
}

int cuda_send(struct cuda_send *s, const struct cuda_item *items, int n, stk_error *e)
{
    int mode;
    int rc = cuda_enter(s->c, &mode, e);
    if (rc != STK_OK)
        return rc;
    pthread_mutex_lock(&s->c->lock);
    rc = send_all(s, items, n, e);
    pthread_mutex_unlock(&s->c->lock);
    cuda_leave(s->c, mode);
    return rc;
}
