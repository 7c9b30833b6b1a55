/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_tfrecord.c -- TFRecord files: examples and other records, damage anywhere.
 * Covers source_tfrecord.c, example_columns.c and example_cells.c.
 */
#include "source/source.h"

#include "base/bytes.h"
#include "format/tfrecord.h"
#include "source/example_columns.h"
#include "source/field.h"
#include "support/frames.h"
#include "support/protos.h"
#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

static void write_file(const char *below, const void *p, size_t n)
{
    FILE *f = fopen(temp_path(below), "wb");
    CHECK(f && fwrite(p, 1, n, f) == n);
    if (f)
        fclose(f);
}

static struct source *open_fields(const char *below, const char *fields)
{
    char path[PATH_MAX];
    struct source *s = NULL;
    snprintf(path, sizeof path, "%.4000s", temp_path(below));
    const struct source_options o = {
        .path = path, .fields = fields, .cache_dir = "off", .threads = 2, .max_bytes = 1 << 20};
    memset(&error, 0, sizeof error);
    source_open(&s, &o, &error);
    return s;
}

static void done(struct reading *r, struct source *s)
{
    buf_done(&r->file);
    buf_done(&r->derived);
    source_close(s);
}

/* ------------------------------------------------------------------ records of any kind */

enum { RECORDS = 5 };

/* "\xff0", "\xff11", ...: not examples. Returns where each starts, and where the last ends. */
static void plain_file(struct buf *b, size_t *at)
{
    for (size_t i = 0; i < RECORDS; i++) {
        char data[RECORDS + 1];
        memset(data, '0' + (int)i, sizeof data);
        data[0] = '\xff';
        at[i] = b->len;
        frame_add(b, data, i + 2);
    }
    at[RECORDS] = b->len;
}

static void other_records(void)
{
    struct buf b = {0};
    size_t at[RECORDS + 1];
    plain_file(&b, at);
    write_file("a.tfrecord", b.data, b.len);
    struct source *s = open_fields("a.tfrecord", NULL);
    struct reading r = {0};
    CHECK(s != NULL);
    CHECK_EQ(source_count(s), RECORDS);
    CHECK_EQ(source_n_fields(s), 1);
    CHECK_STR(source_field(s, 0)->name, "data");
    for (int64_t i = RECORDS - 1; i >= 0; i--) {
        CHECK_EQ(source_read(s, &r, i, &error), STK_OK);
        CHECK_EQ(r.cells[0].n, i + 2);
        CHECK_EQ(r.cells[0].bytes[1], '0' + i);
    }
    char path[PATH_MAX];
    source_path(s, 3, path, sizeof path);
    CHECK(strstr(path, "a.tfrecord record 3"));
    done(&r, s);
    buf_done(&b);
}

/* The number of readable samples; *all: of all samples. */
static int good_samples(const void *p, size_t n, int64_t *all)
{
    write_file("d.tfrecord", p, n);
    struct source *s = open_fields("d.tfrecord", NULL);
    struct reading r = {0};
    int good = 0;
    *all = s ? source_count(s) : 0;
    for (int64_t i = 0; i < *all; i++)
        if (source_read(s, &r, i, &error) == STK_OK)
            good++;
        else
            CHECK(error.code == STK_EDATA && error.text[0]);
    done(&r, s);
    return good;
}

/* In a truncated file, the complete records are good, and the rest is one bad sample. */
static void cut_everywhere(void)
{
    struct buf b = {0};
    size_t at[RECORDS + 1];
    plain_file(&b, at);
    for (size_t n = 1; n <= b.len; n++) {
        int whole = 0;
        while (whole < RECORDS && at[whole + 1] <= n)
            whole++;
        int64_t all;
        CHECK_EQ(good_samples(b.data, n, &all), whole);
        CHECK_EQ(all, whole + (at[whole] < n));
    }
    buf_done(&b);
}

/* A flipped bit makes one sample bad. */
static void flipped_everywhere(void)
{
    struct buf b = {0};
    size_t at[RECORDS + 1];
    plain_file(&b, at);
    for (size_t n = 0; n < b.len; n++) {
        int64_t all;
        b.data[n] ^= 0x10;
        CHECK_EQ(good_samples(b.data, b.len, &all), RECORDS - 1);
        CHECK_EQ(all, RECORDS);
        b.data[n] ^= 0x10;
    }
    buf_done(&b);
}

