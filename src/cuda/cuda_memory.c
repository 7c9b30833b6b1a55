/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_memory.c -- memory of a device, page-locked memory of the host, and their fences.
 *
 * Invariants of a fence, under its lock:
 *   (1) streams[0] to streams[n_streams - 1] may have work that uses the memory, from `use` to `release`.
 *   (2) From `release` to `reuse`, passed[i] was recorded in streams[i] for i < n_passed. A stream that was being
 *       captured into a graph at the release cannot record an event of the loader: `reuse` tries it again.
 */
#include "cuda/cuda_memory.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

/* ------------------------------------------------------------------ memory */

void *cuda_host_alloc(void *user, size_t bytes)
{
    int mode;
    struct cuda *c = user;
    void *p = NULL;
    if (cuda_enter(c, &mode, NULL) != STK_OK)
        return NULL;
    const int rc = c->api.host_alloc(&p, bytes, CUDA_HOST_PORTABLE);
    cuda_leave(c, mode);
    if (rc != 0)
        return NULL;
    atomic_fetch_add_explicit(&c->host_bytes, (int64_t)bytes, memory_order_relaxed);
    cuda_ref(c);
    return p;
}

void cuda_host_free(void *user, void *p, size_t bytes)
{
    int mode;
    struct cuda *c = user;
    if (cuda_enter(c, &mode, NULL) == STK_OK) {
        c->api.host_free(p);
        cuda_leave(c, mode);
    }
    atomic_fetch_sub_explicit(&c->host_bytes, (int64_t)bytes, memory_order_relaxed);
    cuda_unref(c);
}

void *cuda_device_alloc(void *user, size_t bytes)
{
    int mode;
    struct cuda *c = user;
    uint64_t address = 0;
    if (cuda_enter(c, &mode, NULL) != STK_OK)
        return NULL;
    const int rc = c->api.memory_alloc(&address, bytes);
    cuda_leave(c, mode);
    if (rc != 0)
        return NULL;
    atomic_fetch_add_explicit(&c->device_bytes, (int64_t)bytes, memory_order_relaxed);
    cuda_ref(c);
    return (void *)(uintptr_t)address;
}

void cuda_device_free(void *user, void *p, size_t bytes)
{
    int mode;
    struct cuda *c = user;
    if (cuda_enter(c, &mode, NULL) == STK_OK) {
        c->api.memory_free((uint64_t)(uintptr_t)p);
        cuda_leave(c, mode);
    }
    atomic_fetch_sub_explicit(&c->device_bytes, (int64_t)bytes, memory_order_relaxed);
    cuda_unref(c);
}

/* ------------------------------------------------------------------ fences */

enum { STREAMS = 8 }; /* of the caller, that use one memory at a time */

struct cuda_fence {
    struct cuda *c;
    void *event;         /* the last mark */
    atomic_bool pending; /* it was recorded, and the host has not waited for it */
    pthread_mutex_t lock;
    int n_streams, n_passed;
    void *streams[STREAMS], *passed[STREAMS];
    void *before, *after; /* with timing: around the wait of the first stream */
    bool timed;
};

static void destroy(struct cuda *c, void *event)
{
    if (event)
        c->api.event_destroy(event);
}

