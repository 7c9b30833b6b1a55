/* SPDX-License-Identifier: Apache-2.0 */
#include "format/wire.h"

#include "test.h"

static int fields(const void *p, size_t n)
{
    struct wire w = {p, (const uint8_t *)p + n};
    struct wire_field f;
    int rc, count = 0;
    while ((rc = wire_next(&w, &f)) > 0)
        count++;
    return rc < 0 ? -1 : count;
}

static void kinds(void)
{
    static const uint8_t p[] = {0x08, 0x96, 0x01,                       /* 1: varint 150 */
                                0x11, 1,    2,    3,   4,   5, 6, 7, 8, /* 2: fixed64 */
                                0x1a, 3,    'a',  'b', 'c',             /* 3: bytes */
                                0x25, 1,    2,    3,   4};              /* 4: fixed32 */
    struct wire w = {p, p + sizeof p};
    struct wire_field f;
    static const size_t sizes[] = {2, 8, 3, 4};
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(wire_next(&w, &f), 1);
        CHECK_EQ(f.number, i + 1);
        CHECK_EQ(f.n, sizes[i]);
    }
    CHECK_EQ(wire_next(&w, &f), 0);
}

/* A message that is truncated inside a field is refused. */
static void cut(void)
{
    static const uint8_t p[] = {0x08, 0x96, 0x01, 0x1a, 3, 'a', 'b', 'c', 0x25, 1, 2, 3, 4};
    for (size_t n = 0; n <= sizeof p; n++) {
        uint8_t *copy = malloc(n ? n : 1);
        memcpy(copy, p, n);
        CHECK_EQ(fields(copy, n), n == 0 ? 0 : n == 3 ? 1 : n == 8 ? 2 : n == 13 ? 3 : -1);
        free(copy);
    }
}

static void refused(void)
{
    CHECK_EQ(fields("\x00\x01", 2), -1);                                      /* field 0 */
    CHECK_EQ(fields("\x0b\x0c", 2), -1);                                      /* a group */
    CHECK_EQ(fields("\x0e\x00", 2), -1);                                      /* a type that does not exist */
    CHECK_EQ(fields("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), -1); /* longer than anything */
    CHECK_EQ(fields("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12), -1);
    CHECK_EQ(fields("\xff\xff\xff\xff\xff\x01\x00", 7), -1); /* a number of more than 32 bits */
}

static size_t put(uint8_t *to, uint64_t v)
{
    size_t n = 0;
    for (; v > 127; v >>= 7)
        to[n++] = (uint8_t)(v | 128);
    to[n++] = (uint8_t)v;
    return n;
}

/* Numbers of all lengths next to each other, in runs of all lengths. */
static void runs(void)
{
    enum { MOST = 64 };
    uint64_t state = 7;
    for (int round = 0; round < 2000; round++) {
        uint8_t bytes[MOST * 10];
        int64_t want[MOST], got[MOST];
        const size_t count = (size_t)round % MOST;
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            const uint64_t v = state >> ((state >> 33) % 64) >> (round % 3 == 0 ? 50 : 0);
            want[i] = (int64_t)v;
            n += put(bytes + n, v);
        }
        uint8_t *exact = malloc(n ? n : 1);
        memcpy(exact, bytes, n);
        CHECK_EQ(wire_count(exact, n), count);
        CHECK(wire_ints(exact, n, got));
        CHECK(memcmp(got, want, count * sizeof *got) == 0);
        free(exact);
    }
}

static void bad_runs(void)
{
    int64_t to[16];
    CHECK(!wire_ints((const uint8_t *)"\x80", 1, to));
    CHECK(!wire_ints((const uint8_t *)"\x01\x01\x01\x01\x01\x01\x01\x01\x80", 9, to));
    CHECK(!wire_ints((const uint8_t *)"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, to));
    CHECK(wire_ints((const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, to));
    CHECK_EQ(to[0], -1);
}

int main(int argc, char **argv)
{
    TESTS(T(kinds), T(cut), T(refused), T(runs), T(bad_runs))
}