/* Garbage between records, longer than the search window, is one bad sample. */
static void rubbish_between(void)
{
    struct buf b = {0};
    int64_t all;
    frame_add(&b, "\xff", 1);
    for (size_t i = 0; i < 300000; i++)
        buf_add(&b, &(uint8_t){(uint8_t)(i * i >> 5)}, 1);
    frame_add(&b, "\xff\xff", 2);
    CHECK_EQ(good_samples(b.data, b.len, &all), 2);
    CHECK_EQ(all, 3);
    buf_done(&b);
}

static void no_records(void)
{
    write_file("n.tfrecord", "this is something else altogether", 33);
    CHECK(!open_fields("n.tfrecord", NULL));
    CHECK_EQ(error.code, STK_EUSAGE);
    CHECK(strstr(error.text, "not a TFRecord file"));
    write_file("e.tfrecord", "", 0);
    CHECK(!open_fields("e.tfrecord", NULL));
    CHECK_EQ(error.code, STK_EUSAGE);
}

/* More than max_bytes. */
static void too_large(void)
{
    struct buf b = {0}, big = {0};
    int64_t all;
    buf_reserve(&big, (1 << 20) + 1);
    memset(big.data, 255, (1 << 20) + 1);
    frame_add(&b, big.data, (1 << 20) + 1);
    frame_add(&b, "\xff", 1);
    CHECK_EQ(good_samples(b.data, b.len, &all), 1);
    CHECK_EQ(all, 2);
    buf_done(&b);
    buf_done(&big);
}

static void recognised(void)
{
    struct buf b = {0};
    size_t at[RECORDS + 1];
    plain_file(&b, at);
    static const char *const names[] = {"x.tfrecord-00000-of-00002", "x.tfrecord-00001-of-00002", "no_suffix"};
    for (int i = 0; i < 3; i++)
        write_file(names[i], b.data, b.len);
    struct source *s = open_fields("x.tfrecord-*-of-00002", NULL);
    CHECK(s && source_count(s) == 2 * RECORDS);
    source_close(s);
    s = open_fields("no_suffix", NULL);
    CHECK(s && source_count(s) == RECORDS);
    source_close(s);
    buf_done(&b);
}

/* ------------------------------------------------------------------ examples */

static void entry_ints(struct buf *map, const char *name, const int64_t *v, int n)
{
    struct buf f = {0};
    proto_ints(&f, v, n, 1);
    proto_entry(map, name, &f);
    buf_done(&f);
}

static void entry_floats(struct buf *map, const char *name, const float *v, int n)
{
    struct buf f = {0};
    proto_floats(&f, v, n, n % 2);
    proto_entry(map, name, &f);
    buf_done(&f);
}

static void entry_strings(struct buf *map, const char *name, const char *const *v, int n)
{
    struct buf f = {0};
    proto_strings(&f, v, n);
    proto_entry(map, name, &f);
    buf_done(&f);
}

static const char *const image[] = {"\xff\xd8\xff\xe0 no more than its beginning"};
static const char *const words[] = {"a", "b\"c", "d"};
static const char *const rough[] = {"\xfe\xfe", "\xfd\xfd"};
static const char *const caption[] = {"a caption"};
static const int64_t numbers[] = {1, 1000, -7, 4};
static const float floats[] = {0.5f, -1, 2, 3};

static void example(struct buf *out, int i)
{
    struct buf map = {0}, example = {0};
    const int64_t label = 40 + i;
    entry_strings(&map, "image/encoded", image, 1);
    entry_ints(&map, "image/class/label", &label, 1);
    entry_floats(&map, "weight", floats + i % 4, 1);
    entry_floats(&map, "box", floats, 4);
    entry_ints(&map, "ids", numbers, i % 4); /* varies, and is sometimes empty */
    entry_strings(&map, "caption", caption, 1);
    entry_strings(&map, "words", words, 1 + i % 3);
    entry_strings(&map, "rough", rough, 2);
    if (i % 2)
        entry_strings(&map, "note", caption, 1);
    proto_message(&example, 1, &map);
    frame_add(out, example.data, example.len);
    buf_done(&map);
    buf_done(&example);
}

