/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_store.h -- what the vector versions of store share, whatever their width.
 *
 * A kernel_*_store.c defines single(), planar() and interleaved() with a struct form as last argument. STORES makes
 * store_fn of them for one form, and store_fill puts these into the table.
 */
#ifndef KERNEL_STORE_H
#define KERNEL_STORE_H

#include <stdbool.h>

#include "transform/kernel.h"

#define INLINE static inline __attribute__((always_inline))

/* How results are written; a constant in every instance of the loops. */
struct form {
    enum store_dtype dtype;
    bool stream; /* float32 only: 16-bit floats do not fill a cache line at a time, so streaming costs more than it
                    saves */
};

/* The numbers of struct levels, for each value. */
struct numbers {
    float mean[16], factor[16], rest[16];
};

/* Value i of n belongs to channel (first + i * step) % 3. */
INLINE void numbers_init(struct numbers *to, const struct levels *v, int n, int first, int step)
{
    for (int i = 0; i < n; i++) {
        const int ch = (first + i * step) % 3;
        to->mean[i] = v->mean[ch];
        to->factor[i] = v->factor[ch];
        to->rest[i] = v->factor_rest[ch];
    }
}

#define STORES(name, ...)                                                                                              \
    static void single_##name(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)          \
    {                                                                                                                  \
        (void)plane;                                                                                                   \
        single(dst, src, w, v, (struct form){__VA_ARGS__});                                                            \
    }                                                                                                                  \
    static void planar_##name(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)          \
    {                                                                                                                  \
        planar(dst, plane, src, w, v, (struct form){__VA_ARGS__});                                                     \
    }                                                                                                                  \
    static void interleaved_##name(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)     \
    {                                                                                                                  \
        (void)plane;                                                                                                   \
        interleaved(dst, src, w, v, (struct form){__VA_ARGS__});                                                       \
    }

/* Fills one line of the table: all but bytes, and float32 that bypasses the caches. */
INLINE void store_fill(struct kernels *k, enum store_shape s, store_fn *f16, store_fn *bf16, store_fn *f32,
                       store_fn *f32_stream)
{
    k->store[s][STORE_F16] = k->stream[s][STORE_F16] = f16;
    k->store[s][STORE_BF16] = k->stream[s][STORE_BF16] = bf16;
    k->store[s][STORE_F32] = f32;
    k->stream[s][STORE_F32] = f32_stream;
}

#endif
