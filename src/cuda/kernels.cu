/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.cu -- what runs on the device: parcels become pixels, and bytes become what the batch contains.
 *
 * Rows cross the bus as bytes, pixels interleaved. Here a byte becomes a number by the tables of transform/levels.h, so
 * that the result has the same bits as on the CPU, and pixels are put into the layout of the batch. The end of a
 * kernel's name says the layout and the bytes of a number: planar_2 makes NCHW of float16 or bfloat16.
 *
 * nvcc and a C compiler compile the same text. In C, one thread does the work of all threads of a block: a kernel is a
 * sequence of loops over EACH thing, with SYNC between those that depend on each other.
 */
#include "cuda/parcel_sync.h"

#ifdef __CUDACC__
#define KERNEL(name, bounds)    extern "C" __global__ void bounds name
#define BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define SHARED                  __shared__
#define SYNC()                  __syncthreads()
/* The things of a block, and the blocks of a row or of all rows. */
#define EACH(i, n)  for (uint32_t i = threadIdx.x; i < (n); i += blockDim.x)
#define TILES(t, n) for (uint32_t t = blockIdx.x; t < (n); t += gridDim.x)
#define EACH_ROW()  for (uint64_t row = first + blockIdx.y, once = 1; once; once = 0)
#define IS_IDLE(n)  (blockIdx.x >= (n))
#define MORE
#else
#define KERNEL(name, bounds) static void name
#define BOUNDS(threads, blocks)
#define SHARED
#define SYNC()      ((void)0)
#define EACH(i, n)  for (uint32_t i = 0; i < (n); i++)
#define TILES(t, n) for (uint32_t t = 0; t < (n); t++)
#define EACH_ROW()  for (uint64_t row = first; row < (uint64_t)first + rows; row++)
#define IS_IDLE(n)  ((n) == 0)
#define MORE        , uint32_t rows
#endif

/* ------------------------------------------------------------------ numbers
 *
 * Four neighbouring pixels at a time. If the width is a multiple of 4, their bytes and numbers are aligned.
 */
/* Pixels x to x + 3 of a row of bytes that has `end` pixels. */
ON_DEVICE struct parcel_quad quad_of_bytes(const uint8_t *row, uint32_t x, uint32_t end)
{
    struct parcel_quad q;
    if (end % 4 == 0) {
        const uint32_t *w = (const uint32_t *)(const void *)(row + 3 * (uint64_t)x);
        const uint32_t a = w[0], b = w[1], c = w[2];
        q.v[0] = a;
        q.v[1] = a >> 24 | b << 8;
        q.v[2] = b >> 16 | c << 16;
        q.v[3] = c >> 8;
    } else {
        for (uint32_t i = 0; i < 4; i++) {
            const uint8_t *px = row + 3 * (uint64_t)(x + i < end ? x + i : x);
            q.v[i] = px[0] | (uint32_t)px[1] << 8 | (uint32_t)px[2] << 16;
        }
    }
    return q;
}

/* put_NAME: writes the numbers of a quad whose first pixel is `at` in its row. n: pixels that it has. reversed: the
 * pixel at `at` is the last one. */
