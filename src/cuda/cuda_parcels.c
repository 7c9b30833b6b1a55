/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_parcels.c -- divides the rows of a batch into waves, and enqueues the kernels of each.
 *
 *     sync        a whole scan to groups of MCUs: a block of threads for each scan
 *     huffman     codes to samples: a thread for each group of MCUs
 *     expand      coefficients to samples: a block of threads for a few chunks, a thread for each block of coefficients
 *     colour      samples to pixels, and the pass across of a resize: a block of threads for a few rows of the crop
 *     down        the pass down, if it comes before the one across
 *     finish      the last pass, and numbers in the layout of the batch: a thread for four pixels
 *
 * Coefficients stay near the threads. Samples and pixels go through memory once.
 */
#include "cuda/cuda_parcels.h"

#include "base/error.h"
#include "cuda/parcel_sync.h"

_Static_assert(sizeof(struct parcel) <= PARCEL_ALIGN, "a head");

enum { WAVE_ROWS = 4096 }; /* of a grid */

static const struct {
    const char *name;
    unsigned threads; /* of a block */
} passes[PASSES] = {
    [PASS_SYNC] = {"parcels_sync", PARCEL_SYNC},
    [PASS_HUFFMAN] = {"parcels_huffman", PARCEL_GROUPS},
    [PASS_EXPAND] = {"parcels_expand", PARCEL_LANES},
    [PASS_COLOUR] = {"parcels_colour", 128},
    [PASS_DOWN] = {"parcels_down", 256},
    [PASS_FINISH] = {NULL, 256},
};

