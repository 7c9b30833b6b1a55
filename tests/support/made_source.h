/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_source.h -- a source for tests of the loader: MANY generated PNG images. All pixels of image i have the colour
 * (i, 2i, 3i), and its label is i % 10. n_bad images, from first_bad on, are cut off.
 */
#ifndef MADE_SOURCE_H
#define MADE_SOURCE_H

#include <stdatomic.h>

#include "support/open_loader.h"

enum { MANY = 100, SIDE = 8 };

static struct {
    void *bytes;
    size_t n;
} images[MANY];

static atomic_int closed;
static int first_bad = MANY, n_bad;

static inline void made_begin(void)
{
    for (int i = 0; i < MANY; i++) {
        uint8_t px[SIDE * SIDE * 3];
        for (int k = 0; k < SIDE * SIDE; k++)
            for (int c = 0; c < 3; c++)
                px[3 * k + c] = (uint8_t)(i * (c + 1));
        const stk_encode_options png = {.format = STK_PNG};
        stk_error e;
        if (stk_encode(px, SIDE, SIDE, 3, SIDE * 3, &png, &images[i].bytes, &images[i].n, &e) != STK_OK) {
            printf("skipped: %s\n", e.text);
            exit(77);
        }
    }
}

static inline int64_t count(void *user)
{
    (void)user;
    return MANY;
}

static inline int read_image(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label,
                             stk_error *e)
{
    (void)user, (void)thread, (void)e;
    *bytes = images[i].bytes;
    *n = i >= first_bad && i < first_bad + n_bad ? 20 : images[i].n;
    *label = i % 10;
    return STK_OK;
}

static inline void close_source(void *user)
{
    (void)user;
    closed++;
}

static const stk_read_hooks hooks = {.count = count, .read = read_image, .close = close_source};

static inline stk_options base_options(void)
{
    return (stk_options){
        .read_hooks = &hooks, .ops = "CenterCrop(4)", .dtype = STK_UINT8, .batch_size = 8, .threads = 3};
}

static inline int64_t value_at(const stk_batch *b, const char *name, int64_t row)
{
    return ((const int64_t *)stk_field(b, name)->data)[row];
}

/* Reads up to n batches and writes the indices of their samples. Returns how many. */
static inline int64_t read_some(stk_loader *l, int64_t n, int64_t *samples, int *rc)
{
    int64_t got = 0;
    stk_batch *b;
    *rc = STK_OK;
    while (n-- > 0 && (*rc = stk_next(l, &b, NULL)) == STK_OK) {
        for (int64_t i = 0; i < stk_samples(b); i++) {
            const int64_t sample = value_at(b, "index", i);
            CHECK_EQ(value_at(b, "label", i), sample % 10);
            CHECK_EQ(((uint8_t *)stk_field(b, "image")->data)[i * 48 + 16], (uint8_t)(2 * sample));
            samples[got++] = sample;
        }
        stk_release(b);
    }
    return got;
}

static inline void made_end(void)
{
    for (int i = 0; i < MANY; i++)
        stk_free(images[i].bytes);
}

#endif
