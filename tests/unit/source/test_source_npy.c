/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_npy.c -- npy and raw binary files: rows in every order, joined, truncated, invalid. Covers rows.c.
 */
#include "source/field.h"
#include "support/npy_files.h"

static const uint16_t six[] = {1, 2, 3, 4, 5, 6};

/* Rows of three numbers. */
static void has(const struct source *s, int64_t i, uint16_t a, uint16_t b, uint16_t c)
{
    uint16_t row[3] = {0};
    CHECK_EQ(source_copy(s, NULL, i, 0, row, &error), STK_OK);
    CHECK_EQ(row[0], a);
    CHECK_EQ(row[1], b);
    CHECK_EQ(row[2], c);
}

static void orders(void)
{
    npy_file("c.npy", "<u2", "False", "(2, 3)", six, sizeof six);
    npy_file("f.npy", "<u2", "True", "(2, 3)", six, sizeof six);
    npy_file("b.npy", ">u2", "False", "(2, 3)", six, sizeof six);
    struct source *s = open_named("%", "c.npy", NULL);
    CHECK(s != NULL);
    CHECK_STR(source_kind(s), "npy files");
    CHECK_EQ(source_count(s), 2);
    CHECK_STR(source_field(s, 0)->name, "data");
    CHECK_EQ(source_field(s, 0)->kind, FIELD_TENSOR);
    CHECK_EQ(source_field(s, 0)->ndim, 1);
    CHECK_EQ(source_field(s, 0)->bytes, 6);
    CHECK_EQ(source_bytes(s, 0), 6);
    CHECK_EQ(source_label(s, 0), -1);
    has(s, 0, 1, 2, 3);
    has(s, 1, 4, 5, 6);
    char name[PATH_MAX];
    source_key(s, 1, name, sizeof name);
    CHECK_STR(name, "c.npy:1");
    source_path(s, 1, name, sizeof name);
    CHECK(strstr(name, "/c.npy row 1") != NULL);
    CHECK_EQ(source_tally(s)->bytes, sizeof six);
    source_close(s);
    s = open_named("npy:%", "f.npy", NULL);
    has(s, 0, 1, 3, 5);
    has(s, 1, 2, 4, 6);
    source_close(s);
    s = open_named("npy:%", "b.npy", NULL);
    has(s, 1, 4 << 8, 5 << 8, 6 << 8);
    source_close(s);
}

/* Three dimensions in Fortran order: element (j, k) of row i is i + 2 j + 4 k. */
static void fortran_of_three(void)
{
    uint8_t eight[8] = {0, 1, 2, 3, 4, 5, 6, 7}, row[4];
    npy_file("f3.npy", "|u1", "True", "(2, 2, 2)", eight, 8);
    struct source *s = open_named("%", "f3.npy", NULL);
    CHECK_EQ(source_copy(s, NULL, 1, 0, row, &error), STK_OK);
    CHECK(row[0] == 1 && row[1] == 5 && row[2] == 3 && row[3] == 7);
    source_close(s);
}

static void joined(void)
{
    npy_file("j/1.npy", "<u2", "False", "(1, 3)", six, 6);
    npy_file("j/2.npy", "<u2", "False", "(0, 3)", six, 0);
    npy_file("j/3.npy", ">u2", "False", "(2, 3)", (uint8_t[]){0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6}, 12);
    struct source *s = open_named("%", "j/*.npy", NULL);
    CHECK_EQ(source_count(s), 3);
    has(s, 0, 1, 2, 3);
    has(s, 1, 1, 2, 3);
    has(s, 2, 4, 5, 6);
    char name[PATH_MAX];
    source_key(s, 2, name, sizeof name);
    CHECK_STR(name, "3.npy:1");
    source_close(s);
    npy_file("j/4.npy", "<u2", "False", "(1, 2)", six, 4);
    refused("%", "j/*.npy", "differ in type or shape");
    CHECK(strstr(error.path, "4.npy") != NULL);
}

static void more_files_than_are_held_open(void)
{
    char name[32];
    for (uint16_t i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "many/%03d.npy", (int)i);
        npy_file(name, "<u2", "False", "(1,)", &i, 2);
    }
    struct source *s = open_named("%", "many/*.npy", NULL);
    CHECK_EQ(source_count(s), 300);
    for (int64_t i = 0; i < 300; i++) {
        uint16_t v = 0;
        CHECK_EQ(source_copy(s, NULL, i, 0, &v, &error), STK_OK);
        CHECK_EQ(v, i);
    }
    unlink(temp_path("many/299.npy"));
    uint16_t v;
    CHECK_EQ(source_copy(s, NULL, 299, 0, &v, &error), STK_ENOTFOUND);
    source_close(s);
}

