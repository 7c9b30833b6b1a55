/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_list.c -- lists: labels of all kinds, what is wrong with them, missing files, size, cache.
 * Covers source_list.c and list_index.c.
 */
#include "source/source.h"
#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

static struct source *open_with(const char *below, const char *const *classes, int n_classes, const char *cache)
{
    char path[PATH_MAX];
    struct source *s = NULL;
    snprintf(path, sizeof path, "%.4000s", temp_path(below));
    const struct source_options o = {
        .path = path, .classes = classes, .n_classes = n_classes, .cache_dir = cache ? cache : "off", .threads = 2};
    memset(&error, 0, sizeof error);
    source_open(&s, &o, &error);
    return s;
}

static struct source *open_list(const char *below, const char *text)
{
    temp_file(below, text);
    return open_with(below, NULL, 0, NULL);
}

static void has(const struct source *s, int64_t i, const char *key, int64_t label)
{
    char buf[PATH_MAX];
    source_key(s, i, buf, sizeof buf);
    CHECK_STR(buf, key);
    CHECK_EQ(source_label(s, i), label);
}

static void make_images(void)
{
    temp_file("img/a.jpg", "aa");
    temp_file("img/b.jpg", "bbb");
    temp_file("img/c d.jpg", "c");
    temp_file("top.jpg", "t");
}

static void numbers_stay(void)
{
    make_images();
    struct source *s = open_list("l.csv", "path,label\nimg/b.jpg,7\nimg/a.jpg,-3\ntop.jpg,3.0\nimg/c d.jpg,+12\n");
    struct reading r = {0};
    CHECK(s != NULL);
    CHECK_STR(source_kind(s), "list");
    CHECK_EQ(source_count(s), 4);
    CHECK_EQ(source_n_classes(s), 0);
    CHECK_EQ(source_n_fields(s), 2);
    has(s, 0, "img/b.jpg", 7);
    has(s, 1, "img/a.jpg", -3);
    has(s, 2, "top.jpg", 3);
    has(s, 3, "img/c d.jpg", 12);
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    CHECK_EQ(r.n_bytes, 2);
    CHECK_EQ(r.label, -3);
    CHECK_EQ(source_tally(s)->bytes, 7);
    buf_done(&r.file);
    source_close(s);
}

static void names_become_classes(void)
{
    struct source *s = open_list("l.txt", "img/a.jpg zebra\nimg/b.jpg ape\ntop.jpg zebra\n");
    CHECK_EQ(source_n_classes(s), 2);
    CHECK_STR(source_class(s, 0), "ape");
    CHECK_STR(source_class(s, 1), "zebra");
    has(s, 0, "img/a.jpg", 1);
    has(s, 1, "img/b.jpg", 0);
    has(s, 2, "top.jpg", 1);
    source_close(s);
    s = open_list("l.csv", "img/a.jpg,10\nimg/b.jpg,9\ntop.jpg,x\n"); /* one name, so all are names */
    CHECK_EQ(source_n_classes(s), 3);
    has(s, 0, "img/a.jpg", 0);
    has(s, 1, "img/b.jpg", 1);
    source_close(s);
    s = open_list("l.csv", "img/a.jpg,1e\nimg/b.jpg,2E+\ntop.jpg,3e-\n"); /* no exponents */
    CHECK_EQ(source_n_classes(s), 3);
    CHECK_STR(source_class(s, 1), "2E+");
    source_close(s);
    s = open_list("l.csv", "img/a.jpg,none\nimg/b.jpg,crack\n");
    CHECK_STR(source_class(s, 1), "none");
    source_close(s);
}

static void json_lines(void)
{
    struct source *s = open_list("l.jsonl", "{\"file_name\": \"img/a.jpg\", \"label\": 5}\n"
                                            "{\"label\": 6, \"file_name\": \"img\\/b.jpg\"}\n");
    has(s, 0, "img/a.jpg", 5);
    has(s, 1, "img/b.jpg", 6);
    source_close(s);
    s = open_list("l.jsonl", "{\"path\": \"img/a.jpg\"}\n");
    CHECK_EQ(source_n_fields(s), 1);
    has(s, 0, "img/a.jpg", -1);
    source_close(s);
}

