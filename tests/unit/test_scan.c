/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_scan.c -- findings come in order, bad ones with a reason, and the caller may stop.
 */
#include "support/made_source.h"

static int64_t seen, bad, stop_at;
static const int64_t *expected;

static int each(void *user, const stk_finding *f)
{
    CHECK_EQ(f->sample, expected ? expected[seen] : seen);
    CHECK(f->path[0] != 0);
    if (f->code == STK_OK && *(const int *)user)
        CHECK(f->format == STK_PNG && f->width == SIDE && f->height == SIDE && f->channels == 3 && f->bits == 8);
    bad += f->code != STK_OK && f->reason[0] != 0;
    return ++seen == stop_at;
}

static int scan(stk_scan_options o)
{
    static int headers = 1;
    const stk_source_options made = {.read_hooks = &hooks};
    stk_source *s;
    CHECK_EQ(stk_source_open(&s, &made, NULL), STK_OK);
    o.each = each;
    o.user = &headers;
    seen = bad = 0;
    const int rc = stk_scan(s, &o, NULL);
    stk_source_close(s);
    return rc;
}

static void in_order_for_any_number_of_threads(void)
{
    for (int threads = 1; threads <= 8; threads *= 2)
        for (int decode = 0; decode < 2; decode++) {
            CHECK_EQ(scan((stk_scan_options){.threads = threads, .decode = decode}), STK_OK);
            CHECK_EQ(seen, MANY);
            CHECK_EQ(bad, 0);
        }
}

static void the_bad_are_named(void)
{
    first_bad = 40;
    n_bad = 3;
    CHECK_EQ(scan((stk_scan_options){.threads = 3, .decode = 1}), STK_OK);
    CHECK_EQ(seen, MANY);
    CHECK_EQ(bad, 3);
    first_bad = MANY;
}

static void the_caller_may_stop(void)
{
    stop_at = 10;
    CHECK_EQ(scan((stk_scan_options){.threads = 3, .decode = 1}), STK_OK);
    CHECK_EQ(seen, 10);
    stop_at = 0;
}

static void a_part_of_the_samples(void)
{
    const int64_t subset[] = {7, 3, 99};
    expected = subset;
    CHECK_EQ(scan((stk_scan_options){.subset = subset, .n_subset = 3, .threads = 2, .decode = 1}), STK_OK);
    CHECK_EQ(seen, 3);
    const int64_t wrong[] = {100};
    CHECK_EQ(scan((stk_scan_options){.subset = wrong, .n_subset = 1}), STK_EUSAGE);
    expected = NULL;
    stk_source *s;
    CHECK_EQ(stk_source_open(&s, &(stk_source_options){.read_hooks = &hooks}, NULL), STK_OK);
    CHECK_EQ(stk_scan(s, NULL, NULL), STK_OK); /* no options, and no function to call */
    CHECK_EQ(stk_scan(NULL, NULL, NULL), STK_EUSAGE);
    stk_source_close(s);
}

int main(int argc, char **argv)
{
    made_begin();
    const struct test_case cases[] = {T(in_order_for_any_number_of_threads), T(the_bad_are_named),
                                      T(the_caller_may_stop), T(a_part_of_the_samples)};
    const int rc = test_main(cases, 4, argc, argv);
    made_end();
    return rc;
}
