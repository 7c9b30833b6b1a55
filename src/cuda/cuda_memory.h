/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_memory.h -- memory of a device, page-locked memory of the host, and the fences that say when either is free.
 *
 * Work on a device goes on after the host has released its memory. So each memory has a fence:
 *
 *     page-locked    mark: a copy reads it         wait: the host waits for that copy before it writes there again
 *     of a device    mark: a copy has written it   use: a stream of the caller waits for that copy
 *                    release: the caller is done   reuse: the next copy waits until the caller's streams are there
 *
 * Only `wait` makes the host wait: if the memory is needed again before its copy is done, and before a batch with whole
 * scans is delivered (loader_again.c).
 */
#ifndef CUDA_MEMORY_H
#define CUDA_MEMORY_H

#include "cuda/cuda_driver.h"

/* stk_allocator's functions; user is a struct cuda. Memory keeps its device open. */
void *cuda_host_alloc(void *user, size_t bytes);
void cuda_host_free(void *user, void *p, size_t bytes);
void *cuda_device_alloc(void *user, size_t bytes);
void cuda_device_free(void *user, void *p, size_t bytes);

struct cuda_fence;

/* user is a struct cuda, which must outlive the fence. NULL: no memory, or the device does not work. */
void *cuda_fence_new(void *user);
/* Waits for work that uses the memory. Accepts NULL. */
void cuda_fence_free(void *fence);

/* These run with the context entered and the lock of the device held: all that is on the device's stream now is before
 * the mark; all that follows is after the reuse. */
int cuda_fence_mark(struct cuda_fence *f, stk_error *e);
int cuda_fence_reuse(struct cuda_fence *f, stk_error *e);

/* The host waits for the last mark. */
void cuda_fence_wait(void *fence);
/* The event of the last mark: a CUevent, which is also a cudaEvent_t. */
void *cuda_fence_event(const struct cuda_fence *f);

/* A stream of the caller waits for the last mark, and is remembered until the release. */
int cuda_fence_use(void *fence, void *stream, stk_error *e);
/* The caller has released the memory: remembers where each of its streams is now. */
void cuda_fence_release(void *fence);
/* Copies device memory to the host, and waits for it. */
int cuda_fence_read(void *fence, const void *data, void *to, size_t bytes, stk_error *e);

#endif