static void images_and_labels(void)
{
    uint8_t px[2 * 2 * 2 * 3] = {9, 8, 7};
    int32_t y[] = {5, -1};
    uint8_t row[12];
    npy_file("x.npy", "|u1", "False", "(2, 2, 2, 3)", px, sizeof px);
    npy_file("y.npy", "<i4", "False", "(2,)", y, sizeof y);
    struct source *s = open_named("npy:%?label=y.npy", "x.npy", NULL);
    CHECK_EQ(source_n_fields(s), 2);
    CHECK_EQ(source_field(s, 0)->kind, FIELD_PIXELS);
    CHECK_STR(source_field(s, 0)->name, "image");
    CHECK_STR(source_field(s, 1)->name, "label");
    CHECK_EQ(source_label(s, 1), -1);
    struct reading r = {0};
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    CHECK_EQ(r.label, 5);
    CHECK_EQ(source_copy(s, NULL, 0, 0, row, &error), STK_OK);
    CHECK(memcmp(row, px, 12) == 0);
    int64_t label = 0;
    CHECK_EQ(source_copy(s, NULL, 0, 1, &label, &error), STK_OK);
    CHECK_EQ(label, 5);
    source_close(s);
    const struct source_options classes = {.classes = (const char *[]){"a", "b"}, .n_classes = 2};
    CHECK(open_named("npy:%?label=y.npy", "x.npy", &classes) == NULL);
    CHECK(strstr(error.text, "not the index of one of the 2 given classes") != NULL);
    npy_file("y3.npy", "<i4", "False", "(1,)", y, 4);
    refused("npy:%?label=y3.npy", "x.npy", "label has 1 row, but data has 2");
    refused("npy:%?label=none.npy", "x.npy", "none.npy");
}

/* A field of the stored type is copied. Another type is read into a cell and cast. The label is known in both cases. */
static void fields_that_were_asked_for(void)
{
    struct source_options o = {.fields = "v=image:tensor, w=image:float32, y=label:float, label"};
    struct source *s = open_named("npy:%?label=y.npy", "x.npy", &o);
    CHECK(s != NULL);
    CHECK_EQ(source_n_fields(s), 4);
    CHECK_EQ(source_field(s, 0)->column, -1);
    CHECK_EQ(source_field(s, 0)->kind, FIELD_TENSOR);
    CHECK_EQ(source_field(s, 0)->bytes, 12);
    CHECK_EQ(source_field(s, 1)->column, 0);
    CHECK_EQ(source_field(s, 1)->bytes, 48);
    CHECK_EQ(source_field(s, 2)->column, 1);
    CHECK(source_field(s, 3)->label);
    struct reading r = {0};
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    CHECK_EQ(r.label, 5);
    CHECK_EQ(r.cells[1].dtype, STK_UINT8);
    CHECK_EQ(r.cells[1].n, 12);
    CHECK_EQ(r.cells[1].bytes[0], 9);
    CHECK_EQ(r.cells[2].dtype, STK_INT32);
    buf_done(&r.file);
    source_close(s);
    o.fields = "none";
    CHECK(open_named("%", "x.npy", &o) == NULL);
    CHECK(strstr(error.text, "none") != NULL);
}

static void fingerprints(void)
{
    struct source *a = open_named("%", "c.npy", NULL), *b = open_named("%", "c.npy", NULL),
                  *c = open_named("%", "f.npy", NULL);
    CHECK(source_fingerprint(a) == source_fingerprint(b));
    CHECK(source_fingerprint(a) != source_fingerprint(c));
    source_close(a);
    source_close(b);
    source_close(c);
}

