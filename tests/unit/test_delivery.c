/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_delivery.c -- orders other than our own, rows that hooks fill. The source
 * is 40 samples that fill() makes: "x" is four floats of the sample's number, "label" the number,
 * "random" the row's random number.
 */
#include <stdatomic.h>

#include "support/open_loader.h"

enum { MANY = 40 };

static atomic_int fills;

static int64_t count(void *user)
{
    (void)user;
    return MANY;
}

static int fill(void *user, const stk_row *row, void *const *to, stk_error *e)
{
    (void)user;
    fills++;
    if (row->sample == 13)
        return snprintf(e->reason, sizeof e->reason, "is unlucky"), STK_EDATA;
    for (int i = 0; i < 4; i++)
        ((float *)to[0])[i] = (float)row->sample;
    *(int64_t *)to[1] = row->sample;
    *(uint64_t *)to[2] = row->random;
    return STK_OK;
}

static const int64_t four[] = {4};
static const stk_array fields[] = {
    {.name = "x", .dtype = STK_FLOAT32, .ndim = 1, .shape = four},
    {.name = "label", .dtype = STK_INT64},
    {.name = "random", .dtype = STK_UINT64},
};
static const stk_fill_hooks hooks = {.count = count, .fill = fill, .fields = fields, .n_fields = 3};

static stk_options base_options(void)
{
    return (stk_options){.fill_hooks = &hooks, .batch_size = 4, .threads = 2, .on_error = STK_SKIP, .max_bad = 1};
}

static int64_t label_at(const stk_batch *b, int64_t row)
{
    return ((const int64_t *)stk_field(b, "label")->data)[row];
}

/* Reads up to n batches and writes the samples that came; returns their number. */
static int64_t read_some(stk_loader *l, int64_t n, int64_t *samples, int *rc)
{
    int64_t got = 0;
    stk_batch *b;
    *rc = STK_OK;
    while (n-- > 0 && (*rc = stk_next(l, &b, NULL)) == STK_OK) {
        for (int64_t i = 0; i < stk_samples(b); i++) {
            samples[got] = label_at(b, i);
            CHECK_EQ(((const float *)stk_field(b, "x")->data)[4 * i + 3], samples[got]);
            got++;
        }
        stk_release(b);
    }
    return got;
}

static void rows_are_filled(void)
{
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    CHECK_EQ(read_some(l, 100, samples, &rc), MANY - 1);
    CHECK_EQ(rc, STK_END);
    stk_error e;
    CHECK_EQ(stk_loader_bad_sample(l, 0, &e), STK_OK);
    CHECK_EQ(e.sample, 13);
    CHECK_STR(e.reason, "is unlucky");
    stk_close(l);

    stk_fill_hooks none = hooks;
    none.n_fields = 0;
    o.fill_hooks = &none;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    none.n_fields = 3;
    none.fill = NULL;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
}

static void steps_make_the_epoch(void)
{
    stk_options o = base_options();
    o.shuffle = 1;
    o.steps_per_epoch = 25; /* two and a half passes */
    stk_loader *l = open_loader(&o);
    int64_t samples[3 * MANY];
    int rc, seen[MANY] = {0};
    CHECK_EQ(stk_length(l), 25);
    CHECK_EQ(stk_loader_count(l), MANY);
    int64_t n = read_some(l, 100, samples, &rc);
    CHECK_EQ(rc, STK_END);
    for (int64_t i = 0; i < n; i++)
        seen[samples[i]]++;
    for (int i = 0; i < MANY; i++)
        CHECK(i == 13 || seen[i] == 2 || seen[i] == 3);
    stk_close(l);
}

