/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_cells.c -- hooks with cells(): columns, their fields, and a loader. */
#include "stoker.h"
#include "support/temp_tree.h"
#include "test.h"

enum { ROWS = 20 };

struct mine {
    int closed, fails, missing;
    float x[ROWS][2];
    int32_t label[ROWS];
    char text[ROWS][8];
    int64_t ids[ROWS * ROWS];
};

static int64_t count(void *user)
{
    (void)user;
    return ROWS;
}

static int cells(void *user, int thread, int64_t i, const int *wanted, int n, stk_cell *to, stk_error *e)
{
    struct mine *m = user;
    (void)thread;
    if (i == m->fails) {
        snprintf(e->reason, sizeof e->reason, "row %d is gone", (int)i);
        return STK_EDATA;
    }
    for (int k = 0; k < n; k++) {
        if (wanted[k] == 0)
            to[k] = (stk_cell){.bytes = m->x[i], .n = 8, .dtype = STK_FLOAT32, .ndim = 1, .shape = {2}};
        else if (wanted[k] == 1)
            to[k] = (stk_cell){.bytes = &m->label[i], .n = 4, .dtype = STK_INT32};
        else if (wanted[k] == 2 && i != m->missing)
            to[k] = (stk_cell){.bytes = m->text[i], .n = strlen(m->text[i])};
        else if (wanted[k] == 3)
            to[k] = (stk_cell){.bytes = m->ids, .n = (size_t)i * 8, .dtype = STK_INT64, .ndim = 1, .shape = {i}};
    }
    return STK_OK;
}

static void close_mine(void *user)
{
    ((struct mine *)user)->closed++;
}

static size_t key(void *user, int64_t i, char *buf, size_t n)
{
    (void)user;
    return (size_t)snprintf(buf, n, "table row %d", (int)i);
}

static const int64_t two[] = {2}, any[] = {-1};
static const stk_column columns[] = {
    {.name = "x", .kind = STK_TENSOR, .dtype = STK_FLOAT32, .ndim = 1, .shape = two},
    {.name = "y", .kind = STK_INT, .dtype = STK_INT32, .label = 1},
    {.name = "caption", .kind = STK_TEXT},
    {.name = "ids", .kind = STK_TENSOR, .dtype = STK_INT64, .ndim = 1, .shape = any},
};

static struct mine make(void)
{
    struct mine m = {.fails = -1, .missing = -1};
    for (int i = 0; i < ROWS; i++) {
        m.x[i][0] = (float)i;
        m.x[i][1] = (float)-i;
        m.label[i] = i % 3;
        snprintf(m.text[i], sizeof m.text[i], "t%d", i);
        m.ids[i] = 100 + i;
    }
    return m;
}

static stk_cells_hooks hooks_of(struct mine *m)
{
    return (stk_cells_hooks){.user = m,
                             .count = count,
                             .cells = cells,
                             .close = close_mine,
                             .columns = columns,
                             .n_columns = 4,
                             .key = key,
                             .kind = "table"};
}

static void columns_become_fields(void)
{
    struct mine m = make();
    const stk_cells_hooks h = hooks_of(&m);
    const stk_options o = {.cells_hooks = &h, .batch_size = 7, .threads = 2};
    stk_loader *l;
    stk_error e;
    stk_batch *b;
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    CHECK_EQ(stk_next(l, &b, &e), STK_OK);
    CHECK_EQ(stk_batch_n_fields(b), 4);
    CHECK_STR(stk_field_at(b, 0)->name, "label");
    CHECK_EQ(((const int64_t *)stk_field(b, "label")->data)[4], 1);
    CHECK(((const float *)stk_field(b, "x")->data)[2 * 6 + 1] == -6.0f);
    const int64_t *text = stk_field(b, "caption.offsets")->data, *ids = stk_field(b, "ids.offsets")->data;
    CHECK_EQ(text[3], 6);
    CHECK(memcmp((const char *)stk_field(b, "caption")->data + text[3], "t3", 2) == 0);
    CHECK_EQ(ids[7], 21);
    CHECK_EQ(((const int64_t *)stk_field(b, "ids")->data)[ids[3] + 2], 102);
    CHECK_EQ(stk_field_at(b, 2)->kind, STK_TEXT);
    stk_release(b);
    char name[64];
    CHECK_EQ(stk_source_path(stk_loader_source(l), 3, name, sizeof name), 11);
    CHECK_STR(name, "table row 3");
    stk_close(l);
    CHECK_EQ(m.closed, 1);
}

