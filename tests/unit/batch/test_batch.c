/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <unistd.h>

#include "batch/batch.h"
#include "test.h"

static int live, made;

static void *count_alloc(void *user, size_t bytes)
{
    (void)user;
    live++;
    made++;
    return malloc(bytes);
}

static void count_free(void *user, void *p, size_t bytes)
{
    (void)user, (void)bytes;
    live--;
    free(p);
}

static const stk_allocator counting = {.alloc = count_alloc, .free = count_free};

static struct depot *depot_of(int64_t rows, int keep)
{
    const struct field fields[] = {
        {.name = "image", .kind = FIELD_TENSOR, .dtype = STK_UINT8, .ndim = 2, .shape = {3, 4}, .bytes = 12},
        {.name = "label", .kind = FIELD_TENSOR, .dtype = STK_INT64, .bytes = 8},
        {.name = "valid", .kind = FIELD_TENSOR, .dtype = STK_BOOL, .bytes = 1},
    };
    struct depot *d = NULL;
    made = live = 0;
    CHECK_EQ(depot_open(&d, fields, 3, 2, rows, keep, &counting, NULL), STK_OK);
    return d;
}

static void has_fields(void)
{
    struct depot *d = depot_of(5, 2);
    struct stk_batch *b = depot_take(d);
    batch_set_rows(b, 4);
    CHECK_EQ(stk_samples(b), 4);
    CHECK_EQ(stk_batch_n_fields(b), 2);
    const stk_array *x = stk_field(b, "image");
    CHECK_EQ(x->ndim, 3);
    CHECK_EQ(x->shape[0], 4);
    CHECK_EQ(x->shape[2], 4);
    CHECK(x->data == batch_row(b, 0, 0) && x->device == 1 && !x->strides);
    CHECK(stk_field_at(b, 1) == stk_field(b, "label"));
    CHECK(stk_field(b, "valid") && !stk_field(b, "nothing") && !stk_field_at(b, 9) && !stk_field_at(b, -1));
    stk_release(b);
    stk_release(NULL);
    depot_close(d);
    depot_close(NULL);
    CHECK_EQ(live, 0);
}

static void memory_comes_back(void)
{
    struct depot *d = depot_of(5, 2);
    for (int i = 0; i < 100; i++)
        stk_release(depot_take(d));
    CHECK_EQ(made, 3);
    struct stk_batch *kept[5];
    for (int i = 0; i < 5; i++)
        kept[i] = depot_take(d);
    CHECK_EQ(live, 15);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            CHECK(stk_field_at(kept[i], 0)->data != stk_field_at(kept[k], 0)->data);
    for (int i = 0; i < 5; i++)
        stk_release(kept[i]);
    CHECK_EQ(live, 6); /* two of each are kept */
    depot_close(d);
    CHECK_EQ(live, 0);
}

static void a_label_does_not_hold_the_images(void)
{
    struct depot *d = depot_of(5, 2);
    struct stk_batch *b = depot_take(d);
    stk_retain(b);
    stk_memory *label = stk_batch_retain_field(b, "label");
    stk_release(b);
    CHECK_EQ(d->bytes_in, 0);
    stk_release(b);
    CHECK_EQ(d->bytes_in, 5 * 13);
    CHECK_EQ(d->bytes_out, 5 * 8);
    depot_close(d); /* the label may outlive it */
    CHECK_EQ(live, 1);
    memset(label->data, 1, 40);
    stk_memory_release(label);
    stk_memory_release(NULL);
    CHECK_EQ(live, 0);
}

static void compacts(void)
{
    struct depot *d = depot_of(5, 2);
    struct stk_batch *b = depot_take(d);
    for (int64_t i = 0; i < 5; i++)
        memset(batch_row(b, 0, i), (int)i, 12);
    const uint8_t keep[5] = {0, 1, 1, 0, 1};
    CHECK_EQ(batch_compact(b, keep, 5), 3);
    CHECK_EQ(stk_samples(b), 3);
    CHECK_EQ(*batch_row(b, 0, 0), 1);
    CHECK_EQ(*batch_row(b, 0, 2), 4);
    batch_copy_row(b, -1, 0, 2);
    CHECK_EQ(*batch_row(b, 0, 0), 0);
    stk_release(b);
    depot_close(d);
}

