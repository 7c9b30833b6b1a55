/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_list_fields.c -- lists with several columns, with and without images.
 * Covers list_fields.c, list_guess.c and source_table.c.
 */
#include "source/field.h"
#include "source/source.h"
#include "support/comma_locale.h"
#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

static struct source *open_list(const char *below, const char *text, const char *fields)
{
    char path[PATH_MAX];
    struct source *s = NULL;
    temp_file("img/a.jpg", "aa");
    temp_file("img/b.jpg", "bbb");
    if (text)
        temp_file(below, text);
    snprintf(path, sizeof path, "%.4000s", temp_path(below));
    const struct source_options o = {
        .path = path, .fields = fields, .cache_dir = "off", .threads = 2, .max_bytes = 1 << 20};
    memset(&error, 0, sizeof error);
    source_open(&s, &o, &error);
    if (!s)
        printf("%s\n", error.text);
    return s;
}

static void done(struct reading *r, struct source *s)
{
    buf_done(&r->file);
    buf_done(&r->derived);
    source_close(s);
}

/* Checks that field f of the sample is this text. */
static void is(const struct reading *r, int f, const char *text)
{
    const struct cell *c = &r->cells[f];
    CHECK(c->bytes && c->n == strlen(text) && memcmp(c->bytes, text, c->n) == 0);
}

static const char table[] = "path,label,caption,score,age\n"
                            "img/a.jpg,cat,\"one, \"\"two\"\"\",0.5,3\n"
                            "img/b.jpg,dog,\"three\nlines\",1,\n";

static void with_images(void)
{
    struct source *s = open_list("l.csv", table, "image, label, caption, score, age ? -1");
    struct reading r = {0};
    CHECK_EQ(source_n_fields(s), 5);
    CHECK_EQ(source_field(s, 2)->what, STK_TEXT);
    CHECK_EQ(source_field(s, 3)->what, STK_FLOAT);
    CHECK_EQ(source_field(s, 4)->what, STK_INT);
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    CHECK_EQ(r.n_bytes, 3);
    CHECK_EQ(r.label, 1);
    is(&r, 2, "three\nlines");
    is(&r, 3, "1");
    CHECK(!r.cells[4].bytes);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    CHECK_EQ(r.label, 0);
    is(&r, 2, "one, \"two\"");
    is(&r, 4, "3");
    r.rest = true; /* the image came from elsewhere */
    r.n_bytes = 0;
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    CHECK_EQ(r.n_bytes, 0);
    is(&r, 2, "three\nlines");
    done(&r, s);
}

/* Without `fields`, a list has image and label. */
static void not_asked_for(void)
{
    struct source *s = open_list("l.csv", table, NULL);
    CHECK_EQ(source_n_fields(s), 2);
    CHECK_STR(source_field(s, 1)->name, "label");
    source_close(s);
    s = open_list("l.csv", table, "label:text, caption"); /* class names as text; no image */
    struct reading r = {.rest = true};
    CHECK_EQ(source_n_fields(s), 2);
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    is(&r, 0, "dog");
    done(&r, s);
}

/* A header names the label, or there is none. */
static void header_without_label(void)
{
    static const char scores[] = "path,score\nimg/a.jpg,0.5\nimg/b.jpg,\n";
    struct source *s = open_list("s.csv", scores, NULL);
    CHECK_EQ(source_n_fields(s), 1);
    CHECK_STR(source_unused_columns(s), "score");
    source_close(s);
    s = open_list("s.csv", scores, "image, score ? -1");
    struct reading r = {0};
    CHECK_EQ(source_field(s, 1)->what, STK_FLOAT);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    is(&r, 1, "0.5");
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    CHECK(!r.cells[1].bytes);
    done(&r, s);
}

