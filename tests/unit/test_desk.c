/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_desk.c -- a thread stays within its share of memory, unless it is its turn to use more.
 */
#include "desk.h"

#include "test.h"

enum { MIB = 1 << 20 };

static void buffers_stay_within_the_share(void)
{
    struct budget b;
    struct desk d;
    budget_init(&b, 80 * MIB, 2); /* shares of 20, a turn of 40 */
    CHECK_EQ(desk_init(&d, 0, &b, false, STK_CPU_DEFAULT, NULL), STK_OK);
    CHECK_EQ(desk_reserve(&d, 15 * MIB, 1 * MIB, NULL), STK_OK);
    CHECK_EQ(desk_held(&d), 15 * MIB);
    desk_clear(&d);
    CHECK_EQ(desk_held(&d), 15 * MIB); /* the next sample is likely to need as much */
    CHECK_EQ(desk_reserve(&d, 1 * MIB, 10 * MIB, NULL), STK_OK);
    CHECK_EQ(desk_held(&d), 1 * MIB); /* beside the codec's 10 there is no room for 15 */
    desk_clear(&d);
    desk_done(&d);
    desk_done(&d);
    budget_done(&b);
}

static void a_turn_gives_everything_back(void)
{
    struct budget b;
    struct desk d;
    budget_init(&b, 80 * MIB, 2);
    CHECK_EQ(desk_init(&d, 0, &b, false, STK_CPU_DEFAULT, NULL), STK_OK);
    CHECK_EQ(desk_reserve(&d, 30 * MIB, 0, NULL), STK_OK);
    CHECK(d.in_turn);
    desk_clear(&d);
    CHECK(!d.in_turn);
    CHECK_EQ(desk_held(&d), 0);
    stk_error e;
    CHECK_EQ(desk_reserve(&d, 30 * MIB, 11 * MIB, &e), STK_EDATA);
    CHECK(strstr(e.text, "41 MiB") && strstr(e.text, "40 MiB"));
    CHECK_EQ(desk_reserve(&d, SIZE_MAX, SIZE_MAX, &e), STK_EDATA);
    desk_done(&d);
    budget_done(&b);
}

static void without_a_budget_there_is_no_limit(void)
{
    struct desk d;
    CHECK_EQ(desk_init(&d, 0, NULL, true, STK_CPU_DEFAULT, NULL), STK_OK);
    CHECK_EQ(desk_reserve(&d, 100 * MIB, 0, NULL), STK_OK);
    desk_clear(&d);
    CHECK_EQ(desk_held(&d), 100 * MIB);
    desk_done(&d);
}

int main(int argc, char **argv)
{
    TESTS(T(buffers_stay_within_the_share), T(a_turn_gives_everything_back), T(without_a_budget_there_is_no_limit))
}
