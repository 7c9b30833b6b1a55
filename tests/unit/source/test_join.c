/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_join.c -- joins sources of several kinds: common fields, own fields, classes by name, encoded images together
 * with pixels. Covers join_match.c.
 */
#include "stoker.h"
#include "support/npy_files.h"
#include "support/tars.h"
#include "support/temp_tree.h"
#include "test.h"

static char a[4096], b[4096], t[4096], x[4096], y[4096];

/* Folders of the classes cat, dog and bird, dog; a tar of cat and eel with captions; 3 x 5 pixels; numbers. */
static void make(void)
{
    const uint8_t px[4 * 6 * 3] = {10, 20, 30};
    const stk_encode_options o = {.format = STK_PNG};
    struct tars tar = {0};
    uint8_t rows[2 * 3 * 5 * 3];
    const float numbers[4] = {1, 2, 3, 4};
    void *png;
    size_t n;
    temp_begin();
    if (stk_encode(px, 6, 4, 3, 18, &o, &png, &n, NULL) != STK_OK)
        return;
    temp_bytes("a/cat/1.png", png, n);
    temp_bytes("a/dog/2.png", png, n);
    temp_bytes("b/bird/3.png", png, n);
    temp_bytes("b/dog/4.png", png, n);
    tars_file(&tar, "1.png", png, n);
    tars_text(&tar, "1.cls", "eel");
    tars_text(&tar, "1.txt", "one");
    tars_file(&tar, "2.png", png, n);
    tars_text(&tar, "2.cls", "cat");
    tars_text(&tar, "2.txt", "two");
    tars_end(&tar);
    temp_bytes("t.tar", tar.bytes.data, tar.bytes.len);
    memset(rows, 77, sizeof rows);
    npy_file("x.npy", "|u1", "False", "(2, 3, 5, 3)", rows, sizeof rows);
    npy_file("y.npy", "<f4", "False", "(2, 2)", numbers, sizeof numbers);
    snprintf(a, sizeof a, "%s", temp_path("a"));
    snprintf(b, sizeof b, "%s", temp_path("b"));
    snprintf(t, sizeof t, "%s", temp_path("t.tar"));
    snprintf(x, sizeof x, "%s", temp_path("x.npy"));
    snprintf(y, sizeof y, "%s", temp_path("y.npy"));
    buf_done(&tar.bytes);
    stk_free(png);
}

static stk_source *open_two(const char *const *two, const char *fields, const char *const *own)
{
    const stk_source_options o = {
        .sources = two, .n_sources = 2, .fields = fields, .source_fields = own, .cache_dir = "off"};
    stk_source *s;
    return stk_source_open(&s, &o, &error) == STK_OK ? s : NULL;
}

static const char *fields_of(const stk_source *s)
{
    static char text[512];
    stk_source_fields(s, text, sizeof text);
    return text;
}

static void refuses(const char *const *two, const char *fields, const char *const *own, const char *words)
{
    stk_source *s = open_two(two, fields, own);
    CHECK(!s);
    CHECK(strstr(error.text, words));
    if (!strstr(error.text, words))
        printf("    %s\n", error.text);
    stk_source_close(s);
}

static void classes_by_name(void)
{
    make();
    stk_source *s = open_two((const char *const[]){a, b}, NULL, NULL);
    CHECK_EQ(stk_source_n_classes(s), 3);
    CHECK_STR(stk_source_class(s, 0), "bird");
    const int64_t labels[] = {1, 2, 0, 2};
    for (int i = 0; i < 4; i++)
        CHECK_EQ(stk_source_label(s, i), labels[i]);
    stk_source_close(s);

    s = open_two((const char *const[]){a, b}, "image", NULL); /* no label in fields */
    CHECK_EQ(stk_source_n_classes(s), 0);
    stk_source_close(s);
    temp_end();
}

