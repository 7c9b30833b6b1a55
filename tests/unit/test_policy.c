/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_policy.c -- bad samples: raise, skip, replace, the limit, the list. Covers delivery.c with test_delivery.c.
 */
#include <errno.h>
#include <unistd.h>

#include "support/made_source.h"

static int read_all_but_two_batches(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label,
                                    stk_error *e)
{
    const int rc = read_image(user, thread, i, bytes, n, label, e);
    if (i / 8 == 1 || i / 8 == 12)
        *n = 20;
    return rc;
}

static void raise_fails_one_batch(void)
{
    first_bad = 10;
    n_bad = 1;
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    stk_error e;
    CHECK_EQ(stk_next(l, &b, &e), STK_OK);
    stk_release(b);
    CHECK_EQ(stk_next(l, &b, &e), STK_EDATA);
    CHECK(b == NULL);
    CHECK_EQ(e.sample, 10);
    CHECK_STR(e.stage, "decode");
    CHECK_EQ(stk_next(l, &b, &e), STK_OK);
    CHECK_EQ(value_at(b, "index", 0), 16);
    stk_release(b);
    stk_stats s;
    stk_stats_get(l, &s);
    CHECK_EQ(s.bad, 1);
    CHECK_EQ(s.batches, 2);
    CHECK_EQ(stk_loader_bad_sample(l, 0, &e), STK_OK);
    CHECK_EQ(e.sample, 10);
    CHECK_EQ(stk_loader_bad_sample(l, 1, &e), STK_END);
    stk_close(l);
    first_bad = MANY;
}

static void skip_shortens_one_batch(void)
{
    first_bad = 10;
    n_bad = 1;
    stk_options o = base_options();
    o.on_error = STK_SKIP;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    CHECK_EQ(read_some(l, 2, samples, &rc), 15);
    CHECK_EQ(samples[9], 9);
    CHECK_EQ(samples[10], 11);
    CHECK_EQ(read_some(l, 1, samples, &rc), 8);
    CHECK_EQ(samples[0], 16);
    stk_close(l);
    o.pad_last = 1; /* the shape is to stay */
    l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    stk_release(b);
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    CHECK_EQ(stk_samples(b), 8);
    CHECK_EQ(((const uint8_t *)stk_field(b, "valid")->data)[2], 0);
    CHECK_EQ(value_at(b, "index", 2), 8);
    stk_release(b);
    stk_close(l);
    first_bad = MANY;
}

static int64_t position_of(stk_loader *l)
{
    char state[300];
    stk_state_get(l, state, sizeof state);
    const char *at = strstr(state, "\"position\":");
    return at ? strtoll(at + strlen("\"position\":"), NULL, 10) : -1;
}

/* Batches 1 and 12, the last one, of samples that are all bad. */
static stk_options two_bad_batches(stk_read_hooks *h)
{
    *h = hooks;
    h->read = read_all_but_two_batches;
    stk_options o = base_options();
    o.read_hooks = h;
    o.on_error = STK_SKIP;
    o.max_bad = 1;
    return o;
}

/* A batch without a single good sample is left out: it is in the length and the position, not in the batches. */
static void skip_leaves_a_bad_batch_out(void)
{
    stk_read_hooks h;
    stk_options o = two_bad_batches(&h);
    for (int pad = 0; pad < 2; pad++) {
        o.pad_last = pad;
        stk_loader *l = open_loader(&o);
        int64_t samples[2 * MANY];
        int rc;
        CHECK_EQ(stk_length(l), 13);
        CHECK_EQ(read_some(l, 1, samples, &rc), 8);
        CHECK_EQ(position_of(l), 8);
        char state[300];
        stk_state_get(l, state, sizeof state);
        CHECK_EQ(read_some(l, 1, samples, &rc), 8);
        CHECK_EQ(samples[0], 16);
        CHECK_EQ(position_of(l), 24);
        CHECK_EQ(read_some(l, 100, samples, &rc), 72);
        CHECK_EQ(rc, STK_END);
        CHECK_EQ(stk_loader_epoch(l), 1);
        stk_stats s;
        stk_stats_get(l, &s);
        CHECK_EQ(s.batches, 11);
        CHECK_EQ(s.samples, 88);
        CHECK_EQ(s.bad, 12);
        CHECK_EQ(stk_state_set(l, state, NULL), STK_OK);
        CHECK_EQ(read_some(l, 100, samples, &rc), 80);
        CHECK_EQ(samples[0], 16);
        stk_close(l);
    }
}

