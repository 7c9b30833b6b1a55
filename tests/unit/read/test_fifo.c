/* SPDX-License-Identifier: Apache-2.0 */
#include "read/fifo.h"

#include "test.h"

enum { PAGE = FIFO_ALIGN };

static void pieces_lie_behind_each_other(void)
{
    struct fifo s;
    CHECK_EQ(fifo_init(&s, 10 * PAGE + 100, 8), 0);
    CHECK_EQ(fifo_room(&s), 10 * PAGE);
    const int64_t a = fifo_take(&s, 1), b = fifo_take(&s, 2 * PAGE), c = fifo_take(&s, 7 * PAGE);
    CHECK(a >= 0 && b >= 0 && c >= 0);
    CHECK(fifo_at(&s, a) == s.memory && fifo_at(&s, b) == s.memory + PAGE && fifo_at(&s, c) == s.memory + 3 * PAGE);
    CHECK_EQ(fifo_room(&s), 0);
    CHECK_EQ(fifo_take(&s, 1), -1);
    fifo_give(&s, b); /* those before it are still out */
    CHECK_EQ(fifo_room(&s), 0);
    fifo_give(&s, a);
    CHECK_EQ(fifo_room(&s), 3 * PAGE);
    const int64_t d = fifo_take(&s, 3 * PAGE);
    CHECK(fifo_at(&s, d) == s.memory);
    CHECK_EQ(fifo_take(&s, 1), -1);
    fifo_give(&s, d);
    fifo_give(&s, c);
    CHECK_EQ(fifo_room(&s), 10 * PAGE);
    fifo_done(&s);
    fifo_done(&s);
}

static void the_larger_end_is_offered(void)
{
    struct fifo s;
    CHECK_EQ(fifo_init(&s, 10 * PAGE, 8), 0);
    const int64_t a = fifo_take(&s, 6 * PAGE), b = fifo_take(&s, 2 * PAGE);
    fifo_give(&s, a);
    CHECK_EQ(fifo_room(&s), 6 * PAGE); /* before b, not the 2 behind it */
    CHECK_EQ(fifo_take(&s, 7 * PAGE), -1);
    CHECK(fifo_at(&s, fifo_take(&s, 6 * PAGE)) == s.memory);
    fifo_give(&s, b);
    fifo_done(&s);
}

static void so_many_and_no_more(void)
{
    struct fifo s;
    CHECK_EQ(fifo_init(&s, 10 * PAGE, 2), 0);
    CHECK_EQ(fifo_take(&s, 0), -1);
    CHECK_EQ(fifo_take(&s, 1), 0);
    CHECK_EQ(fifo_take(&s, 1), 1);
    CHECK_EQ(fifo_room(&s), 0);
    CHECK_EQ(fifo_take(&s, 1), -1);
    fifo_give(&s, 0);
    CHECK_EQ(fifo_take(&s, 1), 2);
    fifo_done(&s);
    CHECK_EQ(fifo_init(&s, 0, 2), -1);
}

static void only_the_first_part(void)
{
    struct fifo s;
    CHECK_EQ(fifo_init(&s, 10 * PAGE, 8), 0);
    const int64_t a = fifo_take(&s, 2 * PAGE), b = fifo_take(&s, 5 * PAGE);
    fifo_limit(&s, 4 * PAGE); /* b is beyond it, and stays */
    CHECK_EQ(fifo_room(&s), 0);
    fifo_give(&s, a);
    CHECK_EQ(fifo_room(&s), 2 * PAGE);
    const int64_t c = fifo_take(&s, 2 * PAGE);
    CHECK(fifo_at(&s, c) == s.memory && fifo_at(&s, b) == s.memory + 2 * PAGE);
    fifo_give(&s, b);
    CHECK_EQ(fifo_room(&s), 2 * PAGE);
    fifo_give(&s, c);
    CHECK_EQ(fifo_room(&s), 4 * PAGE);
    fifo_limit(&s, 100 * PAGE);
    CHECK_EQ(fifo_room(&s), 10 * PAGE);
    fifo_done(&s);
}

/* Random sizes, returned out of order: no byte belongs to two slots. */
static void never_overlap(void)
{
    enum { OUT = 16 };
    struct fifo s;
    CHECK_EQ(fifo_init(&s, 64 * PAGE, OUT), 0);
    int64_t out[OUT];
    size_t bytes[OUT];
    int n = 0;
    uint32_t random = 1;
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525 + 1013904223;
        if (step % 100 == 0)
            fifo_limit(&s, (20 + (random >> 8) % 60) * PAGE);
        const size_t want = 1 + (random >> 8) % (20 * PAGE);
        const int64_t p = random >> 31 || n == 0 ? fifo_take(&s, want) : -1;
        if (p >= 0) {
            memset(fifo_at(&s, p), (int)(p & 0xff), want);
            out[n] = p;
            bytes[n++] = want;
        } else if (n > 0) {
            const int k = (int)((random >> 4) % (uint32_t)n);
            const uint8_t *at = fifo_at(&s, out[k]);
            CHECK(at[0] == (uint8_t)out[k] && at[bytes[k] - 1] == (uint8_t)out[k]);
            fifo_give(&s, out[k]);
            out[k] = out[--n];
            bytes[k] = bytes[n];
        }
    }
    fifo_done(&s);
}

int main(int argc, char **argv)
{
    TESTS(T(pieces_lie_behind_each_other), T(the_larger_end_is_offered), T(so_many_and_no_more), T(only_the_first_part),
          T(never_overlap))
}
