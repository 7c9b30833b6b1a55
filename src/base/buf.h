/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h -- a growable array of bytes with a maximum.
 *
 *     struct buf b = {.max = 1 << 20};
 *     if (buf_add(&b, p, n)) ...      no memory, or larger than the maximum
 *     buf_done(&b);
 */
#ifndef BUF_H
#define BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data;
    size_t len, cap;
    size_t max; /* 0: SIZE_MAX / 2 */
};

/* Bytes in memory that someone else owns. */
struct slice {
    char *p;
    size_t n;
};

/* Makes room for n bytes in total and keeps the content. Like all functions here, returns 0 or -1. */
int buf_reserve(struct buf *b, size_t n);
int buf_add(struct buf *b, const void *p, size_t n);
int buf_add_str(struct buf *b, const char *s); /* without the terminating 0 */
int buf_printf(struct buf *b, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Frees the memory if it is more than keep. */
void buf_trim(struct buf *b, size_t keep);
void buf_done(struct buf *b);

#endif