/* Labels that cannot be class indexes do not matter unless fields ask for them. */
static void bad_labels_not_asked_for(void)
{
    static const char *const lists[] = {"path,label\nimg/a.jpg,0.5\nimg/b.jpg,\n", "img/a.jpg,0.5\nimg/b.jpg,\n"};
    for (int i = 0; i < 2; i++) {
        struct source *s = open_list("b.csv", lists[i], "image");
        CHECK(s != NULL);
        CHECK_EQ(source_count(s), 2);
        CHECK_EQ(source_label(s, 0), -1);
        source_close(s);
        CHECK(!open_list("b.csv", lists[i], NULL));
        CHECK_SAYS(error.text, i == 0 ? "b.csv:3: the label in column label is missing"
                                      : "b.csv:2: the label in column 2 is missing");
        CHECK(!open_list("b.csv", lists[i], i == 0 ? "label" : "image, 2"));
    }
    struct source *s = open_list("b.csv", lists[0], "image, label:float ? -1");
    struct reading r = {0};
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    is(&r, 1, "0.5");
    done(&r, s);
    s = open_list("b.txt", "img/a.jpg 1\nimg/b.jpg\n", "image");
    CHECK_EQ(source_count(s), 2);
    source_close(s);
    s = open_list("b.jsonl", "{\"path\":\"img/a.jpg\",\"label\":1}\n{\"path\":\"img/b.jpg\"}\n", "image");
    CHECK_EQ(source_count(s), 2);
    source_close(s);
}

static void unknown(void)
{
    CHECK(!open_list("l.csv", table, "image, captoin"));
    CHECK(strstr(error.text, "caption"));
}

static void nested_names(void)
{
    struct source *s = open_list("l.jsonl",
                                 "{\"file_name\": \"img/a.jpg\", \"meta\": {\"author\": \"\\u00c4\", \"ok\": true}, "
                                 "\"box\": [1, 2.5, 3, 4], \"tags\": [\"x\"], \"ids\": [1]}\n"
                                 "{\"file_name\": \"img/b.jpg\", \"meta\": {\"author\": \"B\", \"ok\": false}, "
                                 "\"box\": [5, 6, 7, 8], \"tags\": [], \"ids\": [1, 2, 3]}\n",
                                 "image, by=meta.author, meta.ok, box, ids, tags:json");
    struct reading r = {0};
    CHECK_EQ(source_field(s, 2)->what, STK_INT);
    CHECK_EQ(source_field(s, 3)->kind, FIELD_TENSOR);
    CHECK_EQ(source_field(s, 3)->shape[0], 4);
    CHECK_EQ(source_field(s, 4)->kind, FIELD_RAGGED);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    is(&r, 1, "\xc3\x84");
    is(&r, 2, "1");
    is(&r, 5, "[\"x\"]");
    float box[4];
    CHECK_EQ(field_store(source_field(s, 3), &r.cells[3], box, &error), STK_OK);
    CHECK(box[0] > 0.9f && box[1] > 2.4f && box[3] > 3.9f);
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    struct ragged_row ids = {0};
    CHECK_EQ(field_ragged_row(source_field(s, 4), &r.cells[4], &ids, &error), STK_OK);
    CHECK_EQ(ids.n, 24);
    ragged_row_done(&ids);
    is(&r, 2, "0");
    CHECK_EQ(field_store(source_field(s, 3), &r.cells[3], box, &error), STK_OK);
    CHECK(box[3] > 7.9f);
    done(&r, s);
}

/* The number of columns is limited, but all rows decide the kinds of the known ones. */
static void many_columns(void)
{
    enum { N = 1024 };
    static char text[32 * N];
    size_t n = 0;
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%c\"c%d\": %d", i ? ',' : '{', i, i);
    snprintf(text + n, sizeof text - n, "}\n{\"more\": 1, \"c7\": \"word\", \"c9\": 0.5}\n");
    struct source *s = open_list("v.jsonl", text, "c7, c8, c9");
    struct reading r = {0};
    CHECK_EQ(source_field(s, 0)->what, STK_TEXT);
    CHECK_EQ(source_field(s, 1)->what, STK_INT);
    CHECK_EQ(source_field(s, 2)->what, STK_FLOAT);
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    is(&r, 0, "word");
    done(&r, s);
    CHECK(!open_list("v.jsonl", NULL, "more"));
}

