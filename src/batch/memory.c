/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c -- the memory of one field: taken from its depot, reference-counted, given back.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "batch/batch.h"

void memory_destroy(struct stk_memory *m)
{
    if (m->fence)
        m->depot->hooks.close(m->fence);
    m->depot->allocator.free(m->depot->allocator.user, m->data, m->bytes);
    free(m);
}

static struct stk_memory *memory_new(struct depot *d, int field, size_t bytes)
{
    struct stk_memory *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->depot = d;
    m->field = field;
    m->bytes = bytes;
    m->data = d->allocator.alloc(d->allocator.user, bytes);
    if (!m->data) {
        free(m);
        return NULL;
    }
    if (d->hooks.open && !(m->fence = d->hooks.open(d->hooks.user))) {
        memory_destroy(m);
        return NULL;
    }
    return m;
}

static struct stk_memory *memory_made(struct depot *d, int field, size_t bytes)
{
    struct stk_memory *m = memory_new(d, field, bytes);
    pthread_mutex_lock(&d->lock);
    d->n_out[field] += m != NULL;
    pthread_mutex_unlock(&d->lock);
    return m;
}

/* Takes memory from the depot, or frees it if it is too small. */
static struct stk_memory *memory_find(struct depot *d, int field, size_t bytes)
{
    pthread_mutex_lock(&d->lock);
    struct stk_memory *m = d->memories[field];
    if (m) {
        d->memories[field] = m->next;
        d->n_memories[field]--;
        d->n_out[field]++;
    }
    pthread_mutex_unlock(&d->lock);
    if (!m)
        return NULL;
    atomic_fetch_sub_explicit(&d->bytes_in, (int64_t)m->bytes, memory_order_relaxed);
    if (m->bytes >= bytes)
        return m;
    pthread_mutex_lock(&d->lock);
    d->n_out[field]--;
    pthread_mutex_unlock(&d->lock);
    memory_destroy(m);
    return NULL;
}

struct stk_memory *depot_memory(struct depot *d, int field, size_t bytes)
{
    struct stk_memory *m = memory_find(d, field, bytes);
    if (m && d->hooks.reuse)
        d->hooks.reuse(m->fence);
    if (!m)
        m = memory_made(d, field, bytes);
    if (!m)
        return NULL;
    m->next = NULL;
    atomic_init(&m->refs, 1);
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&d->bytes_out, (int64_t)m->bytes, memory_order_relaxed);
    return m;
}

/* Frees memory beyond what the ring needs. But one may always stay, for callers that constantly keep some. */
static bool memory_put_back(struct stk_memory *m)
{
    struct depot *d = m->depot;
    pthread_mutex_lock(&d->lock);
    int *const here = &d->n_memories[m->field], *const out = &d->n_out[m->field];
    (*out)--;
    const bool wanted = !d->closed && !d->allocator.cached && (*here == 0 || *here + *out < d->keep);
    if (wanted) {
        /* The host takes the memory that is still in the CPU's caches; a device, the one that it used longest ago. */
        struct stk_memory **at = &d->memories[m->field];
        while (d->hooks.open && *at)
            at = &(*at)->next;
        m->next = *at;
        *at = m;
        (*here)++;
        atomic_fetch_add_explicit(&d->bytes_in, (int64_t)m->bytes, memory_order_relaxed);
    }
    pthread_mutex_unlock(&d->lock);
    return wanted;
}

void stk_memory_release(stk_memory *m)
{
    if (!m || m->depot->pid != getpid())
        return;
    if (atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct depot *d = m->depot;
    if (d->hooks.release)
        d->hooks.release(m->fence);
    stk_memory_release(m->source);
    m->source = NULL;
    atomic_fetch_sub_explicit(&d->bytes_out, (int64_t)m->bytes, memory_order_relaxed);
    if (!memory_put_back(m))
        memory_destroy(m);
    depot_unref(d);
}

void stk_memory_retain(stk_memory *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
}

/* ------------------------------------------------------------------ memory of a device */

static int check_memory(const stk_memory *m, stk_error *e)
{
    return m->depot->pid == getpid()
               ? STK_OK
               : error_set(e, STK_EFORK, "fork", "this batch belongs to the parent process; open a loader in this one");
}

int stk_memory_use(stk_memory *m, void *stream, stk_error *e)
{
    const int rc = check_memory(m, e);
    return rc == STK_OK && m->depot->hooks.use ? m->depot->hooks.use(m->fence, stream, e) : rc;
}

int stk_memory_read(stk_memory *m, void *to, size_t n, stk_error *e)
{
    int rc = check_memory(m, e);
    if (rc == STK_OK && n > m->bytes)
        rc = error_set(e, STK_EUSAGE, "device", "cannot read %zu bytes of a field that has %zu", n, m->bytes);
    if (rc != STK_OK || n == 0)
        return rc;
    if (m->source)
        memcpy(to, m->source->data, n);
    else if (m->depot->hooks.read)
        return m->depot->hooks.read(m->fence, m->data, to, n, e);
    else
        memcpy(to, m->data, n);
    return STK_OK;
}