static struct source *open_examples(const char *fields)
{
    struct buf b = {0};
    for (int i = 0; i < 12; i++)
        example(&b, i);
    write_file("x.tfrecord", b.data, b.len);
    buf_done(&b);
    return open_fields("x.tfrecord", fields);
}

static const struct field *field(const struct source *s, const char *name, int *number)
{
    for (int f = 0; f < source_n_fields(s); f++)
        if (strcmp(source_field(s, f)->name, name) == 0) {
            *number = f;
            return source_field(s, f);
        }
    CHECK_STR(name, "among the fields");
    *number = 0;
    return source_field(s, 0);
}

/* Kinds and shapes are detected. */
static void looked_at(void)
{
    struct source *s = open_examples(NULL);
    int f;
    CHECK(s != NULL);
    CHECK_STR(source_field(s, 0)->name, "image");
    CHECK_EQ(source_field(s, 0)->kind, FIELD_ENCODED);
    CHECK_STR(source_field(s, 1)->name, "label");
    CHECK_EQ(source_field(s, 1)->what, STK_INT);
    CHECK_EQ(field(s, "weight", &f)->what, STK_FLOAT);
    CHECK_EQ(field(s, "box", &f)->kind, FIELD_TENSOR);
    CHECK_EQ(field(s, "box", &f)->shape[0], 4);
    CHECK_EQ(field(s, "ids", &f)->kind, FIELD_RAGGED);
    CHECK_EQ(field(s, "ids", &f)->dtype, STK_INT64);
    CHECK_EQ(field(s, "caption", &f)->what, STK_TEXT);
    CHECK_EQ(field(s, "words", &f)->what, STK_JSON);
    CHECK_EQ(field(s, "note", &f)->what, STK_TEXT);
    CHECK_EQ(source_n_fields(s), 8); /* without features that cannot become a field */
    source_close(s);
}

static void values(void)
{
    struct source *s = open_examples(NULL);
    struct reading r = {0};
    int f;
    for (int64_t i = 0; i < 12; i++) {
        int64_t label;
        CHECK_EQ(source_read(s, &r, i, &error), STK_OK);
        CHECK(r.n_bytes == strlen(image[0]) && memcmp(r.bytes, image[0], r.n_bytes) == 0);
        memcpy(&label, r.cells[1].bytes, sizeof label);
        CHECK_EQ(label, 40 + i);
        field(s, "box", &f);
        CHECK(r.cells[f].n == sizeof floats && memcmp(r.cells[f].bytes, floats, sizeof floats) == 0);
        field(s, "ids", &f);
        CHECK(r.cells[f].bytes && r.cells[f].n == (size_t)(i % 4) * 8);
        CHECK(memcmp(r.cells[f].bytes, numbers, r.cells[f].n) == 0);
        field(s, "note", &f); /* missing text is not empty text */
        CHECK(i % 2 ? r.cells[f].n == 9 : !r.cells[f].bytes);
        field(s, "words", &f);
        static const char json[] = "[\"a\",\"b\\\"c\",\"d\"]";
        CHECK(r.cells[f].n >= 5 && memcmp(r.cells[f].bytes, json, 4) == 0);
    }
    done(&r, s);
}

static void asked_for(void)
{
    struct source *s = open_examples("y=image/class/label:int, raw=rough:uint16(2)");
    struct reading r = {0};
    CHECK(s != NULL);
    CHECK_EQ(source_read(s, &r, 3, &error), STK_OK);
    CHECK_EQ(r.cells[1].n, 4);
    CHECK(memcmp(r.cells[1].bytes, "\xfe\xfe\xfd\xfd", 4) == 0);
    done(&r, s);
    CHECK(!open_examples("rough"));
    CHECK(strstr(error.text, "rough"));
    CHECK(!open_examples("image/class/labl"));
    CHECK(strstr(error.text, "image/class/label"));
}

