/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_state.c -- what a state contains, how strictly it is checked, and that it resumes exactly.
 */
#include <sched.h>
#include <unistd.h>

#include "loader.h"
#include "support/made_source.h"

static void resumes_exactly(void)
{
    int64_t whole[3 * MANY], rest[3 * MANY];
    char state[300];
    int rc;
    stk_options o = base_options();
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    int64_t n = read_some(l, 20, whole, &rc); /* to the end of epoch 0 */
    n += read_some(l, 3, whole + n, &rc);
    CHECK(stk_state_get(l, state, sizeof state) < 300);
    const int64_t at = n;
    n += read_some(l, 20, whole + n, &rc);
    stk_close(l);
    CHECK_EQ(n, 2 * MANY);

    o.threads = 1;
    o.batch_size = 3; /* another batch size is another layout of the same order */
    l = open_loader(&o);
    CHECK_EQ(stk_state_set(l, state, NULL), STK_OK);
    CHECK_EQ(stk_loader_epoch(l), 1);
    CHECK_EQ(read_some(l, 1000, rest, &rc), n - at);
    CHECK(memcmp(rest, whole + at, (size_t)(n - at) * sizeof rest[0]) == 0);
    CHECK_EQ(stk_loader_epoch(l), 2);
    stk_close(l);
}

static void a_state_of_something_else_is_refused(void)
{
    char state[300];
    stk_error e;
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    stk_state_get(l, state, sizeof state);
    stk_close(l);
    o.take = 50;
    l = open_loader(&o);
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    CHECK(strstr(e.text, "100 samples then, 50 now"));
    CHECK_EQ(stk_state_set(l, "{}", &e), STK_EUSAGE);
    CHECK_EQ(stk_state_set(l, "{\"stoker\": ", &e), STK_EUSAGE);
    CHECK_EQ(stk_state_set(l, NULL, &e), STK_EUSAGE);
    stk_close(l);
    o = base_options();
    o.seed = 9;
    l = open_loader(&o);
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    CHECK(strstr(e.text, "seed 0"));
    stk_close(l);
}

/* A state of a loader with these options, without the version of its order, as states were before there were two. */
static void old_state(const stk_options *o, char state[300])
{
    int64_t samples[MANY];
    int rc;
    stk_loader *l = open_loader(o);
    read_some(l, 1, samples, &rc);
    stk_state_get(l, state, 300);
    stk_close(l);
    char *version = strstr(state, "\"order\":2,");
    CHECK(version);
    if (version)
        memmove(version, version + 10, strlen(version + 10) + 1);
}

static int set_old_state(const stk_options *o, stk_error *e)
{
    char state[300];
    old_state(o, state);
    stk_loader *l = open_loader(o);
    const int rc = stk_state_set(l, state, e);
    stk_close(l);
    return rc;
}

/* The order of few samples changed once; everything else is as it was. */
static void old_orders(void)
{
    stk_error e = {0};
    stk_options o = base_options();
    o.take = 32;
    CHECK_EQ(set_old_state(&o, NULL), STK_OK); /* not shuffled */
    o.shuffle = 1;
    CHECK_EQ(set_old_state(&o, &e), STK_ECHANGED);
    CHECK_SAYS(e.text, "an older version of Stoker saved this state");
    o.steps_per_epoch = 20; /* many positions, and still few samples */
    CHECK_EQ(set_old_state(&o, NULL), STK_ECHANGED);
    o.steps_per_epoch = 0;
    o.take = 33;
    CHECK_EQ(set_old_state(&o, NULL), STK_OK);

    const double mix[] = {0.5, 0.5};
    const int64_t halves[] = {50, 50}, few[] = {80, 20};
    o.take = 0;
    o.mix = mix;
    o.n_mix = 2;
    o.mix_counts = halves;
    CHECK_EQ(set_old_state(&o, NULL), STK_OK);
    o.mix_counts = few;
    CHECK_EQ(set_old_state(&o, NULL), STK_ECHANGED);
}

static void orders_to_come_are_refused(void)
{
    char state[300];
    stk_error e = {0};
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    stk_state_get(l, state, sizeof state);
    char *version = strstr(state, "\"order\":2");
    CHECK(version);
    if (version)
        version[strlen("\"order\":")] = '3';
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    CHECK_SAYS(e.text, "update Stoker");
    stk_close(l);
}

