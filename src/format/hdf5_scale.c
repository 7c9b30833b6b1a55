/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_scale.c -- the scale-offset filter. It stores the smallest value of a chunk, and the difference of each value to
 * it in as few bits as the largest difference needs.
 *
 * A chunk is the number of bits (4), the size of the smallest value (1), that value (16 bytes, 8 used), then the bits
 * of the values. If there is a fill value, all bits set mean it. Floating-point numbers were multiplied by a power of
 * 10 and rounded, so the filter loses precision.
 */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/size.h"
#include "format/hdf5_codec.h"

enum { HEAD = 21, D_SCALE = 0, WHOLE = 2 };

/* Parameters: method, digits or bits, elements, class (0: integers, 1: floating-point), size of an element, signed,
 * big-endian, whether there is a fill value, and the fill value in words of 4 bytes. */
struct scale {
    int32_t digits;
    size_t elements, size;
    bool real, big, filled;
    uint64_t fill;
};

static bool set_up(struct scale *s, const uint32_t *v, size_t n)
{
    if (n < 8 || v[3] > 1 || v[0] != (v[3] ? D_SCALE : WHOLE))
        return false;
    s->digits = (int32_t)v[1];
    s->elements = v[2];
    s->real = v[3];
    s->size = v[4];
    s->big = v[6];
    s->filled = v[7];
    if (s->filled && n < 10)
        return false;
    s->fill = s->filled ? v[8] | (uint64_t)v[9] << 32 : 0;
    const bool power = s->size == 1 || s->size == 2 || s->size == 4 || s->size == 8;
    return power && (s->real ? s->size >= 4 : s->digits >= 0 && s->digits <= 8 * (int)s->size);
}

bool hdf5_scale_offset_known(const uint32_t *values, size_t n_values)
{
    struct scale s;
    return set_up(&s, values, n_values);
}

/* Rounds as libhdf5 does, in the precision of the type. */
static uint64_t real_value(const struct scale *s, uint64_t x, uint64_t least)
{
    if (s->size == 4) {
        const uint32_t bits = (uint32_t)least;
        float f;
        memcpy(&f, &bits, sizeof f);
        f = (float)(int32_t)(uint32_t)x / powf(10, (float)s->digits) + f;
        uint32_t out;
        memcpy(&out, &f, sizeof out);
        return out;
    }
    double d;
    memcpy(&d, &least, sizeof d);
    d = (double)(int64_t)x / pow(10, s->digits) + d;
    memcpy(&x, &d, sizeof x);
    return x;
}

/* Reads the number of bits and the smallest value. */
static bool take_head(const struct scale *s, const uint8_t *in, size_t n, int *bits, uint64_t *least)
{
    if (n < HEAD || le32(in) > 8 * s->size)
        return false;
    *bits = (int)le32(in);
    const int used = in[4] < 8 ? in[4] : 8;
    *least = 0;
    for (int i = 0; i < used; i++)
        *least |= (uint64_t)in[5 + i] << 8 * i;
    return true;
}

int64_t hdf5_scale_offset(const uint32_t *values, size_t n_values, const uint8_t *in, size_t n, uint8_t *out,
                          size_t room)
{
    struct scale s;
    int bits;
    uint64_t least;
    if (!set_up(&s, values, n_values))
        return -1;
    if (!s.real && s.digits == 8 * (int)s.size) { /* the filter did nothing */
        if (n <= room)
            memcpy(out, in, n);
        return n <= room ? (int64_t)n : -1;
    }
    const size_t bytes = size_mul(s.elements, s.size);
    if (bytes > room || !take_head(&s, in, n, &bits, &least))
        return -1;
    const bool whole = bits == 8 * (int)s.size; /* unchanged values */
    struct hdf5_bits b = {in + HEAD, in + n, 0, 0};
    const uint64_t all = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    for (size_t i = 0; i < s.elements; i++) {
        uint64_t x;
        if (!hdf5_bits_take(&b, bits, &x))
            return -1;
        if (whole) { /* Stored in the writer's byte order; assumes little-endian. */
            hdf5_store(out + i * s.size, x, s.size, !s.big);
            continue;
        }
        if (s.filled && x == all)
            x = s.fill;
        else
            x = s.real ? real_value(&s, x, least) : x + least;
        hdf5_store(out + i * s.size, x, s.size, s.big);
    }
    return (int64_t)bytes;
}