/* With several ranks, or with keep_empty, the batch is delivered, so that all ranks take the same number of steps. */
static void empty_batches_are_kept(void)
{
    stk_read_hooks h;
    for (int ranks = 1; ranks <= 2; ranks++) {
        stk_options o = two_bad_batches(&h);
        o.batch_size = 8 / ranks;
        o.world_size = ranks;
        o.keep_empty = ranks == 1;
        stk_loader *l = open_loader(&o);
        stk_batch *b;
        for (int i = 0; i < 13; i++) {
            CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
            CHECK_EQ(stk_samples(b), i == 1 || i == 12 ? 0 : 8 / ranks);
            stk_release(b);
        }
        CHECK_EQ(stk_next(l, &b, NULL), STK_END);
        stk_stats s;
        stk_stats_get(l, &s);
        CHECK_EQ(s.batches, 13);
        stk_close(l);
    }
}

/* An epoch of nothing but bad samples ends at once. */
static void an_epoch_may_be_all_bad(void)
{
    first_bad = 0;
    n_bad = MANY;
    stk_options o = base_options();
    o.on_error = STK_SKIP;
    o.max_bad = 1;
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_END);
    CHECK(b == NULL);
    CHECK_EQ(stk_next(l, &b, NULL), STK_END);
    CHECK_EQ(stk_loader_epoch(l), 2);
    stk_close(l);
    first_bad = MANY;
}

static void replace_takes_the_next_good_one(void)
{
    first_bad = 10;
    n_bad = 1;
    stk_options o = base_options();
    o.on_error = STK_REPLACE;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    CHECK_EQ(read_some(l, 100, samples, &rc), MANY);
    CHECK_EQ(rc, STK_END);
    CHECK_EQ(samples[10], 11);
    CHECK_EQ(samples[11], 11);
    stk_close(l);
    first_bad = MANY;
}

static void a_rotten_set_ends_the_run(void)
{
    first_bad = 20;
    n_bad = 3;
    stk_options o = base_options();
    o.on_error = STK_SKIP;
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    stk_error e;
    int rc = STK_OK;
    while (rc == STK_OK) {
        rc = stk_next(l, &b, &e);
        stk_release(b);
    }
    CHECK_EQ(rc, STK_EROTTEN);
    CHECK(strstr(e.text, "max_bad"));
    CHECK_EQ(stk_next(l, &b, &e), STK_EROTTEN);
    stk_close(l);
    o.max_bad = 0.05;
    l = open_loader(&o);
    int64_t samples[MANY];
    CHECK_EQ(read_some(l, 100, samples, &rc), 97);
    CHECK_EQ(rc, STK_END);
    stk_close(l);
    first_bad = MANY;
}

static void none_may_be_bad(void)
{
    first_bad = 20;
    n_bad = 1;
    stk_options o = base_options();
    o.on_error = STK_SKIP;
    o.max_bad = -1;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    read_some(l, 100, samples, &rc);
    CHECK_EQ(rc, STK_EROTTEN);
    stk_close(l);
    first_bad = MANY;
}