static void weights_share_between_ranks(void)
{
    double weights[MANY];
    for (int i = 0; i < MANY; i++)
        weights[i] = i % 3;
    stk_options o = base_options();
    o.weights = weights;
    o.n_weights = MANY;
    o.steps_per_epoch = 50;
    stk_loader *l = open_loader(&o);
    int64_t whole[200], parts[2][200];
    int rc;
    int64_t n = read_some(l, 50, whole, &rc);
    for (int64_t i = 0; i < n; i++)
        CHECK(whole[i] % 3 != 0);
    stk_close(l);
    o.world_size = 2;
    o.batch_size = 2;
    int64_t sum = 0, sum_parts = 0;
    for (int rank = 0; rank < 2; rank++) {
        o.rank = rank;
        l = open_loader(&o);
        const int64_t m = read_some(l, 50, parts[rank], &rc);
        for (int64_t i = 0; i < m; i++)
            sum_parts += parts[rank][i];
        stk_close(l);
    }
    for (int64_t i = 0; i < n; i++)
        sum += whole[i];
    CHECK_EQ(sum, sum_parts);

    stk_error e;
    o.n_weights = 3;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    o.n_weights = MANY;
    o.shuffle = 1;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
}

static void a_state_knows_its_order(void)
{
    double weights[MANY];
    for (int i = 0; i < MANY; i++)
        weights[i] = 1 + i;
    stk_options o = base_options();
    o.weights = weights;
    o.n_weights = MANY;
    o.steps_per_epoch = 20;
    stk_loader *l = open_loader(&o);
    int64_t whole[200], rest[200];
    int rc;
    int64_t n = read_some(l, 7, whole, &rc);
    char state[300];
    CHECK(stk_state_get(l, state, sizeof state) < sizeof state);
    const int64_t more = read_some(l, 100, whole + n, &rc);
    stk_close(l);

    o.threads = 5;
    l = open_loader(&o);
    stk_error e;
    CHECK_EQ(stk_state_set(l, state, &e), STK_OK);
    CHECK_EQ(read_some(l, 100, rest, &rc), more);
    CHECK(memcmp(rest, whole + n, (size_t)more * sizeof rest[0]) == 0);
    stk_close(l);

    weights[0] = 99;
    l = open_loader(&o);
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    CHECK(strstr(e.text, "weights"));
    stk_close(l);
    o.steps_per_epoch = 21;
    l = open_loader(&o);
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    CHECK(strstr(e.text, "steps_per_epoch"));
    stk_close(l);
    o = base_options();
    l = open_loader(&o);
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    CHECK(stk_state_get(l, state, sizeof state) > 0);
    CHECK(!strstr(state, "length") && !strstr(state, "weights"));
    stk_close(l);
}

