/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parcel.h -- a row of a batch that the device finishes, as it crosses the bus.
 *
 * In a batch whose images the device may finish, each row has the same room: a body, and after it a struct parcel. The
 * body has the finished pixels, or what the device makes them from: coefficients (decode/dct_region.h) or codes
 * (decode/jpeg_groups.h), and the tables of the resize (transform/plan.h). Offsets are from the start of the body.
 * Both the host and nvcc read this file.
 */
#ifndef PARCEL_H
#define PARCEL_H

#include <stdint.h>

enum {
    PARCEL_PIXELS,       /* the body is the row */
    PARCEL_COEFFICIENTS, /* the device does everything after the Huffman codes */
    PARCEL_CODED,        /* and these as well, from checkpoints */
    PARCEL_SCAN,         /* and these, of the whole image, without checkpoints (cuda/parcel_sync.h) */
};

enum {
    PARCEL_ALIGN = 128,          /* of bodies, heads and scratch memory */
    PARCEL_CHUNK = 8,            /* MCUs */
    PARCEL_STRIP = 4096,         /* pixels near the threads of a block; no crop is wider */
    PARCEL_TABLES = 3 * 256 * 4, /* bytes of the tables of levels, in front of the scratch memory of parcels */
};

/* One pass of a resize; taps is 0: there is none. */
struct parcel_pass {
    uint32_t first, weights;
    int32_t taps;
};

struct parcel {
    uint32_t kind;
    /* The rest only if the device makes the pixels. */
    int32_t out_w, out_h;
    int32_t components, halves_columns, halves_rows;
    int32_t across, down;                   /* MCUs in the body */
    int32_t left, top;                      /* the place of the first one in the image, in pixels */
    int32_t w, h;                           /* of the whole image */
    int32_t crop_x, crop_y, crop_w, crop_h; /* in the whole image */
    int32_t flip_x, flip_y, across_first;   /* flip_x: if no pass across does it */
    struct parcel_pass x, y;
    uint32_t region; /* where the coefficients are, or the codes */
    union {
        int32_t every;    /* MCUs in a group */
        uint32_t damaged; /* a scan, in host memory: the device sets it if the host must make the row */
    };
    /* Where its scratch memory is, from the start of the device's. The host fills them in when it sends the batch. */
    uint64_t samples; /* and then the pixels between two passes, if the first one is down */
    uint64_t pixels;  /* words of 4 bytes; after the pass across, if it is the first one. Before: pieces of a scan */
};

#endif