static void rows_alone(void)
{
    struct source *s = open_list("v.csv", "age,weight,name,label\n3,0.5,Anna,1\n4,,Bert,0\n", NULL);
    struct reading r = {0};
    char text[PATH_MAX];
    CHECK_STR(source_kind(s), "list of values");
    CHECK_EQ(source_count(s), 2);
    CHECK_EQ(source_n_fields(s), 4);
    CHECK_STR(source_field(s, 0)->name, "label");
    CHECK_STR(source_field(s, 1)->name, "age");
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    is(&r, 0, "0");
    is(&r, 1, "4");
    CHECK(!r.cells[2].bytes);
    is(&r, 3, "Bert");
    source_key(s, 1, text, sizeof text);
    CHECK_STR(text, "v.csv:1");
    done(&r, s);
    s = open_list("n.csv", "1,2.5\n3,4\n", NULL);
    CHECK_EQ(source_count(s), 2);
    CHECK_STR(source_field(s, 1)->name, "2");
    source_close(s);
    s = open_list("v.jsonl", "{\"text\": \"a b\", \"n\": 1}\n{\"text\": \"c\", \"n\": 2}\n", NULL);
    CHECK_EQ(source_count(s), 2);
    CHECK_EQ(source_n_fields(s), 2);
    source_close(s);
}

/* Cells that look like paths make a list of files, even if the files do not exist. */
static void files_all_the_same(void)
{
    CHECK(!open_list("m.csv", "missing.jpg,1\n", NULL));
    CHECK(strstr(error.text, "its only file"));
    CHECK(!open_list("m.csv", "abc,1\ndef,2\n", NULL));
    CHECK(strstr(error.text, "none of the"));
    CHECK(!open_list("m.csv", "path,label\nabc,1\n", NULL));
    CHECK(strstr(error.text, "its only file"));
}

static void list_that_shrinks(void)
{
    struct source *s = open_list("l.csv", table, "image, caption");
    struct reading r = {0};
    CHECK_EQ(truncate(temp_path("l.csv"), 40), 0);
    CHECK_EQ(source_read(s, &r, 1, &error), STK_EDATA);
    CHECK(strstr(error.text, "became shorter"));
    done(&r, s);
}

static void damaged_line(void)
{
    struct source *s = open_list("v.jsonl", "{\"n\": 1}\n{\"n\": 2}\n{\"n\" 3}\n", NULL);
    struct reading r = {0};
    CHECK_EQ(source_count(s), 3);
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    CHECK_EQ(source_read(s, &r, 2, &error), STK_EDATA);
    done(&r, s);
}

/* A name that is read must have one value; other names do not matter. */
static void name_twice(void)
{
    static const char text[] = "{\"a\": {\"b\": 1}, \"c\": 1}\n"
                               "{\"a\": {\"b\": 1}, \"c\": 2, \"a.b\": 7}\n"
                               "{\"a\": {\"b\": 1}, \"c\": 3, \"a\": {\"b\": 2}}\n"
                               "{\"a\": {\"b\": 1}, \"c\": 4, \"c\": null}\n";
    struct source *s = open_list("v.jsonl", text, "a.b, c");
    struct reading r = {0};
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    for (int64_t i = 1; i < 4; i++) {
        CHECK_EQ(source_read(s, &r, i, &error), STK_EDATA);
        CHECK_SAYS(error.text, i < 3 ? "the name a.b appears twice" : "the name c appears twice");
    }
    done(&r, s);
    s = open_list("v.jsonl", NULL, "c");
    r = (struct reading){0};
    CHECK_EQ(source_read(s, &r, 2, &error), STK_OK);
    is(&r, 0, "3");
    done(&r, s);
}