/* The tables, and what is needed to learn of damage. */
static int begin(struct cuda_parcels *p, const uint8_t *tables, bool codes)
{
    static const uint8_t undamaged[PARCEL_ALIGN];
    struct cuda *c = p->c;
    const uint64_t to = (uint64_t)(uintptr_t)p->scratch;
    if (codes && !(p->damaged = cuda_host_alloc(c, PARCEL_ALIGN)))
        return CUDA_OUT_OF_MEMORY;
    if (codes)
        atomic_init(p->damaged, 0);
    int rc = c->api.copy_in(to, tables, PARCEL_TABLES, c->stream);
    if (rc == 0)
        rc = c->api.copy_in(to + PARCEL_TABLES, undamaged, sizeof undamaged, c->stream);
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

/* Scratch memory, in which the rows of a batch take turns. */
static void take_scratch(struct cuda_parcels *p, size_t most, size_t least)
{
    for (size_t n = most; !p->scratch && n >= least; n /= 2) {
        p->scratch = cuda_device_alloc(p->c, n);
        p->scratch_bytes = p->scratch ? n : 0;
    }
}

int cuda_parcels_init(struct cuda_parcels *p, struct cuda *c, const char *finish, const uint8_t *tables, size_t scratch,
                      size_t least, bool codes, stk_error *e)
{
    *p = (struct cuda_parcels){.c = c};
    for (int i = 0; i < PASSES; i++) {
        const char *name = i == PASS_FINISH ? finish : passes[i].name;
        const int rc = c->api.module_function(&p->kernels[i], c->module, name);
        if (rc != 0)
            return cuda_failed(&c->api, rc, "cannot find a kernel", e);
    }
    take_scratch(p, scratch, least);
    const int rc = p->scratch ? begin(p, tables, codes) : CUDA_OUT_OF_MEMORY;
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

enum { FRONT = PARCEL_TABLES + PARCEL_ALIGN }; /* bytes before the memory of parcels */

/* Samples, then the pixels between two passes in the same place. */
static size_t sample_bytes(const struct parcel *p)
{
    const size_t samples = (size_t)parcel_first(p, p->components) * 64;
    const size_t between = parcel_begins_down(p) ? (size_t)p->crop_w * (size_t)p->out_h * 4 : 0;
    return parcel_aligned(samples > between ? samples : between);
}

static size_t pixel_bytes(const struct parcel *p)
{
    const size_t pixels = (size_t)parcel_width(p) * (size_t)p->crop_h * 4;
    const size_t pieces = p->kind == PARCEL_SCAN ? PARCEL_SCAN_BYTES : 0;
    return parcel_aligned(pixels > pieces ? pixels : pieces);
}

size_t cuda_parcel_scratch(const struct parcel *p)
{
    return p->crop_w > PARCEL_STRIP ? SIZE_MAX : FRONT + sample_bytes(p) + pixel_bytes(p);
}

/* ------------------------------------------------------------------ waves */

/* How many blocks of threads each pass could use: for one row at most, and for all. */
struct wave {
    uint32_t first, end;
    uint32_t most[PASSES], rows[PASSES];
    uint64_t all[PASSES];
};

static void count(struct wave *w, enum cuda_pass pass, uint32_t things, uint32_t each)
{
    const uint32_t n = (things + each - 1) / each;
    w->most[pass] = n > w->most[pass] ? n : w->most[pass];
    w->all[pass] += n;
    w->rows[pass]++;
}

static void count_parcel(struct wave *w, const struct parcel *p, const uint8_t *body)
{
    if (p->kind == PARCEL_SCAN)
        count(w, PASS_SYNC, 1, 1);
    if (p->kind == PARCEL_SCAN)
        count(w, PASS_HUFFMAN, parcel_scan(p, body + p->region).pieces, PARCEL_GROUPS);
    else if (p->kind == PARCEL_CODED)
        count(w, PASS_HUFFMAN, parcel_groups(p), PARCEL_GROUPS);
    else
        count(w, PASS_EXPAND, parcel_chunk_tiles(p), 1);
    count(w, PASS_COLOUR, (uint32_t)p->crop_h, parcel_strip_rows(p));
    if (parcel_begins_down(p))
        count(w, PASS_DOWN, (uint32_t)(p->crop_w * p->out_h), PARCEL_TILE);
}

/* The rows from `first` on that fit into the scratch memory together. */
static struct wave next_wave(const struct cuda_parcels *p, const struct cuda_rows *r, uint32_t first, bool place)
{
    struct wave w = {.first = first, .end = first};
    size_t used = FRONT;
    for (; w.end < r->rows && w.end - first < WAVE_ROWS; w.end++) {
        struct parcel *at = (struct parcel *)(void *)(r->at + (w.end + 1) * r->pitch - PARCEL_ALIGN);
        const bool finished = at->kind == PARCEL_PIXELS;
        const size_t bytes = finished ? 0 : cuda_parcel_scratch(at) - FRONT;
        if (used + bytes > p->scratch_bytes)
            break;
        if (place && !finished) {
            at->samples = used;
            at->pixels = used + sample_bytes(at);
        }
        used += bytes;
        if (!finished)
            count_parcel(&w, at, r->at + w.end * r->pitch);
        count(&w, PASS_FINISH, (r->pixels + 3) / 4, PARCEL_TILE);
    }
    return w;
}

void cuda_parcels_place(const struct cuda_parcels *p, const struct cuda_rows *r)
{
    for (uint32_t row = 0; row < r->rows;)
        row = next_wave(p, r, row, true).end;
}

/* A row of the grid has twice as many blocks of threads as an average row can use: few rows could use more, and blocks
 * without work take time as well. */
static unsigned grid_width(const struct wave *w, enum cuda_pass pass)
{
    const uint64_t rows = w->rows[pass], enough = (2 * w->all[pass] + rows - 1) / rows;
    return enough < w->most[pass] ? (unsigned)enough : w->most[pass];
}

static int launch(const struct cuda_parcels *p, const struct cuda_rows *r, const struct wave *w, enum cuda_pass pass,
                  const void *raw, void *made)
{
    uint64_t from = (uint64_t)(uintptr_t)raw, to = (uint64_t)(uintptr_t)(pass == PASS_SYNC ? r->at : made),
             scratch = (uint64_t)(uintptr_t)p->scratch;
    uint32_t first = w->first, pitch = (uint32_t)r->pitch, pixels = r->pixels;
    void *arguments[] = {&from, &to, &scratch, &first, &pitch, &pixels};
    return p->c->api.launch(p->kernels[pass], grid_width(w, pass), w->end - w->first, 1, passes[pass].threads, 1, 1, 0,
                            p->c->stream, arguments, NULL);
}

int cuda_parcels_run(const struct cuda_parcels *p, const struct cuda_rows *r, const void *raw, void *made)
{
    int rc = 0;
    for (uint32_t row = 0; row < r->rows && rc == 0;) {
        const struct wave w = next_wave(p, r, row, false);
        for (int i = 0; i < PASSES && rc == 0; i++)
            if (w.most[i] > 0)
                rc = launch(p, r, &w, (enum cuda_pass)i, raw, made);
        row = w.end;
    }
    if (rc == 0 && p->damaged)
        rc = p->c->api.copy_out((void *)p->damaged, (uint64_t)(uintptr_t)p->scratch + PARCEL_TABLES, sizeof *p->damaged,
                                p->c->stream);
    return rc;
}
