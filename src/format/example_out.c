/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_out.c -- writes a tf.train.Example.
 *
 *     Example   1: Features         Features  1: (1: name, 2: Feature), again and again
 *     Feature   1: bytes  2: floats  3: ints, each of them  1: values; numbers are contiguous
 *
 * A length precedes what it counts, so every level is measured before it is written.
 */
#include "format/example.h"

#include <string.h>

enum { VARINT = 10, DELIMITED = 2 };

static size_t varint_bytes(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static int add_varint(struct buf *b, uint64_t v)
{
    uint8_t bytes[VARINT];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    return buf_add(b, bytes, n);
}

/* Writes the tag and the length of a field; the second function returns the size of both and the field. */
static int begin_field(struct buf *b, int number, size_t n)
{
    const uint8_t tag = (uint8_t)(number << 3 | DELIMITED);
    return buf_add(b, &tag, 1) || add_varint(b, n) ? -1 : 0;
}

static size_t field_bytes(size_t n)
{
    return 1 + varint_bytes(n) + n;
}

/* Writes everything before the n bytes of values of a feature of this kind (1: bytes, 2: floats, 3: ints). */
static int begin(struct example_out *x, const char *name, int kind, size_t n)
{
    struct buf *b = &x->features;
    const size_t key = strlen(name), list = field_bytes(n), feature = field_bytes(list);
    return begin_field(b, 1, field_bytes(key) + field_bytes(feature)) || begin_field(b, 1, key) ||
                   buf_add(b, name, key) || begin_field(b, 2, feature) || begin_field(b, kind, list) ||
                   begin_field(b, 1, n)
               ? -1
               : 0;
}

void example_out_bytes(struct example_out *x, const char *name, const void *bytes, size_t n)
{
    x->failed |= begin(x, name, 1, n) || buf_add(&x->features, bytes, n);
}

void example_out_floats(struct example_out *x, const char *name, const float *values, size_t n)
{
    x->failed |= begin(x, name, 2, n * sizeof *values) || buf_add(&x->features, values, n * sizeof *values);
}

void example_out_ints(struct example_out *x, const char *name, const int64_t *values, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += varint_bytes((uint64_t)values[i]);
    x->failed |= begin(x, name, 3, bytes) != 0;
    for (size_t i = 0; i < n; i++)
        x->failed |= add_varint(&x->features, (uint64_t)values[i]) != 0;
}

int example_out_end(struct example_out *x, struct buf *out)
{
    const int rc = x->failed || begin_field(out, 1, x->features.len) || buf_add(out, x->features.data, x->features.len);
    x->features.len = 0;
    x->failed = false;
    return rc ? -1 : 0;
}

void example_out_done(struct example_out *x)
{
    buf_done(&x->features);
}
