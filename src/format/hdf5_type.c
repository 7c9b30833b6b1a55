/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_type.c -- parses the types of elements.
 *
 * The base type follows a type that has one (array, variable length, enumeration). Arrays of arrays become one array
 * with more dimensions. A member of a compound type is read like a type of its own, at its offset in the structure.
 */
#include "format/hdf5_type.h"

#include <string.h>

#include "base/bytes.h"
#include "base/size.h"

const char HDF5_STRUCTURE[] = "has elements of a compound type; name one of its members";
static const char ODD_NUMBERS[] = "has numbers of an unsupported format";

bool hdf5_head_take(struct hdf5_message *m, struct hdf5_head *t)
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

const char *hdf5_name_take(struct hdf5_message *m, bool padded)
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

static bool machine_is_big(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* ------------------------------------------------------------------ numbers */

/* Bits: 0 big-endian, 3 signed. Then first bit (2) and count of bits (2). */
static const char *take_integer(const struct hdf5_head *t, struct hdf5_message *m, struct hdf5_array *out)
{
    static const stk_dtype types[2][9] = {
        {0, STK_UINT8, STK_UINT16, STK_UINT32, STK_UINT32, STK_UINT64, STK_UINT64, STK_UINT64, STK_UINT64},
        {0, STK_INT8, STK_INT16, STK_INT32, STK_INT32, STK_INT64, STK_INT64, STK_INT64, STK_INT64},
    };
    const int64_t first = hdf5_take(m, 2), bits = hdf5_take(m, 2);
    if (t->size > 8 || first < 0 || bits < 1 || first + bits > 8 * (int64_t)t->size)
        return ODD_NUMBERS;
    const bool is_signed = t->kind == HDF5_CLASS_INTEGER && (t->bits & 8);
    out->dtype = types[is_signed][t->size];
    out->item = t->size;
    out->swapped = t->size > 1 && (t->bits & 1) != machine_is_big();
    out->form = (struct hdf5_form){.odd = bits != 8 * (int64_t)dtype_bytes(out->dtype),
                                   .big = t->bits & 1,
                                   .negative = is_signed,
                                   .first = (uint8_t)first,
                                   .bits = (uint8_t)bits};
    return NULL;
}

static bool fits_float32(const struct hdf5_form *f)
{
    const int64_t largest = (INT64_C(1) << f->bits) - 2 - f->bias;
    return f->bits <= 8 && f->fraction_bits <= 23 && f->bias <= 127 && largest <= 127;
}

/* Number types of the machine are copied. Others are converted if a float64 can represent them. */
static const char *take_odd_float(const struct hdf5_head *t, const uint8_t *p, struct hdf5_array *out)
{
    enum { IMPLIED = 2 };
    const struct hdf5_form f = {.odd = true,
                                .big = t->bits & 1,
                                .real = true,
                                .sign = (uint8_t)(t->bits >> 8),
                                .first = p[4],
                                .bits = p[5],
                                .fraction = p[6],
                                .fraction_bits = p[7],
                                .bias = le32(p + 8)};
    const uint32_t all = 8 * t->size;
    if (t->size > 8 || (t->bits >> 4 & 3) != IMPLIED || f.sign >= all || f.bits < 2 || f.bits > 11 ||
        f.fraction_bits > 52 || f.first + (uint32_t)f.bits > all || f.fraction + (uint32_t)f.fraction_bits > all ||
        f.bias > 1023)
        return ODD_NUMBERS;
    out->dtype = t->size <= 4 && fits_float32(&f) ? STK_FLOAT32 : STK_FLOAT64;
    out->item = t->size;
    out->form = f;
    return NULL;
}

/* Bits: 0 and 6 byte order, 8 to 15 sign. Then first bit (2), count of bits (2), first bit and count of the exponent,
 * of the fraction, bias (4). */
static const char *take_float(const struct hdf5_head *t, struct hdf5_message *m, struct hdf5_array *out)
{
    static const struct {
        uint32_t size;
        uint8_t exponent[4]; /* first bit and count of both */
        uint32_t bias;
        stk_dtype dtype;
    } known[] = {
        {2, {10, 5, 0, 10}, 15, STK_FLOAT16},
        {2, {7, 8, 0, 7}, 127, STK_BFLOAT16},
        {4, {23, 8, 0, 23}, 127, STK_FLOAT32},
        {8, {52, 11, 0, 52}, 1023, STK_FLOAT64},
    };
    if (!hdf5_has(m, 12) || (t->bits & 0x40))
        return ODD_NUMBERS;
    const bool whole = (t->bits >> 8 & 0xff) == 8 * t->size - 1 && le16(m->p) == 0 && le16(m->p + 2) == 8 * t->size;
    for (size_t i = 0; whole && i < sizeof known / sizeof known[0]; i++)
        if (t->size == known[i].size && memcmp(m->p + 4, known[i].exponent, 4) == 0 &&
            le32(m->p + 8) == known[i].bias) {
            out->dtype = known[i].dtype;
            out->item = t->size;
            out->swapped = (t->bits & 1) != machine_is_big();
            return NULL;
        }
    return take_odd_float(t, m->p, out);
}

/* h5py's bool is an enumeration of FALSE and TRUE: the base type, names, values. */
static const char *take_enum(const struct hdf5_head *t, struct hdf5_message *m, struct hdf5_array *out)
{
    struct hdf5_head base;
    if (!hdf5_head_take(m, &base) || base.kind != HDF5_CLASS_INTEGER || base.size != t->size)
        return HDF5_DAMAGED;
    const char *why = take_integer(&base, m, out);
    if (why || (t->bits & 0xffff) != 2 || t->size != 1 || out->form.odd)
        return why;
    const char *no = hdf5_name_take(m, t->version < 3), *yes = no ? hdf5_name_take(m, t->version < 3) : NULL;
    if (yes && hdf5_has(m, 2) && strcmp(no, "FALSE") == 0 && strcmp(yes, "TRUE") == 0 && m->p[0] == 0 && m->p[1] == 1)
        out->dtype = STK_BOOL;
    return NULL;
}

static const char *take_numbers(const struct hdf5_head *t, struct hdf5_message *m, struct hdf5_array *out)
{
    return t->kind == HDF5_CLASS_FLOAT  ? take_float(t, m, out)
           : t->kind == HDF5_CLASS_ENUM ? take_enum(t, m, out)
                                        : take_integer(t, m, out);
}

static bool is_number(const struct hdf5_head *t)
{
    return t->kind == HDF5_CLASS_INTEGER || t->kind == HDF5_CLASS_FLOAT || t->kind == HDF5_CLASS_ENUM ||
           t->kind == HDF5_CLASS_BITS;
}

/* ------------------------------------------------------------------ other types */

/* Bits: 0 to 3: sequence or text. */
static const char *take_vlen(const struct hdf5_view *v, const struct hdf5_head *t, struct hdf5_message *m,
                             struct hdf5_array *out)
{
    struct hdf5_head base;
    const char *why = NULL;
    if (!hdf5_head_take(m, &base))
        return HDF5_DAMAGED;
    out->type = (t->bits & 15) == 1 ? HDF5_VLEN_TEXT : HDF5_VLEN;
    out->terminated = out->type == HDF5_VLEN_TEXT;
    if (out->type == HDF5_VLEN && !is_number(&base))
        return "has sequences of elements that are not numbers";
    if (out->type == HDF5_VLEN)
        why = take_numbers(&base, m, out);
    out->item = 8 + (size_t)v->offset_bytes;
    return why || !out->form.odd ? why : ODD_NUMBERS;
}

/* Dimensions (1), 3 bytes before version 3, sizes (4 each), permutation (4 each) before version 3, the base type. */
const char *hdf5_array_take(const struct hdf5_head *t, struct hdf5_message *m, struct hdf5_array *out)
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
        if ((out->shape[out->ndim++] = hdf5_take(m, 4)) < 1)
            return HDF5_DAMAGED;
    if (old)
        hdf5_skip(m, 4 * (size_t)n);
    return NULL;
}

