/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_parcels.c -- divides the rows of a batch into waves, and enqueues the kernels of each.
 *
 *     huffman     a thread for each group of MCUs
 *     expand      a thread for each chunk of coefficients
 *     idct        a thread for each block
 *     colour      a thread for each pixel of the crop
 *     between     a thread for each pixel after the first of two passes of a resize
 *     finish      a thread for each pixel of the row
 *
 * All passes but the first are limited by memory, and all of them together take a small part of the time that the bus
 * needs for the rows; so each is a kernel of its own, and none keeps anything for the next one.
 */
#include "cuda/cuda_parcels.h"

#include "base/error.h"
#include "cuda/parcel_huffman.h"

_Static_assert(sizeof(struct parcel) <= PARCEL_ALIGN, "a head");

enum { WAVE_ROWS = 4096, MOST_BLOCKS = 1024 }; /* of a grid, down and across */

static const struct {
    const char *name;
    unsigned threads; /* of a block */
} passes[PASSES] = {
    [PASS_HUFFMAN] = {"parcels_huffman", 128}, [PASS_EXPAND] = {"parcels_expand", 64},
    [PASS_IDCT] = {"parcels_idct", 128},       [PASS_COLOUR] = {"parcels_colour", 256},
    [PASS_BETWEEN] = {"parcels_between", 256}, [PASS_FINISH] = {"parcels_finish", 256},
};

/* What is needed to learn of damage. */
static int watch(struct cuda_parcels *p)
{
    struct cuda *c = p->c;
    p->damaged = cuda_host_alloc(c, PARCEL_ALIGN);
    if (!p->damaged)
        return CUDA_OUT_OF_MEMORY;
    atomic_init(p->damaged, 0);
    const int rc =
        c->api.copy_in((uint64_t)(uintptr_t)p->scratch, (const void *)p->damaged, sizeof *p->damaged, c->stream);
    return rc == 0 ? c->api.stream_synchronize(c->stream) : rc;
}

int cuda_parcels_check(const struct cuda_parcels *p, stk_error *e)
{
    const uint32_t row = p->damaged ? atomic_load_explicit(p->damaged, memory_order_relaxed) : 0;
    return row == 0
               ? STK_OK
               : error_set(e, STK_EDATA, "device",
                           "row %u of an earlier batch has wrong pixels: its file was damaged after its checkpoints "
                           "were made; find it with `stoker verify`, or use device_work=idct, which notices it in "
                           "time",
                           row - 1);
}

int cuda_parcels_init(struct cuda_parcels *p, struct cuda *c, size_t scratch, bool codes, stk_error *e)
{
    *p = (struct cuda_parcels){.c = c};
    for (int i = 0; i < PASSES; i++) {
        const int rc = c->api.module_function(&p->kernels[i], c->module, passes[i].name);
        if (rc != 0)
            return cuda_failed(&c->api, rc, "cannot find a kernel", e);
    }
    p->scratch = cuda_device_alloc(c, scratch);
    p->scratch_bytes = p->scratch ? scratch : 0;
    const int rc = !p->scratch ? CUDA_OUT_OF_MEMORY : codes ? watch(p) : 0;
    return rc == 0 ? STK_OK : cuda_failed(&c->api, rc, "cannot open the loader", e);
}

void cuda_parcels_done(struct cuda_parcels *p)
{
    if (p->scratch)
        cuda_device_free(p->c, p->scratch, p->scratch_bytes);
    if (p->damaged)
        cuda_host_free(p->c, (void *)p->damaged, PARCEL_ALIGN);
    *p = (struct cuda_parcels){0};
}

/* ------------------------------------------------------------------ scratch memory */

static size_t larger(size_t a, size_t b)
{
    return parcel_aligned(a > b ? a : b);
}

/* Coefficients, then pixels in the same place. */
static size_t coefficient_bytes(const struct parcel *p)
{
    return larger((size_t)parcel_first(p, p->components) * 128, (size_t)p->crop_w * (size_t)p->crop_h * 3);
}

