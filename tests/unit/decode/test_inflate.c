/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_inflate.c -- streams with blocks of all kinds and random codes, written here without a library: in pieces of all
 * sizes, cut off everywhere, and invalid ones, one for every reason that zlib has to refuse a stream. Covers inflate.c
 * and inflate_tables.c.
 */
#include "decode/inflate.h"

#include "base/buf.h"
#include "base/rng.h"
#include "decode/png_kernel.h"
#include "test.h"

enum { LITERALS = 286, DISTANCES = 30, LENGTHS = 19, END = 256, MAX_OUT = 200000 };

static struct rng rng;

static int below(int n)
{
    return (int)rng_below(&rng, (uint64_t)n);
}

/* ------------------------------------------------------------------ a small writer */

struct stream {
    struct buf b;
    uint32_t bits;
    int n_bits;
    uint8_t *raw; /* what it decompresses to */
    size_t n_raw;
};

static void put(struct stream *s, unsigned v, int n)
{
    for (int i = 0; i < n; i++) {
        s->bits |= (v >> i & 1) << s->n_bits;
        if (++s->n_bits < 8)
            continue;
        const uint8_t byte = (uint8_t)s->bits;
        buf_add(&s->b, &byte, 1);
        s->bits = 0;
        s->n_bits = 0;
    }
}

static void align(struct stream *s)
{
    put(s, 0, s->n_bits ? 8 - s->n_bits : 0);
}

static struct stream begin(void)
{
    struct stream s = {.raw = malloc(MAX_OUT)};
    buf_add(&s.b, "\x78\x9c", 2);
    return s;
}

static void done(struct stream *s)
{
    buf_done(&s->b);
    free(s->raw);
}

struct code {
    uint8_t lengths[288];
    uint16_t codes[288];
    int n;
};

/* Assigns codes in the order of length and symbol, as the standard requires. */
static void number(struct code *c)
{
    unsigned next = 0;
    for (int bits = 1; bits <= 15; bits++, next <<= 1)
        for (int i = 0; i < c->n; i++)
            if (c->lengths[i] == bits)
                c->codes[i] = (uint16_t)next++;
}

/* Makes a complete code for some of n symbols: splits leaves of a tree until there are enough. */
static void random_code(struct code *c, int n, int used, int longest, int must)
{
    uint8_t leaves[288] = {0};
    *c = (struct code){.n = n};
    for (int k = 1; k < used;) {
        int i = below(4) ? k - 1 : below(k); /* mostly the same branch: for long codes */
        if (leaves[i] == longest)
            i = below(k);
        if (leaves[i] < longest)
            leaves[k++] = ++leaves[i];
    }
    for (int k = 0; k < used; k++) {
        int i = k == 0 && must >= 0 ? must : below(n);
        while (c->lengths[i])
            i = (i + 1) % n;
        c->lengths[i] = used == 1 ? 1 : leaves[k]; /* a single symbol takes one bit as well */
    }
    number(c);
}

static void put_code(struct stream *s, const struct code *c, int symbol)
{
    for (int i = c->lengths[symbol]; i-- > 0;)
        put(s, c->codes[symbol] >> i & 1u, 1);
}

/* ------------------------------------------------------------------ blocks */

static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

static int distance_base(int i)
{
    return i < 4 ? i + 1 : 1 + ((2 + i % 2) << (i / 2 - 1));
}

static void literal(struct stream *s, const struct code *c, int symbol)
{
    put_code(s, c, symbol);
    s->raw[s->n_raw++] = (uint8_t)symbol;
}

/* Adds a match of symbols that have codes. Returns false if it would reach too far back. */
static bool match(struct stream *s, const struct code *c, const struct code *d, int length, int distance)
{
    const int more = distance < 4 ? 0 : distance / 2 - 1;
    const int n_more = below(1 << length_extra[length]), d_more = below(1 << more);
    const size_t n = (size_t)(length_base[length] + n_more), from = (size_t)(distance_base(distance) + d_more);
    if (from > s->n_raw)
        return false;
    put_code(s, c, 257 + length);
    put(s, (unsigned)n_more, length_extra[length]);
    put_code(s, d, distance);
    put(s, (unsigned)d_more, more);
    for (size_t i = 0; i < n; i++, s->n_raw++)
        s->raw[s->n_raw] = s->raw[s->n_raw - from];
    return true;
}