/* Usual names that are already taken; features that cannot become fields. */
static void odd_names(void)
{
    struct buf b = {0}, map = {0}, all = {0};
    const int64_t number = 5;
    entry_strings(&map, "label", caption, 1);
    entry_ints(&map, "image/class/label", &number, 1);
    entry_strings(&map, "image", caption, 1);
    entry_strings(&map, "depth", image, 1);
    proto_message(&all, 1, &map);
    frame_add(&b, all.data, all.len);
    write_file("o.tfrecord", b.data, b.len);
    struct source *s = open_fields("o.tfrecord", NULL);
    int f;
    CHECK(s != NULL);
    CHECK_EQ(source_n_fields(s), 4);
    CHECK_EQ(field(s, "depth", &f)->kind, FIELD_ENCODED);
    CHECK_EQ(field(s, "label", &f)->what, STK_TEXT);
    CHECK_EQ(field(s, "image/class/label", &f)->what, STK_INT);
    source_close(s);
    b.len = all.len = 0;
    entry_strings(&map, "rough", rough, 2);
    proto_message(&all, 1, &map);
    frame_add(&b, all.data, all.len);
    write_file("o.tfrecord", b.data, b.len);
    CHECK(!open_fields("o.tfrecord", NULL));
    CHECK(strstr(error.text, "rough"));
    buf_done(&b);
    buf_done(&map);
    buf_done(&all);
}

/* A record that is not an example is a bad sample among examples. */
static void mixed(void)
{
    struct buf b = {0};
    for (int i = 0; i < 6; i++)
        example(&b, i);
    frame_add(&b, "\xff no example", 12);
    write_file("m.tfrecord", b.data, b.len);
    struct source *s = open_fields("m.tfrecord", "caption");
    struct reading r = {0};
    CHECK_EQ(source_read(s, &r, 5, &error), STK_OK);
    CHECK_EQ(source_read(s, &r, 6, &error), STK_EDATA);
    CHECK(strstr(error.text, "not a tf.train.Example"));
    done(&r, s);
    buf_done(&b);
}

static void sequences(void)
{
    struct buf b = {0};
    for (int i = 1; i < 5; i++) {
        struct buf map = {0}, all = {0}, list = {0}, f = {0};
        entry_ints(&map, "label", numbers, 1);
        proto_message(&all, 1, &map);
        for (int k = 0; k < i; k++) {
            proto_floats(&f, floats, 2, 1);
            proto_message(&list, 1, &f);
        }
        proto_entry(&map, "pairs", &list);
        for (int k = 0; k < i; k++) {
            proto_ints(&f, &numbers[k], 1, 1);
            proto_message(&list, 1, &f);
        }
        proto_entry(&map, "tokens", &list);
        proto_message(&all, 2, &map);
        frame_add(&b, all.data, all.len);
        buf_done(&map);
        buf_done(&all);
        buf_done(&list);
        buf_done(&f);
    }
    write_file("s.tfrecord", b.data, b.len);
    struct source *s = open_fields("s.tfrecord", NULL);
    struct reading r = {0};
    int pairs, tokens;
    CHECK(s != NULL);
    CHECK_EQ(field(s, "pairs", &pairs)->ndim, 2);
    CHECK_EQ(field(s, "pairs", &pairs)->shape[1], 2);
    CHECK_EQ(field(s, "tokens", &tokens)->ndim, 1);
    CHECK_EQ(source_read(s, &r, 2, &error), STK_OK);
    CHECK_EQ(r.cells[pairs].shape[0], 3);
    CHECK_EQ(r.cells[pairs].shape[1], 2);
    CHECK_EQ(r.cells[tokens].n, 24);
    CHECK(memcmp(r.cells[tokens].bytes, numbers, 24) == 0);
    done(&r, s);
    buf_done(&b);
}

/* ------------------------------------------------------------------ what all examples say */

enum { MANY = 500, ODD = 333 }; /* of MANY examples, ODD differs from the others */

static void add_example(struct buf *out, struct buf *map)
{
    struct buf all = {0};
    proto_message(&all, 1, map);
    frame_add(out, all.data, all.len);
    buf_done(&all);
}