static void path_or_label_twice(void)
{
    CHECK(!open_list("l.jsonl", "{\"path\": \"img/a.jpg\", \"label\": 1, \"label\": 2}\n", NULL));
    CHECK_SAYS(error.text, "the key of the label appears twice");
    CHECK(!open_list("l.jsonl", "{\"path\": \"img/a.jpg\", \"path\": \"img/b.jpg\"}\n", NULL));
    CHECK_SAYS(error.text, "the key of the path appears twice");
    source_close(open_list("l.jsonl", "{\"path\": \"img/a.jpg\", \"y\": 1, \"y\": 2, \"label\": 2}\n", NULL));
    CHECK_EQ(error.code, STK_OK);
}

/* The start of a name that is too long is reported; fields chosen by name can be read. */
static void name_too_long(void)
{
    char text[2048];
    memset(text, 'n', sizeof text);
    memcpy(text, "{\"", 2);
    snprintf(text + 1500, sizeof text - 1500, "\": {\"x\": 1}, \"c\": 5}\n");
    struct source *s = open_list("v.jsonl", text, "c");
    struct reading r = {0};
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    is(&r, 0, "5");
    done(&r, s);
    CHECK(!open_list("v.jsonl", NULL, NULL));
    CHECK_SAYS(error.text, "nnnn... cannot be a field: its name has more than 1,023 bytes");
}

/* In a table, the columns after it keep their places. */
static void name_with_nul(void)
{
    CHECK(!open_list("v.jsonl", "{\"a\\u0000b\": 1, \"c\": 5}\n", NULL));
    CHECK_SAYS(error.text, "the column a... cannot be a field: its name contains a NUL character");
    struct source *s = open_list("v.jsonl", NULL, "c");
    struct reading r = {0};
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    is(&r, 0, "5");
    done(&r, s);
    static const char with_nul[] = "x,a\0b,c\n1,2,3\n";
    temp_bytes("t.csv", with_nul, sizeof with_nul - 1);
    s = open_list("t.csv", NULL, "c");
    r = (struct reading){0};
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    is(&r, 0, "3");
    done(&r, s);
}

/* Field f of sample i, as the row of a ragged field. */
static void row_is(const struct source *s, int64_t i, int f, const float *numbers, int64_t rows, int64_t each)
{
    struct reading r = {0};
    struct ragged_row p = {0};
    CHECK_EQ(source_read(s, &r, i, &error), STK_OK);
    CHECK_EQ(field_ragged_row(source_field(s, f), &r.cells[f], &p, &error), STK_OK);
    CHECK_EQ(p.n, rows * each * (int64_t)sizeof *numbers);
    CHECK_EQ(p.shape[0], rows);
    CHECK_EQ(p.shape[1], each);
    CHECK(p.n == 0 || memcmp(p.data, numbers, p.n) == 0);
    ragged_row_done(&p);
    reading_done(&r);
}

static void row_fails(const struct source *s, int64_t i, int f, const char *words)
{
    struct reading r = {0};
    struct ragged_row p = {0};
    CHECK_EQ(source_read(s, &r, i, &error), STK_OK);
    CHECK_EQ(field_ragged_row(source_field(s, f), &r.cells[f], &p, &error), STK_EDATA);
    CHECK_SAYS(error.text, words);
    ragged_row_done(&p);
    reading_done(&r);
}

static void nested_arrays(void)
{
    static const float two[] = {10, 20, 30, 400, 0.5f, 1, 2, -3e2f};
    struct source *s = open_list("b.jsonl",
                                 "{\"path\": \"img/a.jpg\", \"boxes\": [[10, 20, 30, 400], [0.5, 1, 2, -3e2]]}\n"
                                 "{\"path\": \"img/b.jpg\", \"boxes\": []}\n"
                                 "{\"path\": \"img/b.jpg\", \"boxes\": [[1, 2, 3]]}\n"
                                 "{\"path\": \"img/b.jpg\", \"boxes\": [[1, 2, 3, 4], [1, 2]]}\n"
                                 "{\"path\": \"img/b.jpg\", \"boxes\": [[1, 2, 3, \"x\"]]}\n"
                                 "{\"path\": \"img/b.jpg\", \"boxes\": \"10 20 30 400 0.5 1 2 -300\"}\n"
                                 "{\"path\": \"img/b.jpg\", \"boxes\": \"a dog\"}\n",
                                 "boxes:float32(*,4)");
    row_is(s, 0, 0, two, 2, 4);
    row_is(s, 1, 0, two, 0, 4);
    row_fails(s, 2, 0, "boxes");
    row_fails(s, 3, 0, "boxes");
    row_fails(s, 4, 0, "boxes is \"[[1, 2, 3, \"x\"]]\"");
    row_is(s, 5, 0, two, 2, 4);
    row_fails(s, 6, 0, "boxes is \"a dog\"");
    source_close(s);
}

