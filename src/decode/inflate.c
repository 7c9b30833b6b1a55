/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate.c -- decompresses a zlib stream.
 *
 * Two loops do the same. One takes a symbol at a time and checks every byte of input, for the borders of pieces. The
 * quick one needs enough input and room. In it `bits` may hold more than n_bits: bytes of input that are not counted
 * yet, which the next refill puts in the same place again.
 */
#include "decode/inflate.h"

#include <string.h>

#include "base/bytes.h"

enum { BLOCK_NONE, BLOCK_STORED, BLOCK_CODES };

/* Bytes that one turn of the quick loop may read: two refills; the first advances by 7 bytes, the second reads 8. */
enum { QUICK_INPUT = 16 };

/* ------------------------------------------------------------------ input, byte by byte */

static bool more_input(struct inflate *z)
{
    while (z->in == z->in_end) {
        const uint8_t *p;
        size_t n;
        if (!z->next(z->user, &p, &n))
            return false;
        z->in = p;
        z->in_end = p + n;
    }
    return true;
}

/* Adds as many bits as fit, or as there are. */
static void refill(struct inflate *z)
{
    while (z->n_bits < 56 && more_input(z)) {
        z->bits |= (uint64_t)*z->in++ << z->n_bits;
        z->n_bits += 8;
    }
}

static bool has(struct inflate *z, unsigned n)
{
    if (z->n_bits < n)
        refill(z);
    return z->n_bits >= n;
}

static void drop(struct inflate *z, unsigned n)
{
    z->bits >>= n;
    z->n_bits -= n;
}

static unsigned take(struct inflate *z, unsigned n)
{
    const unsigned v = (unsigned)z->bits & ((1u << n) - 1);
    drop(z, n);
    return v;
}

/* ------------------------------------------------------------------ the head of a block */

static bool fixed_codes(struct inflate *z)
{
    uint8_t lengths[288], distances[32];
    memset(lengths, 8, 288);
    memset(lengths + 144, 9, 256 - 144);
    memset(lengths + 256, 7, 280 - 256);
    memset(distances, 5, sizeof distances);
    return inflate_literals(z->literals, lengths, 288) && inflate_distances(z->distances, distances, 32);
}

/* The code in which the lengths of the other two are written: symbol << 3 | bits, indexed by 7 bits. */
static bool length_code(struct inflate *z, unsigned n, uint8_t *table)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[19] = {0};
    for (unsigned i = 0; i < n; i++) {
        if (!has(z, 3))
            return false;
        lengths[order[i]] = (uint8_t)take(z, 3);
    }
    unsigned code = 0; /* highest bit first */
    for (unsigned bits = 1; bits <= 7; bits++)
        for (unsigned i = 0; i < 19; i++) {
            if (lengths[i] != bits)
                continue;
            if (code >= 128)
                return false;
            unsigned from = 0;
            for (unsigned b = 0; b < 7; b++)
                from |= (code >> b & 1) << (6 - b);
            for (; from < 128; from += 1u << bits)
                table[from] = (uint8_t)(i << 3 | bits);
            code += 128u >> bits;
        }
    return code == 128;
}

/* Reads n lengths; some symbols repeat a length. */
static bool read_lengths(struct inflate *z, const uint8_t *table, uint8_t *to, unsigned n)
{
    for (unsigned i = 0; i < n;) {
        refill(z);
        const unsigned e = table[z->bits & 127], symbol = e >> 3;
        if (z->n_bits < (e & 7) + 7)
            return false; /* too close to the end: a checksum of 32 bits must follow */
        drop(z, e & 7);
        if (symbol < 16) {
            to[i++] = (uint8_t)symbol;
            continue;
        }
        const unsigned times = symbol == 16 ? 3 + take(z, 2) : symbol == 17 ? 3 + take(z, 3) : 11 + take(z, 7);
        if ((symbol == 16 && i == 0) || times > n - i)
            return false;
        memset(to + i, symbol == 16 ? to[i - 1] : 0, times);
        i += times;
    }
    return true;
}

static bool own_codes(struct inflate *z)
{
    uint8_t table[128], lengths[286 + 30];
    if (!has(z, 14))
        return false;
    const unsigned n_literals = 257 + take(z, 5), n_distances = 1 + take(z, 5), n_lengths = 4 + take(z, 4);
    return n_literals <= 286 && n_distances <= 30 && length_code(z, n_lengths, table) &&
           read_lengths(z, table, lengths, n_literals + n_distances) &&
           inflate_literals(z->literals, lengths, (int)n_literals) &&
           inflate_distances(z->distances, lengths + n_literals, (int)n_distances);
}

static bool stored_block(struct inflate *z)
{
    drop(z, z->n_bits & 7);
    if (!has(z, 32))
        return false;
    z->stored = take(z, 16);
    return take(z, 16) == (z->stored ^ 0xffff);
}