static void many_examples(struct buf *out, int odd, size_t photo)
{
    char *big = malloc(photo + 1);
    const char *const images[] = {big};
    memset(big, 'x', photo);
    big[photo] = 0;
    memcpy(big, image[0], photo < 4 ? photo : 4);
    for (int i = 0; i < MANY; i++) {
        struct buf map = {0};
        const bool is_odd = i == odd;
        if (photo > 0)
            entry_strings(&map, "photo", images, 1);
        entry_ints(&map, "counts", numbers, is_odd ? 3 : 1);
        if (is_odd)
            entry_floats(&map, "number", floats, 1);
        else
            entry_ints(&map, "number", numbers, 1);
        entry_strings(&map, "text", is_odd ? rough : caption, 1);
        entry_strings(&map, "texts", words, is_odd ? 2 : 1);
        entry_strings(&map, "list", words, is_odd ? 0 : 1);
        if (is_odd)
            entry_strings(&map, "bytes", caption, 1);
        else
            entry_floats(&map, "bytes", floats, 4);
        if (!is_odd)
            entry_strings(&map, "missing", caption, 1);
        add_example(out, &map);
        buf_done(&map);
    }
    free(big);
}

static void check_many(struct source *s)
{
    struct reading r = {0};
    struct ragged_row p = {0};
    int f;
    float number;
    CHECK_EQ(field(s, "counts", &f)->kind, FIELD_RAGGED);
    CHECK_EQ(field(s, "text", &f)->what, STK_BYTES);
    CHECK_EQ(field(s, "texts", &f)->what, STK_JSON);
    CHECK_EQ(field(s, "list", &f)->what, STK_TEXT);
    CHECK_EQ(field(s, "number", &f)->what, STK_FLOAT);
    CHECK_EQ(field(s, "bytes", &f)->shape[0], 4);
    CHECK_EQ(field(s, "missing", &f)->what, STK_TEXT);
    CHECK_EQ(source_read(s, &r, ODD - 1, &error), STK_OK);
    field(s, "number", &f);
    CHECK_EQ(field_store(source_field(s, f), &r.cells[f], &number, &error), STK_OK);
    CHECK(number == 1.0f);
    field(s, "counts", &f);
    CHECK_EQ(field_ragged_row(source_field(s, f), &r.cells[f], &p, &error), STK_OK);
    CHECK_EQ(p.n, 8);
    ragged_row_done(&p);
    CHECK_EQ(source_read(s, &r, ODD, &error), STK_EDATA); /* these bytes are not numbers */
    CHECK_SAYS(error.text, "the feature bytes contains bytes in this example");
    done(&r, s);
}

/* All examples decide the kind of a column, wherever the odd one is. */
static void kinds_of_all(void)
{
    static const size_t photos[] = {0, 100, 20000, 100000};
    for (size_t i = 0; i < sizeof photos / sizeof photos[0]; i++) {
        struct buf b = {0};
        many_examples(&b, ODD, photos[i]);
        write_file("k.tfrecord", b.data, b.len);
        struct source *s = open_fields("k.tfrecord", NULL);
        CHECK(s && (photos[i] == 0 || source_field(s, 0)->kind == FIELD_ENCODED));
        if (s)
            check_many(s);
        buf_done(&b);
    }
}

/* Text without a value is missing, like a number, unless there is a default. */
static void missing_values(void)
{
    struct buf b = {0};
    struct reading r = {0};
    struct ragged_row p = {0};
    many_examples(&b, ODD, 0);
    write_file("k.tfrecord", b.data, b.len);
    struct source *s = open_fields("k.tfrecord", "missing");
    CHECK_EQ(source_read(s, &r, ODD, &error), STK_OK);
    CHECK_EQ(field_ragged_row(source_field(s, 0), &r.cells[0], &p, &error), STK_EDATA);
    CHECK_SAYS(error.text, "has no missing");
    CHECK_SAYS(error.text, "missing ? \"\"");
    source_close(s);
    s = open_fields("k.tfrecord", "missing ? \"\"");
    CHECK_EQ(source_read(s, &r, ODD, &error), STK_OK);
    CHECK_EQ(field_ragged_row(source_field(s, 0), &r.cells[0], &p, &error), STK_OK);
    CHECK_EQ(p.n, 0);
    done(&r, s);
    buf_done(&b);
}

enum { EMPTY_ALL = 40, EMPTY_AT = 17 }; /* of EMPTY_ALL examples, EMPTY_AT has only empty lists */

