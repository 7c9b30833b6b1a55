/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_entropy.c -- decodes Huffman codes, most of the work on a photo.
 *
 * The time depends on how long one look-up takes to lead to the next, so as little as possible is done in between. A
 * look-up gives up to two coefficients with their values; bits of the second that were not looked up are added. All are
 * stored in the same way, and only the end of a block is tested. The index runs past 63 when a block ends (by HUFF_END)
 * or is damaged (by less). What is stored then goes to the last coefficient, which is 0 in a block that ends early.
 * Bits are refilled without a branch, eight bytes at a time, unless FF is among them.
 */
#include "decode/jpeg_entropy.h"

#include <string.h>

#include "base/bytes.h"
#include "decode/jpeg_head.h"

#if defined(__GNUC__)
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define INLINE    static inline __attribute__((always_inline))
#define APART     static __attribute__((noinline))
#else
#define LIKELY(x) (x)
#define INLINE    static inline
#define APART     static
#endif

enum {
    LOOK_UPS = 4, /* between refills, each of at most HUFF_MOST bits */
    FILLED = 56,  /* bits after a refill */
    LONGEST_VALUE = 15,
    AHEAD = 8 /* bytes that libjpeg reads ahead, FF 00 counted once */
};

/* From zigzag index to natural order, including past the end and damage. */
static const uint8_t place[256] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60,
    61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
};

/* ------------------------------------------------------------------ bits */

/* Refills byte by byte, then with zeros. Takes and returns a value, so that the bits may stay in registers. */
APART struct jpeg_bits refill_slowly(struct jpeg_bits r)
{
    while (r.n < FILLED) {
        if (r.p == r.end || (*r.p == 0xff && (r.end - r.p < 2 || r.p[1] != 0))) {
            r.made_up += FILLED - r.n;
            r.n = FILLED;
            break;
        }
        r.bits |= (uint64_t)*r.p << (FILLED - r.n);
        r.n += 8;
        r.p += *r.p == 0xff ? 2 : 1;
    }
    return r;
}

/* Sets the highest bit of every byte that is FF. */
INLINE uint64_t bytes_ff(uint64_t v)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7fu;
    return ~(((~v & low) + low) | ~v | low);
}

INLINE uint64_t load8(const uint8_t *p)
{
    return (uint64_t)be32(p) << 32 | be32(p + 4);
}

/* Refills to at least FILLED bits. */
INLINE void refill(struct jpeg_bits *r)
{
    if (LIKELY(r->end - r->p >= 8)) {
        const uint64_t next = load8(r->p);
        if (LIKELY(bytes_ff(next) >> (r->n | 7) == 0)) { /* in the bytes taken, or in the next one */
            r->bits |= next >> r->n;
            r->p += (63 - r->n) >> 3;
            r->n |= FILLED;
            return;
        }
    }
    *r = refill_slowly(*r);
}

INLINE void drop(struct jpeg_bits *r, unsigned n)
{
    r->bits <<= n;
    r->n -= (int)n;
}

/* A value of `size` bits, 0 for none. It is negative if its first bit is 0. Without a branch, because it is
 * unpredictable. */
INLINE int value_of(uint64_t bits, unsigned size)
{
    const int v = (int)(bits >> 1 >> (63 - size));
    const unsigned negative = (unsigned)((int64_t)~bits >> 63);
    return v + (int)(negative & ((~0u << size) + 1));
}

/* An entry for a value beyond the look-up; 0: there is no such code. */
APART uint64_t find_long(const struct huff_codes *c, uint64_t bits)
{
    const int code = huff_codes_find(c, bits);
    return code < 0 ? 0 : huff_long((unsigned)code & 255, (uint8_t)(code >> 8));
}

/* ------------------------------------------------------------------ blocks */

/* Reads the difference to the block before. */
INLINE bool read_dc(struct jpeg_bits *r, const struct huff_dc *t, int16_t *dc)
{
    int code = t->look[r->bits >> (64 - HUFF_DC_BITS)];
    if (code == 0)
        code = huff_codes_find(&t->codes, r->bits);
    if (code < 0)
        return false;
    const unsigned length = (unsigned)code & 255, size = (unsigned)code >> 8;
    *dc = (int16_t)(uint16_t)(*dc + value_of(r->bits << length, size));
    drop(r, length + size);
    return true;
}

/* Reads a coefficient whose value, or code, is beyond the table. Returns its index, plus HUFF_END at the end of the
 * block, or -1. */
