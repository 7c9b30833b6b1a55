/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.cu -- what runs on the device: parcels become bytes of images, and these become what the batch contains.
 *
 * Rows cross the bus as bytes, pixels interleaved. Here a byte becomes a number by the tables of transform/levels.h, so
 * that the result has the same bits as on the CPU, and pixels are put into the layout of the batch. A kernel's name
 * says the layout and the bytes of a number: planar_2 makes NCHW of float16 or bfloat16.
 *
 * The C of each kernel defines its result. A C compiler sees only that, nvcc only the kernels. Of the kernels for
 * parcels, both compile the same text.
 */
#include "cuda/parcel_huffman.h"

#ifndef __CUDACC__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLANAR(T, bytes)                                                                                               \
    static void planar_##bytes(const uint8_t *in, T *out, const T *table, uint32_t pixels, uint32_t rows)              \
    {                                                                                                                  \
        for (size_t row = 0; row < rows; row++)                                                                        \
            for (size_t i = 0; i < pixels; i++)                                                                        \
                for (size_t c = 0; c < 3; c++)                                                                         \
                    out[(3 * row + c) * pixels + i] = table[256 * c + in[3 * (row * pixels + i) + c]];                 \
    }
#define INTERLEAVED(T, bytes)                                                                                          \
    static void interleaved_##bytes(const uint8_t *in, T *out, const T *table, uint32_t pixels, uint32_t rows)         \
    {                                                                                                                  \
        for (size_t i = 0; i < (size_t)rows * pixels; i++)                                                             \
            for (size_t c = 0; c < 3; c++)                                                                             \
                out[3 * i + c] = table[256 * c + in[3 * i + c]];                                                       \
    }
#define SINGLE(T, bytes)                                                                                               \
    static void single_##bytes(const uint8_t *in, T *out, const T *table, uint32_t pixels, uint32_t rows)              \
    {                                                                                                                  \
        for (size_t i = 0; i < (size_t)rows * pixels; i++)                                                             \
            out[i] = table[in[i]];                                                                                     \
    }

PLANAR(uint8_t, 1)
PLANAR(uint16_t, 2)
PLANAR(uint32_t, 4)
INTERLEAVED(uint16_t, 2)
INTERLEAVED(uint32_t, 4)
SINGLE(uint16_t, 2)
SINGLE(uint32_t, 4)

#else

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

template <typename T> struct alignas(4 * sizeof(T)) four {
    T v[4];
};

/* Where channel c of a pixel of a row is. planar: channels are apart; otherwise they are together. */
template <int C, bool planar> __device__ u64 place(u32 pixels, u64 row, u32 pixel, u32 c)
{
    return planar ? (C * row + c) * pixels + pixel : C * (row * pixels + pixel) + c;
}

template <typename T, int C, bool planar>
__device__ void turn_one(const u8 *in, T *out, const T *tables, u32 pixels, u64 row, u32 pixel)
{
    for (u32 c = 0; c < C; c++)
        out[place<C, planar>(pixels, row, pixel, c)] =
            tables[256 * c + in[place<C, false>(pixels, row, pixel, c)]];
}

/* Four neighbours, whose bytes and numbers are aligned: numbers are written four at a time. */
template <typename T, int C, bool planar>
__device__ void turn_four(const u8 *in, T *out, const T *tables, u32 pixels, u64 row, u32 pixel)
{
    four<u8> px[C];
    four<T> v[C];
    const four<u8> *from = (const four<u8> *)(in + place<C, false>(pixels, row, pixel, 0));
#pragma unroll
    for (u32 i = 0; i < C; i++)
        px[i] = from[i];
#pragma unroll
    for (u32 i = 0; i < 4 * C; i++) {
        const u32 c = i % C, to = planar ? 4 * c + i / C : i;
        v[to / 4].v[to % 4] = tables[256 * c + px[i / 4].v[i % 4]];
    }
#pragma unroll
    for (u32 c = 0; c < C; c++)
        *(four<T> *)(out + (planar ? place<C, true>(pixels, row, pixel, c)
                                   : place<C, false>(pixels, row, pixel, 0) + 4 * c)) = v[c];
}

/* Each thread takes four neighbouring pixels of a row at a time. The tables are copied to memory near the threads. */
template <typename T, int C, bool planar>
__device__ void turn(const u8 *in, T *out, const T *table, u32 pixels, u32 rows)
{
    __shared__ T tables[C * 256];
    for (u32 i = threadIdx.x; i < C * 256; i += blockDim.x)
        tables[i] = table[i];
    __syncthreads();
    const u32 fours = (pixels + 3) / 4;
    const u64 all = (u64)rows * fours, step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += step) {
        const u64 row = at / fours;
        const u32 first = 4 * (u32)(at - row * fours);
        if (pixels % 4 == 0)
            turn_four<T, C, planar>(in, out, tables, pixels, row, first);
        else
            for (u32 pixel = first; pixel < first + 4 && pixel < pixels; pixel++)
                turn_one<T, C, planar>(in, out, tables, pixels, row, pixel);
    }
}

#define KERNEL(name, T, C, planar)                                                                                     \
    extern "C" __global__ void name(const u8 *in, T *out, const T *table, u32 pixels, u32 rows)                        \
    {                                                                                                                  \
        turn<T, C, planar>(in, out, table, pixels, rows);                                                              \
    }