static void absolute_paths(void)
{
    char text[PATH_MAX + 64], path[PATH_MAX];
    snprintf(text, sizeof text, "%.4000s\ntop.jpg\n", temp_path("img/a.jpg"));
    temp_file("sub/x.jpg", "x");
    temp_file("sub/l.txt", text);
    struct source *s = open_with("sub/l.txt", NULL, 0, NULL);
    source_path(s, 0, path, sizeof path);
    CHECK_STR(path, temp_path("img/a.jpg"));
    source_path(s, 1, path, sizeof path);
    CHECK_STR(path, temp_path("sub/top.jpg"));
    CHECK_EQ(source_bytes(s, 0), 2);
    CHECK_EQ(source_bytes(s, 1), -1);
    source_close(s);
}

static void given_classes(void)
{
    static const char *const classes[] = {"dog", "cat"};
    temp_file("l.csv", "img/a.jpg,cat\nimg/b.jpg,dog\n");
    struct source *s = open_with("l.csv", classes, 2, NULL);
    CHECK_EQ(source_n_classes(s), 2);
    CHECK_STR(source_class(s, 0), "dog");
    has(s, 0, "img/a.jpg", 1);
    source_close(s);
    temp_file("l.csv", "img/a.jpg,cat\nimg/b.jpg,dogg\n");
    CHECK(open_with("l.csv", classes, 2, NULL) == NULL);
    CHECK(strstr(error.text, "l.csv:2: the label dogg") && strstr(error.text, "did you mean dog?"));
    temp_file("l.csv", "img/a.jpg,1\nimg/b.jpg,2\n");
    CHECK(open_with("l.csv", classes, 2, NULL) == NULL);
    CHECK(strstr(error.text, "l.csv:2: the label 2 is not the index"));
    temp_file("l.csv", "img/a.jpg,1\nimg/b.jpg,0\n");
    s = open_with("l.csv", classes, 2, NULL);
    has(s, 0, "img/a.jpg", 1);
    source_close(s);
}

static void fails(const char *name, const char *text, int code, const char *words)
{
    struct source *s = open_list(name, text);
    CHECK(s == NULL);
    CHECK_EQ(error.code, code);
    CHECK_SAYS(error.text, words);
    source_close(s);
}

static void bad_labels(void)
{
    fails("e.csv", "path,label\nimg/a.jpg,1\nimg/b.jpg,\n", STK_EUSAGE,
          "e.csv:3: the label in column label is missing");
    fails("e.csv", "path,label\nimg/a.jpg,1\nimg/b.jpg,NaN\n", STK_EUSAGE,
          "e.csv:3: the label in column label is missing");
    fails("e.csv", "path,label\nimg/a.jpg,None\nimg/b.jpg,2\n", STK_EUSAGE,
          "e.csv:2: the label in column label is missing");
    fails("e.csv", "path,label\nimg/a.jpg,1\nimg/b.jpg,0.5\n", STK_EUSAGE,
          "e.csv:3: the label in column label is not a 64-bit integer");
    fails("e.csv", "path,label\nimg/a.jpg,99999999999999999999\n", STK_EUSAGE,
          "e.csv:2: the label in column label is not a 64-bit integer");
    fails("e.csv", "path,label\nimg/a.jpg,1\nimg/b.jpg\n", STK_EUSAGE, "e.csv:3: the label in column label is missing");
    fails("e.txt", "img/a.jpg 1\nimg/b.jpg\n", STK_EUSAGE, "e.txt:2: the label is missing");
    fails("e.jsonl", "{\"path\":\"img/a.jpg\",\"label\":1}\n{\"path\":\"img/b.jpg\"}\n", STK_EUSAGE,
          "e.jsonl:2: the label is missing, but line 1 has one");
    fails("e.jsonl", "{\"path\":\"img/a.jpg\",\"label\":null}\n", STK_EUSAGE, "e.jsonl:1: the label is missing");
}