/* Reads the head of the base type of arrays; their dimensions go to out. */
static const char *take_arrays(struct hdf5_message *m, struct hdf5_head *t, struct hdf5_array *out)
{
    const char *why = hdf5_head_take(m, t) ? NULL : HDF5_DAMAGED;
    while (!why && t->kind == HDF5_CLASS_ARRAY) {
        why = hdf5_array_take(t, m, out);
        if (!why && !hdf5_head_take(m, t))
            why = HDF5_DAMAGED;
    }
    return why;
}

/* A type that is neither an array nor compound. */
static const char *take_item(const struct hdf5_view *v, const struct hdf5_head *t, struct hdf5_message *m,
                             struct hdf5_array *out)
{
    out->type = HDF5_NUMBERS;
    out->dtype = STK_UINT8;
    out->item = t->size;
    switch (t->kind) {
    case HDF5_CLASS_INTEGER:
    case HDF5_CLASS_FLOAT:
    case HDF5_CLASS_ENUM:
    case HDF5_CLASS_BITS:
        return take_numbers(t, m, out);
    case HDF5_CLASS_STRING:
        out->type = HDF5_TEXT;
        out->terminated = (t->bits & 15) == 0;
        out->spaces = (t->bits & 15) == 2;
        return NULL;
    case HDF5_CLASS_OPAQUE:
        out->type = HDF5_BLOCK;
        return NULL;
    case HDF5_CLASS_VLEN:
        return take_vlen(v, t, m, out);
    case HDF5_CLASS_COMPOUND:
        return "has arrays of a compound type inside a compound type, which Stoker does not read";
    case HDF5_CLASS_REFERENCE:
        return "has references as elements, which Stoker does not read";
    default:
        return "has elements of a type (times, complex numbers) that Stoker does not read";
    }
}