static bool begin_block(struct inflate *z)
{
    if (!has(z, 3))
        return false;
    z->last = take(z, 1);
    const unsigned kind = take(z, 2);
    z->block = kind == 0 ? BLOCK_STORED : BLOCK_CODES;
    return kind == 0 ? stored_block(z) : kind == 1 ? fixed_codes(z) : kind == 2 && own_codes(z);
}

static bool zlib_head(struct inflate *z)
{
    if (!has(z, 16))
        return false;
    const unsigned method = take(z, 8), flags = take(z, 8);
    return (method & 15) == 8 && method >> 4 <= 7 && (method << 8 | flags) % 31 == 0 && !(flags & 32);
}

/* ------------------------------------------------------------------ the body of a block */

static uint8_t *copy_stored(struct inflate *z, uint8_t *out, const uint8_t *end)
{
    while (z->stored > 0 && out < end) {
        if (z->n_bits > 0) { /* whole bytes */
            *out++ = (uint8_t)take(z, 8);
            z->stored--;
            continue;
        }
        if (!more_input(z))
            return NULL;
        const size_t room = (size_t)(end - out), have = (size_t)(z->in_end - z->in);
        size_t n = z->stored < room ? z->stored : room;
        n = n < have ? n : have;
        memcpy(out, z->in, n);
        z->in += n;
        z->stored -= n;
        out += n;
    }
    if (z->stored == 0)
        z->block = BLOCK_NONE;
    return out;
}

/* May write up to 15 bytes too many. */
static inline void copy_match(uint8_t *out, size_t distance, size_t n)
{
    const uint8_t *from = out - distance, *const end = out + n;
    if (distance >= 16) {
        for (; out < end; out += 16, from += 16)
            memcpy(out, from, 16);
        return;
    }
    if (distance == 1) {
        memset(out, *from, n);
        return;
    }
    /* Bytes read past `out` are not final, and are written again. */
    const size_t step = distance < 8 ? distance : 8;
    for (; out < end; out += step, from += step) {
        uint64_t v;
        memcpy(&v, from, 8);
        memcpy(out, &v, 8);
    }
}

/* A length or distance: base plus extra bits. */
static inline size_t value_of(uint32_t entry, uint64_t bits)
{
    return (entry >> 16) + ((bits & ((UINT64_C(1) << (entry & 0xff)) - 1)) >> (entry >> 8 & 15));
}

/* The entry for the next bits. Drops the bits that led to a second table. Returns ENTRY_ODD if the bits run out. */
static uint32_t look_up(struct inflate *z, const uint32_t *table, unsigned root)
{
    refill(z);
    uint32_t e = table[z->bits & ((1u << root) - 1)];
    if (e & ENTRY_LONG && z->n_bits > root) {
        drop(z, root);
        e = table[(e >> 16) + (z->bits & ((1u << (e >> 8 & 15)) - 1))];
    }
    return (e & 0xff) > z->n_bits ? ENTRY_ODD : e;
}

/* Decodes one entry. Returns NULL if it is odd. */
static uint8_t *one_symbol(struct inflate *z, const uint8_t *base, uint8_t *out)
{
    uint32_t e = look_up(z, z->literals, LITERAL_BITS);
    if (e & ENTRY_LITERAL) {
        drop(z, e & 0xff);
        out[0] = (uint8_t)(e >> 16);
        out[1] = (uint8_t)(e >> 24);
        return out + (e >> 8 & 3);
    }
    if (e & ENTRY_ODD) {
        z->block = BLOCK_NONE;
        drop(z, e & ENTRY_END ? e & 0xff : 0);
        return e & ENTRY_END ? out : NULL;
    }
    const size_t n = value_of(e, z->bits);
    drop(z, e & 0xff);
    e = look_up(z, z->distances, DISTANCE_BITS);
    if (e & ENTRY_ODD)
        return NULL;
    const size_t distance = value_of(e, z->bits);
    drop(z, e & 0xff);
    if (distance > (size_t)(out - base))
        return NULL;
    copy_match(out, distance, n);
    return out + n;
}

/* The state of the quick loop. */
struct quick {
    const uint8_t *in, *in_end;
    uint64_t bits;
    unsigned n;
};

static inline void quick_refill(struct quick *q)
{
    q->bits |= le64(q->in) << q->n;
    q->in += (63 - q->n) >> 3;
    q->n |= 56;
}

static inline void quick_drop(struct quick *q, uint32_t entry)
{
    q->bits >>= entry & 0xff;
    q->n -= entry & 0xff;
}

static inline uint32_t quick_look(const struct quick *q, const uint32_t *table, unsigned root)
{
    return table[q->bits & ((1u << root) - 1)];
}

