/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_records.c -- samples inside shards: scanning, index, cache, reading. The format exists only for this test:
 *
 *     a line "key part n", followed by n bytes; "key ! reason" is a bad sample
 */
#include "source/records.h"

#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "source/records_index.h"
#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

static int scan_lines(struct record_scan *sc, stk_error *e)
{
    char last[64] = "";
    (void)e;
    for (int64_t at = 0; at < sc->bytes;) {
        size_t got;
        char key[64], part[64], line[200] = "";
        const uint8_t *p = record_peek(sc, at, sizeof line - 1, &got);
        memcpy(line, p, got);
        char *end = strchr(line, '\n');
        if (!end)
            return error_set(e, STK_EDATA, "open", "no line at %lld", (long long)at);
        *end = 0;
        const int64_t head = end - line + 1;
        long long n = 0;
        if (sscanf(line, "%63s %63s %lld", key, part, &n) < 2)
            return error_set(e, STK_EDATA, "open", "not of this format");
        if (strcmp(key, last) != 0 && record_begin(sc, key, strlen(key)))
            return STK_ENOMEM;
        snprintf(last, sizeof last, "%s", key);
        if (part[0] == '!') {
            record_bad(sc, at, strchr(line, '!') + 2);
            at += head;
            continue;
        }
        const struct part one = {.at = at + head, .bytes = n};
        record_part(sc, part, strlen(part), one, &(struct part_extra){.a = (uint64_t)n});
        if (strcmp(part, "cls") == 0) {
            size_t there;
            const uint8_t *text = record_peek(sc, one.at, (size_t)n, &there);
            record_label(sc, (const char *)text, there);
        }
        at += head + n;
    }
    return STK_OK;
}

static const struct record_format format = {.kind = "lines for a test", .id = 7, .extra = true, .scan = scan_lines};

static int open_lines(struct source *s, const struct source_options *o, const char *const *paths, int n)
{
    struct names all = {0};
    uint32_t ignored;
    for (int i = 0; i < n; i++)
        names_add(&all, paths[i], strlen(paths[i]), &ignored);
    s->max_bytes = o->max_bytes ? o->max_bytes : INT64_MAX;
    error_clear(&error);
    const int rc = source_records_open(s, o, &format, &all, &error);
    names_done(&all);
    return rc;
}

static void close_lines(struct source *s)
{
    if (s->ops)
        s->ops->close(s);
    names_done(&s->classes);
}

static void old(const char *path)
{
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    CHECK_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
}

static const char *shard(const char *name, const char *content)
{
    temp_file(name, content);
    old(temp_path(name));
    return temp_path(name);
}

static int cell_is(const struct reading *r, int f, const char *want)
{
    return r->cells[f].bytes && r->cells[f].n == strlen(want) && memcmp(r->cells[f].bytes, want, r->cells[f].n) == 0;
}

static void samples_of_two_shards(void)
{
    const char *paths[] = {shard("a", "k1 cls 3\ndogk1 txt 5\nhellok2 cls 3\ncatk2 txt 0\n"),
                           shard("b", "k3 txt 2\nhik3 cls 3\ncat")};
    struct source s = {0};
    struct source_options o = {.threads = 2, .cache_dir = "off"};
    struct reading r = {0};
    CHECK_EQ(open_lines(&s, &o, paths, 2), STK_OK);
    CHECK_EQ(s.count, 3);
    CHECK_EQ(s.n_classes, 2);
    CHECK_STR(source_class(&s, 0), "cat");
    CHECK_STR(source_class(&s, 1), "dog");
    const int64_t labels[] = {1, 0, 0};
    for (int64_t i = 0; i < 3; i++)
        CHECK_EQ(source_label(&s, i), labels[i]);
    CHECK_EQ(s.n_fields, 2);
    CHECK_STR(s.fields[0].name, "label");
    CHECK_STR(s.fields[1].name, "txt");
    CHECK_EQ(s.fields[1].what, STK_TEXT);
    CHECK_EQ(source_read(&s, &r, 0, &error), STK_OK);
    CHECK(cell_is(&r, 1, "hello"));
    CHECK_EQ(r.cells[1].bytes[5], 0);
    CHECK_EQ(source_read(&s, &r, 1, &error), STK_OK);
    CHECK(r.cells[1].bytes && r.cells[1].n == 0);
    CHECK_EQ(source_read(&s, &r, 2, &error), STK_OK);
    CHECK(cell_is(&r, 1, "hi"));
    char name[256];
    source_key(&s, 2, name, sizeof name);
    CHECK_STR(name, "k3");
    source_path(&s, 2, name, sizeof name);
    CHECK(strstr(name, "/b/k3") != NULL);
    CHECK(source_identity(&s, 0) != 0 && source_identity(&s, 0) != source_identity(&s, 1));
    buf_done(&r.file);
    close_lines(&s);
}