size_t cuda_parcel_scratch(const struct parcel *p)
{
    /* Samples, then what is between the passes in the same place. */
    const size_t samples = larger((size_t)parcel_first(p, p->components) * 64, (size_t)parcel_between_pixels(p) * 3);
    return PARCEL_ALIGN + coefficient_bytes(p) + samples;
}

/* ------------------------------------------------------------------ waves */

/* How much there is to do, at most for one row. */
struct wave {
    uint32_t first, end;
    uint32_t n[PASSES];
};

static void count(struct wave *w, enum cuda_pass pass, uint32_t n)
{
    w->n[pass] = n > w->n[pass] ? n : w->n[pass];
}

/* The rows from `first` on that fit into the scratch memory together. */
static struct wave next_wave(const struct cuda_parcels *p, const struct cuda_rows *r, uint32_t first, bool place)
{
    struct wave w = {.first = first, .end = first, .n = {[PASS_FINISH] = r->pixels}};
    size_t used = PARCEL_ALIGN;
    for (; w.end < r->rows && w.end - first < WAVE_ROWS; w.end++) {
        struct parcel *at = (struct parcel *)(void *)(r->at + (w.end + 1) * r->pitch - PARCEL_ALIGN);
        if (at->kind == PARCEL_PIXELS)
            continue;
        const size_t bytes = cuda_parcel_scratch(at) - PARCEL_ALIGN;
        if (used + bytes > p->scratch_bytes)
            break;
        if (place) {
            at->coefficients = used;
            at->samples = used + coefficient_bytes(at);
        }
        used += bytes;
        if (at->kind == PARCEL_CODED)
            count(&w, PASS_HUFFMAN, parcel_groups(at));
        else
            count(&w, PASS_EXPAND, parcel_chunks(at));
        count(&w, PASS_IDCT, parcel_first(at, at->components));
        count(&w, PASS_COLOUR, (uint32_t)(at->crop_w * at->crop_h));
        count(&w, PASS_BETWEEN, parcel_between_pixels(at));
    }
    return w;
}

void cuda_parcels_place(const struct cuda_parcels *p, const struct cuda_rows *r)
{
    for (uint32_t row = 0; row < r->rows;)
        row = next_wave(p, r, row, true).end;
}

static int launch(const struct cuda_parcels *p, const struct cuda_rows *r, const struct wave *w, enum cuda_pass pass,
                  const void *raw, void *made)
{
    uint64_t from = (uint64_t)(uintptr_t)raw, to = (uint64_t)(uintptr_t)made, scratch = (uint64_t)(uintptr_t)p->scratch;
    uint32_t first = w->first, pitch = (uint32_t)r->pitch, pixels = r->pixels;
    void *arguments[] = {&from, &to, &scratch, &first, &pitch, &pixels};
    const unsigned threads = passes[pass].threads, blocks = (w->n[pass] + threads - 1) / threads;
    return p->c->api.launch(p->kernels[pass], blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, w->end - w->first, 1,
                            threads, 1, 1, 0, p->c->stream, arguments, NULL);
}

int cuda_parcels_run(const struct cuda_parcels *p, const struct cuda_rows *r, const void *raw, void *made)
{
    int rc = 0;
    for (uint32_t row = 0; row < r->rows && rc == 0;) {
        const struct wave w = next_wave(p, r, row, false);
        for (int i = 0; i < PASSES && rc == 0; i++)
            if (w.n[i] > 0)
                rc = launch(p, r, &w, (enum cuda_pass)i, raw, made);
        row = w.end;
    }
    if (rc == 0 && p->damaged)
        rc = p->c->api.copy_out((void *)p->damaged, (uint64_t)(uintptr_t)p->scratch, sizeof *p->damaged, p->c->stream);
    return rc;
}