INLINE int read_long(struct jpeg_bits *r, const struct huff_ac *t, uint64_t entry, int k, int16_t *coef)
{
    if (entry) {
        if (r->n < HUFF_BITS + LONGEST_VALUE)
            refill(r);
    } else {
        refill(r);
        entry = find_long(&t->codes, r->bits);
        if (entry == 0)
            return -1;
    }
    const unsigned total = (unsigned)(entry >> 24), size = (unsigned)(entry >> 16) & 255;
    k += (int)(entry >> 8 & 255);
    if (coef)
        coef[place[k]] = (int16_t)value_of(r->bits << (total - size), size);
    drop(r, total);
    return k;
}

/* The second coefficient of an entry: what is known of its value, plus the bits beyond the look-up. */
INLINE int16_t second_of(const struct jpeg_bits *r, uint64_t e)
{
    return (int16_t)((e >> 48) + (r->bits << HUFF_BITS >> 1 >> (e >> 24 & 63)));
}

/* Returns the zigzag index of a block's last coefficient, after a look-up that reached its end; more than 63 if it
 * is damaged. If the first of two is the last, the second belongs to the next block. */
INLINE int end_block(struct jpeg_bits *r, uint64_t e, int first, int k, int16_t *coef)
{
    if (first == 63 && k > first) {
        drop(r, huff_first_bits(e));
        return 63;
    }
    if (coef)
        coef[place[k]] = second_of(r, e);
    drop(r, (unsigned)(e & 63));
    return k > 63 ? k - HUFF_END : k;
}

/* Reads the coefficients after the first; coef is NULL if they are not wanted. Returns the zigzag index of the last
 * one; the block is damaged if it is not from 0 to 63. */
INLINE int read_ac(struct jpeg_bits *r, const struct huff_ac *t, int16_t *coef)
{
    int k = 0;
    for (;;) {
        refill(r);
        for (int i = 0; i < LOOK_UPS; i++) {
            const uint64_t e = t->pair[r->bits >> (64 - HUFF_BITS)];
            if (!LIKELY(e & 255)) {
                k = read_long(r, t, e, k, coef);
                if (k < 0 || k >= 63)
                    return k > 63 ? k - HUFF_END : k;
                break;
            }
            const int first = k + (int)(e >> 8 & 255);
            k += (int)(e >> 16 & 255);
            if (coef)
                coef[place[first]] = (int16_t)(e >> 32);
            if (k >= 63)
                return end_block(r, e, first, k, coef);
            if (coef)
                coef[place[k]] = second_of(r, e);
            drop(r, (unsigned)(e & 63));
        }
    }
}

/* ------------------------------------------------------------------ MCUs */

/* Passes the restart marker, which must be next. */
static bool restart(struct jpeg_scan *s)
{
    struct jpeg_bits *r = &s->in;
    const int left = r->n - r->made_up;
    if (left < 0 || left > 7 || r->end - r->p < 2 || r->p[0] != 0xff || r->p[1] != RST0 + s->next_restart)
        return false;
    *r = (struct jpeg_bits){.p = r->p + 2, .end = r->end};
    memset(s->dc, 0, sizeof s->dc);
    s->next_restart = (s->next_restart + 1) & 7;
    s->to_restart = s->frame->restart;
    return true;
}

bool jpeg_scan_settle(struct jpeg_scan *s)
{
    return s->frame->restart == 0 || s->to_restart > 0 || restart(s);
}

/* A block of every MCU: how to decode it, and where its next one goes. */
struct step {
    const struct huff_dc *dc_table;
    const struct huff_ac *ac_table;
    int16_t *dc;
    int16_t *coef;
    uint8_t *last;
    size_t apart; /* blocks from MCU to MCU */
    bool first_only;
};

enum { MCU_BLOCKS = 6 }; /* at most */

static int steps_of(struct jpeg_scan *s, const struct jpeg_blocks *to, struct step *steps)
{
    int n = 0;
    for (int c = 0; c < s->frame->n_components; c++) {
        const int h = s->frame->component[c].h;
        for (int v = 0; v < s->frame->component[c].v; v++)
            for (int x = 0; x < h; x++)
                steps[n++] = (struct step){.dc_table = s->dc_tables[c],
                                           .ac_table = s->ac_tables[c],
                                           .dc = &s->dc[c],
                                           .coef = to ? to->coef[c][v] + x * JPEG_BLOCK : NULL,
                                           .last = to ? to->last[c][v] + x : NULL,
                                           .apart = (size_t)h,
                                           .first_only = to && to->first_only[c]};
    }
    return n;
}

/* stored: whether the coefficients are wanted. */
INLINE bool read_block(struct jpeg_bits *r, struct step *p, bool stored)
{
    refill(r);
    if (!read_dc(r, p->dc_table, p->dc))
        return false;
    const bool all = stored && !p->first_only;
    const int k = all ? read_ac(r, p->ac_table, p->coef) : read_ac(r, p->ac_table, NULL);
    if (k < 0 || k > 63)
        return false;
    if (stored) {
        p->coef[0] = *p->dc;
        *p->last = (uint8_t)(all ? k : 0);
        p->coef += p->apart * JPEG_BLOCK;
        p->last += p->apart;
    }
    return true;
}

