/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tars.h -- tar archives made in memory, for tests.
 *
 *     struct tars t = {0};
 *     tars_file(&t, "a.jpg", "bytes", 5);
 *     tars_end(&t);
 *     ... t.bytes.data, t.bytes.len ...
 *     buf_done(&t.bytes);
 */
#ifndef TARS_H
#define TARS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

struct tars {
    struct buf bytes;
};

static inline void tars_add(struct tars *t, const void *p, size_t n)
{
    if (buf_add(&t->bytes, p, n))
        abort(); /* no memory */
}

static inline void tars_sum(uint8_t *block)
{
    memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum & 0777777);
}

/* A ustar header; size is written as given. */
static inline uint8_t *tars_header(struct tars *t, const char *name, char type, size_t size)
{
    uint8_t block[512] = {0};
    const size_t n = strlen(name);
    memcpy(block, name, n < 100 ? n : 100);
    snprintf((char *)block + 100, 8, "0000644");
    snprintf((char *)block + 124, 12, "%011o", (unsigned)size);
    block[156] = (uint8_t)type;
    memcpy(block + 257, "ustar\00000", 8);
    tars_sum(block);
    tars_add(t, block, sizeof block);
    return t->bytes.data + t->bytes.len - 512;
}

static inline void tars_content(struct tars *t, const void *p, size_t n)
{
    static const uint8_t zeros[512];
    tars_add(t, p, n);
    tars_add(t, zeros, (512 - n % 512) % 512);
}

static inline void tars_member(struct tars *t, const char *name, char type, const void *p, size_t n)
{
    tars_header(t, name, type, n);
    tars_content(t, p, n);
}

static inline void tars_file(struct tars *t, const char *name, const void *p, size_t n)
{
    tars_member(t, name, '0', p, n);
}

static inline void tars_text(struct tars *t, const char *name, const char *text)
{
    tars_file(t, name, text, strlen(text));
}

/* A PAX header with one record, for the next member (x) or for all (g). */
static inline void tars_pax(struct tars *t, char type, const char *key, const char *value)
{
    char record[4096];
    size_t n = strlen(key) + strlen(value) + 3, length = n + 1;
    for (int i = 0; i < 3; i++)
        length = n + (size_t)snprintf(record, sizeof record, "%zu", length);
    snprintf(record, sizeof record, "%zu %s=%s\n", length, key, value);
    tars_member(t, "PaxHeaders/x", type, record, length);
}

static inline void tars_end(struct tars *t)
{
    static const uint8_t zeros[1024];
    tars_add(t, zeros, sizeof zeros);
}

#endif