static size_t product(const struct hdf5_array *a, int from)
{
    size_t n = 1;
    for (int d = from; d < a->ndim; d++)
        n = size_mul(n, (size_t)a->shape[d]);
    return n;
}

/* ------------------------------------------------------------------ members of structures */

static const char *take_old_dims(const struct hdf5_member *f, struct hdf5_array *out)
{
    if (out->ndim + f->ndim > HDF5_DIMS)
        return "has more dimensions than can be read (9)";
    for (int d = 0; d < f->ndim; d++)
        if ((out->shape[out->ndim++] = f->shape[d]) < 1)
            return HDF5_DAMAGED;
    return NULL;
}

static const char *take_member(const struct hdf5_view *v, const struct hdf5_head *structure, struct hdf5_member *f,
                               struct hdf5_array *out)
{
    struct hdf5_head t;
    const int outer = out->ndim;
    const char *why = take_old_dims(f, out);
    if (!why)
        why = take_arrays(&f->type, &t, out);
    if (!why)
        why = take_item(v, &t, &f->type, out);
    if (why)
        return why;
    out->per = product(out, outer);
    out->member = f->at;
    out->stride = structure->size;
    return out->member > out->stride || size_mul(out->per, out->item) > out->stride - out->member ? HDF5_DAMAGED : NULL;
}

static const char *find_member(const struct hdf5_view *v, const struct hdf5_head *t, struct hdf5_message *m,
                               const char *name, struct hdf5_array *out)
{
    struct hdf5_members w;
    struct hdf5_member f;
    int more;
    hdf5_members_begin(&w, t, m);
    while ((more = hdf5_members_next(&w, &f)) > 0)
        if (strcmp(f.name, name) == 0)
            return take_member(v, t, &f, out);
    return more < 0 ? HDF5_DAMAGED : HDF5_STRUCTURE;
}

const char *hdf5_type_parse(const struct hdf5_view *v, struct hdf5_message *m, const char *member,
                            struct hdf5_array *out)
{
    struct hdf5_head t;
    const char *why = take_arrays(m, &t, out);
    const size_t n = product(out, 0);
    if (why)
        return why;
    if (t.kind == HDF5_CLASS_COMPOUND) {
        why = member ? find_member(v, &t, m, member, out) : HDF5_STRUCTURE;
    } else {
        why = member ? "has no members: its type is not compound" : take_item(v, &t, m, out);
        out->per = 1;
        out->stride = out->item;
    }
    out->element = size_mul(n, out->stride);
    return why;
}