/* Text in a cell is parsed; it is never read as binary numbers. */
static void text_with_a_shape(void)
{
    struct source *s = open_list("t.csv", "x,name\n12.5,Anna\n1;2,Bert\n\"[3, 4]\",Carl\n\"5, 6\",Dora\n",
                                 "one=x:float32(1), x:float32(2), name:uint32(1)");
    struct reading r = {0};
    float x[2];
    uint32_t name;
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    CHECK_EQ(field_store(source_field(s, 0), &r.cells[0], x, &error), STK_OK);
    CHECK(x[0] == 12.5f);
    CHECK_EQ(field_store(source_field(s, 1), &r.cells[1], x, &error), STK_EDATA);
    CHECK_EQ(field_store(source_field(s, 2), &r.cells[2], &name, &error), STK_EDATA);
    CHECK_SAYS(error.text, "name is \"Anna\"");
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    CHECK_EQ(field_store(source_field(s, 1), &r.cells[1], x, &error), STK_EDATA);
    for (int i = 2; i < 4; i++) {
        CHECK_EQ(source_read(s, &r, i, &error), STK_OK);
        CHECK_EQ(field_store(source_field(s, 1), &r.cells[1], x, &error), STK_OK);
        CHECK_EQ((int)x[0], 2 * i - 1);
        CHECK_EQ((int)x[1], 2 * i);
    }
    done(&r, s);
}

/* Numbers have a decimal point in every locale. */
static void comma_locale(void)
{
    if (!comma_enter())
        return;
    struct source *s = open_list("l.csv", table, "score");
    struct source *j = open_list("l.jsonl", "{\"x\": [1.5, 2]}\n{\"x\": [3, 4.25]}\n", NULL);
    struct reading r = {0};
    float x[2];
    CHECK_EQ(source_field(s, 0)->what, STK_FLOAT);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    CHECK_EQ(field_store(source_field(s, 0), &r.cells[0], x, &error), STK_OK);
    CHECK(x[0] == 0.5f);
    CHECK_EQ(source_field(j, 0)->what, STK_TENSOR);
    CHECK_EQ(source_read(j, &r, 1, &error), STK_OK);
    CHECK_EQ(field_store(source_field(j, 0), &r.cells[0], x, &error), STK_OK);
    CHECK(x[1] == 4.25f);
    comma_leave();
    source_close(j);
    done(&r, s);
}

/* All bytes of a name count. */
static void long_names(void)
{
#define STEM "a_name_that_is_longer_than_a_field_can_be_called_by_quite_a_few_bytes_"
    struct source *s =
        open_list("l.jsonl", "{\"" STEM "x\": 1, \"" STEM "y\": 2}\n{\"" STEM "y\": 4, \"" STEM "x\": 3}\n",
                  "x=" STEM "x:int, y=" STEM "y:int");
    struct reading r = {0};
    CHECK_EQ(source_n_fields(s), 2);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    is(&r, 0, "1");
    is(&r, 1, "2");
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    is(&r, 0, "3");
    is(&r, 1, "4");
    done(&r, s);
    CHECK(!open_list("l.jsonl", NULL, NULL)); /* both would become the same field */
    CHECK_SAYS(error.text, "l.jsonl: the columns a_name");
    s = open_list("m.jsonl", "{\"" STEM "x\": 1}\n{\"" STEM "x\": 3, \"" STEM "y\": 4}\n", STEM "x");
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    is(&r, 0, "3");
    done(&r, s);
}