static void epochs_can_be_set(void)
{
    int64_t a[MANY], b[MANY];
    int rc;
    stk_options o = base_options();
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    read_some(l, 2, a, &rc);
    CHECK_EQ(stk_set_epoch(l, 0, NULL), STK_OK); /* the current one: no change */
    read_some(l, 100, a, &rc);
    CHECK_EQ(rc, STK_END);
    read_some(l, 2, a, &rc);
    CHECK_EQ(stk_set_epoch(l, 7, NULL), STK_OK);
    CHECK_EQ(stk_loader_epoch(l), 7);
    read_some(l, 100, a, &rc);
    CHECK_EQ(stk_set_epoch(l, 7, NULL), STK_OK);
    read_some(l, 100, b, &rc);
    CHECK(memcmp(a, b, sizeof a) == 0);
    CHECK_EQ(stk_set_epoch(l, -1, NULL), STK_EUSAGE);
    stk_close(l);
}

static void a_state_is_read_strictly(void)
{
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    char state[300], wrong[300];
    stk_state_get(l, state, sizeof state);
    const struct {
        const char *from, *to;
    } cases[] = {{"\"epoch\":0", "\"epoch\":fish"},
                 {"\"position\":0", "\"position\":1.9e1"},
                 {"\"position\":0", "\"position\":c"},
                 {"\"epoch\":0", "\"epoch\":9223372036854775807"},
                 {"\"position\":0", "\"position\":101"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = strstr(state, cases[i].from);
        snprintf(wrong, sizeof wrong, "%.*s%s%s", (int)(at - state), state, cases[i].to, at + strlen(cases[i].from));
        CHECK_EQ(stk_state_set(l, wrong, NULL), STK_EUSAGE);
    }
    CHECK_EQ(stk_set_epoch(l, INT64_MAX, NULL), STK_EUSAGE);
    CHECK_EQ(stk_state_set(l, state, NULL), STK_OK);
    stk_close(l);
}

static stk_loader *_Atomic restarted;
static atomic_bool asking, asked;

/* Everything that does not wait for rows. */
static void ask_all(stk_loader *l)
{
    char text[8192];
    stk_stats s;
    stk_error e;
    CHECK_EQ(stk_stats_get(l, &s), STK_OK);
    CHECK(stk_state_get(l, text, 300) > 0);
    CHECK(stk_explain(l, text, sizeof text) > 0);
    CHECK_EQ(stk_loader_epoch(l), 0);
    CHECK_EQ(stk_length(l), 13);
    CHECK_EQ(stk_loader_bad_sample(l, 0, &e), STK_END);
    stk_mix_stats m;
    CHECK_EQ(stk_loader_mix(l, 0, &m), STK_OK);
    CHECK_EQ(stk_loader_mix(l, 99, &m), STK_END);
}

/* The first row waits until the loader is about to restart, and then calls the loader. */
static int ask_while_it_restarts(void *user, const stk_row *row, stk_error *e)
{
    (void)user, (void)e;
    if (row->epoch != 0 || atomic_exchange(&asking, true))
        return STK_OK;
    while (!restarted || !ring_wants_back(&restarted->ring))
        sched_yield();
    ask_all(restarted);
    asked = true;
    return STK_OK;
}

/* A hook may call its own loader, even while another thread waits for that hook to end. */
static void a_restart_waits_without_locks(void)
{
    const stk_op_hook op = {.run = ask_while_it_restarts};
    const double mix[] = {1};
    const int64_t all[] = {MANY};
    stk_options o = base_options();
    o.op = &op;
    o.mix = mix;
    o.n_mix = 1;
    o.mix_counts = all;
    alarm(60); /* a deadlock ends the test */
    restarted = open_loader(&o);
    while (!asking)
        sched_yield();
    CHECK_EQ(stk_set_epoch(restarted, 5, NULL), STK_OK);
    CHECK(asked);
    CHECK_EQ(stk_loader_epoch(restarted), 5);
    alarm(0);
    stk_close(restarted);
}

int main(int argc, char **argv)
{
    made_begin();
    const struct test_case cases[] = {
        T(resumes_exactly),
        T(a_state_of_something_else_is_refused),
        T(old_orders),
        T(orders_to_come_are_refused),
        T(epochs_can_be_set),
        T(a_state_is_read_strictly),
        T(a_restart_waits_without_locks),
    };
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    made_end();
    return rc;
}
