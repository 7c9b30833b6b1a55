/* SPDX-License-Identifier: Apache-2.0 */
/* test_size.c -- sums and products at their limits. */
#include "base/size.h"

#include "test.h"

static void sums(void)
{
    CHECK_EQ(size_add(2, 3), 5);
    CHECK_EQ(size_add(SIZE_MAX - 1, 1), SIZE_MAX);
    CHECK_EQ(size_add(SIZE_MAX - 1, 2), SIZE_MAX);
    CHECK_EQ(size_add(SIZE_MAX, SIZE_MAX), SIZE_MAX);
}

static void products(void)
{
    CHECK_EQ(size_mul(6, 7), 42);
    CHECK_EQ(size_mul(0, SIZE_MAX), 0);
    CHECK_EQ(size_mul(SIZE_MAX, 0), 0);
    CHECK_EQ(size_mul(SIZE_MAX / 2 + 1, 2), SIZE_MAX);
    CHECK_EQ(size_mul(SIZE_MAX, SIZE_MAX), SIZE_MAX);
}

int main(int argc, char **argv)
{
    TESTS(T(sums), T(products))
}
