/* SPDX-License-Identifier: Apache-2.0 */
#include "order/alias.h"

#include <math.h>

#include "test.h"

static void draws_by_weight(void)
{
    const double weights[] = {1, 0, 3, 0.5, 0, 5.5};
    struct alias a;
    CHECK_EQ(alias_init(&a, weights, 6, NULL), STK_OK);
    int64_t seen[6] = {0};
    for (int64_t i = 0; i < 100000; i++)
        seen[alias_at(&a, 7, 3, i)]++;
    for (int i = 0; i < 6; i++)
        CHECK(llabs(seen[i] - (int64_t)(weights[i] * 10000)) < 800);
    CHECK_EQ(seen[1] + seen[4], 0);
    alias_done(&a);
    alias_done(&a);
}

static void depends_on_its_numbers_alone(void)
{
    const double weights[] = {1, 2, 3, 4};
    struct alias a;
    CHECK_EQ(alias_init(&a, weights, 4, NULL), STK_OK);
    int same_seed = 0, same_epoch = 0;
    for (int64_t i = 0; i < 1000; i++) {
        CHECK_EQ(alias_at(&a, 1, 2, i), alias_at(&a, 1, 2, i));
        same_seed += alias_at(&a, 1, 2, i) == alias_at(&a, 2, 2, i);
        same_epoch += alias_at(&a, 1, 2, i) == alias_at(&a, 1, 3, i);
    }
    CHECK(same_seed < 500);
    CHECK(same_epoch < 500);
    alias_done(&a);
}

static void extremes(void)
{
    struct alias a;
    const double one[] = {1e-300}, tiny[] = {1e300, 1e-300};
    CHECK_EQ(alias_init(&a, one, 1, NULL), STK_OK);
    CHECK_EQ(alias_at(&a, 0, 0, 5), 0);
    alias_done(&a);
    CHECK_EQ(alias_init(&a, tiny, 2, NULL), STK_OK);
    for (int64_t i = 0; i < 100; i++)
        CHECK_EQ(alias_at(&a, 0, 0, i), 0);
    alias_done(&a);
}

static void refuses(void)
{
    struct alias a;
    stk_error e;
    const double bad[][2] = {{1, -1}, {1, NAN}, {INFINITY, 1}, {0, 0}, {1.7e308, 1.7e308}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(alias_init(&a, bad[i], 2, &e), STK_EUSAGE);
        alias_done(&a);
    }
    CHECK(strstr(e.text, "sum to inf"));
}

int main(int argc, char **argv)
{
    TESTS(T(draws_by_weight), T(depends_on_its_numbers_alone), T(extremes), T(refuses))
}
