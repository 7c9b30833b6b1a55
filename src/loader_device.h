/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_device.h -- batches in the memory of a device.
 *
 * The threads make batches in page-locked memory, as always. As soon as a batch is whole, it is sent: its `twin` is the
 * same batch in the memory of the device, which the caller gets instead.
 */
#ifndef LOADER_DEVICE_H
#define LOADER_DEVICE_H

#include "batch/batch.h"
#include "cuda/cuda_send.h"

struct stk_loader;
struct buf;

struct loader_device {
    struct cuda *cuda; /* NULL: batches are in host memory */
    struct depot *depot;
    struct cuda_send send;
    bool bytes;           /* images cross the bus as bytes; a kernel makes the rest */
    bool plain;           /* these bytes are the batch: nothing is left to do */
    bool joins;           /* some fields have all their rows only when the batch is delivered */
    bool sent[FIELD_MAX]; /* fields that go to the device */
    size_t batch_bytes;   /* of the device's memory */
    struct field fields[FIELD_MAX];
    int n_fields;
};

/* Opens the device that the options name. Without one, it does nothing, and nothing below is called. */
int loader_device_open(struct stk_loader *l, stk_error *e);
void loader_device_close(struct stk_loader *l);
/* Lets a depot of batches in host memory wait for copies from it, before it hands out memory again. */
void loader_device_follow(const struct stk_loader *l, struct depot *host);
/* Describes the fields of batches there, from those of the batches in host memory. */
int loader_device_fields(struct stk_loader *l, const struct field *fields, int n, stk_error *e);
/* At most this many batches ahead, so that they do not take too much of the device's memory. */
int64_t loader_device_depth(const struct stk_loader *l, int64_t depth);
/* Allocates batches for this many ahead, or fewer if there is not enough memory: then *depth and *most become smaller.
 */
int loader_device_fill(struct stk_loader *l, int64_t *depth, int64_t *most, stk_error *e);

/* Sends a batch that has all its rows, unless that was done. */
int loader_device_send(struct stk_loader *l, struct stk_batch *b, stk_error *e);
/* Sends a batch, if it is whole. */
void loader_device_whole(struct stk_loader *l, struct stk_batch *b, int64_t rows);
/* Releases the batch, and returns its twin. */
struct stk_batch *loader_device_take(struct stk_batch *b);

void loader_device_stats(struct stk_loader *l, stk_stats *s);
void loader_device_explain(struct stk_loader *l, struct buf *b);

#endif