static inline uint32_t quick_long(struct quick *q, const uint32_t *table, uint32_t e)
{
    quick_drop(q, e);
    return table[(e >> 16) + (q->bits & ((1u << (e >> 8 & 15)) - 1))];
}

static inline uint8_t *quick_put(struct quick *q, uint32_t entry, uint8_t *out)
{
    quick_drop(q, entry);
    out[0] = (uint8_t)(entry >> 16);
    out[1] = (uint8_t)(entry >> 24);
    return out + (entry >> 8 & 3);
}

/* Looks up the first entry of a turn, and refills the bits for all of it. Returns false if there is too little
 * input. Enough bits are always left to look up first, so the look-up need not wait for the refill. */
static inline bool quick_next(struct quick *q, const uint32_t *literals, uint32_t *e)
{
    if (q->in_end - q->in < QUICK_INPUT)
        return false;
    *e = quick_look(q, literals, LITERAL_BITS);
    quick_refill(q);
    return true;
}

/* Runs until input, room or the block ends. Returns NULL if it is odd. Of the 56 bits after a refill, two look-ups
 * of literals take 22, and a length 20 or a third literal 15. A distance takes 28. So at least 14 are left to look
 * up with. */
static uint8_t *quick_symbols(struct inflate *z, const uint8_t *base, uint8_t *out, const uint8_t *end)
{
    const uint32_t *const literals = z->literals, *const distances = z->distances;
    struct quick q = {z->in, z->in_end, z->bits, z->n_bits};
    if (q.in_end - q.in < QUICK_INPUT)
        return out;
    quick_refill(&q);
    uint32_t e = 0;
    bool more = out < end && quick_next(&q, literals, &e);
    while (more) {
        for (int k = 0; k < 2 && e & ENTRY_LITERAL; k++) {
            out = quick_put(&q, e, out);
            e = quick_look(&q, literals, LITERAL_BITS);
        }
        if (e & ENTRY_LONG)
            e = quick_long(&q, literals, e);
        if (e & ENTRY_LITERAL) {
            out = quick_put(&q, e, out);
            more = out < end && quick_next(&q, literals, &e);
            continue;
        }
        if (e & ENTRY_ODD) {
            if (!(e & ENTRY_END))
                return NULL;
            quick_drop(&q, e);
            z->block = BLOCK_NONE;
            break;
        }
        const size_t n = value_of(e, q.bits);
        quick_drop(&q, e);
        e = quick_look(&q, distances, DISTANCE_BITS);
        quick_refill(&q);
        if (e & ENTRY_LONG)
            e = quick_long(&q, distances, e);
        const size_t distance = value_of(e, q.bits);
        if (e & ENTRY_ODD || distance > (size_t)(out - base))
            return NULL;
        quick_drop(&q, e);
        more = out + n < end && quick_next(&q, literals, &e); /* before the copy, which may take its time */
        copy_match(out, distance, n);
        out += n;
    }
    z->in = q.in;
    z->n_bits = q.n;
    z->bits = q.bits & ((UINT64_C(1) << q.n) - 1);
    return out;
}

static uint8_t *symbols(struct inflate *z, const uint8_t *base, uint8_t *out, const uint8_t *end)
{
    while (out && out < end && z->block == BLOCK_CODES) {
        out = quick_symbols(z, base, out, end);
        if (out && out < end && z->block == BLOCK_CODES)
            out = one_symbol(z, base, out);
    }
    return out;
}

/* ------------------------------------------------------------------ the stream */

void inflate_begin(struct inflate *z, inflate_next *next, void *user)
{
    z->next = next;
    z->user = user;
    z->in = z->in_end = NULL;
    z->bits = 0;
    z->n_bits = 0;
    z->block = BLOCK_NONE;
    z->last = false;
    z->stored = 0;
}

enum inflate_state inflate_run(struct inflate *z, uint8_t *out, size_t *at, size_t want)
{
    uint8_t *p = out + *at;
    const uint8_t *const end = out + want;
    if (!z->in && !zlib_head(z))
        return INFLATE_ODD;
    while (p < end) {
        if (z->block == BLOCK_NONE && z->last)
            break;
        if (z->block == BLOCK_NONE && !begin_block(z))
            return INFLATE_ODD;
        p = z->block == BLOCK_STORED ? copy_stored(z, p, end) : symbols(z, out, p, end);
        if (!p)
            return INFLATE_ODD;
    }
    *at = (size_t)(p - out);
    return p < end ? INFLATE_END : INFLATE_MORE;
}

bool inflate_end(struct inflate *z, uint32_t *sum)
{
    drop(z, z->n_bits & 7);
    if (!has(z, 32))
        return false;
    *sum = 0;
    for (int i = 0; i < 4; i++)
        *sum = *sum << 8 | take(z, 8);
    return z->n_bits == 0 && z->in == z->in_end;
}
