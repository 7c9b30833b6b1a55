/* SPDX-License-Identifier: Apache-2.0 */
/* test_browse.c -- a source alone, and sources joined. */
#include "stoker.h"
#include "support/temp_tree.h"
#include "test.h"

static void make_tree(void)
{
    const uint8_t px[2 * 3 * 3] = {10, 20, 30};
    const stk_encode_options o = {.format = STK_PNG};
    void *png;
    size_t n;
    temp_begin();
    if (stk_encode(px, 3, 2, 3, 9, &o, &png, &n, NULL) != STK_OK)
        return;
    temp_bytes("a/cat/1.png", png, n);
    temp_bytes("a/dog/2.png", png, n);
    temp_bytes("b/cat/3.png", png, n);
    temp_bytes("b/dog/4.png", png, n);
    temp_bytes("b/dog/5.png", png, 20);
    temp_bytes("c/bird/6.png", png, n);
    stk_free(png);
}

static void one_source(void)
{
    make_tree();
    temp_bytes("b/.hidden.png", "x", 1);
    temp_bytes("b/notes.txt", "x", 1);
    char path[4096];
    snprintf(path, sizeof path, "%s", temp_path("b"));
    const stk_source_options o = {.source = path, .cache_dir = "off"};
    stk_source *s;
    stk_error e;
    CHECK_EQ(stk_source_open(&s, &o, &e), STK_OK);
    CHECK_EQ(stk_source_count(s), 3);
    CHECK_EQ(stk_source_n_classes(s), 2);
    CHECK_STR(stk_source_class(s, 1), "dog");
    CHECK_EQ(stk_source_label(s, 2), 1);
    CHECK_EQ(stk_source_label(s, 3), -1);
    CHECK(strstr(stk_source_kind(s), "folder"));
    CHECK(stk_source_fingerprint(s) != 0);
    char text[4096];
    stk_overview v;
    memset(&v, 0xff, sizeof v); /* every member is set */
    stk_source_overview(s, &v);
    CHECK(v.bytes > 0 && v.index_bytes > 0 && v.index_s >= 0);
    CHECK(v.ignored_loops == 0 && v.unreadable == 0 && v.empty_classes == 0 && v.missing == 0 && v.beside == 0);
    CHECK(v.index_cached == 0 && !v.columns && !v.left_out);
    CHECK_EQ(v.ignored_hidden, 1);
    CHECK_EQ(v.ignored_other, 1);
    CHECK_EQ(stk_source_key(s, 0, text, sizeof text), 9);
    CHECK_STR(text, "cat/3.png");
    CHECK(stk_source_path(s, 0, text, sizeof text) > 9);
    CHECK_EQ(stk_source_path(s, 9, text, sizeof text), 0);
    CHECK_EQ(stk_source_key(s, -1, text, sizeof text), 0);
    uint8_t *pixels;
    int w, h;
    int64_t label;
    CHECK_EQ(stk_source_image(s, 1, &pixels, &w, &h, &label, &e), STK_OK);
    CHECK_EQ(w, 3);
    CHECK_EQ(h, 2);
    CHECK_EQ(label, 1);
    CHECK_EQ(pixels[2], 30);
    stk_free(pixels);
    CHECK_EQ(stk_source_image(s, 2, &pixels, &w, &h, &label, &e), STK_EDATA);
    CHECK(strstr(e.path, "5.png"));
    CHECK_EQ(stk_source_image(s, 9, &pixels, &w, &h, &label, &e), STK_EUSAGE);
    stk_source_close(s);
    stk_source_close(NULL);
    CHECK_EQ(stk_source_open(&s, &(stk_source_options){.source = "/nonexistent"}, &e), STK_ENOTFOUND);
    temp_end();
}

static void joined(void)
{
    make_tree();
    char a[4096], b[4096], c[4096];
    snprintf(a, sizeof a, "%s", temp_path("a"));
    snprintf(b, sizeof b, "%s", temp_path("b"));
    snprintf(c, sizeof c, "%s", temp_path("c"));
    const char *const two[] = {a, b}, *const odd[] = {a, c}, *const classes[] = {"bird", "cat", "dog"};
    stk_source_options o = {.sources = two, .n_sources = 2, .cache_dir = "off"};
    stk_source *s;
    stk_error e;
    CHECK_EQ(stk_source_open(&s, &o, &e), STK_OK);
    CHECK_EQ(stk_source_count(s), 5);
    CHECK_EQ(stk_source_label(s, 3), 1);
    char text[4096];
    stk_source_key(s, 2, text, sizeof text);
    CHECK_STR(text, "cat/3.png");
    CHECK_STR(stk_source_class(s, 0), "cat");
    const uint64_t both = stk_source_fingerprint(s);
    stk_source_close(s);

    o.sources = odd;
    o.classes = classes;
    o.n_classes = 3;
    CHECK_EQ(stk_source_open(&s, &o, &e), STK_OK);
    CHECK_EQ(stk_source_label(s, 2), 0);
    CHECK_EQ(stk_source_label(s, 0), 1);
    CHECK(stk_source_fingerprint(s) != both);

    /* A loader of an open source, which may be closed before it. */
    const stk_options of_opened = {.opened = s, .ops = "CenterCrop(2)", .batch_size = 3, .cache_dir = "off"};
    stk_options twice = of_opened;
    twice.source = a;
    stk_loader *l;
    stk_batch *batch;
    CHECK_EQ(stk_open(&l, &twice, &e), STK_EUSAGE);
    twice = of_opened;
    twice.fields = "image";
    CHECK_EQ(stk_open(&l, &twice, &e), STK_EUSAGE);
    CHECK_SAYS(e.text, "stk_source_open");
    CHECK_EQ(stk_open(&l, &of_opened, &e), STK_OK);
    CHECK_EQ(stk_loader_fingerprint(l), stk_source_fingerprint(s));
    stk_source_close(s);
    CHECK_EQ(stk_next(l, &batch, &e), STK_OK);
    CHECK_EQ(((const int64_t *)stk_field(batch, "label")->data)[2], 0);
    stk_release(batch);
    const stk_source *lent = stk_loader_source(l);
    CHECK_EQ(stk_source_n_classes(lent), 3);
    CHECK_EQ(stk_source_key(lent, 2, text, sizeof text), 10);
    CHECK_STR(text, "bird/6.png");
    CHECK_EQ(stk_source_key(lent, 99, text, sizeof text), 0);
    stk_close(l);
    temp_end();
}

int main(int argc, char **argv)
{
    TESTS(T(one_source), T(joined))
}
