/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h -- reads the wire format of protocol buffers: the fields of a message, in order, without copying.
 *
 *     struct wire w = {p, p + n};
 *     struct wire_field f;
 *     int rc;
 *     while ((rc = wire_next(&w, &f)) > 0) ...   rc is -1 if it is not a message
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
    const uint8_t *p, *end;
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    const uint8_t *p; /* its payload, without the length prefix; numbers in their encoded form */
    size_t n;
};

/* The head of a field. The payload need not be in memory. */
enum { WIRE_HEAD_MOST = 20 };
struct wire_head {
    uint32_t number;
    enum wire_type type;
    size_t bytes; /* of the head */
    uint64_t n;   /* bytes of the payload */
};
/* false: no field starts with these n bytes, or its head is longer than they are. */
bool wire_head(const uint8_t *p, size_t n, struct wire_head *h);

/* 1 and a field; 0 at the end; -1: not a field. Groups, which are obsolete, are not supported. */
int wire_next(struct wire *w, struct wire_field *f);

/* How many varints the bytes contain. */
size_t wire_count(const uint8_t *p, size_t n);
/* Decodes them; false: one has more than 10 bytes, or the last one is incomplete. */
bool wire_ints(const uint8_t *p, size_t n, int64_t *to);

#endif