/* One sample per file; folders are classes. */
static void folder_of_files(void)
{
    npy_file("d/cat/1.npy", "<u2", "False", "(3,)", six, 6);
    npy_file("d/dog/1.npy", ">u2", "True", "(3,)", six, 6);
    temp_file("d/dog/2.npy", "no array");
    struct source *s = open_named("%", "d", NULL);
    struct reading r = {0};
    CHECK(s != NULL);
    CHECK_STR(source_kind(s), "folder of classes");
    CHECK_EQ(source_count(s), 3);
    CHECK_EQ(source_n_fields(s), 2);
    const struct field *data = source_field(s, 0), *label = source_field(s, 1);
    CHECK_STR(data->name, "data");
    CHECK_STR(label->name, "label");
    CHECK_EQ(data->kind, FIELD_TENSOR);
    CHECK_EQ(data->bytes, 6);
    r.rest = true; /* there is no image */
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    CHECK_EQ(r.label, 1);
    uint16_t row[3];
    CHECK_EQ(field_store(data, &r.cells[0], row, &error), STK_OK);
    CHECK_EQ(row[0], 1 << 8);
    CHECK_EQ(source_read(s, &r, 2, &error), STK_OK);
    CHECK_EQ(field_store(data, &r.cells[0], row, &error), STK_EDATA);
    uint8_t lent[256]; /* with bytes read by the caller */
    const size_t n = npy_bytes(lent, "<u2", "False", "(3,)", (uint16_t[]){7, 8, 9}, 6);
    CHECK_EQ(source_read_from(s, &r, 0, lent, n, &error), STK_OK);
    CHECK_EQ(field_store(data, &r.cells[0], row, &error), STK_OK);
    CHECK_EQ(row[2], 9);
    source_close(s);
    npy_file("d/cat/2.npy", "<u2", "False", "(5,)", six, 10);
    s = open_named("%", "d", NULL);
    CHECK_EQ(source_field(s, 0)->kind, FIELD_RAGGED);
    source_close(s);
    npy_file("d/cat/3.npy", "<u4", "False", "(3,)", six, 12);
    refused("%", "d", "differ in type");
    buf_done(&r.file);
}

static void raw(void)
{
    temp_bytes("r.bin", six, sizeof six);
    struct source *s = open_named("raw:%?dtype=uint16&shape=3", "r.bin", NULL);
    CHECK_STR(source_kind(s), "raw binary files");
    CHECK_EQ(source_count(s), 2);
    has(s, 1, 4, 5, 6);
    source_close(s);
    s = open_named("raw:%?dtype=>u2&shape=1,3&offset=6", "r.bin", NULL);
    CHECK_EQ(source_count(s), 1);
    CHECK_EQ(source_field(s, 0)->ndim, 2);
    has(s, 0, 4 << 8, 5 << 8, 6 << 8);
    source_close(s);
    s = open_named("raw:%?dtype=uint8&shape=2,1,3", "r.bin", NULL);
    CHECK_EQ(source_field(s, 0)->kind, FIELD_PIXELS);
    source_close(s);
    refused("raw:%", "r.bin", "needs a type");
    refused("raw:%?dtype=int7", "r.bin", "unknown type");
    refused("raw:%?dtype=uint8&shape=5", "r.bin", "not a multiple of the row size");
    refused("raw:%?dtype=uint8&offset=13", "r.bin", "not a multiple of the row size");
    refused("raw:%?dtype=uint8&offset=12", "r.bin", "does not contain a complete row");
    refused("raw:%?dtype=uint8&shape=", "r.bin", "shape must be");
    refused("raw:%?dtype=uint8&shape=2,x", "r.bin", "shape must be");
    refused("raw:%?dtype=uint8&shape=0", "r.bin", "shape must be");
    refused("raw:%?dtype=uint8&shape=3037000500,3037000500,2", "r.bin", "larger than the address space");
    refused("raw:%?dtype=uint8&size=5", "r.bin", "there is no key size");
    refused("raw:%?dtype=uint8", "j", "is not a regular file");
}

static void a_file_that_shrinks(void)
{
    uint16_t row[3];
    temp_bytes("s.bin", six, sizeof six);
    struct source *s = open_named("raw:%?dtype=uint16&shape=3", "s.bin", NULL);
    CHECK_EQ(truncate(temp_path("s.bin"), 8), 0);
    CHECK_EQ(source_copy(s, NULL, 0, 0, row, &error), STK_OK);
    CHECK_EQ(source_copy(s, NULL, 1, 0, row, &error), STK_EIO);
    CHECK(strstr(error.reason, "ends at byte 8") != NULL);
    source_fingerprint(s);
    source_close(s);
}

static void what_is_refused(void)
{
    npy_file("o.npy", "|O", "False", "(1,)", six, 8);
    refused("%", "o.npy", "objects");
    npy_file("z.npy", "<u2", "False", "()", six, 2);
    refused("%", "z.npy", "single number");
    npy_file("e.npy", "<u2", "False", "(0, 3)", six, 0);
    refused("%", "e.npy", "does not contain a complete row");
    npy_file("w.npy", "<u2", "False", "(3, 0)", six, 0);
    refused("%", "w.npy", "dimension of 0");
    npy_file("l.npy", "<u2", "False", "(7,)", six, sizeof six);
    refused("%", "l.npy", "describes more numbers");
    temp_file("n.npy", "hello");
    refused("%", "n.npy", "not an npy file");
    refused("npy:%", "j", "is not a regular file");
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(orders), T(fortran_of_three), T(joined), T(more_files_than_are_held_open), T(images_and_labels),
          T(fields_that_were_asked_for), T(fingerprints), T(folder_of_files), T(raw), T(a_file_that_shrinks),
          T(what_is_refused))
}
