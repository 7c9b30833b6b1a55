/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_members.c -- walks over the members of compound types.
 *
 * The members follow the head of the type, each with a name, an offset and a type, which may be compound again. The
 * length of a type is known only after reading it, so types of other members are read as well. Compound types inside
 * arrays and sequences are skipped.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "format/hdf5_type.h"

static bool open_structure(struct hdf5_members *w, const struct hdf5_head *t, size_t at, size_t name, bool hidden)
{
    if (w->depth == HDF5_MEMBER_DEPTH)
        return false;
    const int i = w->depth++;
    w->open[i].left = t->bits & 0xffff;
    w->open[i].size = t->size;
    w->open[i].version = t->version;
    w->open[i].hidden = hidden;
    w->open[i].at = at;
    w->open[i].name = name;
    return true;
}

void hdf5_members_begin(struct hdf5_members *w, const struct hdf5_head *t, struct hdf5_message *m)
{
    *w = (struct hdf5_members){.m = m};
    open_structure(w, t, 0, 0, false);
}

/* The base type, names and values of an enumeration. */
static bool pass_enum(struct hdf5_message *m, const struct hdf5_head *t)
{
    struct hdf5_head base;
    const size_t n = t->bits & 0xffff;
    if (!hdf5_head_take(m, &base) || base.kind != HDF5_CLASS_INTEGER || !hdf5_has(m, 4))
        return false;
    hdf5_skip(m, 4);
    for (size_t i = 0; i < n; i++)
        if (!hdf5_name_take(m, t->version < 3))
            return false;
    const uint64_t values = (uint64_t)n * base.size;
    if (values > (uint64_t)(m->end - m->p))
        return false;
    hdf5_skip(m, (size_t)values);
    return true;
}

/* Skips a type; the walk handles the members of a compound type in it. */
static bool pass_type(struct hdf5_members *w)
{
    static const uint8_t rest[] = {
        [HDF5_CLASS_INTEGER] = 4, [HDF5_CLASS_FLOAT] = 12, [HDF5_CLASS_TIME] = 2, [HDF5_CLASS_BITS] = 4};
    struct hdf5_message *m = w->m;
    for (;;) {
        struct hdf5_head t;
        struct hdf5_array dims = {0};
        if (!hdf5_head_take(m, &t))
            return false;
        switch (t.kind) {
        case HDF5_CLASS_ARRAY:
            if (hdf5_array_take(&t, m, &dims))
                return false;
            continue;
        case HDF5_CLASS_VLEN:
        case HDF5_CLASS_COMPLEX:
            continue; /* the base type follows */
        case HDF5_CLASS_ENUM:
            return pass_enum(m, &t);
        case HDF5_CLASS_COMPOUND:
            return open_structure(w, &t, 0, 0, true);
        case HDF5_CLASS_REFERENCE:
        case HDF5_CLASS_STRING:
        case HDF5_CLASS_OPAQUE:
        case HDF5_CLASS_INTEGER:
        case HDF5_CLASS_FLOAT:
        case HDF5_CLASS_TIME:
        case HDF5_CLASS_BITS: {
            const size_t n = t.kind == HDF5_CLASS_OPAQUE                     ? t.bits & 0xff
                             : (size_t)t.kind < sizeof rest / sizeof rest[0] ? rest[t.kind]
                                                                             : 0;
            if (!hdf5_has(m, n))
                return false;
            hdf5_skip(m, n);
            return true;
        }
        default:
            return false;
        }
    }
}

static int bytes_of(uint32_t size)
{
    int n = 1;
    while (n < 4 && size >> 8 * n)
        n++;
    return n;
}

/* Before version 2, members have dimensions: count, 11 bytes, four sizes. */
static bool take_dims(struct hdf5_message *m, struct hdf5_member *out)
{
    if (!hdf5_has(m, 28) || m->p[0] > 4)
        return false;
    out->ndim = m->p[0];
    for (int d = 0; d < out->ndim; d++)
        out->shape[d] = le32(m->p + 12 + 4 * d);
    hdf5_skip(m, 28);
    return true;
}

/* Name, offset, dimensions? */
static bool take_member(struct hdf5_members *w, struct hdf5_member *out)
{
    const int i = w->depth - 1, version = w->open[i].version;
    const char *name = hdf5_name_take(w->m, version < 3);
    const int64_t at = name ? hdf5_take(w->m, version < 3 ? 4 : bytes_of(w->open[i].size)) : -1;
    const size_t before = w->open[i].name;
    out->ndim = 0;
    if (at < 0 || at >= w->open[i].size || (version == 1 && !take_dims(w->m, out)))
        return false;
    out->at = w->open[i].at + (size_t)at;
    const int n = snprintf(w->name + before, sizeof w->name - before, "%s%s", before ? "." : "", name);
    return n > 0 && (size_t)n < sizeof w->name - before;
}

int hdf5_members_next(struct hdf5_members *w, struct hdf5_member *out)
{
    for (;;) {
        while (w->depth > 0 && w->open[w->depth - 1].left == 0)
            w->depth--;
        if (w->depth == 0)
            return 0;
        const int i = w->depth - 1;
        w->open[i].left--;
        if (!take_member(w, out))
            return -1;
        struct hdf5_message ahead = *w->m;
        struct hdf5_head t;
        if (!hdf5_head_take(&ahead, &t))
            return -1;
        if (t.kind == HDF5_CLASS_COMPOUND && out->ndim == 0) {
            const bool inside = t.size <= w->open[i].size;
            *w->m = ahead;
            if (!inside || !open_structure(w, &t, out->at, strlen(w->name), w->open[i].hidden))
                return -1;
            continue;
        }
        out->type = *w->m;
        if (!pass_type(w))
            return -1;
        if (w->open[i].hidden)
            continue;
        memcpy(out->name, w->name, sizeof out->name);
        return 1;
    }
}
