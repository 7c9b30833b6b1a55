/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cuda.c -- a driver of CUDA without a GPU, for tests: libcuda.so.1 over the memory of the host.
 *
 * Every stream is a thread that does its work late, so that a copy that nobody waits for is seen. Device addresses are
 * tagged: the host cannot use them by mistake. Misuse ends the program: no current context, memory that is not
 * allocated, page-locked memory that is freed while a copy uses it. STOKER_FAKE_CUDA, read by cuInit, describes the
 * machine: "devices=2 capability=75 version=12040 memory=1000000 init=100".
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/kernels.cu"

#define API __attribute__((visibility("default")))

enum { OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID = 1, NO_DEVICE = 100, NOT_FOUND = 500, NOT_READY = 600 };

static const uint64_t TAG = (uint64_t)1 << 62;

struct block {
    struct block *next;
    uint8_t *p;
    size_t bytes;
    int device;
    int users; /* copies and kernels that are not done */
};

struct event {
    uint64_t recorded, done; /* counts */
    struct timespec at;
    struct event *next; /* destroyed before it */
};

enum kind { COPY, KERNEL, RECORD, WAIT };

struct op {
    struct op *next;
    enum kind kind;
    uint8_t *to;
    const uint8_t *from;
    size_t bytes;
    struct event *event;
    uint64_t count;
    void *kernel;
    const void *table;
    uint32_t pixels, rows, first, pitch; /* the last two: of parcels */
    struct block *blocks[3];
};

struct stream {
    pthread_t thread;
    struct op *first, **last;
    int busy, stop, capturing;
};

struct module {
    const char *ptx;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct block *blocks;
static struct stream *legacy;
static struct event *destroyed; /* streams may still wait for them, so they are kept */
static pid_t owner;
static int devices = 1, capability = 75, version = 13000, events, streams, modules;
static atomic_int contexts, broken; /* read without the lock */
static size_t memory = (size_t)1 << 34, used;
static _Thread_local int depth;

#define REQUIRE(x, words)                                                                                              \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            fprintf(stderr, "fake CUDA: %s: %s\n", __func__, words);                                                   \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)
#define ENTER()                                                                                                        \
    do {                                                                                                               \
        REQUIRE(depth > 0, "no context is current");                                                                   \
        if (broken)                                                                                                    \
            return broken;                                                                                             \
    } while (0)

/* ------------------------------------------------------------------ for tests */

API void fake_cuda_break(int code);
API void fake_cuda_capture(void *stream, int on);
API int fake_cuda_live(void);

/* From now on, all calls fail, as after a kernel that crashed. */
void fake_cuda_break(int code)
{
    pthread_mutex_lock(&lock);
    broken = code;
    pthread_mutex_unlock(&lock);
}

void fake_cuda_capture(void *stream, int on)
{
    ((struct stream *)stream)->capturing = on;
}

/* Everything that was created and not destroyed. */
int fake_cuda_live(void)
{
    pthread_mutex_lock(&lock);
    int n = contexts + events + streams + modules;
    for (const struct block *b = blocks; b; b = b->next)
        n++;
    pthread_mutex_unlock(&lock);
    return n;
}

/* ------------------------------------------------------------------ the machine */

static long setting(const char *name, long otherwise)
{
    const char *all = getenv("STOKER_FAKE_CUDA"), *at = all ? strstr(all, name) : NULL;
    return at ? strtol(at + strlen(name), NULL, 10) : otherwise;
}

API int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    if (owner && owner != getpid())
        return NOT_INITIALIZED;
    owner = getpid();
    devices = (int)setting("devices=", 1);
    capability = (int)setting("capability=", 75);
    version = (int)setting("version=", 13000);
    memory = (size_t)setting("memory=", 1L << 34);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && !visible[0])
        return NO_DEVICE;
    return flags ? INVALID : (int)setting("init=", 0);
}

API int cuDriverGetVersion(int *v);
int cuDriverGetVersion(int *v)
{
    *v = version;
    return 0;
}

API int cuGetErrorName(int error, const char **name);
int cuGetErrorName(int error, const char **name)
{
    *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
    return 0;
}

API int cuGetErrorString(int error, const char **text);
int cuGetErrorString(int error, const char **text)
{
    *text = error == 700 ? "an illegal memory access was encountered" : "a fake error";
    return 0;
}

API int cuDeviceGetCount(int *n);
int cuDeviceGetCount(int *n)
{
    *n = devices;
    return 0;
}

API int cuDeviceGet(int *device, int index);
int cuDeviceGet(int *device, int index)
{
    *device = index;
    return index < devices ? 0 : INVALID;
}

API int cuDeviceGetName(char *name, int n, int device);
int cuDeviceGetName(char *name, int n, int device)
{
    snprintf(name, (size_t)n, "Fake GPU %d", device);
    return 0;
}

