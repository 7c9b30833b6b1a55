/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tar.c -- archives of old and new writers, and damaged ones.
 */
#include "format/tar.h"

#include "support/tars.h"
#include "test.h"

struct memory {
    const uint8_t *p;
    size_t n;
    int64_t lent; /* a stream cannot go back before the bytes that were lent last */
    bool stream;
};

static const uint8_t *peek(void *user, int64_t at, size_t n, size_t *got)
{
    struct memory *m = user;
    CHECK(!m->stream || at >= m->lent);
    m->lent = at;
    const size_t left = at < (int64_t)m->n ? m->n - (size_t)at : 0;
    *got = n < left ? n : left;
    return *got ? m->p + at : NULL;
}

/* The members as text: names with sizes, "!" before bad ones, "~" for a file that is cut off. */
static char seen[4096];

static const char *all(const uint8_t *p, size_t n, bool stream)
{
    struct memory memory = {.p = p, .n = n, .stream = stream};
    struct tar t = {.peek = peek, .user = &memory, .bytes = stream ? INT64_MAX : (int64_t)n};
    struct tar_member m;
    size_t at = 0;
    seen[0] = 0;
    for (enum tar_found f; (f = tar_next(&t, &m)) != TAR_END && at < sizeof seen - 600;) {
        if (f == TAR_FILE)
            at += (size_t)snprintf(seen + at, sizeof seen - at, "%.*s:%d ", (int)m.n_name, m.name, (int)m.bytes);
        else if (f == TAR_BAD)
            at += (size_t)snprintf(seen + at, sizeof seen - at, "!%.*s@%d ", (int)m.n_name, m.name ? m.name : "",
                                   (int)m.header);
        else
            at += (size_t)snprintf(seen + at, sizeof seen - at, "~ ");
        CHECK(f != TAR_BAD || (m.reason && m.reason[0]));
    }
    tar_done(&t);
    tar_done(&t);
    return seen;
}

/* The same whether the length is known or not. */
static const char *read_tar(const struct tars *t)
{
    static char known[sizeof seen];
    snprintf(known, sizeof known, "%s", all(t->bytes.data, t->bytes.len, false));
    CHECK_STR(all(t->bytes.data, t->bytes.len, true), known);
    return known;
}

static void plain(void)
{
    struct tars t = {0};
    tars_text(&t, "a/1.jpg", "a photo");
    tars_text(&t, "a/1.cls", "7");
    tars_text(&t, "empty.txt", "");
    tars_end(&t);
    CHECK_STR(read_tar(&t), "a/1.jpg:7 a/1.cls:1 empty.txt:0 ");
    t.bytes.len -= 1024; /* the zeros at the end may be missing */
    CHECK_STR(read_tar(&t), "a/1.jpg:7 a/1.cls:1 empty.txt:0 ");
    t.bytes.len = 0;
    CHECK_STR(read_tar(&t), "");
    tars_end(&t);
    CHECK_STR(read_tar(&t), "");
    buf_done(&t.bytes);
}

static void others_are_passed_over(void)
{
    struct tars t = {0};
    tars_member(&t, "folder/", '5', NULL, 0);
    tars_header(&t, "link", '2', 0);
    tars_header(&t, "hard", '1', 5000); /* of the file it links to */
    tars_header(&t, "device", '3', 0);
    tars_member(&t, "dump", 'D', "names", 5);
    tars_member(&t, "label", 'V', NULL, 0);
    uint8_t *old = tars_header(&t, "old folder/", '5', 0);
    old[156] = 0;
    tars_sum(old);
    tars_text(&t, "x", "1");
    tars_end(&t);
    CHECK_STR(read_tar(&t), "x:1 ");
    buf_done(&t.bytes);
}

static void prefixes(void)
{
    struct tars t = {0};
    uint8_t *b = tars_header(&t, "b", '0', 0);
    memcpy(b + 345, "long/folder", 11);
    tars_sum(b);
    b = tars_header(&t, "gnu", '0', 0);
    memcpy(b + 257, "ustar  ", 8);
    memcpy(b + 345, "12345670", 8); /* a time there */
    tars_sum(b);
    b = tars_header(&t, "v7", '0', 0);
    memset(b + 257, 0, 8);
    b[156] = 0;
    tars_sum(b);
    char name[101];
    memset(name, 'n', 100);
    name[100] = 0;
    tars_text(&t, name, "full");
    tars_end(&t);
    char want[256];
    snprintf(want, sizeof want, "long/folder/b:0 gnu:0 v7:0 %s:4 ", name);
    CHECK_STR(read_tar(&t), want);
    buf_done(&t.bytes);
}

static void long_names(void)
{
    char name[400];
    memset(name, 'y', sizeof name - 1);
    name[sizeof name - 1] = 0;
    struct tars t = {0};
    tars_member(&t, "././@LongLink", 'L', name, sizeof name);
    tars_text(&t, "yyy", "1");
    tars_member(&t, "././@LongLink", 'K', name, sizeof name);
    tars_text(&t, "short", "12");
    tars_pax(&t, 'x', "path", "by/pax.jpg");
    tars_text(&t, "z", "123");
    tars_text(&t, "own", "1234");
    tars_end(&t);
    char want[600];
    snprintf(want, sizeof want, "%s:1 short:2 by/pax.jpg:3 own:4 ", name);
    CHECK_STR(read_tar(&t), want);
    buf_done(&t.bytes);
}

