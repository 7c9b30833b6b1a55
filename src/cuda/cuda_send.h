/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_send.h -- sends batches to a device: copies from page-locked memory, then the kernels of kernels.cu.
 */
#ifndef CUDA_SEND_H
#define CUDA_SEND_H

#include "cuda/cuda_parcels.h"

enum { SEND_TIMINGS = 32 }; /* more than batches are under way */

struct cuda_timing {
    void *began, *copied, *ended; /* events */
    int64_t bytes;
    int used;
};

struct cuda_send {
    struct cuda *c;
    void *kernel; /* NULL: everything is copied as it is */
    void *tables;
    void *raw; /* where bytes arrive that kernels read */
    size_t raw_bytes, table_bytes;
    struct cuda_parcels parcels;
    struct cuda_timing timings[SEND_TIMINGS];
    int next;
    /* Statistics, under the lock of the device; see cuda_send_count. The times are of timed_bytes: of copies that have
     * ended. */
    int64_t bytes, timed_bytes;
    double copy_s, kernel_s;
};

/* One field of a batch. pixels > 0: the bytes are rows of this many pixels, for the kernel. pitch > 0: they are
 * parcels, `pitch` bytes apart. */
struct cuda_item {
    void *from;
    void *to;
    struct cuda_fence *from_fence, *to_fence;
    size_t bytes;
    uint32_t pixels, rows;
    size_t pitch;
};

/* tables: what the bytes become, three times 256 numbers of `element` bytes. NULL: bytes stay bytes. */
struct cuda_levels {
    const void *tables;
    size_t element;
    int channels, planar;
};

/* levels may be NULL: images are copied as they are. Accepts in done whatever init may leave. */
int cuda_send_init(struct cuda_send *s, struct cuda *c, const struct cuda_levels *levels, stk_error *e);
void cuda_send_done(struct cuda_send *s);
/* Room for bytes that kernels read; sending makes more if it needs more. */
int cuda_send_reserve(struct cuda_send *s, size_t raw, stk_error *e);
/* Lets items have parcels, also of codes, with this much scratch memory, or down to `least` bytes if the device has no
 * more. levels->tables may be NULL: bytes stay bytes. */
int cuda_send_parcels(struct cuda_send *s, const struct cuda_levels *levels, size_t scratch, size_t least, bool codes,
                      stk_error *e);
/* Adds the batches that have arrived to the statistics. Needs the context and the lock of the device. */
void cuda_send_count(struct cuda_send *s);
/* Sends a batch. Any thread may call it. It does not wait: the fences do. */
int cuda_send(struct cuda_send *s, const struct cuda_item *items, int n, stk_error *e);

#endif