KERNEL(planar_1, u8, 3, true)
KERNEL(planar_2, u16, 3, true)
KERNEL(planar_4, u32, 3, true)
KERNEL(interleaved_2, u16, 3, false)
KERNEL(interleaved_4, u32, 3, false)
KERNEL(single_2, u16, 1, false)
KERNEL(single_4, u32, 1, false)

#endif

/* ------------------------------------------------------------------ parcels
 *
 * Each kernel goes through the rows first to first + rows of a batch, `pitch` bytes apart, and in each row through n
 * things to do. `made` gets rows of so many pixels. all: also for rows that are finished.
 */
#ifdef __CUDACC__
#define EACH_ROW    for (u64 row = first + blockIdx.y, once = 1; once; once = 0)
#define EACH(n)     for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += gridDim.x * blockDim.x)
#define KERNEL_OF(name) extern "C" __global__ void name
#define MORE
#else
#define EACH_ROW    for (uint64_t row = first; row < (uint64_t)first + rows; row++)
#define EACH(n)     for (uint32_t i = 0; i < (n); i++)
#define KERNEL_OF(name) static void name
#define MORE , uint32_t rows
#endif

/* The memory of a row. Pixels are made where coefficients were. */
struct memory {
    const uint8_t *body;
    uint8_t *rgb, *samples, *to;
};

#define PARCELS(name, all, n, work)                                                                                    \
    KERNEL_OF(name)(const uint8_t *raw, uint8_t *made, uint8_t *scratch, uint32_t first, uint32_t pitch,               \
                    uint32_t pixels MORE)                                                                              \
    {                                                                                                                  \
        EACH_ROW                                                                                                       \
        {                                                                                                              \
            const uint8_t *body = raw + row * pitch;                                                                   \
            const struct parcel h = *(const struct parcel *)(const void *)(body + pitch - PARCEL_ALIGN);               \
            const bool finished = h.kind == PARCEL_PIXELS;                                                             \
            const struct memory m = {body, scratch + (finished ? 0 : h.coefficients),                                  \
                                     scratch + (finished ? 0 : h.samples), made + row * pixels * 3};                   \
            EACH(finished && !(all) ? 0 : (n)) work;                                                                   \
        }                                                                                                              \
    }

/* The first word of the scratch memory counts rows, from 1: one whose codes are damaged. The tables are made by all
 * threads of a block, in memory near them. */
enum { TABLES = 6 * PARCEL_LOOKS };

#ifdef __CUDACC__
extern "C" __global__ void parcels_huffman(const uint8_t *raw, uint8_t *made, uint8_t *scratch, uint32_t first,
                                           uint32_t pitch, uint32_t pixels)
{
    __shared__ uint16_t look[TABLES];
    const u64 row = first + blockIdx.y;
    const uint8_t *body = raw + row * pitch;
    const struct parcel h = *(const struct parcel *)(const void *)(body + pitch - PARCEL_ALIGN);
    if (h.kind != PARCEL_CODED || blockIdx.x * blockDim.x >= parcel_groups(&h))
        return;
    for (u32 i = threadIdx.x; i < 2 * h.components * PARCEL_LOOKS; i += blockDim.x)
        look[i] = parcel_look(&h, body + h.region, i / PARCEL_LOOKS, i % PARCEL_LOOKS);
    __syncthreads();
    EACH(parcel_groups(&h))
        if (!parcel_huffman(&h, body + h.region, look, (int16_t *)(void *)(scratch + h.coefficients), i))
            *(volatile uint32_t *)(void *)scratch = (uint32_t)row + 1;
}
#else
static void parcels_huffman(const uint8_t *raw, uint8_t *made, uint8_t *scratch, uint32_t first, uint32_t pitch,
                            uint32_t pixels, uint32_t rows)
{
    uint16_t look[TABLES];
    (void)made, (void)pixels;
    EACH_ROW
    {
        const uint8_t *body = raw + row * pitch;
        const struct parcel h = *(const struct parcel *)(const void *)(body + pitch - PARCEL_ALIGN);
        if (h.kind != PARCEL_CODED)
            continue;
        for (uint32_t i = 0; i < 2 * (uint32_t)h.components * PARCEL_LOOKS; i++)
            look[i] = parcel_look(&h, body + h.region, i / PARCEL_LOOKS, i % PARCEL_LOOKS);
        EACH(parcel_groups(&h))
            if (!parcel_huffman(&h, body + h.region, look, (int16_t *)(void *)(scratch + h.coefficients), i))
                *(uint32_t *)(void *)scratch = (uint32_t)row + 1;
    }
}
#endif

PARCELS(parcels_expand, false, h.kind == PARCEL_COEFFICIENTS ? parcel_chunks(&h) : 0, 
        parcel_expand(&h, m.body + h.region, (int16_t *)(void *)m.rgb, i))
PARCELS(parcels_idct, false, parcel_first(&h, h.components),
        parcel_idct(&h, m.body + h.region, (const int16_t *)(const void *)m.rgb, m.samples, i))
PARCELS(parcels_colour, false, (uint32_t)(h.crop_w * h.crop_h), parcel_colour(&h, m.samples, m.rgb, i))
PARCELS(parcels_between, false, parcel_between_pixels(&h), parcel_between(&h, m.body, m.rgb, m.samples, i))
PARCELS(parcels_finish, true, pixels, parcel_finish(&h, m.body, m.rgb, m.samples, m.to, i))