static void empty_examples(struct buf *out)
{
    for (int i = 0; i < EMPTY_ALL; i++) {
        struct buf map = {0};
        const bool is_empty = i == EMPTY_AT;
        entry_strings(&map, "text", caption, !is_empty);
        entry_strings(&map, "raw", rough, !is_empty);
        entry_ints(&map, "int", numbers, !is_empty);
        entry_floats(&map, "float", floats, !is_empty);
        if (is_empty)
            entry_floats(&map, "other", floats, 0);
        else
            entry_ints(&map, "other", numbers, 1);
        entry_strings(&map, "texts", words, is_empty ? 0 : 1 + i % 2);
        entry_ints(&map, "ints", numbers, is_empty ? 0 : 2);
        entry_strings(&map, "no_texts", words, 0);
        entry_ints(&map, "no_ints", numbers, 0);
        add_example(out, &map);
        buf_done(&map);
    }
}

static int read_empty(const char *fields, struct ragged_row *p)
{
    struct reading r = {0};
    struct source *s = open_fields("v.tfrecord", fields);
    int rc = s ? source_read(s, &r, EMPTY_AT, &error) : STK_EUSAGE;
    int64_t number;
    if (rc == STK_OK && (source_field(s, 0)->what == STK_INT || source_field(s, 0)->what == STK_FLOAT))
        rc = field_store(source_field(s, 0), &r.cells[0], &number, &error);
    else if (rc == STK_OK)
        rc = field_ragged_row(source_field(s, 0), &r.cells[0], p, &error);
    done(&r, s);
    return rc;
}

/* An empty list among single values is a missing value. Among lists it is an empty list. */
static void empty_lists(void)
{
    static const char *const missing[] = {"text", "text:text", "raw", "int", "float", "other", "int:int"};
    static const char *const given[] = {"text ? \"\"", "int ? -1", "float ? 0", "other ? 3"};
    struct buf b = {0};
    int f;
    empty_examples(&b);
    write_file("v.tfrecord", b.data, b.len);
    struct source *s = open_fields("v.tfrecord", NULL);
    CHECK_EQ(field(s, "text", &f)->what, STK_TEXT);
    CHECK_EQ(field(s, "raw", &f)->what, STK_BYTES);
    CHECK_EQ(field(s, "int", &f)->what, STK_INT);
    CHECK_EQ(field(s, "float", &f)->what, STK_FLOAT);
    CHECK_EQ(field(s, "other", &f)->what, STK_INT);
    CHECK_EQ(field(s, "texts", &f)->what, STK_JSON);
    CHECK_EQ(field(s, "ints", &f)->kind, FIELD_RAGGED);
    CHECK_EQ(field(s, "no_texts", &f)->what, STK_JSON);
    CHECK_EQ(field(s, "no_ints", &f)->kind, FIELD_RAGGED);
    source_close(s);
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        struct ragged_row p = {0};
        CHECK_EQ(read_empty(missing[i], &p), STK_EDATA);
        CHECK_SAYS(error.text, "has no ");
        ragged_row_done(&p);
    }
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        struct ragged_row p = {0};
        CHECK_EQ(read_empty(given[i], &p), STK_OK);
        CHECK_EQ(p.n, 0);
        ragged_row_done(&p);
    }
    static const char *const lists[] = {"ints", "no_ints", "int:int64(*)", "texts", "no_texts"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct ragged_row p = {0};
        CHECK_EQ(read_empty(lists[i], &p), STK_OK);
        CHECK_EQ(p.n, i < 3 ? 0 : 2); /* [] */
        ragged_row_done(&p);
    }
    buf_done(&b);
}

/* A damaged record, small or large, does not change the columns. */
static void damage_has_no_say(void)
{
    static const size_t photos[] = {0, 100000};
    for (size_t i = 0; i < sizeof photos / sizeof photos[0]; i++) {
        struct buf b = {0};
        struct reading r = {0};
        int f;
        many_examples(&b, ODD, photos[i]);
        size_t at = 0;
        for (int k = 0; k < ODD; k++)
            at += TFRECORD_HEAD + (size_t)le64(b.data + at) + TFRECORD_FOOT;
        b.data[at + TFRECORD_HEAD + (size_t)le64(b.data + at)] ^= 1; /* of the checksum */
        write_file("k.tfrecord", b.data, b.len);
        struct source *s = open_fields("k.tfrecord", NULL);
        CHECK_EQ(field(s, "counts", &f)->what, STK_INT);
        CHECK_EQ(field(s, "text", &f)->what, STK_TEXT);
        CHECK_EQ(field(s, "number", &f)->what, STK_INT);
        CHECK_EQ(source_read(s, &r, ODD, &error), STK_EDATA);
        CHECK_SAYS(error.text, "checksum");
        done(&r, s);
        buf_done(&b);
    }
}