/* One read gets parts that are near each other. Each is followed by zeros. */
static void parts_are_moved_apart(void)
{
    const char *path = shard("a", "k a.txt 2\n11k b.txt 9\n222222222k c.txt 3\n333");
    struct source s = {0};
    struct source_options o = {.threads = 1, .cache_dir = "off"};
    struct reading r = {0};
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
    CHECK_EQ(source_read(&s, &r, 0, &error), STK_OK);
    CHECK(cell_is(&r, 0, "11") && cell_is(&r, 1, "222222222") && cell_is(&r, 2, "333"));
    for (int f = 0; f < 3; f++)
        for (int i = 0; i < IO_SLACK; i++)
            CHECK_EQ(r.cells[f].bytes[r.cells[f].n + (size_t)i], 0);
    buf_done(&r.file);
    close_lines(&s);
    o.fields = "c.txt, a.txt:bytes ? \"\"";
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
    CHECK_EQ(source_bytes(&s, 0), 5);
    CHECK_EQ(source_read(&s, &r, 0, &error), STK_OK);
    CHECK(cell_is(&r, 0, "333") && cell_is(&r, 1, "11"));
    buf_done(&r.file);
    close_lines(&s);
}

/* Parts after the damage do not make a bad sample good. */
static void bad_stays_bad(void)
{
    const char *path = shard("a", "k1 a.txt 2\n11k2 ! odd\nk2 a.txt 1\n4");
    struct source s = {0};
    struct source_options o = {.threads = 1, .cache_dir = "off"};
    struct reading r = {0};
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
    CHECK_EQ(s.count, 2);
    CHECK_EQ(source_read(&s, &r, 1, &error), STK_EDATA);
    CHECK(strstr(error.reason, "odd") != NULL);
    reading_done(&r);
    close_lines(&s);
}

/* The same index serves any max_bytes. */
static void index_is_of_any_limit(void)
{
    const char *path = shard("a", "k1 a.txt 2\n11k1 b.txt 9\n222222222");
    char cache[4096];
    snprintf(cache, sizeof cache, "%s", temp_path("kept"));
    for (int i = 0; i < 2; i++) {
        struct source s = {0};
        struct reading r = {0};
        const struct source_options o = {.threads = 1, .cache_dir = cache, .max_bytes = 10 + i};
        CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
        CHECK_EQ(source_tally(&s)->index_cached, i == 1);
        CHECK_EQ(source_read(&s, &r, 0, &error), i == 0 ? STK_EDATA : STK_OK);
        reading_done(&r);
        close_lines(&s);
    }
}

/* An index is not trusted: impossible sizes are rejected. */
static void sizes_of_an_index(void)
{
    static const struct part wrong[] = {{INT64_MAX / 2, 1}, {0, INT64_MAX / 2}, {-1, 1}};
    for (size_t i = 0; i < 3; i++) {
        struct records_index x, y;
        const struct records_head head = {.n = 1, .n_shards = 1, .n_parts = 1, .pool_bytes = 1};
        CHECK_EQ(records_init(&x, &head), 0);
        records_seal(&x);
        CHECK_EQ(records_adopt(&y, x.head, (size_t)x.head->bytes), 0);
        x.parts[0] = wrong[i];
        records_seal(&x);
        CHECK_EQ(records_adopt(&y, x.head, (size_t)x.head->bytes), -1);
        records_done(&x);
    }
}

