/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_text.c -- lines of text files: line ends, lines across windows, long lines, changed files.
 */
#include "support/npy_files.h"

static struct reading reading;

static void line_is(const struct source *s, int64_t i, const char *text)
{
    CHECK_EQ(source_read(s, &reading, i, &error), STK_OK);
    const struct cell *c = &reading.cells[0];
    CHECK_EQ(c->n, strlen(text));
    CHECK(c->n == 0 || memcmp(c->bytes, text, c->n) == 0);
}

static void ends(void)
{
    temp_file("a.txt", "one\r\n\ntwo words\r\n\r\n\rx\r\ry\nlast");
    struct source *s = open_named("%", "a.txt", NULL);
    CHECK(s != NULL);
    CHECK_STR(source_kind(s), "lines of text");
    CHECK_EQ(source_count(s), 6);
    CHECK_EQ(source_n_fields(s), 1);
    CHECK_STR(source_field(s, 0)->name, "text");
    CHECK_EQ(source_field(s, 0)->what, STK_TEXT);
    line_is(s, 0, "one");
    line_is(s, 1, "");
    line_is(s, 2, "two words");
    line_is(s, 3, "");
    line_is(s, 4, "\rx\r\ry");
    line_is(s, 5, "last");
    char name[PATH_MAX];
    source_key(s, 5, name, sizeof name);
    CHECK_STR(name, "a.txt:5");
    source_close(s);
}

static void several_files(void)
{
    temp_file("m/a.txt", "\xef\xbb\xbf"
                         "a\nb\n");
    temp_file("m/b.txt", "c");
    struct source *s = open_named("text:%", "m/*", NULL);
    CHECK(s != NULL);
    CHECK_EQ(source_count(s), 3);
    line_is(s, 0, "a");
    line_is(s, 1, "b");
    line_is(s, 2, "c");
    source_close(s);
}

/* Around the window of one megabyte; \r and \n may be in different windows. */
static void across_windows(void)
{
    enum { WINDOW = 1 << 20, N = 3 * WINDOW };
    char *text = malloc(N + 1);
    if (!text)
        return;
    memset(text, 'x', N);
    text[N] = 0;
    memcpy(text + 10, "\r\n", 2);
    memcpy(text + WINDOW - 1, "\r\n", 2);
    memcpy(text + 2 * WINDOW, "\r\n", 2);
    temp_bytes("w.txt", text, N);
    struct source *s = open_named("text:%", "w.txt", NULL);
    CHECK_EQ(source_count(s), 4);
    static const int64_t lengths[] = {10, WINDOW - 13, WINDOW - 1, WINDOW - 2};
    for (int64_t i = 0; i < 4; i++) {
        CHECK_EQ(source_read(s, &reading, i, &error), STK_OK);
        CHECK_EQ(reading.cells[0].n, lengths[i]);
        CHECK(memchr(reading.cells[0].bytes, '\r', reading.cells[0].n) == NULL);
    }
    source_close(s);
    const struct source_options small = {.max_bytes = 1000};
    s = open_named("text:%", "w.txt", &small);
    CHECK_EQ(source_count(s), 4);
    CHECK_EQ(source_read(s, &reading, 0, &error), STK_OK);
    CHECK_EQ(source_read(s, &reading, 1, &error), STK_EDATA);
    CHECK(strstr(error.text, "more than the 1000 that max_bytes allows") != NULL);
    source_close(s);
    free(text);
}

static void what_is_refused(void)
{
    temp_file("e.txt", "");
    refused("text:%", "e.txt", "e.txt");
    refused("text:%?x=1", "a.txt", "take no query");
    refused("text:%", "none.txt", "none.txt");
}

static void a_file_that_shrinks(void)
{
    temp_file("s.txt", "first\nsecond\n");
    struct source *s = open_named("text:%", "s.txt", NULL);
    line_is(s, 0, "first");
    CHECK_EQ(truncate(temp_path("s.txt"), 8), 0);
    line_is(s, 0, "first");
    CHECK(source_read(s, &reading, 1, &error) != STK_OK);
    source_close(s);
}

static void a_file_that_is_replaced(void)
{
    temp_file("s.txt", "first\nsecond\n");
    struct source *s = open_named("text:%", "s.txt", NULL);
    temp_file("t.txt", "first\nanother\n");
    CHECK_EQ(rename(temp_path("t.txt"), temp_path("s.txt")), 0);
    for (int64_t i = 0; i < 2; i++) {
        CHECK_EQ(source_read(s, &reading, i, &error), STK_EDATA);
        CHECK(strstr(error.text, "was changed or replaced after the source was opened") != NULL);
    }
    source_close(s);
}

/* Lines of 100 kB: a batch of 8 fits into a twelfth of the memory, a batch of 32 does not. */
static void batches_of_long_lines(void)
{
    enum { LINES = 64, BYTES = 100000 };
    char *text = malloc(LINES * BYTES), path[PATH_MAX + 8];
    memset(text, 'x', LINES * BYTES);
    for (int i = 1; i <= LINES; i++)
        text[i * BYTES - 1] = '\n';
    temp_bytes("long.txt", text, LINES * BYTES);
    snprintf(path, sizeof path, "text:%s", temp_path("long.txt"));
    for (int64_t rows = 8; rows <= 32; rows += 24) {
        const stk_options o = {
            .source = path, .batch_size = rows, .threads = 3, .memory = 24 << 20, .shuffle = 1, .cache_dir = "off"};
        stk_loader *l;
        stk_batch *b;
        stk_stats s;
        int64_t n = 0;
        int rc;
        CHECK_EQ(stk_open(&l, &o, &error), STK_OK);
        while ((rc = stk_next(l, &b, &error)) == STK_OK) {
            n += stk_samples(b);
            stk_stats_get(l, &s);
            CHECK(s.memory_bytes <= o.memory);
            stk_release(b);
        }
        CHECK_EQ(rc, rows == 8 ? STK_END : STK_ENOMEM);
        CHECK_EQ(n, rows == 8 ? LINES : 0);
        if (rc == STK_ENOMEM)
            CHECK(
                strstr(error.text,
                       "take more than the 2 MiB that the memory limit leaves for them in a batch; raise memory, or") !=
                NULL);
        stk_close(l);
    }
    free(text);
}

static void done(void)
{
    buf_done(&reading.file);
    buf_done(&reading.derived);
    temp_end();
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(done);
    TESTS(T(ends), T(several_files), T(across_windows), T(what_is_refused), T(a_file_that_shrinks),
          T(a_file_that_is_replaced), T(batches_of_long_lines))
}
