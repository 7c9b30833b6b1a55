/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_type.c -- types of elements.
 *
 * A type is its class and version (half a byte each), bits (3 bytes), its size (4), and what its class has more of.
 * Types that are made of another (array, variable length, enumeration) are followed by it: an array of sequences of
 * enumerations is the longest chain that is read.
 */
#include <string.h>

#include "base/bytes.h"
#include "source/hdf5_dataset.h"

enum {
    INTEGER = 0,
    FLOAT = 1,
    TIME = 2,
    STRING = 3,
    BITS = 4,
    OPAQUE = 5,
    COMPOUND = 6,
    REFERENCE = 7,
    ENUM = 8,
    VLEN = 9,
    ARRAY = 10
};

struct type {
    int kind, version;
    uint32_t bits, size;
};

static bool take_type(struct hdf5_message *m, struct type *t)
{
    if (!hdf5_has(m, 8))
        return false;
    t->kind = m->p[0] & 15;
    t->version = m->p[0] >> 4;
    t->bits = (uint32_t)m->p[1] | (uint32_t)m->p[2] << 8 | (uint32_t)m->p[3] << 16;
    t->size = le32(m->p + 4);
    hdf5_skip(m, 8);
    return t->size > 0;
}

static bool machine_is_big(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

static const char ODD_NUMBERS[] = "has numbers of a form that is not read";

/* Bits: 0 big-endian, 3 signed. Then the first bit (2) and how many bits (2). */
static const char *take_integer(const struct type *t, struct hdf5_message *m, struct hdf5_array *out)
{
    static const stk_dtype types[2][9] = {
        {[1] = STK_UINT8, [2] = STK_UINT16, [4] = STK_UINT32, [8] = STK_UINT64},
        {[1] = STK_INT8, [2] = STK_INT16, [4] = STK_INT32, [8] = STK_INT64},
    };
    const int64_t first = hdf5_take(m, 2), bits = hdf5_take(m, 2);
    if (t->size > 8 || first != 0 || bits != 8 * (int64_t)t->size)
        return ODD_NUMBERS;
    out->dtype = types[t->bits >> 3 & 1][t->size];
    out->item = t->size;
    out->swapped = t->size > 1 && (t->bits & 1) != machine_is_big();
    return out->dtype ? NULL : ODD_NUMBERS;
}

/* Bits: 0 and 6 order, 8 to 15 place of the sign. Then first bit (2), bits (2), exponent's place and bits, fraction's
 * place and bits, bias (4). */
static const char *take_float(const struct type *t, struct hdf5_message *m, struct hdf5_array *out)
{
    static const struct {
        uint32_t size;
        uint8_t exponent[4]; /* place and bits of both */
        uint32_t bias;
        stk_dtype dtype;
    } known[] = {
        {2, {10, 5, 0, 10}, 15, STK_FLOAT16},
        {2, {7, 8, 0, 7}, 127, STK_BFLOAT16},
        {4, {23, 8, 0, 23}, 127, STK_FLOAT32},
        {8, {52, 11, 0, 52}, 1023, STK_FLOAT64},
    };
    if (!hdf5_has(m, 12) || (t->bits & 0x40) || (t->bits >> 8 & 0xff) != 8 * t->size - 1 || le16(m->p) != 0 ||
        le16(m->p + 2) != 8 * t->size)
        return ODD_NUMBERS;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (t->size == known[i].size && memcmp(m->p + 4, known[i].exponent, 4) == 0 &&
            le32(m->p + 8) == known[i].bias) {
            out->dtype = known[i].dtype;
            out->item = t->size;
            out->swapped = (t->bits & 1) != machine_is_big();
            return NULL;
        }
    return ODD_NUMBERS;
}

static const char *take_name(struct hdf5_message *m, bool padded)
{
    const char *name = (const char *)m->p;
    const uint8_t *end = memchr(m->p, 0, (size_t)(m->end - m->p));
    const size_t n = end ? (size_t)(end - m->p) + 1 : 0;
    const size_t step = padded ? (n + 7) / 8 * 8 : n;
    if (!end || !hdf5_has(m, step))
        return NULL;
    hdf5_skip(m, step);
    return name;
}

/* h5py's bool is an enumeration of FALSE and TRUE: the base type, names, values. */
static const char *take_enum(const struct type *t, struct hdf5_message *m, struct hdf5_array *out)
{
    struct type base;
    if (!take_type(m, &base) || base.kind != INTEGER || base.size != t->size)
        return HDF5_DAMAGED;
    const char *why = take_integer(&base, m, out);
    if (why || (t->bits & 0xffff) != 2 || t->size != 1)
        return why;
    const char *no = take_name(m, t->version < 3), *yes = no ? take_name(m, t->version < 3) : NULL;
    if (yes && hdf5_has(m, 2) && strcmp(no, "FALSE") == 0 && strcmp(yes, "TRUE") == 0 && m->p[0] == 0 && m->p[1] == 1)
        out->dtype = STK_BOOL;
    return NULL;
}

static const char *take_numbers(const struct type *t, struct hdf5_message *m, struct hdf5_array *out)
{
    return t->kind == INTEGER ? take_integer(t, m, out)
           : t->kind == FLOAT ? take_float(t, m, out)
                              : take_enum(t, m, out);
}

static bool is_number(const struct type *t)
{
    return t->kind == INTEGER || t->kind == FLOAT || t->kind == ENUM;
}

/* Bits: 0 to 3 sequence or text. */
static const char *take_vlen(const struct hdf5_view *v, const struct type *t, struct hdf5_message *m,
                             struct hdf5_array *out)
{
    struct type base;
    const char *why = NULL;
    if (!take_type(m, &base))
        return HDF5_DAMAGED;
    out->type = (t->bits & 15) == 1 ? HDF5_VLEN_TEXT : HDF5_VLEN;
    out->dtype = STK_UINT8;
    out->terminated = out->type == HDF5_VLEN_TEXT;
    if (out->type == HDF5_VLEN && !is_number(&base))
        return "has sequences of something that is no number";
    if (out->type == HDF5_VLEN)
        why = take_numbers(&base, m, out);
    out->item = 8 + (size_t)v->offset_bytes;
    return why;
}

/* Dimensions (1), 3 bytes before version 3, sizes (4 each), an order (4 each) before version 3, the base type. */
static const char *take_array(const struct type *t, struct hdf5_message *m, struct hdf5_array *out)
{
    const int64_t n = hdf5_take(m, 1);
    const bool old = t->version < 3;
    if (n < 1 || !hdf5_has(m, (old ? 3 : 0) + (size_t)n * (old ? 8 : 4)))
        return HDF5_DAMAGED;
    if (out->ndim + n > HDF5_DIMS)
        return "has more dimensions than can be read (9)";
    if (old)
        hdf5_skip(m, 3);
    for (int64_t d = 0; d < n; d++)
        out->shape[out->ndim++] = hdf5_take(m, 4);
    if (old)
        hdf5_skip(m, 4 * (size_t)n);
    return NULL;
}

const char *hdf5_type_parse(const struct hdf5_view *v, struct hdf5_message *m, struct hdf5_array *out)
{
    struct type t;
    if (!take_type(m, &t))
        return HDF5_DAMAGED;
    if (t.kind == ARRAY) {
        const char *why = take_array(&t, m, out);
        if (why || !take_type(m, &t))
            return why ? why : HDF5_DAMAGED;
    }
    out->type = HDF5_NUMBERS;
    out->dtype = STK_UINT8;
    out->item = t.size;
    switch (t.kind) {
    case INTEGER:
    case FLOAT:
    case ENUM:
        return take_numbers(&t, m, out);
    case STRING:
        out->type = HDF5_TEXT;
        out->terminated = (t.bits & 15) == 0;
        out->spaces = (t.bits & 15) == 2;
        return NULL;
    case OPAQUE:
        out->type = HDF5_BLOCK;
        return NULL;
    case VLEN:
        return take_vlen(v, &t, m, out);
    case COMPOUND:
        return "has compound elements (structures); give each member a dataset of its own";
    case REFERENCE:
        return "has references as elements";
    case ARRAY:
        return "has arrays of arrays as elements";
    default:
        return "has elements of a type (times, bits, complex numbers) that is not read";
    }
}