/* Copying pixels does not change cells that were read before. */
static void pixels_beside_cells(void)
{
    static const char head[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 3), }";
    static const struct record_format groups = {.kind = "lines", .id = 8, .scan = scan_lines, .groups = true};
    char text[400];
    int n = snprintf(text, sizeof text, "k npy %d\n%cNUMPY%c%c%c%c%s\nabcdef", 10 + (int)sizeof head + 6, 0x93, 1, 0,
                     (int)sizeof head, 0, head);
    n += snprintf(text + n, sizeof text - (size_t)n, "k txt 5\nhello");
    temp_bytes("a", text, (size_t)n);
    struct names all = {0};
    uint32_t ignored;
    names_add(&all, temp_path("a"), strlen(temp_path("a")), &ignored);
    struct source s = {.max_bytes = INT64_MAX};
    const struct source_options o = {.threads = 1, .cache_dir = "off"};
    CHECK_EQ(source_records_open(&s, &o, &groups, &all, &error), STK_OK);
    names_done(&all);
    CHECK_EQ(s.n_fields, 2);
    CHECK_EQ(s.fields[0].kind, FIELD_PIXELS);
    struct reading r = {0};
    char pixels[6];
    CHECK_EQ(source_read(&s, &r, 0, &error), STK_OK);
    CHECK_EQ(source_copy(&s, &r, 0, 0, pixels, &error), STK_OK);
    CHECK(memcmp(pixels, "abcdef", 6) == 0);
    CHECK(cell_is(&r, 1, "hello"));
    reading_done(&r);
    close_lines(&s);
}

/* Bytes read by the caller from the extent yield the same cells as reading. */
static void lent_as_if_read(void)
{
    const char text[] = "k1 a.txt 2\n11k1 b.txt 9\n222222222k1 c.txt 3\n333k2 a.txt 1\n4k3 ! odd\nk4 a.txt 0\n";
    const char *path = shard("a", text);
    struct source s = {0};
    struct source_options o = {.threads = 1, .cache_dir = "off"};
    struct reading r = {0};
    struct extent x;
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
    CHECK(source_probe_access(&s) != SOURCE_ACCESS_NONE);
    for (int direct = 0; direct < 2; direct++) {
        CHECK(source_extent(&s, 0, direct, &x));
        CHECK(x.at == 11 && x.bytes == 36 && x.fd >= 0 && x.direct <= direct);
    }
    CHECK(!source_extent(&s, 2, false, &x)); /* it is bad */
    CHECK(!source_extent(&s, 3, false, &x)); /* there is nothing to read */
    CHECK_EQ(truncate(path, 0), 0);
    CHECK_EQ(source_read_from(&s, &r, 0, (const uint8_t *)text + 11, 36, &error), STK_OK);
    CHECK(cell_is(&r, 0, "11") && cell_is(&r, 1, "222222222") && cell_is(&r, 2, "333"));
    CHECK_EQ(r.cells[1].bytes[9], 0);
    CHECK_EQ(source_read(&s, &r, 0, &error), STK_EDATA); /* r->ahead is reset */
    CHECK_EQ(source_read_from(&s, &r, 0, (const uint8_t *)text + 11, 35, &error), STK_EDATA);
    uint8_t four[1 + IO_SLACK] = "4"; /* a single part is not copied */
    CHECK_EQ(source_read_from(&s, &r, 1, four, 1, &error), STK_OK);
    CHECK(r.cells[0].bytes == four && cell_is(&r, 0, "4") && !r.cells[1].bytes);
    s.max_bytes = 13;
    CHECK(!source_extent(&s, 0, false, &x) && source_extent(&s, 1, false, &x));
    reading_done(&r);
    close_lines(&s);
}