/* Rows of ragged fields that stay are moved, not copied, so this cannot fail for lack of memory. */
static void compacts_ragged(void)
{
    const struct field fields[] = {
        {.name = "x", .kind = FIELD_RAGGED, .dtype = STK_UINT8, .ndim = 1, .shape = {-1}, .bytes = 1, .beside = 1},
        {.name = "x.offsets", .kind = FIELD_OFFSETS, .dtype = STK_INT64, .bytes = 8},
    };
    struct depot *d = NULL;
    CHECK_EQ(depot_open(&d, fields, 2, 1, 3, 1, NULL, NULL), STK_OK);
    struct stk_batch *b = depot_take(d);
    for (int64_t i = 0; i < 3; i++) {
        struct ragged_row *p = batch_ragged_row(b, 0, i);
        CHECK_EQ(ragged_row_reserve(p, 1), 0);
        p->data[0] = (uint8_t)i;
        p->n = 1;
        p->shape[0] = 1;
    }
    const uint8_t *last = batch_ragged_row(b, 0, 2)->data, keep[3] = {0, 1, 1};
    CHECK_EQ(batch_compact(b, keep, 3), 2);
    CHECK(batch_ragged_row(b, 0, 1)->data == last);
    CHECK_EQ(batch_join(b, NULL), STK_OK);
    const uint8_t *joined = stk_field(b, "x")->data;
    CHECK(joined[0] == 1 && joined[1] == 2 && stk_field(b, "x")->shape[0] == 2);
    stk_release(b);
    depot_close(d);
}

/* The bytes of ragged rows in a batch are limited; their memory is counted as long as it is allocated. */
static void ragged_rows_have_a_limit(void)
{
    enum { ROWS = 8, BYTES = 1000, MOST = 5000 };
    static uint8_t bytes[BYTES];
    const struct field fields[] = {{.name = "x",
                                    .kind = FIELD_RAGGED,
                                    .what = STK_BYTES,
                                    .dtype = STK_UINT8,
                                    .ndim = 1,
                                    .shape = {-1},
                                    .bytes = 1,
                                    .beside = 1},
                                   {.name = "x.offsets", .kind = FIELD_OFFSETS, .dtype = STK_INT64, .bytes = 8}};
    struct depot *d = NULL;
    CHECK_EQ(depot_open(&d, fields, 2, 1, ROWS, 1, NULL, NULL), STK_OK);
    d->ragged_most = MOST;
    for (int64_t rows = 4; rows <= ROWS; rows += 4) {
        struct stk_batch *b = depot_take(d);
        stk_error e = {0};
        for (int64_t row = 0; row < rows; row++) {
            struct ragged_row *p = batch_open_ragged(b, 0, row);
            if (!p)
                continue;
            CHECK_EQ(ragged_row_copy(p, &(struct ragged_row){.data = bytes, .n = BYTES, .shape = {BYTES}}), 0);
            batch_close_ragged(b, p);
        }
        CHECK(d->allocated >= d->ragged && d->allocated < 2 * (MOST + BYTES) && d->ragged <= MOST + BYTES);
        CHECK_EQ(depot_is_full(d), rows > 4);
        batch_set_rows(b, rows);
        CHECK_EQ(batch_join(b, &e), rows > 4 ? STK_ENOMEM : STK_OK);
        CHECK_EQ(e.text[0] != 0, rows > 4);
        stk_release(b);
        CHECK_EQ(d->ragged, 0);
    }
    depot_close(d);
}

static void sizes_are_checked(void)
{
    const struct field huge = {.bytes = SIZE_MAX / 4};
    CHECK_EQ(depot_batch_bytes(&huge, 1, 8), 0);
    const struct field none = {.bytes = 0};
    CHECK_EQ(depot_batch_bytes(&none, 1, 8), 0);
    CHECK_EQ(depot_batch_bytes(&huge, 1, 0), 0);
}

/* The ring has two. Of those that the caller kept, one may stay in the depot, so that a caller that always keeps some
 * needs no new allocation. */
static void kept_ones_are_freed(void)
{
    struct depot *d = depot_of(5, 3);
    struct stk_batch *b[10];
    for (int i = 0; i < 10; i++)
        b[i] = depot_take(d);
    for (int i = 2; i < 10; i++)
        stk_release(b[i]);
    CHECK_EQ(live, 3 * 3);
    for (int i = 2; i < 10; i++)
        b[i] = depot_take(d);
    const int before = made;
    for (int i = 0; i < 100; i++) {
        stk_release(b[i % 10]);
        b[i % 10] = depot_take(d);
    }
    CHECK_EQ(made, before);
    for (int i = 0; i < 10; i++)
        stk_release(b[i]);
    CHECK_EQ(live, 3 * 3);
    depot_close(d);
    CHECK_EQ(live, 0);
}

/* In a forked child, releasing does nothing, and does not hang. */
static void a_child_leaves_it_alone(void)
{
    struct depot *d = depot_of(5, 2);
    struct stk_batch *b = depot_take(d);
    pthread_mutex_lock(&d->lock);
    const pid_t child = fork();
    if (child == 0) {
        stk_release(b);
        _exit(0);
    }
    pthread_mutex_unlock(&d->lock);
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    stk_release(b);
    depot_close(d);
    CHECK_EQ(live, 0);
}

int main(int argc, char **argv)
{
    TESTS(T(has_fields), T(memory_comes_back), T(kept_ones_are_freed), T(a_label_does_not_hold_the_images), T(compacts),
          T(compacts_ragged), T(ragged_rows_have_a_limit), T(sizes_are_checked), T(a_child_leaves_it_alone))
}
