/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_loader.c -- the rules on epochs, order, ranks and batches; threads, processes, hooks, arrays, words.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"
#include "support/made_source.h"

static void an_epoch_has_every_sample_once(void)
{
    stk_options o = base_options();
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    CHECK_EQ(stk_length(l), 13);
    CHECK_EQ(stk_loader_count(l), MANY);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int64_t samples[2 * MANY];
        int seen[MANY] = {0}, rc;
        CHECK_EQ(stk_loader_epoch(l), epoch);
        CHECK_EQ(read_some(l, 1000, samples, &rc), MANY);
        CHECK_EQ(rc, STK_END);
        for (int i = 0; i < MANY; i++)
            seen[samples[i]]++;
        for (int i = 0; i < MANY; i++)
            CHECK_EQ(seen[i], 1);
    }
    const int before = closed;
    stk_close(l);
    CHECK_EQ(closed, before + 1);
    stk_close(NULL);
}

static void threads_change_nothing(void)
{
    int64_t one[3 * MANY], other[3 * MANY];
    for (int threads = 1; threads <= 16; threads *= 4) {
        stk_options o = base_options();
        o.shuffle = 1;
        o.seed = 5;
        o.threads = threads;
        stk_loader *l = open_loader(&o);
        int rc;
        read_some(l, 20, threads == 1 ? one : other, &rc);
        if (threads > 1)
            CHECK(memcmp(one, other, MANY * sizeof one[0]) == 0);
        stk_close(l);
    }
}

static void ranks_join_to_one(void)
{
    int64_t whole[MANY], parts[2][MANY];
    int rc;
    stk_options o = base_options();
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    CHECK_EQ(read_some(l, 100, whole, &rc), MANY);
    stk_close(l);
    for (int rank = 0; rank < 2; rank++) {
        o.rank = rank;
        o.world_size = 2;
        o.batch_size = 4;
        l = open_loader(&o);
        CHECK_EQ(stk_length(l), 13);
        read_some(l, 100, parts[rank], &rc);
        stk_close(l);
    }
    for (int64_t i = 0; i < MANY; i++)
        CHECK_EQ(whole[i], parts[i / 4 % 2][i / 8 * 4 + i % 4]);
}

static void short_dropped_and_padded_batches(void)
{
    stk_options o = base_options();
    int64_t samples[2 * MANY];
    int rc;
    o.drop_last = 1;
    stk_loader *l = open_loader(&o);
    CHECK_EQ(stk_length(l), 12);
    CHECK_EQ(read_some(l, 100, samples, &rc), 96);
    stk_close(l);
    o.drop_last = 0;
    o.pad_last = 1;
    l = open_loader(&o);
    stk_batch *b = NULL;
    int64_t rows = 0, valid = 0;
    while (stk_next(l, &b, NULL) == STK_OK) {
        CHECK_EQ(stk_samples(b), 8);
        rows += stk_samples(b);
        for (int64_t i = 0; i < 8; i++)
            valid += ((const uint8_t *)stk_field(b, "valid")->data)[i];
        stk_release(b);
    }
    CHECK_EQ(rows, 104);
    CHECK_EQ(valid, MANY);
    stk_close(l);
    o.drop_last = 1;
    CHECK_EQ(stk_open(&l, &o, NULL), STK_EUSAGE);
}

static void a_subset_keeps_its_names(void)
{
    const int64_t subset[] = {5, 50, 7};
    int64_t samples[MANY];
    int rc;
    stk_options o = base_options();
    o.subset = subset;
    o.n_subset = 3;
    stk_loader *l = open_loader(&o);
    CHECK_EQ(read_some(l, 10, samples, &rc), 3);
    CHECK(memcmp(samples, subset, sizeof subset) == 0);
    stk_close(l);
    const int64_t wrong[] = {100};
    o.subset = wrong;
    o.n_subset = 1;
    CHECK_EQ(stk_open(&l, &o, NULL), STK_EUSAGE);
    o.n_subset = 0;
    CHECK_EQ(stk_open(&l, &o, NULL), STK_EUSAGE);
}

/* ------------------------------------------------------------------ threads and processes */

static atomic_int taken[MANY], ends;

static void take_until_end(void *user, int i)
{
    (void)i;
    stk_loader *l = user;
    stk_batch *b;
    int rc;
    while ((rc = stk_next(l, &b, NULL)) == STK_OK) {
        for (int64_t k = 0; k < stk_samples(b); k++)
            if (stk_batch_epoch(b) == 0)
                taken[value_at(b, "index", k)]++;
        stk_release(b);
    }
    ends += rc == STK_END;
    stk_stop(l); /* the thread that sees the end stops the others */
}