static void parts_far_apart(void)
{
    enum { FAR = 70000 };
    char *text = malloc(FAR + 100);
    const int n = snprintf(text, 100, "k a.txt 2\n11k b.bin %d\n", FAR);
    memset(text + n, 'x', FAR);
    snprintf(text + n + FAR, 50, "k c.txt 3\n333");
    const char *path = shard("a", text);
    struct source s = {0};
    struct source_options o = {.threads = 1, .cache_dir = "off"};
    struct extent x;
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
    CHECK(source_extent(&s, 0, false, &x));
    close_lines(&s);
    o.fields = "a.txt, c.txt";
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
    CHECK(!source_extent(&s, 0, false, &x));
    CHECK_EQ(source_probe_access(&s), SOURCE_ACCESS_NONE);
    close_lines(&s);
    free(text);
}

static void what_is_broken_is_named(void)
{
    const char *path = shard("a", "k1 txt 2\nhik2 ! the header is odd\nk3 txt 2\nyo");
    struct source s = {0};
    struct source_options o = {.threads = 1, .cache_dir = "off"};
    struct reading r = {0};
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
    CHECK_EQ(s.count, 3);
    CHECK_EQ(source_read(&s, &r, 1, &error), STK_EDATA);
    CHECK(strstr(error.text, "the header is odd (at byte 11 of the shard)") != NULL);
    CHECK_EQ(source_read(&s, &r, 2, &error), STK_OK);
    CHECK_EQ(truncate(path, 30), 0);
    CHECK_EQ(source_read(&s, &r, 2, &error), STK_EDATA);
    buf_done(&r.file);
    close_lines(&s);
    shard("b", "x");
    path = temp_path("b");
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_EDATA);
    CHECK(strstr(error.path, "/b") != NULL);
    close_lines(&s);
}

/* A shard that was replaced or changed after indexing is refused, because its offsets are wrong. */
static void a_shard_that_is_replaced(void)
{
    struct source_options o = {.threads = 1, .cache_dir = "off"};
    struct reading r = {0};
    struct extent x;
    for (int how = 0; how < 3; how++) {
        struct source s = {0};
        const char *paths[] = {shard("a", "k1 txt 2\nhi"), shard("b", "k2 txt 2\nyo")};
        CHECK_EQ(open_lines(&s, &o, paths, 2), STK_OK);
        shard("c", "k2 txt 2\nno");
        if (how == 0)
            CHECK_EQ(rename(temp_path("c"), temp_path("b")), 0); /* of the same size and time */
        else
            temp_file("b", how == 1 ? "k2 txt 1\nxx" : "k2 txt 2\nyo and more");
        CHECK_EQ(source_read(&s, &r, 1, &error), STK_EDATA);
        CHECK(strstr(error.text, "was changed or replaced after the source was opened; open it again") != NULL);
        CHECK(!source_extent(&s, 1, false, &x));
        CHECK_EQ(source_read(&s, &r, 0, &error), STK_OK);
        close_lines(&s);
    }
    reading_done(&r);
}

static void the_index_is_kept(void)
{
    char cache[512];
    snprintf(cache, sizeof cache, "%s", temp_path("cache"));
    const char *path = shard("a", "k1 cls 1\n7k2 cls 2\n-1");
    struct source_options o = {.threads = 1, .cache_dir = cache};
    for (int pass = 0; pass < 3; pass++) {
        struct source s = {0};
        CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
        CHECK_EQ(source_tally(&s)->index_cached, pass == 1);
        CHECK_EQ(s.count, pass < 2 ? 2 : 1);
        CHECK_EQ(source_label(&s, 0), pass < 2 ? 7 : 9);
        close_lines(&s);
        if (pass == 1)
            path = shard("a", "k1 cls 1\n9");
    }
}