static void body(struct stream *s, const struct code *c, const struct code *d)
{
    for (int k = below(3000); k > 0 && s->n_raw < MAX_OUT - 300;) {
        const int i = below(LITERALS), j = below(DISTANCES);
        if (i == END || !c->lengths[i])
            continue;
        k--;
        if (i < END)
            literal(s, c, i);
        else if (d->lengths[j])
            match(s, c, d, i - 257, j);
    }
    put_code(s, c, END);
}

static void fixed_block(struct stream *s, bool last)
{
    struct code c = {.n = 288}, d = {.n = 32};
    put(s, last, 1);
    put(s, 1, 2);
    for (int i = 0; i < 288; i++)
        c.lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(d.lengths, 5, 32);
    number(&c);
    number(&d);
    body(s, &c, &d);
}

static void stored_block(struct stream *s, bool last)
{
    const unsigned n = (unsigned)below(below(2) ? 20 : 9000);
    put(s, last, 1);
    put(s, 0, 2);
    align(s);
    put(s, n, 16);
    put(s, ~n & 0xffff, 16);
    for (unsigned i = 0; i < n && s->n_raw < MAX_OUT; i++) {
        s->raw[s->n_raw] = (uint8_t)rng_u32(&rng);
        put(s, s->raw[s->n_raw++], 8);
    }
}

/* Writes lengths one by one, or shortens runs of equal ones. */
static void put_lengths(struct stream *s, const struct code *p, const uint8_t *lengths, int n)
{
    for (int i = 0; i < n;) {
        int run = 1;
        while (i + run < n && lengths[i + run] == lengths[i] && run < 138)
            run++;
        if (lengths[i] == 0 && run >= 11 && below(2)) {
            put_code(s, p, 18);
            put(s, (unsigned)run - 11, 7);
        } else if (lengths[i] == 0 && run >= 3 && below(2)) {
            run = run < 10 ? run : 10;
            put_code(s, p, 17);
            put(s, (unsigned)run - 3, 3);
        } else if (i > 0 && lengths[i] == lengths[i - 1] && run >= 3) {
            run = run < 6 ? run : 6;
            put_code(s, p, 16);
            put(s, (unsigned)run - 3, 2);
        } else {
            run = 1;
            put_code(s, p, lengths[i]);
        }
        i += run;
    }
}

/* The head of a block with codes of its own. */
static void put_codes(struct stream *s, bool last, const struct code *c, const struct code *d)
{
    static const uint8_t order[LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERALS + DISTANCES + 4];
    struct code p;
    random_code(&p, LENGTHS, LENGTHS, 7, -1);
    put(s, last, 1);
    put(s, 2, 2);
    put(s, (unsigned)c->n - 257, 5);
    put(s, (unsigned)d->n - 1, 5);
    put(s, LENGTHS - 4, 4);
    for (int i = 0; i < LENGTHS; i++)
        put(s, p.lengths[order[i]], 3);
    memcpy(lengths, c->lengths, (size_t)c->n);
    memcpy(lengths + c->n, d->lengths, (size_t)d->n);
    put_lengths(s, &p, lengths, c->n + d->n);
}

static void own_block(struct stream *s, bool last)
{
    struct code c, d;
    random_code(&c, LITERALS, 2 + below(LITERALS - 1), 15, END);
    random_code(&d, DISTANCES, 1 + below(DISTANCES), 15, -1);
    put_codes(s, last, &c, &d);
    body(s, &c, &d);
}

static uint32_t adler(const uint8_t *p, size_t n)
{
    struct png_kernels k;
    png_kernels_fill(&k, STK_CPU_C);
    return k.adler(1, p, n);
}

static void finish(struct stream *s)
{
    const uint32_t sum = adler(s->raw, s->n_raw);
    align(s);
    for (int i = 24; i >= 0; i -= 8)
        put(s, sum >> i & 255, 8);
}

static struct stream random_stream(int blocks)
{
    struct stream s = begin();
    for (int i = 0; i < blocks; i++) {
        const int kind = below(4);
        (kind == 0 ? stored_block : kind == 1 ? fixed_block : own_block)(&s, i == blocks - 1);
    }
    finish(&s);
    return s;
}

/* ------------------------------------------------------------------ reading */

