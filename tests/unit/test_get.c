/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_get.c -- rows outside of the order, and their random draws. One source is 40 samples that fill() makes, of
 * which 13 is bad; another is three images, encoded; a third pixels in memory.
 */
#include <pthread.h>
#include <stdbool.h>

#include "support/open_loader.h"

enum { MANY = 40, WIDE = 31, HIGH = 23 };

static const int64_t *numbers(const stk_batch *b, const char *name)
{
    return stk_field(b, name)->data;
}

/* ------------------------------------------------------------------ rows that a hook fills */

static int64_t many(void *user)
{
    (void)user;
    return MANY;
}

static int fill(void *user, const stk_row *row, void *const *to, stk_error *e)
{
    (void)user;
    if (row->sample == 13)
        return snprintf(e->reason, sizeof e->reason, "is unlucky"), STK_EDATA;
    *(int64_t *)to[0] = row->sample;
    *(uint64_t *)to[1] = row->random;
    return STK_OK;
}

static const stk_array fields[] = {{.name = "label", .dtype = STK_INT64}, {.name = "random", .dtype = STK_UINT64}};
static const stk_fill_hooks filled = {.count = many, .fill = fill, .fields = fields, .n_fields = 2};

static stk_options filled_options(void)
{
    return (stk_options){.fill_hooks = &filled, .batch_size = 4, .threads = 2, .on_error = STK_SKIP, .max_bad = 1};
}

/* The same labels, random numbers and positions in both. */
static void check_same(const stk_batch *a, const stk_batch *b)
{
    CHECK_EQ(stk_samples(a), stk_samples(b));
    for (int64_t i = 0; i < stk_samples(a); i++) {
        CHECK_EQ(numbers(a, "label")[i], numbers(b, "label")[i]);
        CHECK_EQ(numbers(a, "random")[i], numbers(b, "random")[i]);
    }
}