static void orders_are_given(void)
{
    stk_options o = base_options();
    o.sampled = 1;
    o.rank = 1;
    o.world_size = 2;
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    stk_error e;
    CHECK_EQ(stk_next(l, &b, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "epoch 0"));
    const int64_t first[] = {5, 5, 5, 39, 0, 1}, second[] = {7, 8, 9}, starts[] = {0, 1};
    CHECK_EQ(stk_loader_set_order(l, 0, first, 6, NULL, 0, &e), STK_OK);
    CHECK_EQ(stk_loader_set_order(l, 0, first, 6, NULL, 0, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_set_order(l, 2, first, 6, NULL, 0, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_set_order(l, 1, second, 3, starts, 2, &e), STK_OK);
    int64_t got[MANY];
    int rc;
    CHECK_EQ(read_some(l, 100, got, &rc), 6);
    CHECK_EQ(rc, STK_END);
    CHECK(memcmp(got, first, sizeof first) == 0);
    CHECK_EQ(read_some(l, 1, got, &rc), 1);
    char state[300];
    stk_state_get(l, state, sizeof state);
    CHECK_EQ(read_some(l, 100, got, &rc), 2);
    CHECK_EQ(got[1], 9);

    CHECK_EQ(stk_state_set(l, state, &e), STK_OK); /* discards the order; given again, it continues there */
    CHECK_EQ(stk_next(l, &b, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_set_order(l, 1, second, 3, starts, 2, &e), STK_OK);
    CHECK_EQ(read_some(l, 100, got, &rc), 2);
    CHECK_EQ(got[0], 8);

    const int64_t wrong[] = {MANY};
    CHECK_EQ(stk_loader_set_order(l, 2, wrong, 1, NULL, 0, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_set_order(l, 2, second, 3, wrong, 1, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_set_order(l, 2, NULL, 0, NULL, 0, &e), STK_OK);
    CHECK_EQ(stk_next(l, &b, &e), STK_END);
    stk_close(l);

    o.sampled = 0;
    l = open_loader(&o);
    CHECK_EQ(stk_loader_set_order(l, 0, second, 3, NULL, 0, &e), STK_EUSAGE);
    stk_close(l);
}

/* At the end of an epoch the orders of the next two may be given at once. */
static void two_orders_are_given_ahead(void)
{
    stk_options o = base_options();
    o.sampled = 1;
    stk_loader *l = open_loader(&o);
    const int64_t samples[] = {7, 8, 9};
    CHECK_EQ(stk_loader_set_order(l, 0, samples, 3, NULL, 0, NULL), STK_OK);
    for (int64_t epoch = 0; epoch < 20; epoch += 2) {
        int64_t got[MANY];
        int rc;
        CHECK_EQ(read_some(l, 100, got, &rc), 3);
        CHECK_EQ(rc, STK_END);
        CHECK_EQ(stk_loader_set_order(l, epoch + 1, samples, 3, NULL, 0, NULL), STK_OK);
        CHECK_EQ(stk_loader_set_order(l, epoch + 2, samples, 3, NULL, 0, NULL), STK_OK);
        CHECK_EQ(read_some(l, 100, got, &rc), 3);
        CHECK_EQ(rc, STK_END);
    }
    stk_close(l);
}

/* A repeated sample has draws of its own, by position. */
static void repeats_differ(void)
{
    stk_options o = base_options();
    o.sampled = 1;
    stk_loader *l = open_loader(&o);
    const int64_t same[] = {5, 5, 5, 5};
    stk_batch *b;
    CHECK_EQ(stk_loader_set_order(l, 0, same, 4, NULL, 0, NULL), STK_OK);
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    const uint64_t *random = stk_field(b, "random")->data;
    CHECK(random[0] != random[1] && random[1] != random[2] && random[0] != random[3]);
    stk_release(b);
    stk_close(l);
}

/* ------------------------------------------------------------------ an op that makes another shape */

static uint8_t pixels[MANY][4][4][3];

static int mean(void *user, const stk_row *row, stk_error *e)
{
    (void)user, (void)e;
    const stk_array *im = row->image;
    CHECK_EQ(im->ndim, 3);
    CHECK_EQ(im->shape[0], 3);
    CHECK_EQ(im->shape[2], 4);
    float sum = 0;
    for (int i = 0; i < 48; i++)
        sum += ((const float *)im->data)[i] * 255;
    *(double *)row->to = sum / 48;
    return STK_OK;
}

static void an_op_makes_another_shape(void)
{
    for (int i = 0; i < MANY; i++)
        memset(pixels[i], i, sizeof pixels[i]);
    const int64_t shape[] = {MANY, 4, 4, 3};
    const stk_array array = {.name = "image", .data = pixels, .dtype = STK_UINT8, .ndim = 4, .shape = shape};
    const stk_array result = {.name = "mean", .dtype = STK_FLOAT64};
    const stk_op_hook op = {.run = mean, .result = &result};
    const stk_options o = {
        .arrays = &array, .n_arrays = 1, .op = &op, .ops = "CenterCrop(4)", .batch_size = MANY, .threads = 2};
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    const stk_array *m = stk_field(b, "mean");
    CHECK_EQ(m->ndim, 1);
    for (int i = 0; i < MANY; i++)
        CHECK(((const double *)m->data)[i] > i - 0.01 && ((const double *)m->data)[i] < i + 0.01);
    stk_release(b);
    stk_close(l);
}

int main(int argc, char **argv)
{
    TESTS(T(rows_are_filled), T(steps_make_the_epoch), T(weights_share_between_ranks), T(a_state_knows_its_order),
          T(orders_are_given), T(two_orders_are_given_ahead), T(repeats_differ), T(an_op_makes_another_shape))
}
