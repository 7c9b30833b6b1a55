/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_driver.h -- CUDA's driver, which is opened at run time, and one of its devices.
 *
 * Nothing here needs CUDA at build time. Handles of contexts, streams, events, modules and functions are void *; device
 * addresses are uint64_t, as the driver has them. All functions of the table return 0, or an error of the driver.
 */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

#define CUDA_FUNCTIONS(X)                                                                                              \
    X(init, "cuInit", (unsigned flags))                                                                                \
    X(driver_version, "cuDriverGetVersion", (int *version))                                                            \
    X(error_name, "cuGetErrorName", (int error, const char **name))                                                    \
    X(error_text, "cuGetErrorString", (int error, const char **text))                                                  \
    X(device_count, "cuDeviceGetCount", (int *n))                                                                      \
    X(device_get, "cuDeviceGet", (int *device, int index))                                                             \
    X(device_name, "cuDeviceGetName", (char *name, int n, int device))                                                 \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                               \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                                              \
    X(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                                        \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                                                   \
    X(context_push, "cuCtxPushCurrent_v2", (void *context))                                                            \
    X(context_pop, "cuCtxPopCurrent_v2", (void **context))                                                             \
    X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                                  \
    X(memory_info, "cuMemGetInfo_v2", (size_t * available, size_t * total))                                            \
    X(memory_alloc, "cuMemAlloc_v2", (uint64_t * address, size_t bytes))                                               \
    X(memory_free, "cuMemFree_v2", (uint64_t address))                                                                 \
    X(host_alloc, "cuMemHostAlloc", (void **p, size_t bytes, unsigned flags))                                          \
    X(host_free, "cuMemFreeHost", (void *p))                                                                           \
    X(copy_in, "cuMemcpyHtoDAsync_v2", (uint64_t to, const void *from, size_t bytes, void *stream))                    \
    X(copy_out, "cuMemcpyDtoHAsync_v2", (void *to, uint64_t from, size_t bytes, void *stream))                         \
    X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                                                \
    X(stream_destroy, "cuStreamDestroy_v2", (void *stream))                                                            \
    X(stream_wait_event, "cuStreamWaitEvent", (void *stream, void *event, unsigned flags))                             \
    X(stream_synchronize, "cuStreamSynchronize", (void *stream))                                                       \
    X(stream_is_capturing, "cuStreamIsCapturing", (void *stream, int *status))                                         \
    X(event_create, "cuEventCreate", (void **event, unsigned flags))                                                   \
    X(event_destroy, "cuEventDestroy_v2", (void *event))                                                               \
    X(event_record, "cuEventRecord", (void *event, void *stream))                                                      \
    X(event_query, "cuEventQuery", (void *event))                                                                      \
    X(event_synchronize, "cuEventSynchronize", (void *event))                                                          \
    X(event_elapsed, "cuEventElapsedTime", (float *ms, void *start, void *end))                                        \
    X(module_load, "cuModuleLoadData", (void **module, const void *image))                                             \
    X(module_unload, "cuModuleUnload", (void *module))                                                                 \
    X(module_function, "cuModuleGetFunction", (void **function, void *module, const char *name))                       \
    X(launch, "cuLaunchKernel",                                                                                        \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,          \
       unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra))

#define CUDA_MEMBER(name, symbol, arguments) int(*name) arguments;
struct cuda_api {
    CUDA_FUNCTIONS(CUDA_MEMBER)
};

/* Errors and flags of the driver. */
enum {
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_NO_DEVICE = 100,
    CUDA_NO_BINARY = 209,
    CUDA_BAD_PTX = 218,
    CUDA_UNSUPPORTED_PTX = 222,
    CUDA_NOT_READY = 600,
    CUDA_CAPTURE_IMPLICIT = 906,

    CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
    CUDA_ATTRIBUTE_MAJOR = 75,
    CUDA_ATTRIBUTE_MINOR = 76,

    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_EVENT_BLOCKING = 1,
    CUDA_EVENT_NO_TIMING = 2,
    CUDA_HOST_PORTABLE = 1,
    CUDA_CAPTURE_RELAXED = 2,
};

enum { CUDA_DLPACK = 2 }; /* DLPack's device type */

/*
 * One device: its primary context, which all libraries of the process share, and a stream of its own for copies and
 * kernels. Memory of the device, and page-locked memory, may outlive the loader, so it is reference-counted.
 */
struct cuda {
    atomic_int refs;
    struct cuda_api api;
    int index, device; /* N of "cuda:N"; the driver's handle */
    char name[96];
    int multiprocessors;
    void *context, *stream, *module;
    pthread_mutex_t lock;                     /* work that must not be interleaved with other work on the stream */
    _Atomic int64_t host_bytes, device_bytes; /* allocated now */
    _Atomic int64_t waited_ns;                /* that streams of the caller waited for batches */
};

/* Opens "cuda" (the first device) or "cuda:N". */
int cuda_open(struct cuda **out, const char *device, stk_error *e);
void cuda_ref(struct cuda *c);
void cuda_unref(struct cuda *c); /* accepts NULL */
/* Whether a name is that of a device: "cuda" or "cuda:N". Sets *index. */
int cuda_parse(const char *device, int *index);

/* Makes the context current in this thread, and the previous one again. In between, no call disturbs another thread
 * that captures a CUDA graph. */
int cuda_enter(struct cuda *c, int *mode, stk_error *e);
void cuda_leave(struct cuda *c, int mode);
/* Describes an error of the driver: "cannot copy a batch: ...". rc must not be 0. */
int cuda_failed(const struct cuda_api *api, int rc, const char *what, stk_error *e);

#endif