struct pieces {
    const uint8_t *p;
    size_t n, most; /* the most bytes of a piece */
};

static bool next(void *user, const uint8_t **p, size_t *n)
{
    struct pieces *s = user;
    if (s->n == 0)
        return false;
    const size_t some = s->most > 3 ? (size_t)below((int)s->most) : s->most, k = some < s->n ? some : s->n;
    *p = s->p;
    *n = k;
    s->p += k;
    s->n -= k;
    return true;
}

static struct inflate z;
static uint8_t out[MAX_OUT + INFLATE_SLACK];

/* Decompresses a whole stream, `step` bytes at a time. Returns the last state. */
static enum inflate_state inflate_all(const uint8_t *p, size_t n, size_t piece, size_t step, size_t *at)
{
    static struct pieces s; /* inflate_end may ask for more */
    s = (struct pieces){p, n, piece};
    enum inflate_state state = INFLATE_MORE;
    *at = 0;
    inflate_begin(&z, next, &s);
    while (state == INFLATE_MORE && *at < MAX_OUT) {
        const size_t want = *at + step < MAX_OUT ? *at + step : MAX_OUT;
        state = inflate_run(&z, out, at, want);
        CHECK(state != INFLATE_MORE || *at >= want);
        CHECK(*at < want + INFLATE_SLACK);
    }
    return state;
}

static void streams(void)
{
    static const size_t pieces[] = {1, 2, 3, 20, 300, 8192, 1 << 30}, steps[] = {1, 100, 5000, MAX_OUT};
    for (int i = 0; i < 300; i++) {
        struct stream s = random_stream(1 + below(6));
        uint32_t sum = 0;
        size_t at;
        CHECK_EQ(inflate_all(s.b.data, s.b.len, pieces[below(7)], steps[below(4)], &at), INFLATE_END);
        CHECK_EQ(at, s.n_raw);
        CHECK(memcmp(out, s.raw, s.n_raw) == 0);
        CHECK(inflate_end(&z, &sum));
        CHECK_EQ(sum, adler(s.raw, s.n_raw));
        done(&s);
    }
}

/* The output so far is correct, and the stream is not reported as complete. */
static void cut_off(void)
{
    for (int i = 0; i < 6; i++) {
        struct stream s = random_stream(2);
        for (size_t n = 0; n < s.b.len; n += s.b.len < 500 ? 1 : 1 + (size_t)below(100)) {
            uint8_t *p = malloc(n ? n : 1);
            size_t at;
            uint32_t sum;
            memcpy(p, s.b.data, n);
            const enum inflate_state state = inflate_all(p, n, 1 << 30, MAX_OUT, &at);
            CHECK(state == INFLATE_ODD || (state == INFLATE_END && !inflate_end(&z, &sum)));
            free(p);
        }
        done(&s);
    }
}

static void end_of_the_stream(void)
{
    struct stream s = random_stream(1);
    size_t at;
    uint32_t sum;
    buf_add(&s.b, "x", 1);
    CHECK_EQ(inflate_all(s.b.data, s.b.len, 1 << 30, MAX_OUT, &at), INFLATE_END);
    CHECK(!inflate_end(&z, &sum)); /* more in its piece */
    done(&s);
}

/* ------------------------------------------------------------------ what zlib refuses */

static void odd(struct stream *s, const char *what)
{
    size_t at;
    finish(s);
    const bool refused = inflate_all(s->b.data, s->b.len, 1 << 30, MAX_OUT, &at) == INFLATE_ODD;
    if (!refused)
        printf("taken: %s\n", what);
    CHECK(refused);
    done(s);
}

static void bad_heads(void)
{
    static const char heads[][3] = {"\x78\x9d", "\x88\x1c", "\x79\x9b", "\x78\xbb"};
    for (int i = 0; i < 4; i++) {
        struct stream s = begin();
        memcpy(s.b.data, heads[i], 2);
        fixed_block(&s, true);
        odd(&s, "head");
    }
    struct stream s = begin();
    put(&s, 7, 3);
    odd(&s, "a block of no kind");
    s = begin();
    put(&s, 1, 3);
    align(&s);
    put(&s, 5, 16);
    put(&s, 5, 16);
    odd(&s, "lengths that disagree");
}