static void several_callers(void)
{
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    struct pool callers;
    CHECK_EQ(pool_open(&callers, 4, take_until_end, NULL, l, NULL), STK_OK);
    pool_close(&callers);
    CHECK(ends >= 1);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(taken[i], 1);
    stk_close(l);
}

static void *stop_soon(void *arg)
{
    usleep(2000);
    stk_stop(arg);
    return NULL;
}

static void stop_wakes_everyone(void)
{
    for (int round = 0; round < 20; round++) {
        stk_options o = base_options();
        stk_loader *l = open_loader(&o);
        pthread_t t;
        pthread_create(&t, NULL, stop_soon, l);
        stk_batch *b;
        int rc = STK_OK;
        while (rc != STK_STOPPED) {
            rc = stk_next(l, &b, NULL);
            stk_release(b);
        }
        pthread_join(t, NULL);
        CHECK_EQ(stk_next_wait(l, &b, 10, NULL), STK_STOPPED);
        stk_close(l);
    }
}

static void closes_at_any_moment(void)
{
    for (int i = 0; i < 60; i++) {
        stk_options o = base_options();
        o.threads = 1 + i % 5;
        stk_loader *l = open_loader(&o);
        int64_t samples[2 * MANY];
        int rc;
        read_some(l, i % 7, samples, &rc);
        if (i % 3 == 0)
            usleep((unsigned)(i * 37 % 500));
        if (i % 4 == 0)
            stk_set_epoch(l, i, NULL);
        stk_close(l);
    }
}