static int64_t number_of(const struct source *s, int64_t i, int f)
{
    struct reading r = {0};
    int64_t number = -99;
    CHECK_EQ(source_read(s, &r, i, &error), STK_OK);
    field_store(source_field(s, f), &r.cells[f], &number, &error);
    reading_done(&r);
    return number;
}

/* The kind class turns words into class indexes. */
static void words_as_classes(void)
{
    struct source *s = open_list("w.csv", "x,cls\n1,dog\n2,cat\n3,\n4,dog\n", "x, cls:class ? -1");
    CHECK(s != NULL);
    if (!s)
        return;
    CHECK_EQ(source_field(s, 1)->what, STK_INT);
    CHECK_EQ(source_n_classes(s), 2);
    CHECK_STR(source_class(s, 0), "cat");
    CHECK_STR(source_class(s, 1), "dog");
    CHECK_EQ(number_of(s, 0, 1), 1);
    CHECK_EQ(number_of(s, 1, 1), 0);
    CHECK_EQ(number_of(s, 2, 1), -1);
    CHECK_EQ(number_of(s, 3, 1), 1);
    source_close(s);
    s = open_list("w.jsonl",
                  "{\"path\": \"img/a.jpg\", \"breed\": \"pug\"}\n{\"path\": \"img/b.jpg\", \"breed\": \"corgi\"}\n",
                  "image, breed:class");
    CHECK_EQ(source_n_classes(s), 2);
    CHECK_STR(source_class(s, 0), "corgi");
    CHECK_EQ(number_of(s, 0, 1), 1);
    CHECK_EQ(number_of(s, 1, 1), 0);
    source_close(s);
    s = open_list("l.csv", table, "caption:class, label:text"); /* the label is not of kind class here */
    CHECK_EQ(source_n_classes(s), 2);
    source_close(s);
    s = open_list("l.csv", table, "age:class ? 0"); /* integers are kept */
    CHECK_EQ(number_of(s, 0, 0), 3);
    source_close(s);
    s = open_list("l.csv", table, "label:class");
    CHECK_STR(source_class(s, 1), "dog");
    source_close(s);
    CHECK(!open_list("l.csv", table, "label, caption:class"));
    CHECK_SAYS(error.text, "the labels are class names");
    CHECK(!open_list("v.csv", "a,b\nx,y\nz,w\n", "a:class, b:class"));
    CHECK_SAYS(error.text, "a and b are both of kind class");
}

/* Given classes keep their indexes; other words are refused. */
static void words_among_given_classes(void)
{
    static const char *const classes[] = {"dog", "cat", "emu"};
    char path[PATH_MAX];
    struct source *s = NULL;
    temp_file("w.csv", "x,cls\n1,dog\n2,cat\n");
    snprintf(path, sizeof path, "%.4000s", temp_path("w.csv"));
    struct source_options o = {.path = path,
                               .fields = "cls:class",
                               .cache_dir = "off",
                               .threads = 1,
                               .max_bytes = 1 << 20,
                               .classes = classes,
                               .n_classes = 3};
    CHECK_EQ(source_open(&s, &o, &error), STK_OK);
    CHECK_EQ(source_n_classes(s), 3);
    CHECK_EQ(number_of(s, 0, 0), 0);
    CHECK_EQ(number_of(s, 1, 0), 1);
    source_close(s);
    o.n_classes = 1;
    CHECK_EQ(source_open(&s, &o, &error), STK_EUSAGE);
    CHECK_SAYS(error.text, "cat is not one of");
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(with_images), T(not_asked_for), T(header_without_label), T(bad_labels_not_asked_for), T(unknown),
          T(nested_names), T(many_columns), T(rows_alone), T(files_all_the_same), T(list_that_shrinks), T(damaged_line),
          T(name_twice), T(path_or_label_twice), T(name_too_long), T(name_with_nul), T(nested_arrays),
          T(text_with_a_shape), T(comma_locale), T(long_names), T(words_as_classes), T(words_among_given_classes))
}