static void fields_choose(void)
{
    struct mine m = make();
    const stk_cells_hooks h = hooks_of(&m);
    const stk_options o = {
        .cells_hooks = &h, .batch_size = 5, .threads = 1, .fields = "words=caption:text ? \"\", ids:int32(*) pad=-1"};
    m.missing = 2;
    stk_loader *l;
    stk_error e;
    stk_batch *b;
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    CHECK_EQ(stk_next(l, &b, &e), STK_OK);
    CHECK_EQ(stk_batch_n_fields(b), 2);
    const int64_t *text = stk_field(b, "words.offsets")->data;
    CHECK_EQ(text[3] - text[2], 0);
    const stk_array *ids = stk_field(b, "ids");
    CHECK_EQ(ids->ndim, 2);
    CHECK_EQ(ids->shape[1], 4);
    CHECK_EQ(((const int32_t *)ids->data)[4 * 1 + 1], -1);
    stk_release(b);
    stk_close(l);
}

static void failures_are_bad_samples(void)
{
    struct mine m = make();
    const stk_cells_hooks h = hooks_of(&m);
    const stk_options o = {.cells_hooks = &h, .batch_size = 5, .threads = 1};
    m.fails = 3;
    m.missing = 7;
    stk_loader *l;
    stk_error e;
    stk_batch *b;
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    CHECK_EQ(stk_next(l, &b, &e), STK_EDATA);
    CHECK(strstr(e.text, "table row 3: row 3 is gone"));
    CHECK_EQ(stk_next(l, &b, &e), STK_EDATA);
    CHECK(strstr(e.text, "the sample has no caption"));
    CHECK_EQ(stk_next(l, &b, &e), STK_OK);
    stk_release(b);
    stk_close(l);
}

static void refused(void)
{
    struct mine m = make();
    stk_cells_hooks h = hooks_of(&m);
    stk_options o = {.cells_hooks = &h, .threads = 1, .fields = "capton:text"};
    stk_loader *l;
    stk_error e;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "caption"));
    o.fields = NULL;
    h.n_columns = 0;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    CHECK_EQ(m.closed, 2);
    static const stk_column wrong[] = {{.name = ""}, {.name = "deep", .ndim = 9, .shape = two}};
    static const char *const words[] = {"column 0 of the source has no name", "the column deep has 9 dimensions"};
    for (int i = 0; i < 2; i++) {
        h.columns = &wrong[i];
        h.n_columns = 1;
        CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
        CHECK_SAYS(e.text, words[i]);
    }
}

static void order_of(const stk_options *o, int64_t *to, char *state, size_t n)
{
    stk_loader *l;
    stk_error e;
    stk_batch *b;
    CHECK_EQ(stk_open(&l, o, &e), STK_OK);
    for (int64_t at = 0; stk_next(l, &b, &e) == STK_OK; stk_release(b))
        for (int64_t i = 0; i < stk_samples(b); i++)
            to[at++] = ((const int64_t *)stk_field(b, "index")->data)[i];
    stk_state_get(l, state, n);
    stk_close(l);
}

/* Blocks of five are read one after the other; each window of five samples is one block. */
static void blocks_stay_together(void)
{
    static const int64_t fives[] = {0, 5, 10, 15};
    struct mine m = make();
    stk_cells_hooks h = hooks_of(&m);
    h.blocks = fives;
    h.n_blocks = 4;
    h.window = 5;
    const stk_options o = {.cells_hooks = &h, .batch_size = 4, .threads = 2, .shuffle = 1, .seed = 3};
    int64_t order[ROWS];
    char state[512];
    order_of(&o, order, state, sizeof state);
    int seen[ROWS] = {0}, moved = 0;
    for (int i = 0; i < ROWS; i++) {
        seen[order[i]]++;
        moved += order[i] % 5 != i % 5;
        CHECK_EQ(order[i] / 5, order[i / 5 * 5] / 5);
    }
    for (int i = 0; i < ROWS; i++)
        CHECK_EQ(seen[i], 1);
    CHECK(moved > 0);
    CHECK(strstr(state, "\"window\":5"));
}

static void states_of_other_windows_are_refused(void)
{
    static const int64_t tens[] = {0, 10};
    struct mine m = make();
    stk_cells_hooks h = hooks_of(&m);
    const stk_options o = {.cells_hooks = &h, .batch_size = 4, .threads = 1, .shuffle = 1};
    int64_t order[ROWS];
    char state[512];
    stk_loader *l;
    stk_error e;
    order_of(&o, order, state, sizeof state);
    CHECK(!strstr(state, "window"));
    h.blocks = tens;
    h.n_blocks = 2;
    h.window = 7;
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    CHECK(strstr(e.text, "windows of 0 samples then, of 7 now"));
    stk_close(l);
}

static void wrong_blocks_are_refused(void)
{
    static const int64_t wrong[][2] = {{1, 5}, {0, 0}, {0, ROWS}, {0, -1}};
    struct mine m = make();
    stk_cells_hooks h = hooks_of(&m);
    const stk_options o = {.cells_hooks = &h, .threads = 1};
    stk_loader *l;
    stk_error e;
    h.n_blocks = 2;
    h.window = 1;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        h.blocks = wrong[i];
        CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
        CHECK(strstr(e.text, "start at 0 and increase"));
    }
}