static void fence_done(struct cuda_fence *f)
{
    destroy(f->c, f->event);
    destroy(f->c, f->before);
    destroy(f->c, f->after);
    for (int i = 0; i < STREAMS; i++)
        destroy(f->c, f->passed[i]);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

void *cuda_fence_new(void *user)
{
    int mode;
    struct cuda *c = user;
    struct cuda_fence *f = calloc(1, sizeof *f);
    if (!f || cuda_enter(c, &mode, NULL) != STK_OK) {
        free(f);
        return NULL;
    }
    f->c = c;
    pthread_mutex_init(&f->lock, NULL);
    int rc = c->api.event_create(&f->event, CUDA_EVENT_BLOCKING | CUDA_EVENT_NO_TIMING);
    if (rc == 0)
        rc = c->api.event_create(&f->before, 0);
    if (rc == 0)
        rc = c->api.event_create(&f->after, 0);
    if (rc != 0) {
        fence_done(f);
        f = NULL;
    }
    cuda_leave(c, mode);
    return f;
}

void cuda_fence_free(void *fence)
{
    int mode;
    struct cuda_fence *f = fence;
    if (!f)
        return;
    cuda_fence_wait(f);
    if (cuda_enter(f->c, &mode, NULL) != STK_OK) {
        free(f);
        return;
    }
    for (int i = 0; i < f->n_passed; i++)
        f->c->api.event_synchronize(f->passed[i]);
    struct cuda *c = f->c;
    fence_done(f);
    cuda_leave(c, mode);
}

void *cuda_fence_event(const struct cuda_fence *f)
{
    return f->event;
}

int cuda_fence_mark(struct cuda_fence *f, stk_error *e)
{
    const int rc = f->c->api.event_record(f->event, f->c->stream);
    if (rc != 0)
        return cuda_failed(&f->c->api, rc, "cannot record the event of a copied batch", e);
    atomic_store(&f->pending, true);
    return STK_OK;
}

void cuda_fence_wait(void *fence)
{
    int mode;
    struct cuda_fence *f = fence;
    if (!atomic_load(&f->pending) || cuda_enter(f->c, &mode, NULL) != STK_OK)
        return;
    f->c->api.event_synchronize(f->event);
    cuda_leave(f->c, mode);
    atomic_store(&f->pending, false);
}

/* ------------------------------------------------------------------ streams of the caller */

static bool is_capturing(const struct cuda *c, void *stream)
{
    int status = 0;
    const int rc = c->api.stream_is_capturing(stream, &status);
    return rc == CUDA_CAPTURE_IMPLICIT || (rc == 0 && status != 0);
}

/* Adds how long the caller's stream waited, once that is known. */
static void count_wait(struct cuda_fence *f)
{
    float ms = 0;
    if (f->timed && f->c->api.event_query(f->after) == 0 && f->c->api.event_elapsed(&ms, f->before, f->after) == 0)
        atomic_fetch_add_explicit(&f->c->waited_ns, (int64_t)(ms * 1e6f), memory_order_relaxed);
    f->timed = false;
}

/* The first use of a memory by a stream. */
static int wait_in(struct cuda_fence *f, void *stream)
{
    const struct cuda_api *api = &f->c->api;
    if (is_capturing(f->c, stream)) /* a graph must not depend on an event outside of it */
        return api->event_synchronize(f->event);
    const bool first = f->n_streams == 1 && !f->timed;
    int rc = first ? api->event_record(f->before, stream) : 0;
    if (rc == 0)
        rc = api->stream_wait_event(stream, f->event, 0);
    if (rc == 0 && first)
        rc = api->event_record(f->after, stream);
    f->timed |= rc == 0 && first;
    return rc;
}

static int add_stream(struct cuda_fence *f, void *stream, stk_error *e)
{
    for (int i = 0; i < f->n_streams; i++)
        if (f->streams[i] == stream)
            return STK_OK;
    if (f->n_streams == STREAMS)
        return error_set(e, STK_EUSAGE, "device",
                         "more than %d streams use one batch; release it, or use fewer streams", STREAMS);
    f->streams[f->n_streams++] = stream;
    const int rc = wait_in(f, stream);
    return rc == 0 ? STK_OK : cuda_failed(&f->c->api, rc, "the stream cannot wait for a batch", e);
}

int cuda_fence_use(void *fence, void *stream, stk_error *e)
{
    int mode;
    struct cuda_fence *f = fence;
    int rc = cuda_enter(f->c, &mode, e);
    if (rc != STK_OK)
        return rc;
    pthread_mutex_lock(&f->lock);
    rc = add_stream(f, stream, e);
    pthread_mutex_unlock(&f->lock);
    cuda_leave(f->c, mode);
    return rc;
}

/* Records where the streams are. Stops at one that is being captured. */
static int record_passed(struct cuda_fence *f)
{
    const struct cuda_api *api = &f->c->api;
    int rc = 0;
    while (rc == 0 && f->n_passed < f->n_streams && !is_capturing(f->c, f->streams[f->n_passed])) {
        void **event = &f->passed[f->n_passed];
        if (!*event)
            rc = api->event_create(event, CUDA_EVENT_BLOCKING | CUDA_EVENT_NO_TIMING);
        if (rc == 0)
            rc = api->event_record(*event, f->streams[f->n_passed]);
        f->n_passed += rc == 0;
    }
    return rc;
}

void cuda_fence_release(void *fence)
{
    int mode;
    struct cuda_fence *f = fence;
    if (cuda_enter(f->c, &mode, NULL) != STK_OK)
        return;
    pthread_mutex_lock(&f->lock);
    record_passed(f);
    pthread_mutex_unlock(&f->lock);
    cuda_leave(f->c, mode);
}

int cuda_fence_reuse(struct cuda_fence *f, stk_error *e)
{
    const struct cuda_api *api = &f->c->api;
    pthread_mutex_lock(&f->lock);
    int rc = record_passed(f);
    count_wait(f);
    for (int i = 0; i < f->n_passed && rc == 0; i++)
        rc = api->stream_wait_event(f->c->stream, f->passed[i], 0);
    const bool captured = rc == 0 && f->n_passed < f->n_streams;
    if (rc == 0 && !captured)
        f->n_streams = f->n_passed = 0;
    pthread_mutex_unlock(&f->lock);
    if (captured)
        return error_set(e, STK_EDEVICE, "device",
                         "a stream that used a batch is being captured into a CUDA graph; take batches from the loader "
                         "before or after the capture");
    return rc == 0 ? STK_OK : cuda_failed(api, rc, "cannot wait for the streams that used a batch", e);
}

int cuda_fence_read(void *fence, const void *data, void *to, size_t bytes, stk_error *e)
{
    int mode;
    struct cuda_fence *f = fence;
    struct cuda *c = f->c;
    int rc = cuda_enter(c, &mode, e);
    if (rc != STK_OK)
        return rc;
    pthread_mutex_lock(&c->lock);
    rc = c->api.copy_out(to, (uint64_t)(uintptr_t)data, bytes, c->stream);
    if (rc == 0)
        rc = c->api.stream_synchronize(c->stream);
    pthread_mutex_unlock(&c->lock);
    cuda_leave(c, mode);
    return rc == 0 ? STK_OK : cuda_failed(&c->api, rc, "cannot read a batch from the GPU", e);
}