API int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 4;
    return 0;
}

API int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = memory;
    return 0;
}

/* ------------------------------------------------------------------ contexts */

API int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    if (broken)
        return broken;
    pthread_mutex_lock(&lock);
    contexts++;
    pthread_mutex_unlock(&lock);
    *context = &contexts;
    return 0;
}

API int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    pthread_mutex_lock(&lock);
    REQUIRE(contexts > 0, "released more often than retained");
    contexts--;
    pthread_mutex_unlock(&lock);
    return 0;
}

API int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
    REQUIRE(context == &contexts && contexts > 0, "not a context");
    depth++;
    return 0;
}

API int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context)
{
    REQUIRE(depth > 0, "no context is current");
    *context = &contexts;
    depth--;
    return 0;
}

API int cuThreadExchangeStreamCaptureMode(int *mode);
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int now;
    const int before = now;
    REQUIRE(*mode >= 0 && *mode <= 2, "not a mode");
    now = *mode;
    *mode = before;
    return 0;
}

/* ------------------------------------------------------------------ memory */

static struct block *find_block(const void *p, size_t bytes, int device)
{
    pthread_mutex_lock(&lock);
    struct block *b = blocks;
    while (b && (b->device != device || (const uint8_t *)p < b->p || (const uint8_t *)p + bytes > b->p + b->bytes))
        b = b->next;
    pthread_mutex_unlock(&lock);
    return b;
}

static int add_block(void **p, size_t bytes, int device)
{
    struct block *b = calloc(1, sizeof *b);
    pthread_mutex_lock(&lock);
    int rc = bytes == 0 ? INVALID : device && bytes > memory - used ? OUT_OF_MEMORY : 0;
    if (rc == 0) {
        b->p = aligned_alloc(256, (bytes + 255) / 256 * 256);
        b->bytes = bytes;
        b->device = device;
        memset(b->p, 0xa5, bytes);
        b->next = blocks;
        blocks = b;
        used += device ? bytes : 0;
        *p = b->p;
    } else {
        free(b);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Freeing device memory waits for the device. Freeing page-locked memory that is in use is a bug. */
static void remove_block(const void *p, int device)
{
    pthread_mutex_lock(&lock);
    struct block **at = &blocks;
    while (*at && ((*at)->p != p || (*at)->device != device))
        at = &(*at)->next;
    struct block *b = *at;
    REQUIRE(b, "not allocated");
    REQUIRE(device || b->users == 0, "page-locked memory is freed while a copy uses it");
    while (b->users > 0)
        pthread_cond_wait(&changed, &lock);
    for (at = &blocks; *at != b;)
        at = &(*at)->next;
    *at = b->next;
    used -= device ? b->bytes : 0;
    pthread_mutex_unlock(&lock);
    free(b->p);
    free(b);
}

API int cuMemGetInfo_v2(size_t *available, size_t *total);
int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    ENTER();
    *available = memory - used;
    *total = memory;
    return 0;
}

API int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    ENTER();
    void *p = NULL;
    const int rc = add_block(&p, bytes, 1);
    *address = (uint64_t)(uintptr_t)p | TAG;
    return rc;
}

API int cuMemFree_v2(uint64_t address);
int cuMemFree_v2(uint64_t address)
{
    REQUIRE(depth > 0, "no context is current");
    REQUIRE(address & TAG, "not a device address");
    remove_block((void *)(uintptr_t)(address & ~TAG), 1);
    return broken;
}

API int cuMemHostAlloc(void **p, size_t bytes, unsigned flags);
int cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    ENTER();
    (void)flags;
    return add_block(p, bytes, 0);
}

API int cuMemFreeHost(void *p);
int cuMemFreeHost(void *p)
{
    REQUIRE(depth > 0, "no context is current");
    remove_block(p, 0);
    return broken;
}

/* ------------------------------------------------------------------ streams */

#define NUMBERS(X)                                                                                                     \
    X(planar_1, uint8_t)                                                                                               \
    X(planar_2, uint16_t)                                                                                              \
    X(planar_4, uint32_t)                                                                                              \
    X(interleaved_2, uint16_t) X(interleaved_4, uint32_t) X(single_2, uint16_t) X(single_4, uint32_t)
#define FOR_PARCELS(X)                                                                                                 \
    X(parcels_sync)                                                                                                    \
    X(parcels_huffman)                                                                                                 \
    X(parcels_expand)                                                                                                  \
    X(parcels_colour) X(parcels_down) FOR_ROWS(X, planar) FOR_ROWS(X, interleaved)
#define FOR_ROWS(X, layout) X(finish_##layout##_1) X(finish_##layout##_2) X(finish_##layout##_4)