static void nothing_in_it(void)
{
    fails("e.csv", "", STK_EUSAGE, "e.csv: the list contains no paths");
    fails("e.csv", "path,label\n", STK_EUSAGE, "e.csv: the list contains no paths");
    fails("e.txt", "", STK_EUSAGE, "e.txt: the list contains no paths");
}

static void missing_files(void)
{
    struct source *s = open_list("m.txt", "gone.jpg\nimg/a.jpg\nimg/gone.jpg\n");
    struct reading r = {0};
    CHECK_EQ(source_count(s), 3);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_ENOTFOUND);
    CHECK_EQ(source_tally(s)->missing, 2);
    CHECK_EQ(source_tally(s)->bytes, 2);
    buf_done(&r.file);
    source_close(s);
    fails("m.txt", "gone1.jpg\ngone2.jpg\n", STK_ENOTFOUND, "none of the 2 files exists; the first was expected at /");
    fails("m.txt", "img\\a.jpg\n", STK_ENOTFOUND, "separate folders with /");
    s = open_list("m.txt", "some words of a letter\nthat is no list\n");
    CHECK_STR(source_kind(s), "lines of text");
    source_close(s);
}

static void write_long_list(const char *below, int n)
{
    FILE *f = fopen(temp_path(below), "w");
    for (int i = 0; i < n; i++)
        fprintf(f, "img/n01443537_goldfish/n01443537_%d.JPEG,%d\n", 10000 + i % 1000, i % 28);
    fclose(f);
}

static int64_t index_bytes(const char *below, int n)
{
    struct source *s = open_with(below, NULL, 0, NULL);
    CHECK_EQ(source_count(s), n);
    const int64_t bytes = source_tally(s)->index_bytes;
    source_close(s);
    return bytes;
}

static void few_bytes_a_sample(void)
{
    char name[64];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "img/n01443537_goldfish/n01443537_%d.JPEG", 10000 + i);
        temp_file(name, "x");
    }
    write_long_list("1k.csv", 1000);
    write_long_list("20k.csv", 20000);
    const int64_t per_sample = (index_bytes("20k.csv", 20000) - index_bytes("1k.csv", 1000)) / 19000;
    CHECK(per_sample < 64);
}

static uint64_t see(const char *below, const char *cache, bool *cached)
{
    struct source *s = open_with(below, NULL, 0, cache);
    const uint64_t h = s ? source_fingerprint(s) : 0;
    *cached = s && source_tally(s)->index_cached;
    source_close(s);
    return h;
}

static void cached_until_it_changes(void)
{
    char cache[PATH_MAX];
    bool cached;
    snprintf(cache, sizeof cache, "%.4000s", temp_path("cache"));
    write_long_list("c.csv", 3000);
    temp_settle();
    const uint64_t h = see("c.csv", cache, &cached);
    CHECK(!cached);
    CHECK(see("c.csv", cache, &cached) == h);
    CHECK(cached);
    write_long_list("c.csv", 3001); /* the list */
    temp_settle();
    CHECK(see("c.csv", cache, &cached) != h);
    CHECK(!cached);
    see("c.csv", cache, &cached);
    CHECK(cached);
    remove(temp_path("img/n01443537_goldfish/n01443537_10007.JPEG")); /* a file in it */
    temp_settle();
    CHECK(see("c.csv", cache, &cached) != 0);
    CHECK(!cached);
    write_long_list("c.csv", 3000); /* the same list, but other files */
    CHECK(see("c.csv", NULL, &cached) != h);
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    make_images();
    TESTS(T(numbers_stay), T(names_become_classes), T(json_lines), T(absolute_paths), T(given_classes), T(bad_labels),
          T(nothing_in_it), T(missing_files), T(few_bytes_a_sample), T(cached_until_it_changes))
}
