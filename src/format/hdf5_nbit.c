/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_nbit.c -- the n-bit filter, which stores only the bits that a number type uses.
 *
 * The parameters describe the type of an element as a tree of numbers, arrays, structures, and bytes that are stored
 * unchanged. The tree is flattened to runs of equal numbers first. Arrays of structures are not supported.
 */
#include <string.h>

#include "base/size.h"
#include "format/hdf5_codec.h"

enum { NUMBER = 1, ARRAY = 2, STRUCTURE = 3, BYTES = 4 };
enum { RUNS_MOST = 64, DEPTH_MOST = 8, HEAD = 3 };

/* n numbers of `size` bytes each, from offset `at` of an element on. */
struct run {
    size_t at, n, size;
    int bits, first; /* bits that are used, and the first of them */
    bool big;
};

struct plan {
    const uint32_t *v, *end;
    size_t element; /* bytes of an element */
    int n;
    struct run runs[RUNS_MOST];
    int depth;
    struct {
        uint32_t members; /* parameters left */
        size_t at;
    } open[DEPTH_MOST];
};

static bool take(struct plan *p, uint32_t *out)
{
    if (p->v == p->end)
        return false;
    *out = *p->v++;
    return true;
}

static bool add(struct plan *p, struct run r)
{
    if (p->n == RUNS_MOST || r.size == 0 || r.n == 0 || r.at > p->element || r.n > (p->element - r.at) / r.size)
        return false;
    p->runs[p->n++] = r;
    return true;
}

/* Size, byte order, bits, first bit; `bytes` of such numbers, or one. */
static bool add_number(struct plan *p, size_t at, size_t bytes)
{
    uint32_t size, big, bits, first;
    if (!take(p, &size) || !take(p, &big) || !take(p, &bits) || !take(p, &first))
        return false;
    if (size < 1 || size > 8 || big > 1 || bits < 1 || bits > 8 * size || first > 8 * size - bits)
        return false;
    return (bytes == 0 || bytes % size == 0) &&
           add(p, (struct run){at, bytes ? bytes / size : 1, size, (int)bits, (int)first, big});
}

/* Total size, and the type of the elements; arrays of arrays are contiguous. */
static bool add_array(struct plan *p, size_t at)
{
    uint32_t bytes, kind, inner;
    if (!take(p, &bytes) || !take(p, &kind) || bytes == 0)
        return false;
    while (kind == ARRAY)
        if (!take(p, &inner) || inner == 0 || bytes % inner || !take(p, &kind))
            return false;
    if (kind == NUMBER)
        return add_number(p, at, bytes);
    return kind == BYTES && take(p, &inner) && add(p, (struct run){at, bytes, 1, 8, 0, false});
}

/* Size and members; each is preceded by its offset. */
static bool open_structure(struct plan *p, size_t at)
{
    uint32_t bytes, members;
    if (!take(p, &bytes) || !take(p, &members) || p->depth == DEPTH_MOST)
        return false;
    p->open[p->depth].members = members;
    p->open[p->depth++].at = at;
    return true;
}

static bool add_type(struct plan *p, size_t at)
{
    uint32_t kind, bytes;
    if (!take(p, &kind))
        return false;
    switch (kind) {
    case NUMBER:
        return add_number(p, at, 0);
    case ARRAY:
        return add_array(p, at);
    case STRUCTURE:
        return open_structure(p, at);
    case BYTES:
        return take(p, &bytes) && add(p, (struct run){at, bytes, 1, 8, 0, false});
    default:
        return false;
    }
}

/* Count of parameters, whether nothing was done, elements of a chunk; then the type: kind and size. */
static bool make_plan(struct plan *p, const uint32_t *values, size_t n)
{
    if (n < HEAD + 2 || values[0] != n || values[4] == 0)
        return false;
    *p = (struct plan){.v = values + HEAD, .end = values + n, .element = values[4]};
    bool good = add_type(p, 0);
    while (good && p->depth > 0) {
        uint32_t at;
        if (p->open[p->depth - 1].members == 0)
            p->depth--;
        else if (!take(p, &at))
            return false;
        else {
            p->open[p->depth - 1].members--;
            good = add_type(p, size_add(p->open[p->depth - 1].at, at));
        }
    }
    return good && p->n > 0;
}

static bool is_unchanged(const uint32_t *values, size_t n)
{
    return n >= 2 && values[1] != 0;
}

bool hdf5_nbit_known(const uint32_t *values, size_t n_values)
{
    struct plan p;
    return is_unchanged(values, n_values) || make_plan(&p, values, n_values);
}

static bool read_run(const struct run *r, struct hdf5_bits *b, uint8_t *element)
{
    for (size_t i = 0; i < r->n; i++) {
        uint64_t x;
        if (!hdf5_bits_take(b, r->bits, &x))
            return false;
        hdf5_store(element + r->at + i * r->size, x << r->first, r->size, r->big);
    }
    return true;
}

int64_t hdf5_nbit(const uint32_t *values, size_t n_values, const uint8_t *in, size_t n, uint8_t *out, size_t room)
{
    struct plan p;
    if (is_unchanged(values, n_values)) {
        if (n <= room)
            memcpy(out, in, n);
        return n <= room ? (int64_t)n : -1;
    }
    if (!make_plan(&p, values, n_values))
        return -1;
    const size_t elements = values[2], bytes = size_mul(elements, p.element);
    if (bytes > room)
        return -1;
    memset(out, 0, bytes);
    struct hdf5_bits b = {in, in + n, 0, 0};
    for (size_t e = 0; e < elements; e++)
        for (int k = 0; k < p.n; k++)
            if (!read_run(&p.runs[k], &b, out + e * p.element))
                return -1;
    return (int64_t)bytes;
}