static void run_kernel(const struct op *op)
{
#define RUN(name, T)                                                                                                   \
    if (op->kernel == (void *)(uintptr_t)name)                                                                         \
        name(op->from, (T *)(void *)op->to, op->table, op->pixels, op->rows);
#define RUN_PARCELS(name)                                                                                              \
    if (op->kernel == (void *)(uintptr_t)name)                                                                         \
        name(op->from, op->to, (uint8_t *)(uintptr_t)op->table, op->first, op->pitch, op->pixels, op->rows);
    NUMBERS(RUN)
    FOR_PARCELS(RUN_PARCELS)
}

/* Without lock. */
static void run_op(const struct op *op)
{
    const struct timespec late = {.tv_nsec = 300 * 1000};
    if (op->kind == COPY) {
        nanosleep(&late, NULL);
        if (op->bytes == 4) /* a word arrives at once */
            __atomic_store_n((uint32_t *)(void *)op->to, *(const uint32_t *)(const void *)op->from, __ATOMIC_RELAXED);
        memcpy(op->to, op->from, op->bytes == 4 ? 0 : op->bytes);
    } else if (op->kind == KERNEL) {
        run_kernel(op);
    }
}

static void finish_op(struct op *op)
{
    for (int i = 0; i < 3; i++)
        if (op->blocks[i])
            op->blocks[i]->users--;
    if (op->kind == RECORD) {
        clock_gettime(CLOCK_MONOTONIC, &op->event->at);
        op->event->done = op->count;
    }
    free(op);
}

static void *work(void *arg)
{
    struct stream *s = arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct op *op = s->first;
        if (!op && s->stop)
            break;
        if (!op || (op->kind == WAIT && op->event->done < op->count)) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        s->first = op->next;
        if (!s->first)
            s->last = &s->first;
        s->busy = 1;
        pthread_mutex_unlock(&lock);
        run_op(op);
        pthread_mutex_lock(&lock);
        s->busy = 0;
        finish_op(op);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static struct stream *new_stream(void)
{
    struct stream *s = calloc(1, sizeof *s);
    s->last = &s->first;
    pthread_create(&s->thread, NULL, work, s);
    return s;
}

/* NULL, 1 and 2 are the default streams. */
static struct stream *stream_of(void *handle)
{
    if ((uintptr_t)handle > 2)
        return handle;
    if (!legacy)
        legacy = new_stream();
    return legacy;
}

static int add_op(void *stream, struct op op)
{
    struct op *o = malloc(sizeof *o);
    *o = op;
    pthread_mutex_lock(&lock);
    struct stream *s = stream_of(stream);
    REQUIRE(!s->capturing, "the stream is being captured");
    for (int i = 0; i < 3; i++)
        if (o->blocks[i])
            o->blocks[i]->users++;
    if (o->kind == RECORD)
        o->count = ++o->event->recorded;
    if (o->kind == WAIT)
        o->count = o->event->recorded;
    *s->last = o;
    s->last = &o->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

API int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreate(void **stream, unsigned flags)
{
    ENTER();
    (void)flags;
    *stream = new_stream();
    pthread_mutex_lock(&lock);
    streams++;
    pthread_mutex_unlock(&lock);
    return 0;
}

API int cuStreamDestroy_v2(void *stream);
int cuStreamDestroy_v2(void *stream)
{
    struct stream *s = stream;
    pthread_mutex_lock(&lock);
    streams--;
    s->stop = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(s->thread, NULL);
    free(s);
    return broken;
}

API int cuStreamSynchronize(void *stream);
int cuStreamSynchronize(void *stream)
{
    REQUIRE(depth > 0, "no context is current");
    pthread_mutex_lock(&lock);
    const struct stream *s = stream_of(stream);
    while (s->first || s->busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return broken;
}

API int cuStreamIsCapturing(void *stream, int *status);
int cuStreamIsCapturing(void *stream, int *status)
{
    ENTER();
    *status = stream_of(stream)->capturing;
    return 0;
}

API int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    ENTER();
    (void)flags;
    return add_op(stream, (struct op){.kind = WAIT, .event = event});
}

API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    ENTER();
    REQUIRE(to & TAG, "not a device address");
    struct op op = {.kind = COPY, .to = (uint8_t *)(uintptr_t)(to & ~TAG), .from = from, .bytes = bytes};
    op.blocks[0] = find_block(op.to, bytes, 1);
    op.blocks[1] = find_block(from, bytes, 0);
    REQUIRE(op.blocks[0], "the device memory is not allocated");
    /* As the real one does, it copies memory that is not page-locked before it returns. */
    const int rc = add_op(stream, op);
    return op.blocks[1] ? rc : cuStreamSynchronize(stream);
}

API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    ENTER();
    REQUIRE(from & TAG, "not a device address");
    struct op op = {.kind = COPY, .to = to, .from = (const uint8_t *)(uintptr_t)(from & ~TAG), .bytes = bytes};
    op.blocks[0] = find_block(op.from, bytes, 1);
    REQUIRE(op.blocks[0], "the device memory is not allocated");
    return add_op(stream, op);
}