/* A block with one thing wrong in its codes. */
static struct stream with_codes(int literals, int distances, int wrong_literal, int wrong_distance)
{
    struct stream s = begin();
    struct code c, d;
    random_code(&c, literals, 100, 15, END);
    random_code(&d, distances, 10, 15, -1);
    if (wrong_literal >= 0)
        c.lengths[wrong_literal] = c.lengths[wrong_literal] ? 0 : 2;
    if (wrong_distance >= 0)
        d.lengths[wrong_distance] = d.lengths[wrong_distance] ? 0 : 2;
    put_codes(&s, true, &c, &d);
    literal(&s, &c, c.lengths['a'] ? 'a' : END);
    put_code(&s, &c, END);
    return s;
}

static void bad_codes(void)
{
    struct stream s = with_codes(287, 30, -1, -1);
    odd(&s, "287 literals");
    s = with_codes(286, 31, -1, -1);
    odd(&s, "31 distances");
    s = with_codes(286, 30, END, -1);
    odd(&s, "no end");
    for (int i = 0; i < 20; i++) {
        s = with_codes(286, 30, below(256), -1);
        odd(&s, "literals that are no code");
        s = with_codes(286, 30, -1, below(30));
        odd(&s, "distances that are no code");
    }
}

static void bad_lengths(void)
{
    struct stream s = begin();
    put(&s, 5, 3);
    put(&s, 0, 14);
    put(&s, 0, 12); /* none of the four symbols has a code */
    odd(&s, "no code for lengths");
    s = begin();
    put(&s, 5, 3);
    put(&s, 0, 14);
    put(&s, 0x249, 12); /* four codes of one bit */
    odd(&s, "too many codes for lengths");
    s = begin();
    put(&s, 5, 3);
    put(&s, 0, 14);
    put(&s, 1 | 1 << 3, 12); /* 16 and 17 */
    put(&s, 0, 1);           /* repeats a length that does not exist */
    odd(&s, "a repeat at the start");
    s = begin();
    put(&s, 5, 3);
    put(&s, 0, 14);
    put(&s, 1 << 3 | 1 << 6, 12); /* 17 and 18 */
    put(&s, 1 | 127 << 1, 8);
    put(&s, 1 | 127 << 1, 8);
    odd(&s, "a repeat past the end");
}

static void bad_symbols(void)
{
    struct stream s = begin();
    put(&s, 3, 3);
    put(&s, 0x23, 8); /* 286, with its bits reversed */
    odd(&s, "length symbol 286");
    s = begin();
    put(&s, 3, 3);
    put(&s, 0x0c, 8); /* a 0 */
    put(&s, 0x40, 7); /* 257 */
    put(&s, 0x0f, 5); /* 30 */
    odd(&s, "distance symbol 30");
    s = begin();
    put(&s, 3, 3);
    put(&s, 0x0c, 8);
    put(&s, 0x40, 7);
    put(&s, 0x10, 5); /* two back */
    odd(&s, "a distance too far");
}

/* A single distance has a code of one bit. The other value of that bit is invalid. */
static void a_single_distance(void)
{
    for (int other = 0; other < 2; other++) {
        struct stream s = begin();
        struct code c, d;
        random_code(&c, LITERALS, LITERALS, 15, END);
        random_code(&d, 1, 1, 1, 0);
        put_codes(&s, true, &c, &d);
        literal(&s, &c, 'a');
        CHECK(match(&s, &c, &d, 4, 0));
        put_code(&s, &c, 257);
        put(&s, (unsigned)other, 1);
        if (!other)
            for (int i = 0; i < 3; i++)
                s.raw[s.n_raw++] = 'a';
        put_code(&s, &c, END);
        size_t at;
        if (other) {
            odd(&s, "the other bit");
            continue;
        }
        finish(&s);
        CHECK_EQ(inflate_all(s.b.data, s.b.len, 5, 3, &at), INFLATE_END);
        CHECK(at == s.n_raw && memcmp(out, s.raw, at) == 0);
        done(&s);
    }
}

int main(int argc, char **argv)
{
    rng_init(&rng, &(struct draw){.seed = 1}, "test_inflate", 0);
    TESTS(T(streams), T(cut_off), T(end_of_the_stream), T(bad_heads), T(bad_codes), T(bad_lengths), T(bad_symbols),
          T(a_single_distance))
}