/* The index stores the survey. */
static void seen_again(void)
{
    struct buf b = {0};
    char path[PATH_MAX], cache[PATH_MAX];
    many_examples(&b, ODD, 0);
    write_file("k1.tfrecord", b.data, b.len);
    b.len = 0;
    many_examples(&b, -1, 0);
    write_file("k2.tfrecord", b.data, b.len);
    const struct timespec old[2] = {{.tv_sec = 1000000000},
                                    {.tv_sec = 1000000000}}; /* the index of a new file is not cached */
    CHECK_EQ(utimensat(AT_FDCWD, temp_path("k1.tfrecord"), old, 0), 0);
    CHECK_EQ(utimensat(AT_FDCWD, temp_path("k2.tfrecord"), old, 0), 0);
    snprintf(path, sizeof path, "%.4000s", temp_path("k[12].tfrecord"));
    snprintf(cache, sizeof cache, "%.4000s", temp_path("cache"));
    const struct source_options o = {.path = path, .cache_dir = cache, .threads = 2, .max_bytes = 1 << 20};
    for (int i = 0; i < 2; i++) {
        struct source *s = NULL;
        CHECK_EQ(source_open(&s, &o, &error), STK_OK);
        CHECK_EQ(source_tally(s)->index_cached, i);
        CHECK_EQ(source_count(s), 2 * MANY);
        check_many(s);
    }
    buf_done(&b);
}

/* All bytes of a name count. */
static void long_names(void)
{
#define STEM "a_name_that_is_longer_than_a_field_can_be_called_by_quite_a_few_bytes_"
    struct buf b = {0}, map = {0}, all = {0};
    for (int i = 0; i < 2; i++) {
        entry_ints(&map, i ? STEM "y" : STEM "x", &numbers[i], 1);
        entry_ints(&map, i ? STEM "x" : STEM "y", &numbers[1 - i], 1);
        proto_message(&all, 1, &map);
        frame_add(&b, all.data, all.len);
        all.len = 0;
    }
    write_file("l.tfrecord", b.data, b.len);
    struct source *s = open_fields("l.tfrecord", "x=" STEM "x, y=" STEM "y");
    struct reading r = {0};
    CHECK(s != NULL);
    for (int64_t i = 0; s && i < 2; i++) {
        CHECK_EQ(source_read(s, &r, i, &error), STK_OK);
        CHECK(memcmp(r.cells[0].bytes, &numbers[0], 8) == 0);
        CHECK(memcmp(r.cells[1].bytes, &numbers[1], 8) == 0);
    }
    done(&r, s);
    CHECK(!open_fields("l.tfrecord", NULL));
    CHECK_SAYS(error.text, "would both become the field");
    buf_done(&b);
    buf_done(&map);
    buf_done(&all);
}

/* Impossible counts in an index are rejected. */
static void counts_of_an_index(void)
{
    static const struct {
        int64_t counts[2];
        int rc;
    } of[] = {{{3, 4}, 0}, {{INT64_MAX, 0}, 1}, {{0, INT64_MAX}, 1}, {{-1, 0}, 1}, {{0, INT64_MIN}, 1}};
    struct example_survey l = {.examples = 1, .others = 1};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        CHECK_EQ(example_survey_merge(&l, (const uint8_t *)of[i].counts, sizeof of[i].counts), of[i].rc);
    CHECK_EQ(l.examples, 4);
    CHECK_EQ(l.others, 5);
    example_survey_done(&l);
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(other_records), T(cut_everywhere), T(flipped_everywhere), T(rubbish_between), T(no_records), T(too_large),
          T(recognised), T(looked_at), T(values), T(asked_for), T(odd_names), T(mixed), T(sequences), T(kinds_of_all),
          T(missing_values), T(empty_lists), T(damage_has_no_say), T(seen_again), T(long_names), T(counts_of_an_index))
}