/* ------------------------------------------------------------------ events */

API int cuEventCreate(void **event, unsigned flags);
int cuEventCreate(void **event, unsigned flags)
{
    ENTER();
    (void)flags;
    *event = calloc(1, sizeof(struct event));
    pthread_mutex_lock(&lock);
    events++;
    pthread_mutex_unlock(&lock);
    return 0;
}

API int cuEventDestroy_v2(void *event);
int cuEventDestroy_v2(void *event)
{
    struct event *e = event;
    pthread_mutex_lock(&lock);
    events--;
    e->next = destroyed;
    destroyed = e;
    pthread_mutex_unlock(&lock);
    return broken;
}

API int cuEventRecord(void *event, void *stream);
int cuEventRecord(void *event, void *stream)
{
    ENTER();
    return add_op(stream, (struct op){.kind = RECORD, .event = event});
}

API int cuEventQuery(void *event);
int cuEventQuery(void *event)
{
    ENTER();
    pthread_mutex_lock(&lock);
    const int done = ((struct event *)event)->done == ((struct event *)event)->recorded;
    pthread_mutex_unlock(&lock);
    return done ? 0 : NOT_READY;
}

API int cuEventSynchronize(void *event);
int cuEventSynchronize(void *event)
{
    REQUIRE(depth > 0, "no context is current");
    const struct event *e = event;
    pthread_mutex_lock(&lock);
    for (const uint64_t count = e->recorded; e->done < count;)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return broken;
}

API int cuEventElapsedTime(float *ms, void *start, void *end);
int cuEventElapsedTime(float *ms, void *start, void *end)
{
    ENTER();
    const struct event *a = start, *b = end;
    pthread_mutex_lock(&lock);
    REQUIRE(a->recorded && b->recorded, "an event was never recorded");
    *ms = (float)(b->at.tv_sec - a->at.tv_sec) * 1e3f + (float)(b->at.tv_nsec - a->at.tv_nsec) * 1e-6f;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* ------------------------------------------------------------------ kernels */

API int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadData(void **module, const void *image)
{
    ENTER();
    REQUIRE(strncmp(image, ".version ", 9) == 0, "this is not PTX");
    struct module *m = calloc(1, sizeof *m);
    m->ptx = image;
    *module = m;
    pthread_mutex_lock(&lock);
    modules++;
    pthread_mutex_unlock(&lock);
    return 0;
}

API int cuModuleUnload(void *module);
int cuModuleUnload(void *module)
{
    pthread_mutex_lock(&lock);
    modules--;
    pthread_mutex_unlock(&lock);
    free(module);
    return broken;
}

API int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    ENTER();
#define ENTRY(name)       {#name, (void *)(uintptr_t)name},
#define ENTRY_OF(name, T) ENTRY(name)
    static const struct {
        const char *name;
        void *run;
    } all[] = {NUMBERS(ENTRY_OF) FOR_PARCELS(ENTRY)};
    char entry[64];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, name) == 0 && strstr(((struct module *)module)->ptx, entry)) {
            *function = all[i].run;
            return 0;
        }
    return NOT_FOUND;
}

#define OR_IS(name) || f == (void *)(uintptr_t)name
static int is_for_parcels(const void *f)
{
    return 0 FOR_PARCELS(OR_IS);
}

API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *stream, void **arguments, void **extra);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra)
{
    ENTER();
    REQUIRE(!shared && !extra && gx && gy && gz && bx && by && bz && (uint64_t)bx * by * bz <= 1024, "a bad grid");
    uint64_t at[3];
    struct op op = {.kind = KERNEL, .kernel = function};
    for (int i = 0; i < 3; i++) {
        memcpy(&at[i], arguments[i], sizeof at[i]);
        const int there = (at[i] & TAG) != 0;
        REQUIRE(there || i == 1, "not a device address"); /* but it may write to page-locked memory of the host */
        at[i] &= ~TAG;
        op.blocks[i] = find_block((void *)(uintptr_t)at[i], 1, there);
        REQUIRE(op.blocks[i], "the memory is not allocated");
    }
    op.from = (const void *)(uintptr_t)at[0];
    op.to = (void *)(uintptr_t)at[1];
    op.table = (const void *)(uintptr_t)at[2];
    uint32_t n[3] = {0};
    for (int i = 0; i < (is_for_parcels(function) ? 3 : 2); i++)
        memcpy(&n[i], arguments[3 + i], sizeof n[i]);
    op.first = n[0];
    op.pitch = n[1];
    op.pixels = is_for_parcels(function) ? n[2] : n[0];
    op.rows = is_for_parcels(function) ? gy : n[1];
    return add_op(stream, op);
}
