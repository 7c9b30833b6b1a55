/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_hooks.c -- hooks with read() and fill(). */
#include "base/error.h"
#include "source/source.h"
#include "test.h"

struct mine {
    int64_t count;
    int closed;
};

static int64_t count(void *user)
{
    return ((struct mine *)user)->count;
}

static int read_one(void *user, int thread, int64_t sample, const void **bytes, size_t *n, int64_t *label, stk_error *e)
{
    (void)user;
    static const char text[] = "encoded";
    *bytes = text;
    *n = sample == 1 ? 0 : sizeof text - 1;
    *label = sample * 10 + thread;
    if (sample == 2)
        return error_set(e, STK_EIO, "read", "the network is down");
    if (sample == 3)
        return -5;
    return STK_OK;
}

static void closed(void *user)
{
    ((struct mine *)user)->closed++;
}

static void hooks(void)
{
    struct mine mine = {.count = 4};
    const stk_read_hooks h = {.user = &mine, .count = count, .read = read_one, .close = closed};
    const struct source_options o = {.read_hooks = &h, .max_bytes = 100};
    struct source *s;
    stk_error e;
    struct reading r = {.thread = 3};
    CHECK_EQ(source_open(&s, &o, &e), STK_OK);
    CHECK_STR(source_kind(s), "hooks");
    CHECK_EQ(source_count(s), 4);
    CHECK_EQ(source_n_fields(s), 2);
    CHECK_EQ(source_label(s, 0), -1);
    CHECK_EQ(source_bytes(s, 0), -1);
    CHECK_EQ(source_read(s, &r, 0, &e), STK_OK);
    CHECK_EQ(r.n_bytes, 7);
    CHECK(memcmp(r.bytes, "encoded\0\0\0", 10) == 0);
    CHECK_EQ(r.label, 3);
    CHECK_EQ(source_read(s, &r, 1, &e), STK_EDATA);
    CHECK_STR(e.text, "is empty");
    CHECK_EQ(source_read(s, &r, 2, &e), STK_EIO);
    CHECK_STR(e.text, "the network is down");
    CHECK_EQ(source_read(s, &r, 3, &e), STK_EDATA);
    CHECK(strstr(e.text, "code -5"));
    CHECK_EQ(source_read(s, &r, 3, NULL), STK_EDATA);
    CHECK(source_fingerprint(s) != 0);
    source_close(s);
    CHECK_EQ(mine.closed, 1);
    buf_done(&r.file);
}

static void refused(void)
{
    struct mine mine = {.count = 0};
    const stk_read_hooks h = {.user = &mine, .count = count, .read = read_one, .close = closed};
    const struct source_options o = {.read_hooks = &h};
    struct source *s;
    stk_error e;
    CHECK_EQ(source_open(&s, &o, &e), STK_EUSAGE);
    CHECK(s == NULL);
    CHECK_STR(e.text, "the source is empty: its count() returned 0");
    mine.count = -3;
    CHECK_EQ(source_open(&s, &o, &e), STK_EUSAGE);
    CHECK_STR(e.text, "the source's count() returned -3; it must return the number of samples");
    CHECK_EQ(mine.closed, 0); /* what was not opened is still the caller's */
}

static void too_large(void)
{
    struct mine mine = {.count = 1};
    const stk_read_hooks h = {.user = &mine, .count = count, .read = read_one};
    const struct source_options o = {.read_hooks = &h, .max_bytes = 6};
    struct source *s;
    stk_error e;
    struct reading r = {0};
    CHECK_EQ(source_open(&s, &o, &e), STK_OK);
    CHECK_EQ(source_read(s, &r, 0, &e), STK_EDATA);
    CHECK(strstr(e.text, "max_bytes"));
    source_close(s);
}

int main(int argc, char **argv)
{
    TESTS(T(hooks), T(refused), T(too_large))
}