static void a_child_can_open_its_own(void)
{
#if defined(__SANITIZE_THREAD__)
    SKIP("the thread sanitizer knows no threads after a fork");
#endif
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    stk_batch *kept;
    CHECK_EQ(stk_next(l, &kept, NULL), STK_OK);
    const pid_t child = fork();
    if (child == 0) {
        stk_batch *b;
        stk_error e;
        stk_stats s;
        char text[400];
        int bad = stk_next(l, &b, &e) != STK_EFORK || !strstr(e.text, "fork");
        bad |= stk_set_epoch(l, 3, &e) != STK_EFORK || stk_state_set(l, "{}", &e) != STK_EFORK;
        bad |= stk_state_get(l, text, sizeof text) != 0 || stk_stats_get(l, &s) != STK_EFORK;
        bad |= stk_loader_get(l, NULL, NULL, 0, 0, &b, &e) != STK_EFORK;
        bad |= stk_loader_set_order(l, 0, NULL, 0, NULL, 0, &e) != STK_EFORK;
        bad |= stk_loader_epoch(l) != -1 || stk_length(l) != -1 || stk_loader_count(l) != -1;
        bad |= stk_loader_source(l) != NULL || stk_loader_bad_sample(l, 0, &e) != STK_EFORK;
        bad |= stk_loader_fingerprint(l) != 0 || stk_loader_mix(l, 0, &(stk_mix_stats){0}) != STK_EFORK;
        bad |= stk_explain(l, text, sizeof text) == 0 || !strstr(text, "fork");
        stk_stop(l);
        stk_release(kept);
        stk_close(l);
        stk_loader *own;
        bad |= stk_open(&own, &o, &e) != STK_OK || stk_next(own, &b, &e) != STK_OK;
        stk_release(b);
        stk_close(own);
        _exit(bad);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    stk_release(kept);
    int64_t samples[MANY];
    int rc;
    CHECK_EQ(read_some(l, 100, samples, &rc), MANY - 8);
    stk_close(l);
}

/* ------------------------------------------------------------------ hooks, arrays, words */

static int negate(void *user, const stk_row *row, stk_error *e)
{
    (void)e;
    atomic_fetch_add((atomic_int *)user, 1);
    CHECK_EQ(row->image->ndim, 3);
    CHECK_EQ(row->label, row->sample % 10);
    uint8_t *px = row->image->data;
    for (int i = 0; i < 48; i++)
        px[i] = (uint8_t)~px[i];
    return STK_OK;
}

static void an_op_of_ones_own(void)
{
    atomic_int calls = 0;
    const stk_op_hook op = {.user = &calls, .run = negate};
    stk_options o = base_options();
    o.op = &op;
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    CHECK_EQ(*(uint8_t *)stk_field(b, "image")->data, 255);
    stk_release(b);
    stk_close(l);
    CHECK(calls >= 8);
}

static int say_nothing(void *user, const stk_row *row, stk_error *e)
{
    (void)e;
    return row->sample == 3 ? *(int *)user : STK_OK;
}

/* A hook need not fill in the error, and its code may be any number. */
static void an_op_that_fails(void)
{
    int codes[] = {STK_EDATA, -1, 1, 77};
    for (int i = 0; i < 4; i++) {
        const stk_op_hook op = {.user = &codes[i], .run = say_nothing};
        stk_options o = base_options();
        o.op = &op;
        stk_loader *l = open_loader(&o);
        stk_batch *b;
        stk_error e;
        CHECK(stk_next(l, &b, &e) >= STK_EUSAGE);
        CHECK(b == NULL && e.sample == 3 && e.text[0] != 0);
        CHECK_STR(e.stage, "op");
        stk_close(l);
    }
}

static void arrays_in_memory(void)
{
    static float x[MANY][3];
    static int32_t y[MANY];
    for (int i = 0; i < MANY; i++) {
        y[i] = i;
        for (int k = 0; k < 3; k++)
            x[i][k] = (float)(i + k);
    }
    const int64_t x_shape[] = {MANY, 3}, y_shape[] = {MANY};
    const stk_array arrays[] = {
        {.name = "x", .data = x, .dtype = STK_FLOAT32, .ndim = 2, .device = 1, .shape = x_shape},
        {.name = "label", .data = y, .dtype = STK_INT32, .ndim = 1, .device = 1, .shape = y_shape},
    };
    const stk_options o = {.arrays = arrays, .n_arrays = 2, .batch_size = 7, .shuffle = 1, .threads = 2};
    stk_loader *l = open_loader(&o);
    int seen[MANY] = {0};
    stk_batch *b;
    while (stk_next(l, &b, NULL) == STK_OK) {
        const float *values = stk_field(b, "x")->data;
        for (int64_t i = 0; i < stk_samples(b); i++) {
            const int64_t label = value_at(b, "label", i);
            CHECK_EQ(values[3 * i + 2], label + 2);
            seen[label]++;
        }
        stk_release(b);
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(seen[i], 1);
    stk_close(l);
}

/* A label that is not an integer is an ordinary tensor. */
static void float_labels(void)
{
    static float y[MANY];
    for (int i = 0; i < MANY; i++)
        y[i] = (float)i;
    const int64_t shape[] = {MANY};
    const stk_array label = {.name = "label", .data = y, .dtype = STK_FLOAT32, .ndim = 1, .device = 1, .shape = shape};
    const stk_options o = {.arrays = &label, .n_arrays = 1, .batch_size = MANY};
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    CHECK_EQ(stk_field(b, "label")->dtype, STK_FLOAT32);
    CHECK(memcmp(stk_field(b, "label")->data, y, sizeof y) == 0);
    stk_release(b);
    stk_close(l);
}

static void pixels_in_memory(void)
{
    static uint8_t px[10][6][5];
    for (int i = 0; i < 10; i++)
        memset(px[i], i * 20, sizeof px[i]);
    const int64_t shape[] = {10, 6, 5, 1};
    const stk_array image = {.name = "image", .data = px, .dtype = STK_UINT8, .ndim = 4, .device = 1, .shape = shape};
    const stk_options o = {
        .arrays = &image, .n_arrays = 1, .batch_size = 10, .ops = "Resize((3, 3))", .layout = STK_NHWC};
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    const stk_array *x = stk_field(b, "image");
    CHECK_EQ(x->shape[3], 3);
    for (int i = 0; i < 10; i++)
        CHECK(((float *)x->data)[i * 27 + 26] == (float)(i * 20) / 255.0f);
    stk_release(b);
    stk_close(l);
}

static void count_line(void *user, const char *text)
{
    CHECK(strstr(text, "left out"));
    atomic_fetch_add((atomic_int *)user, 1);
}

/* Images of one size need no ops. */
static void pixels_without_ops(void)
{
    static uint8_t px[4][2][3][3];
    memset(px, 51, sizeof px);
    const int64_t shape[] = {4, 2, 3, 3};
    const stk_array image = {.name = "image", .data = px, .dtype = STK_UINT8, .ndim = 4, .device = 1, .shape = shape};
    const stk_options o = {.arrays = &image, .n_arrays = 1};
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    const stk_array *x = stk_field(b, "image");
    CHECK(x->shape[1] == 3 && x->shape[2] == 2 && x->shape[3] == 3);
    CHECK(((float *)x->data)[17] == 51 / 255.0f);
    stk_release(b);
    stk_close(l);
}

static stk_loader *asked;

static void ask_back(void *user, const char *text)
{
    (void)text;
    stk_stats s;
    stk_error e;
    *(int *)user += stk_stats_get(asked, &s) == STK_OK && stk_loader_bad_sample(asked, 0, &e) == STK_OK;
}

static void a_log_may_ask_the_loader(void)
{
    int answers = 0;
    const stk_log_hook log = {.user = &answers, .line = ask_back};
    first_bad = 3;
    n_bad = 1;
    stk_options o = base_options();
    o.log = &log;
    o.on_error = STK_SKIP;
    asked = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    read_some(asked, 100, samples, &rc);
    CHECK_EQ(answers, 1);
    stk_close(asked);
    first_bad = MANY;
}

static int bad_cells(void *user, int thread, int64_t sample, const int *wanted, int n, stk_cell *cells, stk_error *e)
{
    (void)user, (void)thread, (void)sample, (void)wanted, (void)n, (void)cells, (void)e;
    return STK_EDATA;
}

static size_t key_with_questions(void *user, int64_t sample, char *buf, size_t n)
{
    stk_stats s;
    *(int *)user += stk_stats_get(asked, &s) == STK_OK;
    return (size_t)snprintf(buf, n, "row %d", (int)sample);
}

/* The hook that names a sample may ask, too. */
static void a_key_may_ask_the_loader(void)
{
    int answers = 0;
    const stk_column x = {.name = "x", .kind = STK_TENSOR, .dtype = STK_FLOAT32};
    const stk_cells_hooks h = {
        .user = &answers, .count = count, .columns = &x, .n_columns = 1, .cells = bad_cells, .key = key_with_questions};
    const stk_options o = {.cells_hooks = &h, .fields = "x", .batch_size = 2};
    stk_batch *b;
    stk_error e;
    alarm(60); /* a deadlock ends the test */
    asked = open_loader(&o);
    CHECK_EQ(stk_next(asked, &b, &e), STK_EDATA);
    CHECK_STR(e.path, "row 0");
    CHECK_EQ(stk_loader_bad_sample(asked, 1, &e), STK_OK);
    CHECK_STR(e.path, "row 1");
    CHECK_SAYS(e.text, "row 1: ");
    CHECK(answers > 0);
    stk_close(asked);
    alarm(0);
}

/* The options are copied: what they point to may change after stk_open. */
static void options_may_go(void)
{
    const uint8_t pixels[2 * 4 * 4 * 3] = {0};
    const int64_t labels[2] = {0}, shape[] = {2, 4, 4, 3};
    const stk_array arrays[] = {
        {.name = "image", .data = (void *)(uintptr_t)pixels, .dtype = STK_UINT8, .ndim = 4, .shape = shape},
        {.name = "label", .data = (void *)(uintptr_t)labels, .dtype = STK_INT64, .ndim = 1, .shape = shape}};
    char ops[] = "CenterCrop(2)", fields[] = "label", text[2000];
    const stk_options o = {.arrays = arrays, .n_arrays = 2, .ops = ops, .fields = fields, .threads = 1};
    stk_loader *l = open_loader(&o);
    ops[0] = fields[0] = 0;
    stk_explain(l, text, sizeof text);
    CHECK_SAYS(text, "ops        not run");
    stk_close(l);
}

static void words(void)
{
    atomic_int lines = 0;
    const stk_log_hook log = {.user = &lines, .line = count_line};
    first_bad = 3;
    n_bad = 1;
    stk_options o = base_options();
    o.log = &log;
    o.on_error = STK_SKIP;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    read_some(l, 100, samples, &rc);
    CHECK_EQ(lines, 1);
    char text[2000];
    const size_t n = stk_explain(l, text, sizeof text);
    CHECK(n == strlen(text) && strstr(text, "threads    3") && strstr(text, "CenterCrop"));
    CHECK(stk_explain(l, NULL, 0) == n);
    stk_stats s;
    CHECK_EQ(stk_stats_get(l, &s), STK_OK);
    CHECK(s.limit >= STK_LIMIT_READ && s.limit <= STK_LIMIT_CONSUMER);
    CHECK(stk_source_path(stk_loader_source(l), 17, text, sizeof text) > 0);
    CHECK_EQ(stk_source_path(stk_loader_source(l), 1000, text, sizeof text), 0);
    stk_close(l);
    first_bad = MANY;
}

int main(int argc, char **argv)
{
    made_begin();
    const struct test_case cases[] = {
        T(an_epoch_has_every_sample_once),
        T(threads_change_nothing),
        T(ranks_join_to_one),
        T(short_dropped_and_padded_batches),
        T(a_subset_keeps_its_names),
        T(several_callers),
        T(stop_wakes_everyone),
        T(closes_at_any_moment),
        T(a_child_can_open_its_own),
        T(an_op_of_ones_own),
        T(an_op_that_fails),
        T(arrays_in_memory),
        T(float_labels),
        T(pixels_in_memory),
        T(pixels_without_ops),
        T(a_log_may_ask_the_loader),
        T(a_key_may_ask_the_loader),
        T(options_may_go),
        T(words),
    };
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    made_end();
    return rc;
}
