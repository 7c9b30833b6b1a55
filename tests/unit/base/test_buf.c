/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "test.h"

static void grows(void)
{
    struct buf b = {0};
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(buf_add(&b, "abc", 3), 0);
    CHECK_EQ(b.len, 3000);
    CHECK(memcmp(b.data + 2997, "abc", 3) == 0);
    CHECK_EQ(buf_printf(&b, "%d-%s", 7, "x"), 0);
    CHECK(memcmp(b.data + 3000, "7-x", 3) == 0);
    CHECK_EQ(buf_add(&b, NULL, 0), 0);
    buf_done(&b);
    buf_done(&b);
}

static void has_a_maximum(void)
{
    struct buf b = {.max = 10};
    CHECK_EQ(buf_add_str(&b, "12345678"), 0);
    CHECK_EQ(buf_add_str(&b, "123"), -1);
    CHECK_EQ(b.len, 8);
    CHECK_EQ(buf_add_str(&b, "90"), 0);
    CHECK_EQ(buf_printf(&b, "x"), -1);
    CHECK_EQ(buf_reserve(&b, 11), -1);
    buf_done(&b);
}

static void trims(void)
{
    struct buf b = {.max = 5000};
    buf_reserve(&b, 4000);
    buf_trim(&b, 4000);
    CHECK_EQ(b.cap, 4000);
    buf_trim(&b, 100);
    CHECK_EQ(b.cap, 0);
    CHECK_EQ(b.max, 5000);
    buf_done(&b);
}

int main(int argc, char **argv)
{
    TESTS(T(grows), T(has_a_maximum), T(trims))
}