static void shared_fields(void)
{
    make();
    stk_source *s = open_two((const char *const[]){a, t}, NULL, NULL);
    CHECK_STR(fields_of(s), "image:image, label:int");
    CHECK_STR(stk_source_class(s, 2), "eel");
    CHECK_EQ(stk_source_label(s, 2), 2);
    CHECK_EQ(stk_source_label(s, 3), 0);
    stk_source_close(s);

    s = open_two((const char *const[]){t, x}, NULL, (const char *const[]){"image, y=cls:int", "y=data:image"});
    CHECK(!s);
    CHECK(strstr(error.text, "has y:int, but ") && strstr(error.text, "x.npy has y:image"));
    refuses((const char *const[]){y, t}, NULL, NULL, "no field in common: ");
    refuses((const char *const[]){y, t}, "data", NULL, "t.tar: there is no column data");
    refuses((const char *const[]){y, x}, NULL, (const char *const[]){NULL, "data=data:uint8(3,5,3)"},
            "set its kind for all sources in fields");
    refuses((const char *const[]){a, t}, "photo", (const char *const[]){"photos=image", NULL},
            "; did you mean photos?");
    temp_end();
}

/* A loader reads the same from a joined source as from the source alone. */
static void same_rows(const stk_options *joined, const stk_options *alone, int64_t first)
{
    stk_loader *l, *m;
    stk_batch *p, *q;
    CHECK_EQ(stk_open(&l, joined, &error), STK_OK);
    CHECK_EQ(stk_open(&m, alone, &error), STK_OK);
    for (int64_t i = 0; i < stk_loader_count(m); i++) {
        const int64_t at = first + i;
        CHECK_EQ(stk_loader_get(l, &at, NULL, 1, 0, &p, &error), STK_OK);
        CHECK_EQ(stk_loader_get(m, &i, NULL, 1, 0, &q, &error), STK_OK);
        const stk_array *image = stk_field(p, "photo"), *other = stk_field(q, "photo");
        CHECK_EQ(image->shape[2], 2);
        CHECK(memcmp(image->data, other->data, 3 * 2 * 2) == 0);
        stk_release(p);
        stk_release(q);
    }
    stk_close(l);
    stk_close(m);
}

static void images_of_all_kinds(void)
{
    make();
    const char *const all[] = {a, x, t};
    const char *const own[] = {"photo=image", "photo=data", "photo=png, caption=txt"};
    const stk_options o = {.sources = all,
                           .n_sources = 3,
                           .source_fields = own,
                           .fields = "photo",
                           .ops = "CenterCrop(2)",
                           .dtype = STK_UINT8,
                           .cache = STK_CACHE_PIXELS,
                           .memory = 64 << 20,
                           .threads = 1,
                           .cache_dir = "off"};
    int64_t first = 0;
    for (int i = 0; i < 3; i++, first += 2) {
        const stk_options one = {.source = all[i],
                                 .source_fields = &own[i],
                                 .fields = "photo",
                                 .ops = o.ops,
                                 .dtype = STK_UINT8,
                                 .cache_dir = "off"};
        same_rows(&o, &one, first);
    }
    stk_source *s = open_two((const char *const[]){x, a}, NULL, (const char *const[]){"image=data", NULL});
    uint8_t *px;
    int w, h;
    int64_t label;
    CHECK_EQ(stk_source_image(s, 1, &px, &w, &h, &label, &error), STK_OK);
    CHECK(w == 5 && h == 3 && px[44] == 77);
    stk_free(px);
    CHECK_EQ(stk_source_image(s, 2, &px, &w, &h, &label, &error), STK_OK);
    CHECK(w == 6 && h == 4 && px[1] == 20);
    stk_free(px);
    stk_source_close(s);
    temp_end();
}

/* Rows of different lengths do not fit into one array. */
static void shapes_differ(void)
{
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    make();
    npy_file("z.npy", "<f4", "False", "(2, 3)", numbers, sizeof numbers);
    char z[4096];
    snprintf(z, sizeof z, "%s", temp_path("z.npy"));
    refuses((const char *const[]){y, z}, NULL, NULL, "y.npy has data:float32(2), but ");
    stk_source *s = open_two((const char *const[]){y, z}, "data:float32(*)", NULL);
    CHECK(s != NULL);
    stk_source_close(s);
    temp_end();
}

int main(int argc, char **argv)
{
    TESTS(T(classes_by_name), T(shared_fields), T(images_of_all_kinds), T(shapes_differ))
}