/* Keeps the bits in registers, outside of the scan, from one restart to the next. */
INLINE bool read_mcus(struct jpeg_scan *s, int32_t mcus, const struct jpeg_blocks *to, bool stored)
{
    struct step steps[MCU_BLOCKS];
    const int n = steps_of(s, to, steps);
    struct jpeg_bits r = s->in;
    for (int32_t i = 0; i < mcus; i++) {
        if (s->frame->restart) {
            s->in = r;
            if (!jpeg_scan_settle(s))
                return false;
            s->to_restart--;
            r = s->in;
        }
        for (int k = 0; k < n; k++)
            if (!read_block(&r, &steps[k], stored))
                return false;
        if (r.n < r.made_up)
            return false;
    }
    s->in = r;
    return true;
}

bool jpeg_scan_read(struct jpeg_scan *s, int32_t mcus, const struct jpeg_blocks *to)
{
    return read_mcus(s, mcus, to, true);
}

bool jpeg_scan_skip(struct jpeg_scan *s, int32_t mcus)
{
    return read_mcus(s, mcus, NULL, false);
}

/* ------------------------------------------------------------------ position */

bool jpeg_scan_is_good(const struct jpeg_frame *f)
{
    bool good = true;
    for (int c = 0; c < f->n_components; c++)
        good &= huff_is_good(f->component[c].dc, true) && huff_is_good(f->component[c].ac, false);
    return good;
}

bool jpeg_scan_begin(struct jpeg_scan *s, const struct jpeg_frame *f, struct huff_store *store, const uint8_t *bytes,
                     size_t n)
{
    *s = (struct jpeg_scan){
        .frame = f, .in = {.p = bytes + f->scan, .end = bytes + n}, .to_restart = f->restart, .bytes = bytes};
    for (int c = 0; c < f->n_components; c++) {
        s->dc_tables[c] = huff_store_dc(store, f->component[c].dc);
        s->ac_tables[c] = huff_store_ac(store, f->component[c].ac);
        if (!s->dc_tables[c] || !s->ac_tables[c])
            return false;
    }
    return true;
}

bool jpeg_scan_jump(struct jpeg_scan *s, int64_t mcu, uint64_t bit, const int16_t *dc)
{
    const uint64_t at = bit / 8, n = (uint64_t)(s->in.end - s->bytes);
    const int interval = s->frame->restart;
    if (at < s->frame->scan || at > n)
        return false;
    s->in = (struct jpeg_bits){.p = s->bytes + at, .end = s->in.end};
    refill(&s->in);
    drop(&s->in, bit % 8);
    memcpy(s->dc, dc, sizeof s->dc);
    s->to_restart = interval ? interval - (int)(mcu % interval) : 0;
    s->next_restart = interval ? (int)(mcu / interval & 7) : 0;
    return true;
}

/* The byte of the next bit: one back for every 8 bits left, FF 00 counted once. The head before a scan is longer
 * than what is read here. */
static const uint8_t *byte_at(const struct jpeg_scan *s)
{
    const uint8_t *p = s->in.p;
    const int left = s->in.n - s->in.made_up;
    if (bytes_ff(load8(p - 8)) == 0 && p[-9] != 0xff)
        return p - (left > 0 ? (left + 7) / 8 : 0);
    for (int i = left; i > 0; i -= 8)
        p -= p[-1] == 0 && p[-2] == 0xff ? 2 : 1;
    return p;
}

uint64_t jpeg_scan_at(const struct jpeg_scan *s)
{
    const int left = s->in.n - s->in.made_up;
    return (uint64_t)(byte_at(s) - s->bytes) * 8 + (uint64_t)(-left & 7);
}

bool jpeg_scan_has_more(const struct jpeg_scan *s)
{
    const uint8_t *p = byte_at(s), *end = s->in.end;
    for (int i = 0; i <= AHEAD; i++) {
        if (end - p < 2)
            return false;
        if (p[0] == 0xff && p[1] == 0xff)
            return false;
        if (p[0] == 0xff && p[1] != 0)
            return true;
        p += p[0] == 0xff ? 2 : 1;
    }
    return true;
}

bool jpeg_scan_is_over(const struct jpeg_scan *s)
{
    const struct jpeg_bits *r = &s->in;
    const int left = r->n - r->made_up;
    return left >= 0 && left <= 7 && r->end - r->p >= 2 && r->p[0] == 0xff && r->p[1] == EOI;
}
