/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zips.h -- zip archives made in memory, for tests. The caller compresses the bytes.
 *
 *     struct zips z = {0};
 *     zips_add(&z, &(struct zips_file){.name = "a.txt", .p = "abc", .n = 3, .raw = 3, .crc = 0x352441c2});
 *     zips_end(&z);
 *     ... z.bytes.data, z.bytes.len ...
 *     zips_done(&z);
 */
#ifndef ZIPS_H
#define ZIPS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

struct zips {
    struct buf bytes, directory;
    unsigned n;
    size_t before; /* bytes before the archive */
};

struct zips_file {
    const char *name;
    const void *p;
    size_t n;
    uint32_t raw, crc;
    uint16_t method, flags;
    const uint8_t *extra;
    size_t n_extra;
    size_t header; /* stated instead of the true one; 0: the true one */
};

static inline void zips_put(struct buf *b, uint64_t v, int bytes)
{
    uint8_t p[8];
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * i);
    if (buf_add(b, p, (size_t)bytes))
        abort(); /* no memory */
}

static inline void zips_bytes(struct buf *b, const void *p, size_t n)
{
    if (buf_add(b, p, n))
        abort();
}

/* The part that header and entry have in common. */
static inline void zips_common(struct buf *b, const struct zips_file *f)
{
    zips_put(b, 20, 2);
    zips_put(b, f->flags, 2);
    zips_put(b, f->method, 2);
    zips_put(b, 0, 4);
    zips_put(b, f->crc, 4);
    zips_put(b, f->n, 4);
    zips_put(b, f->raw, 4);
    zips_put(b, strlen(f->name), 2);
}

static inline void zips_add(struct zips *z, const struct zips_file *f)
{
    const size_t header = f->header ? f->header : z->bytes.len - z->before;
    zips_bytes(&z->bytes, "PK\3\4", 4);
    zips_common(&z->bytes, f);
    zips_put(&z->bytes, 5, 2); /* an extra field that differs from the entry's */
    zips_bytes(&z->bytes, f->name, strlen(f->name));
    zips_bytes(&z->bytes, "\7\7\1\0x", 5);
    zips_bytes(&z->bytes, f->p, f->n);

    struct buf *d = &z->directory;
    zips_bytes(d, "PK\1\2", 4);
    zips_put(d, 20, 2);
    zips_common(d, f);
    zips_put(d, f->n_extra, 2);
    zips_put(d, 0, 8); /* comment, volume, attributes */
    zips_put(d, 0, 2);
    zips_put(d, header, 4);
    zips_bytes(d, f->name, strlen(f->name));
    zips_bytes(d, f->extra, f->n_extra);
    z->n++;
}

static inline void zips_end(struct zips *z)
{
    const size_t at = z->bytes.len - z->before;
    zips_bytes(&z->bytes, z->directory.data, z->directory.len);
    zips_bytes(&z->bytes, "PK\5\6", 4);
    zips_put(&z->bytes, 0, 4);
    zips_put(&z->bytes, z->n, 2);
    zips_put(&z->bytes, z->n, 2);
    zips_put(&z->bytes, z->directory.len, 4);
    zips_put(&z->bytes, at, 4);
    zips_put(&z->bytes, 0, 2);
}

static inline void zips_done(struct zips *z)
{
    buf_done(&z->bytes);
    buf_done(&z->directory);
}

#endif
