/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_device.h -- batches in the memory of a device.
 *
 * The threads make batches in page-locked memory. As soon as a batch is complete, it is sent to the device. Its `twin`
 * is the same batch in the memory of the device. The caller gets the twin.
 */
#ifndef LOADER_DEVICE_H
#define LOADER_DEVICE_H

#include "batch/batch.h"
#include "cuda/cuda_send.h"
#include "order/order.h"

struct stk_loader;
struct worker;
struct making;
struct buf;

/* The measurements that determine the device's share of the rows, under the lock of the loader. */
struct loader_pace {
    int batches; /* since the last decision */
    uint64_t since_ns, waited_ns, device_ns, busy_ns;
    int64_t finished;
    const char *why; /* the reason for the last decision; NULL: there was none */
};

/* The measurements of some batches, from 0 to 1. */
struct parcel_load {
    double waited; /* time for which the caller waited */
    double device; /* of it, for the device */
    double idle;   /* time for which the workers had nothing to do */
    double cores;  /* cores of this process that the workers used */
    double taken;  /* rows that the device finished, of those that it may */
};
struct parcel_choice {
    int share;
    const char *why;
};

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
    /* Rows that the device finishes (loader_parcel.c). */
    size_t pitch;                  /* of rows of images in host memory; 0: the device finishes none */
    const char *whole;             /* why it finishes none */
    atomic_int share;              /* of the rows, in 16ths, that the device finishes if it can */
    _Atomic int64_t finished;      /* rows that were sent to be finished */
    _Atomic int64_t decoded;       /* of them, with Huffman codes */
    _Atomic int64_t scans, remade; /* rows sent as whole scans; of them, made again by the CPU */
    uint64_t waited_ns;            /* that callers waited for the device, under the lock of the loader */
    struct loader_pace pace;
};

/* Opens the device that the options name. Without one, it does nothing, and nothing below is called. */
int loader_device_open(struct stk_loader *l, stk_error *e);
void loader_device_close(struct stk_loader *l);
/* Lets a depot of batches in host memory wait for copies from it, before it hands out memory again. */
void loader_device_follow(const struct stk_loader *l, struct depot *host);
/* loader_parcel.c: decides whether the device may finish rows, and makes room for them in the image's field. */
void loader_parcel_lay(struct stk_loader *l, struct field *fields);
/* Whether the device may decode Huffman codes, and so needs the checkpoints of whole files. */
bool loader_parcel_decodes(const struct stk_loader *l);
/* Scratch memory and kernels on the device. */
int loader_parcel_open(struct stk_loader *l, const struct cuda_levels *levels, stk_error *e);
/* Marks the row as made by the CPU; loader_parcel_make may change that. */
void loader_parcel_begin(const struct stk_loader *l, struct stk_batch *b, int64_t row);
/* Writes into the row what the device needs to finish it. Returns false if the CPU must make its pixels. */
bool loader_parcel_make(struct stk_loader *l, struct worker *w, struct making *m, int64_t row);
/* Of a row of a batch in host memory: whether the device decodes its whole scan; once it has, whether the scan was not
 * good; and which sample it is, before it is made again. */
bool loader_parcel_is_scan(const struct stk_loader *l, const struct stk_batch *b, int64_t row);
bool loader_parcel_is_damaged(const struct stk_loader *l, const struct stk_batch *b, int64_t row);
struct pick loader_parcel_undo(struct stk_loader *l, const struct stk_batch *b, int64_t row);
/* After each delivered batch: adapts the device's share, if device_work is auto. */
void loader_parcel_pace(struct stk_loader *l);
/* The next share, in 16ths. It rises while the program waits for the CPU or has few cores to itself, and falls while
 * the workers are idle, because work on the device slows training down. Between the two, it stays as it is. */
struct parcel_choice loader_parcel_choose(int share, struct parcel_load load);
void loader_parcel_explain(struct stk_loader *l, struct buf *b);

/* Describes the fields of batches there, from those of the batches in host memory. */
int loader_device_fields(struct stk_loader *l, const struct field *fields, int n, stk_error *e);
/* At most this many batches ahead, so that they do not take too much of the device's memory. */
int64_t loader_device_depth(const struct stk_loader *l, int64_t depth);
/* Allocates this many batches, or fewer if there is not enough memory; then reduces *depth and *most. */
int loader_device_fill(struct stk_loader *l, int64_t *depth, int64_t *most, stk_error *e);

/* Sends a batch that has all its rows, unless that was done. */
int loader_device_send(struct stk_loader *l, struct stk_batch *b, stk_error *e);
/* Sends a batch, if it is whole. */
void loader_device_whole(struct stk_loader *l, struct stk_batch *b, int64_t rows);
/* Waits for all that was sent. Returns an error if the device found damage in it. */
int loader_device_settle(struct stk_loader *l, stk_error *e);
/* Drops what was sent, because rows have changed. */
void loader_device_unsend(struct stk_batch *b);
/* Releases the batch, and returns its twin. */
struct stk_batch *loader_device_take(struct stk_batch *b);

void loader_device_stats(struct stk_loader *l, stk_stats *s);
void loader_device_explain(struct stk_loader *l, struct buf *b);

#endif