/* Text is parsed if numbers are requested. */
static void text_as_numbers(void)
{
    struct mine m = make();
    const stk_cells_hooks h = hooks_of(&m);
    const stk_options o = {.cells_hooks = &h, .batch_size = ROWS, .threads = 1, .fields = "caption:float32(2)"};
    stk_loader *l;
    stk_error e;
    stk_batch *b;
    for (int i = 0; i < ROWS; i++)
        snprintf(m.text[i], sizeof m.text[i], "%d 0.5", i);
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    CHECK_EQ(stk_next(l, &b, &e), STK_OK);
    CHECK(((const float *)stk_field(b, "caption")->data)[2 * 7] == 7.0f);
    CHECK(((const float *)stk_field(b, "caption")->data)[2 * 7 + 1] == 0.5f);
    stk_release(b);
    stk_close(l);
    m = make();
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    CHECK_EQ(stk_next(l, &b, &e), STK_EDATA);
    CHECK_SAYS(e.text, "caption is \"t0\"");
    stk_close(l);
}

/* ------------------------------------------------------------------ cells in files */

struct files {
    const char *a, *b;
};

static int64_t one(void *user)
{
    (void)user;
    return 1;
}

static int named_cells(void *user, int thread, int64_t i, const int *wanted, int n, stk_cell *to, stk_error *e)
{
    const struct files *f = user;
    (void)thread, (void)i, (void)e;
    for (int k = 0; k < n; k++) {
        const char *file = wanted[k] == 0 ? f->a : f->b;
        to[k] = (stk_cell){.file = file, .n = strlen(file)};
    }
    return STK_OK;
}

static int next_of(struct files *f, const char *fields, stk_batch **b, stk_error *e)
{
    static const stk_column two_files[] = {{.name = "a", .kind = STK_BYTES}, {.name = "b", .kind = STK_IMAGE}};
    const stk_cells_hooks h = {.user = f, .count = one, .cells = named_cells, .columns = two_files, .n_columns = 2};
    const stk_options o = {.cells_hooks = &h, .batch_size = 1, .threads = 1, .max_bytes = 100, .fields = fields};
    stk_loader *l;
    CHECK_EQ(stk_open(&l, &o, e), STK_OK);
    const int rc = stk_next(l, b, e);
    stk_close(l);
    return rc;
}

static void cells_in_files(void)
{
    temp_begin();
    struct files f = {.a = temp_path("a"), .b = temp_path("b")};
    stk_batch *b;
    stk_error e;
    temp_file("a", "first");
    temp_file("b", "and the second, which is longer");
    CHECK_EQ(next_of(&f, "a, b:bytes", &b, &e), STK_OK);
    CHECK_EQ(((const int64_t *)stk_field(b, "b.offsets")->data)[1], 31);
    CHECK(memcmp(stk_field(b, "a")->data, "first", 5) == 0);
    CHECK(memcmp(stk_field(b, "b")->data, "and the second", 14) == 0);
    stk_release(b);
    temp_end();
}

/* As in folders, only regular files are read, and their size is checked first. */
static void files_that_are_refused(void)
{
    temp_begin();
    struct files f = {.a = temp_path("pipe"), .b = temp_path("large")};
    stk_batch *b;
    stk_error e;
    CHECK_EQ(mkfifo(f.a, 0600), 0);
    alarm(60); /* aborts the test if it hangs */
    CHECK_EQ(next_of(&f, "a", &b, &e), STK_EDATA);
    alarm(0);
    CHECK(strstr(e.text, "a: ") && strstr(e.text, "/pipe is a pipe, not a file"));
    temp_file("large", "");
    CHECK_EQ(truncate(f.b, (off_t)1 << 40), 0);
    CHECK_EQ(next_of(&f, "b:bytes", &b, &e), STK_EDATA);
    CHECK(strstr(e.text, "b: ") && strstr(e.text, "/large has 1099511627776 bytes, more than the 100"));
    f.a = "";
    CHECK_EQ(next_of(&f, "a", &b, &e), STK_EDATA);
    CHECK(strstr(e.text, "a: invalid path"));
    f.a = temp_path("none");
    CHECK(next_of(&f, "a", &b, &e) != STK_OK);
    CHECK(strstr(e.text, "/none cannot be opened: No such file"));
    temp_end();
}

int main(int argc, char **argv)
{
    TESTS(T(columns_become_fields), T(fields_choose), T(failures_are_bad_samples), T(refused), T(blocks_stay_together),
          T(states_of_other_windows_are_refused), T(wrong_blocks_are_refused), T(text_as_numbers), T(cells_in_files),
          T(files_that_are_refused))
}