#define PUT(name, T, planar)                                                                                           \
    struct four_##name {                                                                                               \
        T v[4];                                                                                                        \
    } __attribute__((aligned(4 * sizeof(T))));                                                                         \
    ON_DEVICE void put_##name(const struct parcel_quad *q, const T *tables, T *out, uint64_t row, uint32_t pixels,     \
                              uint32_t at, uint32_t n, int reversed, int aligned)                                      \
    {                                                                                                                  \
        struct four_##name v[3];                                                                                       \
        UNROLL for (uint32_t i = 0; i < 12; i++)                                                                       \
        {                                                                                                              \
            const uint32_t px = (planar) ? i % 4 : i / 3, c = (planar) ? i / 4 : i % 3;                                \
            const uint32_t word = reversed ? q->v[3 - px] : q->v[px];                                                  \
            v[i / 4].v[i % 4] = tables[256 * c + (word >> 8 * c & 255)];                                               \
        }                                                                                                              \
        T *to = out + row * 3 * pixels + ((planar) ? (uint64_t)at : (uint64_t)at * 3);                                 \
        const uint64_t step = (planar) ? pixels : 4;                                                                   \
        if (aligned) {                                                                                                 \
            UNROLL for (uint32_t c = 0; c < 3; c++) * (struct four_##name *)(void *)(to + step * c) = v[c];            \
            return;                                                                                                    \
        }                                                                                                              \
        for (uint32_t px = 0; px < n; px++)                                                                            \
            for (uint32_t c = 0; c < 3; c++) {                                                                         \
                const uint32_t word = q->v[reversed ? n - 1 - px : px];                                                \
                to[(planar) ? step * c + px : 3 * px + c] = tables[256 * c + (word >> 8 * c & 255)];                   \
            }                                                                                                          \
    }

/* Rows of bytes, one after the other. The tables are copied to memory near the threads. */
#define PLAIN(name, T)                                                                                                 \
    KERNEL(name, )(const uint8_t *in, T *out, const T *table, uint32_t pixels, uint32_t rows)                          \
    {                                                                                                                  \
        SHARED T tables[3 * 256];                                                                                      \
        EACH(i, 3 * 256) tables[i] = table[i];                                                                         \
        SYNC();                                                                                                        \
        const uint32_t quads = (pixels + 3) / 4, tiles = (quads + PARCEL_TILE - 1) / PARCEL_TILE;                      \
        TILES(t, tiles *rows) EACH(i, PARCEL_TILE)                                                                     \
        {                                                                                                              \
            const uint32_t row = t / tiles, x = 4 * (t % tiles * PARCEL_TILE + i);                                     \
            if (x >= pixels)                                                                                           \
                continue;                                                                                              \
            const struct parcel_quad q = quad_of_bytes(in + (uint64_t)row * pixels * 3, x, pixels);                    \
            put_##name(&q, tables, out, row, pixels, x, pixels - x < 4 ? pixels - x : 4, 0, pixels % 4 == 0);          \
        }                                                                                                              \
    }

#define SINGLE(name, T)                                                                                                \
    KERNEL(name, )(const uint8_t *in, T *out, const T *table, uint32_t pixels, uint32_t rows)                          \
    {                                                                                                                  \
        const uint32_t tiles = (pixels + PARCEL_TILE - 1) / PARCEL_TILE;                                               \
        TILES(t, tiles *rows) EACH(i, PARCEL_TILE)                                                                     \
        {                                                                                                              \
            const uint32_t x = t % tiles * PARCEL_TILE + i;                                                            \
            const uint64_t at = (uint64_t)(t / tiles) * pixels + x;                                                    \
            if (x < pixels)                                                                                            \
                out[at] = table[in[at]];                                                                               \
        }                                                                                                              \
    }

PUT(planar_1, uint8_t, 1)
PUT(planar_2, uint16_t, 1)
PUT(planar_4, uint32_t, 1)
PUT(interleaved_1, uint8_t, 0)
PUT(interleaved_2, uint16_t, 0)
PUT(interleaved_4, uint32_t, 0)

PLAIN(planar_1, uint8_t)
PLAIN(planar_2, uint16_t)
PLAIN(planar_4, uint32_t)
PLAIN(interleaved_2, uint16_t)
PLAIN(interleaved_4, uint32_t)
SINGLE(single_2, uint16_t)
SINGLE(single_4, uint32_t)

/* ------------------------------------------------------------------ parcels
 *
 * Each kernel goes through the rows first to first + rows of a batch, `pitch` bytes apart. `made` gets numbers of rows
 * of so many pixels. In front of the scratch memory are the tables, and a word that counts rows, from 1: one whose
 * codes are damaged.
 */
#define PARCELS(name, bounds)                                                                                          \
    KERNEL(name, bounds)                                                                                               \
    (const uint8_t *raw, uint8_t *made, uint8_t *scratch, uint32_t first, uint32_t pitch, uint32_t pixels MORE)
#define BODY          (raw + row * pitch)
#define HEAD          (*(const struct parcel *)(const void *)(BODY + pitch - PARCEL_ALIGN))
#define WORDS(offset) ((uint32_t *)(void *)(scratch + (offset)))

#define FILL_CODES(codes)                                                                                              \
    EACH(i, PARCEL_LOOK_WORDS) parcel_codes_clear(&(codes), &h, region, i);                                            \
    SYNC();                                                                                                            \
    EACH(i, 2 * (uint32_t)h.components * 256) parcel_codes_add(&(codes), &h, region, i);                               \
    SYNC()

/* Whole scans, each by the threads of one block: finds the groups of MCUs that parcels_huffman decodes. `made` points to
 * the rows in page-locked memory of the host. The kernel marks damaged scans there. */
PARCELS(parcels_sync, BOUNDS(PARCEL_SYNC, 2))
{
    SHARED struct parcel_codes codes;
    SHARED struct parcel_sync all;
    (void)pixels;
    EACH_ROW()
    {
        const struct parcel h = HEAD;
        const uint8_t *region = BODY + h.region;
        if (h.kind != PARCEL_SCAN || IS_IDLE(1))
            continue;
        const struct parcel_scan s = parcel_scan(&h, region);
        struct parcel_piece *pieces = parcel_scan_pieces(&h, scratch);
        uint32_t round = 0, settled = 0;
        all.round = all.broken = 0;
        FILL_CODES(codes);
        while (!settled && round < PARCEL_ROUNDS) {
            round++;
            EACH(i, s.pieces) parcel_sync_begin(&all, i, round);
            SYNC();
            EACH(i, s.pieces) parcel_sync_run(&s, region, &codes, &all, pieces, i, round);
            SYNC();
            settled = all.round != round;
        }
        EACH(i, PARCEL_PARTS) parcel_sync_add(&s, &all, pieces, i);
        SYNC();
        EACH(i, PARCEL_PARTS)
        {
            const uint32_t mcus = parcel_sync_place(&s, &all, pieces, i);
            if (i < PARCEL_PARTS - 1)
                continue;
            const int good = settled && parcel_sync_is_good(&s, &all, pieces, mcus);
            *parcel_scan_good(&h, scratch) = (uint32_t)good;
            if (!good)
                ((volatile struct parcel *)(void *)(made + (row + 1) * pitch - PARCEL_ALIGN))->damaged = 1;
        }
        SYNC();
    }
}

/* Groups of MCUs, each decoded by one thread, block by block. */
PARCELS(parcels_huffman, BOUNDS(PARCEL_GROUPS, 10))
{
    SHARED struct parcel_codes codes;
    SHARED int16_t blocks[PARCEL_GROUPS][PARCEL_PITCH] __attribute__((aligned(8)));
    (void)made, (void)pixels;
    EACH_ROW()
    {
        const struct parcel h = HEAD;
        const uint8_t *region = BODY + h.region;
        const int whole = h.kind == PARCEL_SCAN;
        struct parcel_scan s;
        uint32_t groups = 0;
        if (whole) {
            s = parcel_scan(&h, region);
            groups = *parcel_scan_good(&h, scratch) ? s.pieces : 0;
        } else if (h.kind == PARCEL_CODED) {
            groups = parcel_groups(&h);
        }
        const uint32_t tiles = (groups + PARCEL_GROUPS - 1) / PARCEL_GROUPS;
        if (IS_IDLE(tiles))
            continue;
        FILL_CODES(codes);
        TILES(t, tiles) EACH(i, PARCEL_GROUPS)
        {
            const uint32_t group = t * PARCEL_GROUPS + i;
            if (group < groups && whole)
                parcel_scan_group(&h, &s, region, &codes, blocks[i], scratch + h.samples,
                                  parcel_scan_pieces(&h, scratch), group);
            else if (group < groups && !parcel_huffman(&h, region, &codes, blocks[i], scratch + h.samples, group))
                *(volatile uint32_t *)(void *)(scratch + PARCEL_TABLES) = (uint32_t)row + 1;
        }
    }
}

/* Chunks of coefficients, some at a time: their threads first find out what each block takes of the streams. */
PARCELS(parcels_expand, BOUNDS(PARCEL_LANES, 7))
{
    SHARED struct parcel_chunk chunks[PARCEL_LANES / PARCEL_CHUNK];
    SHARED struct parcel_shares shares;
    SHARED int16_t blocks[PARCEL_LANES][PARCEL_PITCH] __attribute__((aligned(8)));
    SHARED uint16_t quantisers[3][64];
    (void)made, (void)pixels;
    EACH_ROW()
    {
        const struct parcel h = HEAD;
        const uint8_t *region = BODY + h.region;
        const uint32_t tiles = h.kind == PARCEL_COEFFICIENTS ? parcel_chunk_tiles(&h) : 0;
        if (IS_IDLE(tiles))
            continue;
        const uint32_t each = parcel_mcu_blocks(&h), lanes = PARCEL_CHUNK * each, n = PARCEL_LANES / lanes,
                       all = parcel_chunks(&h);
        EACH(i, (uint32_t)h.components * 64)
        quantisers[i / 64][i % 64] = (uint16_t)parcel_le16(region + 2 * i);
        TILES(t, tiles)
        {
            const uint32_t first_chunk = t * n, here = all - first_chunk < n ? all - first_chunk : n;
            EACH(j, here) parcel_chunk_open(&chunks[j], &h, region, first_chunk + j);
            SYNC();
            EACH(i, here * lanes) parcel_chunk_rows(&chunks[i / lanes], &shares, i, i % lanes);
            SYNC();
            EACH(i, here * lanes) parcel_chunk_columns(&chunks[i / lanes], &shares, i, i % lanes);
            SYNC();
            EACH(i, here * lanes) parcel_chunk_codes(&chunks[i / lanes], &shares, i, i % lanes);
            SYNC();
            EACH(i, here * lanes)
            {
                const struct parcel_chunk *s = &chunks[i / lanes];
                const uint32_t b = i % lanes;
                if (b >= s->blocks)
                    continue;
                const uint16_t *q = quantisers[parcel_component(&h, b % each)];
                const int below = parcel_chunk_block(s, &shares, q, i, b, blocks[i]);
                parcel_samples(&h, blocks[i], below, scratch + h.samples, s->x + (int32_t)(b / each), s->y, b % each);
            }
            SYNC();
        }
    }
}

/* Strips of rows: from samples to pixels, and across. */
PARCELS(parcels_colour, )
{
    SHARED uint32_t strip[PARCEL_STRIP];
    (void)made, (void)pixels;
    EACH_ROW()
    {
        const struct parcel h = HEAD;
        if (h.kind == PARCEL_PIXELS)
            continue;
        const uint32_t high = parcel_strip_rows(&h), tiles = ((uint32_t)h.crop_h + high - 1) / high;
        const int32_t first_pair = h.crop_x >> 1;
        const uint32_t pairs = (uint32_t)(((h.crop_x + h.crop_w - 1) >> 1) - first_pair + 1), width = parcel_width(&h);
        TILES(t, tiles)
        {
            const uint32_t y = t * high, left = (uint32_t)h.crop_h - y, n = left < high ? left : high;
            uint32_t *to = WORDS(h.pixels) + (uint64_t)y * width;
            uint32_t *px = parcel_begins_across(&h) ? strip : to;
            EACH(i, n * pairs)
            {
                const uint32_t r = i / pairs;
                parcel_colour(&h, scratch + h.samples, first_pair + (int32_t)(i % pairs), h.crop_y + (int32_t)(y + r),
                              px + r * (uint32_t)h.crop_w);
            }
            if (!parcel_begins_across(&h))
                continue;
            SYNC();
            EACH(i, (n + PARCEL_ROWS - 1) / PARCEL_ROWS * width)
            {
                const uint32_t r = i / width * PARCEL_ROWS;
                parcel_across(&h, BODY, strip + r * (uint32_t)h.crop_w, i % width, (int32_t)(n - r), to + r * width);
            }
            SYNC();
        }
    }
}

/* The pass down, if it comes before the one across. */
PARCELS(parcels_down, )
{
    (void)made, (void)pixels;
    EACH_ROW()
    {
        const struct parcel h = HEAD;
        const uint32_t w = (uint32_t)h.crop_w;
        const uint32_t n = h.kind != PARCEL_PIXELS && parcel_begins_down(&h) ? w * (uint32_t)h.out_h : 0;
        TILES(t, (n + PARCEL_TILE - 1) / PARCEL_TILE) EACH(k, PARCEL_TILE)
        {
            const uint32_t i = t * PARCEL_TILE + k;
            if (i < n)
                WORDS(h.samples)[i] = parcel_down(&h, BODY, WORDS(h.pixels), w, i % w, i / w);
        }
    }
}

/* Four pixels of the row, before it is mirrored. */
ON_DEVICE struct parcel_quad quad_of_parcel(const struct parcel *h, const uint8_t *body, const uint8_t *scratch,
                                            uint32_t x, uint32_t y)
{
    const uint32_t w = (uint32_t)h->out_w, n = w - x < 4 ? w - x : 4;
    const uint32_t *px = (const uint32_t *)(const void *)(scratch + h->pixels);
    struct parcel_quad q = {{0, 0, 0, 0}};
    if (parcel_begins_down(h)) {
        px = (const uint32_t *)(const void *)(scratch + h->samples);
        for (uint32_t i = 0; i < n; i++)
            q.v[i] = parcel_across_one(h, body, px + (uint64_t)y * (uint32_t)h->crop_w, x + i);
    } else if (w % 4 == 0) {
        const struct parcel_quad *row = (const struct parcel_quad *)(const void *)(px + x);
        q = h->y.taps ? parcel_down_quad(h, body, row, w / 4, y) : row[(uint64_t)y * (w / 4)];
    } else {
        for (uint32_t i = 0; i < n; i++)
            q.v[i] = h->y.taps ? parcel_down(h, body, px, w, x + i, y) : px[(uint64_t)y * w + x + i];
    }
    return q;
}

/* The last pass, or none, and numbers. A row that is finished only becomes numbers. */
#define FINISH(name, T)                                                                                                \
    PARCELS(finish_##name, )                                                                                           \
    {                                                                                                                  \
        SHARED T tables[3 * 256];                                                                                      \
        EACH(i, 3 * 256) tables[i] = ((const T *)(const void *)scratch)[i];                                            \
        SYNC();                                                                                                        \
        EACH_ROW()                                                                                                     \
        {                                                                                                              \
            const struct parcel h = HEAD;                                                                              \
            const int finished = h.kind == PARCEL_PIXELS;                                                              \
            const uint32_t w = finished ? pixels : (uint32_t)h.out_w, high = finished ? 1 : (uint32_t)h.out_h;         \
            const uint32_t wide = (w + 3) / 4, quads = wide * high;                                                    \
            TILES(t, (quads + PARCEL_TILE - 1) / PARCEL_TILE) EACH(k, PARCEL_TILE)                                     \
            {                                                                                                          \
                const uint32_t i = t * PARCEL_TILE + k, x = i % wide * 4, y = i / wide;                                \
                if (i >= quads)                                                                                        \
                    continue;                                                                                          \
                const struct parcel_quad q =                                                                           \
                    finished ? quad_of_bytes(BODY, x, w) : quad_of_parcel(&h, BODY, scratch, x, y);                    \
                const uint32_t n = w - x < 4 ? w - x : 4, mirrored = !finished && h.flip_x;                            \
                const uint32_t to_x = mirrored ? w - x - n : x, to_y = !finished && h.flip_y ? high - 1 - y : y;       \
                put_##name(&q, tables, (T *)(void *)made, row, pixels, to_y *w + to_x, n, (int)mirrored, w % 4 == 0);  \
            }                                                                                                          \
        }                                                                                                              \
    }

FINISH(planar_1, uint8_t)
FINISH(planar_2, uint16_t)
FINISH(planar_4, uint32_t)
FINISH(interleaved_1, uint8_t)
FINISH(interleaved_2, uint16_t)
FINISH(interleaved_4, uint32_t)