static void the_list_names_each_once(void)
{
    first_bad = 20;
    n_bad = 1;
    stk_options o = base_options();
    o.on_error = STK_REPLACE;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    stk_error e;
    for (int epoch = 0; epoch < 3; epoch++)
        read_some(l, 100, samples, &rc);
    CHECK(stk_loader_bad_sample(l, 0, &e) == STK_OK && stk_loader_bad_sample(l, 1, &e) == STK_END);
    stk_close(l);
    first_bad = MANY;
}

/* Positions stay with their rows when others go. */
static void rows_know_their_position(void)
{
    stk_options o = base_options();
    o.on_error = STK_SKIP;
    o.shuffle = 1;
    int64_t order[MANY], seen = 0;
    int rc;
    stk_loader *l = open_loader(&o);
    CHECK_EQ(read_some(l, 100, order, &rc), MANY);
    stk_close(l);
    first_bad = (int)order[3]; /* with more rows after it in its batch */
    n_bad = 1;
    l = open_loader(&o);
    stk_batch *b;
    while (stk_next(l, &b, NULL) == STK_OK) {
        for (int64_t i = 0; i < stk_samples(b); i++, seen++)
            CHECK_EQ(value_at(b, "index", i), order[value_at(b, "position", i)]);
        stk_release(b);
    }
    CHECK_EQ(seen, MANY - 1);
    stk_close(l);
    first_bad = MANY;
}

static int no_descriptors(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label,
                          stk_error *e)
{
    if (i == 5) {
        e->os_error = EMFILE;
        snprintf(e->reason, sizeof e->reason, "too many open files");
        return STK_EIO;
    }
    return read_image(user, thread, i, bytes, n, label, e);
}

/* If the machine lacks memory or descriptors, the sample is not bad: every policy fails. */
static void a_machine_that_runs_out(void)
{
    const stk_read_hooks h = {.count = count, .read = no_descriptors};
    for (int policy = STK_RAISE; policy <= STK_REPLACE; policy++) {
        stk_options o = base_options();
        o.read_hooks = &h;
        o.on_error = (stk_on_error)policy;
        stk_loader *l = open_loader(&o);
        stk_batch *b;
        stk_error e;
        stk_stats s;
        CHECK_EQ(stk_next(l, &b, &e), STK_EIO);
        CHECK_EQ(e.os_error, EMFILE);
        stk_stats_get(l, &s);
        CHECK_EQ(s.bad, 0);
        CHECK_EQ(stk_next(l, &b, &e), STK_OK);
        stk_release(b);
        stk_close(l);
    }
}

static atomic_int reads;

static int rotten_and_slow(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label,
                           stk_error *e)
{
    (void)user, (void)thread, (void)i, (void)bytes, (void)n, (void)label, (void)e;
    reads++;
    usleep(1000);
    return STK_EDATA;
}

static int64_t a_million(void *user)
{
    (void)user;
    return 1000000;
}

/* Neither the search for a good sample nor a long run of rows delays closing. */
static void closes_in_the_middle_of_a_search(void)
{
    const stk_read_hooks h = {.count = a_million, .read = rotten_and_slow};
    stk_options o = base_options();
    o.read_hooks = &h;
    o.on_error = STK_REPLACE;
    o.batch_size = 64;
    stk_loader *l = open_loader(&o);
    while (reads < 10)
        usleep(1000);
    stk_stop(l);
    const int before = reads;
    stk_close(l);
    CHECK(reads - before <= o.threads); /* what was under way, and nothing more */
}

int main(int argc, char **argv)
{
    made_begin();
    const struct test_case cases[] = {
        T(raise_fails_one_batch),     T(skip_shortens_one_batch), T(skip_leaves_a_bad_batch_out),
        T(empty_batches_are_kept),    T(an_epoch_may_be_all_bad), T(replace_takes_the_next_good_one),
        T(a_rotten_set_ends_the_run), T(none_may_be_bad),         T(the_list_names_each_once),
        T(rows_know_their_position),  T(a_machine_that_runs_out), T(closes_in_the_middle_of_a_search),
    };
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    made_end();
    return rc;
}