static void get_is_what_training_saw(void)
{
    stk_options o = filled_options();
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    stk_batch *b, *again;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    stk_error e;
    CHECK_EQ(stk_loader_get(l, numbers(b, "index"), NULL, stk_samples(b), 0, &again, &e), STK_OK);
    check_same(b, again);
    stk_release(again);
    stk_release(b);
    const int64_t bad[] = {1, 13}, none[] = {MANY};
    CHECK_EQ(stk_loader_get(l, bad, NULL, 2, 0, &again, &e), STK_EDATA);
    CHECK_EQ(e.sample, 13);
    CHECK_EQ(stk_loader_get(l, none, NULL, 1, 0, &again, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_get(l, bad, NULL, -1, 0, &again, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_get(l, bad, NULL, 1, -1, &again, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_get(l, NULL, NULL, 1, 0, &again, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_get(l, bad, NULL, 0, 3, &again, &e), STK_OK);
    CHECK_EQ(stk_samples(again), 0);
    CHECK(stk_batch_retain_field(again, "nothing") == NULL);
    stk_memory *m = stk_batch_retain_field(again, "valid");
    stk_memory_retain(m);
    stk_memory_release(m);
    stk_memory_release(m);
    stk_release(again);
    stk_close(l);
}

/* More rows than a batch has; they outlive the loader. */
static void get_more_than_a_batch(void)
{
    stk_options o = filled_options();
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    for (int64_t i = 0; i < MANY; i++)
        samples[i] = (i * 7) % 13;
    stk_batch *b;
    CHECK_EQ(stk_loader_get(l, samples, NULL, MANY, 0, &b, NULL), STK_OK);
    stk_close(l);
    CHECK_EQ(stk_samples(b), MANY);
    CHECK_EQ(memcmp(numbers(b, "label"), samples, sizeof samples), 0);
    stk_release(b);
}

static void *get_many(void *user)
{
    for (int64_t i = 0; i < 50; i++) {
        stk_batch *b;
        const int64_t sample = i % 13;
        CHECK_EQ(stk_loader_get(user, &sample, NULL, 1, 0, &b, NULL), STK_OK);
        CHECK_EQ(numbers(b, "label")[0], sample);
        stk_release(b);
        char text[STK_DRAWN_BYTES];
        CHECK_EQ(stk_loader_drawn(user, &sample, NULL, 0, text, sizeof text, NULL), STK_OK);
    }
    return NULL;
}

static void get_from_many_threads(void)
{
    stk_options o = filled_options();
    stk_loader *l = open_loader(&o);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, get_many, l);
    stk_batch *b;
    int64_t got = 0;
    while (stk_next(l, &b, NULL) == STK_OK) {
        got += stk_samples(b);
        stk_release(b);
    }
    CHECK_EQ(got, MANY - 1);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    stk_close(l);
}

/* Epochs in order, and the same rows again by position, with and without their samples. */
static void check_positions(stk_loader *l, bool alone)
{
    stk_batch *b, *again;
    for (int n = 0; n < 30;) {
        const int rc = stk_next(l, &b, NULL);
        if (rc != STK_OK)
            continue;
        const int64_t epoch = stk_batch_epoch(b), rows = stk_samples(b);
        CHECK_EQ(stk_loader_get(l, numbers(b, "index"), numbers(b, "position"), rows, epoch, &again, NULL), STK_OK);
        check_same(b, again);
        CHECK_EQ(numbers(b, "position")[0], numbers(again, "position")[0]);
        stk_release(again);
        if (alone) {
            CHECK_EQ(stk_loader_get(l, NULL, numbers(b, "position"), rows, epoch, &again, NULL), STK_OK);
            check_same(b, again);
            stk_release(again);
        }
        stk_release(b);
        n++;
    }
}

static void positions_are_what_training_saw(void)
{
    stk_options o = filled_options();
    stk_loader *l = open_loader(&o);
    check_positions(l, true);
    const int64_t outside[] = {-1, MANY};
    stk_batch *b;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(stk_loader_get(l, NULL, &outside[i], 1, 0, &b, NULL), STK_EUSAGE);
    stk_close(l);

    o.shuffle = 1;
    o.steps_per_epoch = 7;
    l = open_loader(&o);
    check_positions(l, true);
    stk_close(l);

    const int64_t some[] = {3, 9, 9, 3, 20, 13, 9, 14};
    o.subset = some;
    o.n_subset = 8;
    l = open_loader(&o);
    check_positions(l, true);
    stk_close(l);
    o.subset = NULL;

    o.shuffle = 0;
    double weights[MANY];
    for (int i = 0; i < MANY; i++)
        weights[i] = i % 5;
    o.weights = weights;
    o.n_weights = MANY;
    l = open_loader(&o);
    check_positions(l, true);
    stk_close(l);
}

static void positions_of_orders_that_are_given(void)
{
    stk_options o = filled_options();
    o.sampled = 1;
    stk_loader *l = open_loader(&o);
    const int64_t samples[] = {5, 5, 7, 5}, positions[] = {0, 1, 2, 3};
    stk_batch *b, *again;
    CHECK_EQ(stk_loader_set_order(l, 0, samples, 4, NULL, 0, NULL), STK_OK);
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    CHECK_EQ(stk_loader_get(l, samples, positions, 4, 0, &again, NULL), STK_OK);
    check_same(b, again);
    CHECK(numbers(b, "random")[0] != numbers(b, "random")[1]);
    stk_release(again);
    stk_release(b);
    stk_error e;
    CHECK_EQ(stk_loader_get(l, NULL, positions, 4, 0, &again, &e), STK_EUSAGE);
    CHECK(strstr(e.reason, "give the samples to get"));
    stk_close(l);
}

/* ------------------------------------------------------------------ what was drawn */

static void *images[3];
static size_t n_images[3];

static int64_t three(void *user)
{
    (void)user;
    return 3;
}

static int read_image(void *user, int thread, int64_t sample, const void **bytes, size_t *n, int64_t *label,
                      stk_error *e)
{
    (void)user, (void)thread, (void)e;
    *bytes = images[sample];
    *n = n_images[sample];
    *label = sample;
    return STK_OK;
}

static const stk_read_hooks encoded = {.count = three, .read = read_image};

static bool make_images(void)
{
    uint8_t px[WIDE * HIGH * 3];
    for (size_t i = 0; i < sizeof px; i++)
        px[i] = (uint8_t)(i * 7);
    for (int i = 0; i < 3 && !images[i]; i++) {
        const stk_encode_options o = {.format = STK_PNG};
        if (stk_encode(px, WIDE, HIGH, 3, WIDE * 3, &o, &images[i], &n_images[i], NULL) != STK_OK)
            return false;
    }
    n_images[2] = 20; /* cut short */
    return true;
}

static int no_op(void *user, const stk_row *row, stk_error *e)
{
    (void)e;
    *(uint64_t *)user = row->random;
    return STK_OK;
}

static void words_for_images(void)
{
    if (!make_images())
        SKIP("PNG is not in this build");
    uint64_t random = 0;
    const stk_op_hook op = {.user = &random, .run = no_op};
    stk_options o = {.read_hooks = &encoded, .ops = "RandomCrop(8) | RandomHorizontalFlip(1)", .op = &op, .threads = 1};
    o.sampled = 1; /* nothing is made ahead */
    stk_loader *l = open_loader(&o);
    char text[STK_DRAWN_BYTES], want[64];
    const int64_t sample = 1, bad = 2, beyond = 3;
    stk_error e;
    CHECK_EQ(stk_loader_drawn(l, &sample, NULL, 3, text, sizeof text, &e), STK_OK);
    CHECK(strstr(text, "{\"sample\": 1, \"size\": [23, 31], \"ops\": [{\"op\": \"RandomCrop\", "));
    CHECK(strstr(text, "\"height\": 8, \"width\": 8}, {\"op\": \"RandomHorizontalFlip\", \"flip\": true}], \"op\": "));
    stk_batch *b;
    CHECK_EQ(stk_loader_get(l, &sample, NULL, 1, 3, &b, &e), STK_OK);
    stk_release(b);
    snprintf(want, sizeof want, "\"op\": %" PRIu64 "}", random);
    CHECK(strstr(text, want));
    CHECK_EQ(stk_loader_drawn(l, &bad, NULL, 0, text, sizeof text, &e), STK_EDATA);
    CHECK_EQ(e.sample, 2);
    CHECK_EQ(stk_loader_drawn(l, &beyond, NULL, 0, text, sizeof text, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_drawn(l, &sample, NULL, -1, text, sizeof text, &e), STK_EUSAGE);
    CHECK_EQ(stk_loader_drawn(l, &sample, NULL, 0, text, 20, &e), STK_EUSAGE);
    CHECK(strstr(e.reason, "16384 bytes are enough"));
    stk_close(l);
    for (int i = 0; i < 3; i++)
        stk_free(images[i]);
}

static void words_for_the_rest(void)
{
    uint8_t px[2 * 5 * 6] = {0};
    const int64_t shape[] = {2, 5, 6, 1}, two[] = {2};
    const stk_array arrays[] = {{.name = "image", .data = px, .dtype = STK_UINT8, .ndim = 4, .shape = shape}};
    stk_options o = {.arrays = arrays, .n_arrays = 1, .ops = "CenterCrop((3, 8)) | Normalize", .threads = 1};
    stk_loader *l = open_loader(&o);
    char text[STK_DRAWN_BYTES];
    const int64_t sample = 1;
    CHECK_EQ(stk_loader_drawn(l, &sample, NULL, 0, text, sizeof text, NULL), STK_OK);
    CHECK_STR(text, "{\"sample\": 1, \"size\": [5, 6], \"ops\": [{\"op\": \"CenterCrop\", \"top\": 1, \"left\": -1, "
                    "\"height\": 3, \"width\": 8}, {\"op\": \"Normalize\"}]}");
    stk_close(l);

    float x[2] = {0};
    const stk_array plain[] = {{.name = "x", .data = x, .dtype = STK_FLOAT32, .ndim = 1, .shape = two}};
    o = (stk_options){.arrays = plain, .n_arrays = 1, .threads = 1};
    l = open_loader(&o);
    CHECK_EQ(stk_loader_drawn(l, NULL, &sample, 0, text, sizeof text, NULL), STK_OK);
    CHECK_STR(text, "{\"sample\": 1, \"size\": [0, 0], \"ops\": []}");
    CHECK_EQ(stk_loader_blended(l, 0, 2, 1, 0, text, sizeof text, NULL), STK_OK); /* nothing combines rows */
    CHECK_STR(text, "{}");
    CHECK_EQ(stk_loader_blended(l, 0, 2, 2, 0, text, sizeof text, NULL), STK_EUSAGE);
    CHECK_EQ(stk_loader_blended(l, 0, 2, 1, 0, text, 2, NULL), STK_EUSAGE);
    stk_close(l);

    o = filled_options();
    l = open_loader(&o);
    CHECK_EQ(stk_loader_drawn(l, &sample, NULL, 0, text, sizeof text, NULL), STK_OK);
    CHECK(strstr(text, "\"ops\": [], \"fill\": "));
    stk_close(l);
}

int main(int argc, char **argv)
{
    TESTS(T(get_is_what_training_saw), T(get_more_than_a_batch), T(get_from_many_threads),
          T(positions_are_what_training_saw), T(positions_of_orders_that_are_given), T(words_for_images),
          T(words_for_the_rest))
}
