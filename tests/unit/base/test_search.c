/* SPDX-License-Identifier: Apache-2.0 */
/* test_search.c -- which interval contains a number. */
#include "base/search.h"

#include "test.h"

static void every_number_of_every_length(void)
{
    const int64_t begins[] = {0, 1, 5, 5, 9, INT64_MAX};
    CHECK_EQ(search_last(begins, sizeof *begins, 0, 7), 0);
    for (int64_t n = 1; n <= 6; n++)
        for (int64_t x = -1; x < 12; x++) {
            int64_t want = 0;
            for (int64_t i = 0; i < n; i++)
                want = begins[i] <= x ? i : want;
            CHECK_EQ(search_last(begins, sizeof *begins, n, x), want);
        }
}

static void numbers_in_structs(void)
{
    const struct {
        char name;
        int64_t first;
    } of[] = {{'a', 0}, {'b', 10}, {'c', 20}};
    CHECK_EQ(search_last(&of->first, sizeof *of, 3, 9), 0);
    CHECK_EQ(search_last(&of->first, sizeof *of, 3, 10), 1);
    CHECK_EQ(search_last(&of->first, sizeof *of, 3, 99), 2);
}

int main(int argc, char **argv)
{
    TESTS(T(every_number_of_every_length), T(numbers_in_structs))
}