static void pax_sizes_and_globals(void)
{
    struct tars t = {0};
    tars_pax(&t, 'x', "size", "3");
    tars_header(&t, "a", '0', 0);
    tars_content(&t, "abc", 3);
    tars_pax(&t, 'g', "path", "for/all");
    tars_text(&t, "b", "1");
    tars_pax(&t, 'x', "path", "for/one");
    tars_text(&t, "c", "12");
    tars_text(&t, "d", "123");
    tars_pax(&t, 'g', "path", "");
    tars_text(&t, "e", "1234");
    tars_pax(&t, 'g', "comment", "the end");
    tars_end(&t);
    CHECK_STR(read_tar(&t), "a:3 for/all:1 for/one:2 for/all:3 e:4 ");
    buf_done(&t.bytes);
}

static void sizes_in_base_256(void)
{
    struct tars t = {0};
    uint8_t *b = tars_header(&t, "a", '0', 0);
    memset(b + 124, 0, 12);
    b[124] = 0x80;
    b[135] = 3;
    tars_sum(b);
    tars_content(&t, "abc", 3);
    b = tars_header(&t, "negative", '0', 0);
    memset(b + 124, 0xff, 12);
    tars_sum(b);
    b = tars_header(&t, "huge", '0', 0);
    memset(b + 124, 0x81, 12);
    tars_sum(b);
    tars_text(&t, "z", "1");
    tars_end(&t);
    CHECK_STR(read_tar(&t), "a:3 !@1024 !@1536 z:1 ");
    buf_done(&t.bytes);
}

static void signed_sums(void)
{
    struct tars t = {0};
    uint8_t *b = tars_header(&t, "\xe4\xf6\xfc", '0', 1);
    int sum = 0;
    memset(b + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (int8_t)b[i];
    snprintf((char *)b + 148, 8, "%06o", (unsigned)sum);
    tars_content(&t, "x", 1);
    tars_end(&t);
    CHECK_STR(read_tar(&t), "\xe4\xf6\xfc:1 ");
    buf_done(&t.bytes);
}

static void sparse_is_refused(void)
{
    struct tars t = {0};
    uint8_t *b = tars_header(&t, "old", 'S', 512);
    b[482] = 1;
    tars_sum(b);
    uint8_t map[1024] = {0};
    map[504] = 1; /* and one more of them */
    tars_content(&t, map, sizeof map);
    tars_content(&t, "data", 4);
    tars_pax(&t, 'x', "GNU.sparse.major", "1");
    tars_text(&t, "new", "1");
    tars_pax(&t, 'x', "GNU.sparse.name", "real");
    tars_text(&t, "GNUSparseFile.0/real", "1");
    tars_text(&t, "z", "1");
    tars_end(&t);
    CHECK_STR(read_tar(&t), "!old@0 !new@2048 !real@4096 z:1 ");
    buf_done(&t.bytes);
}

static void damaged_headers(void)
{
    struct tars t = {0};
    tars_text(&t, "a", "1");
    tars_text(&t, "b", "12");
    tars_text(&t, "c", "123");
    tars_end(&t);
    t.bytes.data[1024 + 5] ^= 1;
    CHECK_STR(read_tar(&t), "a:1 !@1024 c:3 ");
    t.bytes.data[2048 + 5] ^= 1;
    CHECK_STR(read_tar(&t), "a:1 !@1024 ");
    buf_done(&t.bytes);
}

static void damaged_pax(void)
{
    static const char *const bodies[] = {"12",           "5 a=b\n",     "99 path=x\n",      "0 a=b\n",
                                         "10 path xy\n", "11 size=x\n", "99999999999 a=b\n"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct tars t = {0};
        tars_member(&t, "x", 'x', bodies[i], strlen(bodies[i]));
        tars_text(&t, "a", "1");
        tars_text(&t, "b", "12");
        tars_end(&t);
        CHECK_STR(read_tar(&t), "!a@0 b:2 ");
        buf_done(&t.bytes);
    }
    struct tars t = {0};
    tars_member(&t, "x", 'x', "12 path=a\0b\n", 12);
    tars_text(&t, "a", "1");
    tars_header(&t, "x", 'x', 2 << 20);
    CHECK_STR(read_tar(&t), "!a@0 !@2048 ");
    buf_done(&t.bytes);
}

/* Truncated at every byte: no other member is found, and the last one is reported. */
static void cut_everywhere(void)
{
    struct tars t = {0};
    tars_text(&t, "a", "1");
    tars_pax(&t, 'x', "path", "bb");
    tars_text(&t, "b", "12");
    const size_t whole = t.bytes.len;
    for (size_t n = 0; n < whole; n++) {
        t.bytes.len = n;
        const char *found = read_tar(&t);
        const char *want = n == 0               ? ""
                           : n < 512            ? "!@0 "
                           : n < 513            ? "a:1 ~ "
                           : n <= 1024          ? "a:1 "
                           : n < 2048 + 512     ? "a:1 !@1024 "
                           : n < 2048 + 512 + 2 ? "a:1 bb:2 ~ "
                                                : "a:1 bb:2 ";
        CHECK_STR(found, want);
    }
    buf_done(&t.bytes);
}

int main(int argc, char **argv)
{
    TESTS(T(plain), T(others_are_passed_over), T(prefixes), T(long_names), T(pax_sizes_and_globals),
          T(sizes_in_base_256), T(signed_sums), T(sparse_is_refused), T(damaged_headers), T(damaged_pax),
          T(cut_everywhere))
}
