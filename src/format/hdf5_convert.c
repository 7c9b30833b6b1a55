/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_convert.c -- converts stored rows: extracts members of compound types, and numbers of types that the machine
 * lacks, such as integers of 3 bytes or of 11 bits.
 */
#include <math.h>
#include <string.h>

#include "format/hdf5_rows.h"

bool hdf5_is_dense(const struct hdf5_array *a)
{
    return !a->form.odd && a->stride == a->per * a->item;
}

static uint64_t load(const uint8_t *p, size_t size, bool big)
{
    uint64_t x = 0;
    for (size_t i = 0; i < size; i++)
        x = x << 8 | p[big ? i : size - 1 - i];
    return x;
}

static uint64_t field(uint64_t x, int first, int bits)
{
    return x >> first & (UINT64_MAX >> (64 - bits));
}

static double real_value(const struct hdf5_form *f, uint64_t x)
{
    const int most = (1 << f->bits) - 1, e = (int)field(x, f->first, f->bits);
    const uint64_t fraction = f->fraction_bits ? field(x, f->fraction, f->fraction_bits) : 0;
    const double sign = field(x, f->sign, 1) ? -1 : 1;
    if (e == most)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    const uint64_t digits = e ? fraction | UINT64_C(1) << f->fraction_bits : fraction;
    return sign * ldexp((double)digits, (e ? e : 1) - (int)f->bias - f->fraction_bits);
}

/* Converts one such number. */
static void convert(const struct hdf5_array *a, const uint8_t *from, uint8_t *to)
{
    const struct hdf5_form *f = &a->form;
    const uint64_t x = load(from, a->item, f->big);
    if (f->real) {
        const double d = real_value(f, x);
        const float s = (float)d;
        memcpy(to, a->dtype == STK_FLOAT32 ? (const void *)&s : (const void *)&d, dtype_bytes(a->dtype));
        return;
    }
    uint64_t value = field(x, f->first, f->bits);
    if (f->negative && value >> (f->bits - 1))
        value |= f->bits < 64 ? UINT64_MAX << f->bits : 0;
    const uint8_t u8 = (uint8_t)value;
    const uint16_t u16 = (uint16_t)value;
    const uint32_t u32 = (uint32_t)value;
    const void *const as[] = {[1] = &u8, [2] = &u16, [4] = &u32, [8] = &value};
    memcpy(to, as[dtype_bytes(a->dtype)], dtype_bytes(a->dtype));
}

void hdf5_gather(const struct hdf5_array *a, const uint8_t *stored, uint8_t *to)
{
    const size_t run = a->per * a->item, out = dtype_bytes(a->dtype);
    for (size_t at = 0; at < a->stored_bytes; at += a->stride) {
        const uint8_t *from = stored + at + a->member;
        if (!a->form.odd)
            memcpy(to, from, run);
        for (size_t i = 0; i < a->per && a->form.odd; i++)
            convert(a, from + i * a->item, to + i * out);
        to += a->form.odd ? a->per * out : run;
    }
}