/* The index next to the shards is valid for copies that keep names, sizes and times. */
static void the_index_is_beside_the_shards(void)
{
    struct source_options o = {.threads = 1, .cache_dir = "off", .index_beside = true};
    temp_dir("one");
    const char *path = shard("one/a", "k1 cls 3\ndogk2 cls 3\ncat");
    struct source s = {0};
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
    CHECK(!source_tally(&s)->index_cached);
    close_lines(&s);
    char from[1100], to[1100];
    snprintf(from, sizeof from, "%s", temp_path("one"));
    snprintf(to, sizeof to, "%s", temp_path("two"));
    CHECK_EQ(rename(from, to), 0);
    path = temp_path("two/a");
    o.index_beside = false;
    for (int pass = 0; pass < 2; pass++) {
        struct reading r = {0};
        struct source again = {0};
        CHECK_EQ(open_lines(&again, &o, &path, 1), STK_OK);
        CHECK_EQ(source_tally(&again)->index_cached, pass == 0);
        CHECK_EQ(again.count, 2);
        CHECK_STR(source_class(&again, 1), "dog");
        CHECK_EQ(source_read(&again, &r, 1, &error), STK_OK);
        char name[1200];
        source_path(&again, 0, name, sizeof name);
        CHECK(strstr(name, "/two/a/k1") != NULL);
        reading_done(&r);
        close_lines(&again);
        const struct timespec times[2] = {{.tv_sec = 1000000001}, {.tv_sec = 1000000001}};
        CHECK_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
    }
}

static void labels_among_given_classes(void)
{
    const char *path = shard("a", "k1 cls 3\ndog");
    struct source s = {0};
    struct source_options o = {.threads = 1, .cache_dir = "off"};
    uint32_t ignored;
    names_add(&s.classes, "cat", 3, &ignored);
    names_add(&s.classes, "dog", 3, &ignored);
    s.n_classes = 2;
    CHECK_EQ(open_lines(&s, &o, &path, 1), STK_OK);
    CHECK_EQ(source_label(&s, 0), 1);
    close_lines(&s);
    struct source other = {0};
    names_add(&other.classes, "dogs", 4, &ignored);
    CHECK_EQ(open_lines(&other, &o, &path, 1), STK_EUSAGE);
    CHECK(strstr(error.text, "did you mean dogs?") != NULL);
    close_lines(&other);
}

/* A changed byte is detected, or the block is still valid. */
static void blocks_prove_themselves(void)
{
    struct record_list list = {0};
    struct record_scan sc = {.list = &list};
    struct names paths = {0}, none = {0};
    uint32_t ignored;
    names_add(&paths, "p", 1, &ignored);
    record_begin(&sc, "k", 1);
    record_part(&sc, "jpg", 3, (struct part){1, 2}, NULL);
    record_begin(&sc, "l", 1);
    record_bad(&sc, 5, "odd");
    struct records_index x, y;
    CHECK_EQ(records_join(&x, &format, &paths, &list, &none, &error), STK_OK);
    const size_t n = (size_t)x.head->bytes;
    CHECK_STR(records_bad_reason(&x, &x.parts[1]), "odd");
    for (size_t i = 0; i < n; i++) {
        uint8_t *block = malloc(n);
        memcpy(block, x.head, n);
        block[i] ^= 1;
        CHECK_EQ(records_adopt(&y, block, n), -1);
        free(block);
    }
    CHECK_EQ(records_adopt(&y, x.head, n - 1), -1);
    CHECK_EQ(records_adopt(&y, x.head, n), 0);
    records_done(&x);
    record_list_done(&list);
    names_done(&paths);
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(samples_of_two_shards), T(parts_are_moved_apart), T(lent_as_if_read), T(bad_stays_bad),
          T(index_is_of_any_limit), T(sizes_of_an_index), T(pixels_beside_cells), T(parts_far_apart),
          T(what_is_broken_is_named), T(a_shard_that_is_replaced), T(the_index_is_kept),
          T(the_index_is_beside_the_shards), T(labels_among_given_classes), T(blocks_prove_themselves))
}
