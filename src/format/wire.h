/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h -- the wire format of protocol buffers: the fields of a message, one after the other, where they lie.
 *
 *     struct wire w = {p, p + n};
 *     struct wire_field f;
 *     int rc;
 *     while ((rc = wire_next(&w, &f)) > 0) ...   rc is -1 where it is no message
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
    const uint8_t *p; /* its bytes, without their length: of a number as well */
    size_t n;
};

/* What stands before the payload of a field, which need not be there. */
enum { WIRE_HEAD_MOST = 20 };
struct wire_head {
    uint32_t number;
    enum wire_type type;
    size_t bytes; /* of the head */
    uint64_t n;   /* bytes of the payload */
};
/* false: no field begins with these n bytes, or its head does not end within them. */
bool wire_head(const uint8_t *p, size_t n, struct wire_head *h);

/* 1 and a field; 0 at the end; -1: what is there is no field. Groups, which nobody writes any more, are none. */
int wire_next(struct wire *w, struct wire_field *f);

/* How many numbers a run of varints has: each ends with a byte below 128. */
size_t wire_count(const uint8_t *p, size_t n);
/* Those numbers; false: one is longer than 10 bytes, or the run ends within one. */
bool wire_ints(const uint8_t *p, size_t n, int64_t *to);

#endif
