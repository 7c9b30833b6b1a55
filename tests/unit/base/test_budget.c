/* SPDX-License-Identifier: Apache-2.0 */
#include "base/budget.h"
#include "base/pool.h"
#include "test.h"

static struct budget budget;
static int inside, most;

static void large(void *user, int64_t i)
{
    (void)user, (void)i;
    bool in_turn = false;
    CHECK_EQ(budget_enter(&budget, budget.share + 1, &in_turn, NULL), STK_OK);
    CHECK_EQ(budget_enter(&budget, budget.share + 2, &in_turn, NULL), STK_OK); /* once more is no second turn */
    inside++;
    most = inside > most ? inside : most;
    inside--;
    budget_leave(&budget, &in_turn);
    budget_leave(&budget, &in_turn);
}

static void one_large_at_a_time(void)
{
    budget_init(&budget, 1000, 4);
    CHECK_EQ(budget.share, 125);
    CHECK_EQ(budget.reserve, 500);
    pool_for(4, 1000, large, NULL);
    CHECK_EQ(most, 1);
    budget_done(&budget);
}

static void small_ones_do_not_wait(void)
{
    budget_init(&budget, 1000, 4);
    bool big = false, small = false;
    CHECK(budget_enter(&budget, 500, &big, NULL) == STK_OK && big);
    CHECK(budget_enter(&budget, 125, &small, NULL) == STK_OK && !small);
    CHECK_EQ(budget_enter(&budget, 501, &small, NULL), STK_EDATA);
    budget_leave(&budget, &big);
    budget_done(&budget);
}

int main(int argc, char **argv)
{
    TESTS(T(one_large_at_a_time), T(small_ones_do_not_wait))
}
