/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_number_list.c -- numbers in brackets and without.
 */
#include "base/number_list.h"

#include "test.h"

static float numbers[16];
static struct number_list list;

static const char *read_text(const char *text)
{
    memset(numbers, 0, sizeof numbers);
    CHECK(number_list_most(text, strlen(text)) <= strlen(text) / 2 + 1);
    return number_list_read(text, strlen(text), STK_FLOAT32, (uint8_t *)numbers, 16, &list);
}

static void runs(void)
{
    static const char *const same[] = {"1 2.5 -3", "1,2.5,-3", " 1 , 2.5\t-3e0\n"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        CHECK(!read_text(same[i]));
        CHECK_EQ(list.count, 3);
        CHECK_EQ(list.ndim, -1);
        CHECK(numbers[0] == 1 && numbers[1] == 2.5f && numbers[2] == -3);
        CHECK_EQ(number_list_most(same[i], strlen(same[i])), 3);
    }
    CHECK(!read_text("  "));
    CHECK_EQ(list.count, 0);
}

static void nested(void)
{
    static const char *const same[] = {"[[1, 2], [3, 4], [5, 6]]", "[[1 2]\n [3 4]\n [5 6]]", "[[1,2],[3,4],[5,6]]"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        CHECK(!read_text(same[i]));
        CHECK_EQ(list.ndim, 2);
        CHECK_EQ(list.shape[0], 3);
        CHECK_EQ(list.shape[1], 2);
        CHECK(numbers[0] == 1 && numbers[5] == 6);
    }
    CHECK(!read_text("[]"));
    CHECK(list.ndim == 1 && list.shape[0] == 0 && list.count == 0);
    CHECK(!read_text("[[], []]"));
    CHECK(list.ndim == 2 && list.shape[0] == 2 && list.shape[1] == 0);
    CHECK(!read_text("[[[[[[[[7]]]]]]]]"));
    CHECK_EQ(list.ndim, 8);
    CHECK(!read_text("[true, false, NaN]"));
    CHECK(numbers[0] == 1 && numbers[1] == 0 && list.count == 3);
}

static void wrong(void)
{
    static const char *const texts[] = {"a",        "1 x",         "1,,2",     "1,",       "[",
                                        "[1",       "[1,",         "[1,]",     "[,1]",     "]",
                                        "[1]]",     "[1] 2",       "[[1], 2]", "[1, [2]]", "[[], 1]",
                                        "[[1],[]]", "[[1],[2,3]]", "[null]",   "[\"1\"]",  "{\"a\": 1}",
                                        "[1-2]",    "[[1][2]]",    "1[2]",     "1;2",      "[[[[[[[[[7]]]]]]]]]"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!read_text(texts[i]))
            printf("%s\n", texts[i]);
        CHECK(read_text(texts[i]) != NULL);
    }
    uint8_t small[4];
    CHECK(number_list_read("256", 3, STK_UINT8, small, 4, &list) != NULL);
    CHECK(number_list_read("1.5", 3, STK_UINT8, small, 4, &list) != NULL);
    CHECK(number_list_read("1", 1, STK_FLOAT16, small, 4, &list) != NULL);
}

/* Numbers beyond the room are counted, but not written. */
static void little_room(void)
{
    uint8_t small[3] = {9, 9, 9};
    CHECK(!number_list_read("[1, 2, 3]", 9, STK_UINT8, small, 2, &list));
    CHECK_EQ(list.count, 3);
    CHECK(small[0] == 1 && small[1] == 2 && small[2] == 9);
}

int main(int argc, char **argv)
{
    TESTS(T(runs), T(nested), T(wrong), T(little_room))
}
