/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_note.c -- small JSON documents come back as they were; cut or damaged ones are read within their bytes.
 */
#include "base/note.h"
#include "test.h"

static void write_one(struct note *n)
{
    note_open(n, NULL, '{');
    note_int(n, "samples", -12);
    note_text(n, "odd \"name\"", "tab\t quote\" back\\ \xff \xc3\xa9 \x01 \xed\xa0\x80");
    note_hex(n, "sum", UINT64_C(0x0123456789abcdef));
    note_open(n, "empty", '[');
    note_close(n, ']');
    note_open(n, "list", '[');
    for (int i = 0; i < 3; i++) {
        note_open(n, NULL, '{');
        note_int(n, "i", i);
        note_text(n, "brackets", "}]{[,:");
        note_close(n, '}');
    }
    note_close(n, ']');
    note_int(n, "last", INT64_C(900000000000000000));
    note_close(n, '}');
}

static void returns(void)
{
    struct note n = {0};
    struct buf b = {0};
    int64_t v;
    uint64_t sum;
    write_one(&n);
    CHECK(!n.failed);
    const struct note_value d = note_document(n.text.data, n.text.len);
    CHECK(note_get_int(note_find(d, "samples"), &v) && v == -12);
    CHECK(note_get_hex(note_find(d, "sum"), &sum) && sum == UINT64_C(0x0123456789abcdef));
    CHECK(note_get_int(note_find(d, "last"), &v) && v == INT64_C(900000000000000000));
    CHECK(!note_first(note_find(d, "empty")).p);
    CHECK(!note_find(d, "nothing").p);
    int64_t i = 0;
    for (struct note_value e = note_first(note_find(d, "list")); e.p; e = note_next(e), i++)
        CHECK(note_get_int(note_find(e, "i"), &v) && v == i);
    CHECK_EQ(i, 3);
    note_done(&n);
    note_open(&n, NULL, '{');
    note_text(&n, "t", "tab\t quote\" back\\ \xff \xc3\xa9 \x01 \xed\xa0\x80");
    note_close(&n, '}');
    CHECK(note_get_text(note_find(note_document(n.text.data, n.text.len), "t"), &b));
    CHECK_STR((const char *)b.data, "tab\t quote\" back\\ \xff \xc3\xa9 \x01 \xed\xa0\x80");
    buf_done(&b);
    note_done(&n);
}

static void look_at(const char *p, size_t n)
{
    struct buf b = {0};
    int64_t v;
    uint64_t sum;
    const struct note_value d = note_document(p, n);
    note_get_int(note_find(d, "last"), &v);
    note_get_hex(note_find(d, "sum"), &sum);
    for (struct note_value e = note_first(note_find(d, "list")); e.p; e = note_next(e))
        note_get_text(note_find(e, "brackets"), &b);
    buf_done(&b);
}

/* In memory of just that size, so that the sanitizer sees a step too far. */
static void damage(void)
{
    struct note n = {0};
    write_one(&n);
    for (size_t cut = 0; cut <= n.text.len; cut++) {
        char *copy = malloc(cut ? cut : 1);
        memcpy(copy, n.text.data, cut);
        look_at(copy, cut);
        for (size_t i = 0; i < 4 && cut == n.text.len; i++)
            for (size_t k = 0; k < cut; k++) {
                const char was = copy[k];
                copy[k] = "\"\\{\0"[i];
                look_at(copy, cut);
                copy[k] = was;
            }
        free(copy);
    }
    note_done(&n);
}

int main(int argc, char **argv)
{
    TESTS(T(returns), T(damage))
}
