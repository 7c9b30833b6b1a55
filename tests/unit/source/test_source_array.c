/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_array.c -- arrays in memory: fields, strides, and errors. */
#include "source/source.h"
#include "test.h"

static stk_error error;

static struct source *open_arrays(const stk_array *a, int n)
{
    struct source *s = NULL;
    const struct source_options o = {.arrays = a, .n_arrays = n};
    memset(&error, 0, sizeof error);
    source_open(&s, &o, &error);
    return s;
}

static void images_and_labels(void)
{
    uint8_t px[2 * 4 * 5 * 3];
    int32_t y[2] = {7, -2};
    float extra[2 * 3] = {1, 2, 3, 4, 5, 6};
    for (size_t i = 0; i < sizeof px; i++)
        px[i] = (uint8_t)i;
    const stk_array a[] = {
        {.name = "extra", .data = extra, .dtype = STK_FLOAT32, .ndim = 2, .device = 1, .shape = (int64_t[]){2, 3}},
        {.name = "y", .data = y, .dtype = STK_INT32, .ndim = 1, .device = 1, .shape = (int64_t[]){2}},
        {.name = "x", .data = px, .dtype = STK_UINT8, .ndim = 4, .device = 1, .shape = (int64_t[]){2, 4, 5, 3}},
    };
    struct source *s = open_arrays(a, 3);
    struct reading r = {0};
    CHECK(s != NULL);
    CHECK_STR(source_kind(s), "arrays");
    CHECK_EQ(source_count(s), 2);
    CHECK_EQ(source_n_fields(s), 3);
    const struct field *image = source_field(s, 0), *label = source_field(s, 1), *other = source_field(s, 2);
    CHECK_STR(image->name, "image");
    CHECK_EQ(image->kind, FIELD_PIXELS);
    CHECK_EQ(image->ndim, 3);
    CHECK_EQ(image->shape[0], 4);
    CHECK_EQ(image->shape[2], 3);
    CHECK_EQ(image->bytes, 60);
    CHECK_STR(label->name, "label");
    CHECK_EQ(label->dtype, STK_INT64);
    CHECK_EQ(label->ndim, 0);
    CHECK_EQ(label->bytes, 8);
    CHECK_STR(other->name, "extra");
    CHECK_EQ(other->bytes, 12);
    CHECK_EQ(source_label(s, 0), 7);
    CHECK_EQ(source_label(s, 1), -2);
    uint8_t row[60];
    CHECK_EQ(source_copy(s, NULL, 1, 0, row, NULL), STK_OK);
    CHECK(memcmp(row, px + 60, 60) == 0);
    int64_t value;
    CHECK_EQ(source_copy(s, NULL, 1, 1, &value, NULL), STK_OK);
    CHECK_EQ(value, -2);
    float three[3];
    CHECK_EQ(source_copy(s, NULL, 1, 2, three, NULL), STK_OK);
    CHECK(three[0] == 4 && three[2] == 6);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    CHECK_EQ(r.label, 7);
    char name[32];
    source_path(s, 1, name, sizeof name);
    CHECK_STR(name, "sample 1");
    CHECK_EQ(source_tally(s)->missing, 0);
    source_close(s);
}

static void grey_images(void)
{
    uint8_t px[3 * 2 * 2] = {0};
    const stk_array named = {.name = "image", .data = px, .dtype = STK_UINT8, .ndim = 3, .shape = (int64_t[]){3, 2, 2}};
    const stk_array unnamed = {.data = px, .dtype = STK_UINT8, .ndim = 3, .shape = (int64_t[]){3, 2, 2}};
    struct source *s = open_arrays(&named, 1);
    CHECK_EQ(source_field(s, 0)->kind, FIELD_PIXELS);
    CHECK_EQ(source_field(s, 0)->ndim, 3);
    CHECK_EQ(source_field(s, 0)->shape[2], 1);
    source_close(s);
    s = open_arrays(&unnamed, 1);
    CHECK_EQ(source_field(s, 0)->kind, FIELD_TENSOR);
    CHECK_STR(source_field(s, 0)->name, "array0");
    source_close(s);
}

/* A sample of an int16 array with any strides equals the result of indexing. */
static void strided(const int64_t *strides, size_t base)
{
    static const int64_t shape[4] = {3, 4, 5, 6};
    int16_t memory[4000], row[4 * 5 * 6];
    for (int i = 0; i < 4000; i++)
        memory[i] = (int16_t)i;
    const stk_array a = {
        .name = "t", .data = memory + base, .dtype = STK_INT16, .ndim = 4, .shape = shape, .strides = strides};
    struct source *s = open_arrays(&a, 1);
    CHECK(s != NULL);
    for (int64_t n = 0; n < shape[0]; n++) {
        const int16_t *at = row;
        CHECK_EQ(source_copy(s, NULL, n, 0, row, NULL), STK_OK);
        for (int64_t i = 0; i < shape[1]; i++)
            for (int64_t j = 0; j < shape[2]; j++)
                for (int64_t k = 0; k < shape[3]; k++)
                    CHECK_EQ(*at++, (int64_t)base + n * strides[0] + i * strides[1] + j * strides[2] + k * strides[3]);
    }
    source_close(s);
}

static void any_strides(void)
{
    strided((int64_t[]){120, 30, 6, 1}, 0);     /* dense */
    strided((int64_t[]){240, 60, 6, 1}, 0);     /* rows dense */
    strided((int64_t[]){240, 60, 12, 2}, 0);    /* nothing dense */
    strided((int64_t[]){1, 3, 12, 60}, 0);      /* Fortran order */
    strided((int64_t[]){-120, 30, -6, 1}, 500); /* backwards */
    strided((int64_t[]){120, 0, 6, 0}, 0);      /* broadcast */
}

static void label_is(stk_dtype dtype, void *data, int64_t second)
{
    const stk_array a = {.name = "label", .data = data, .dtype = dtype, .ndim = 1, .shape = (int64_t[]){2}};
    struct source *s = open_arrays(&a, 1);
    CHECK(s != NULL);
    CHECK_EQ(source_field(s, 0)->dtype, STK_INT64);
    CHECK_EQ(source_label(s, 1), second);
    source_close(s);
}

static void label_types(void)
{
    label_is(STK_UINT8, (uint8_t[]){1, 200}, 200);
    label_is(STK_BOOL, (uint8_t[]){0, 1}, 1);
    label_is(STK_INT8, (int8_t[]){1, -100}, -100);
    label_is(STK_UINT16, (uint16_t[]){1, 60000}, 60000);
    label_is(STK_INT16, (int16_t[]){1, -30000}, -30000);
    label_is(STK_UINT32, (uint32_t[]){1, 4000000000u}, 4000000000);
    label_is(STK_INT32, (int32_t[]){1, -2000000000}, -2000000000);
    label_is(STK_INT64, (int64_t[]){1, INT64_MIN}, INT64_MIN);
    label_is(STK_UINT64, (uint64_t[]){1, INT64_MAX}, INT64_MAX);
}

static void float_labels_are_tensors(void)
{
    float y[2] = {0.5f, 1};
    const stk_array a = {.name = "y", .data = y, .dtype = STK_FLOAT32, .ndim = 1, .shape = (int64_t[]){2}};
    struct source *s = open_arrays(&a, 1);
    CHECK_STR(source_field(s, 0)->name, "y");
    CHECK_EQ(source_field(s, 0)->dtype, STK_FLOAT32);
    CHECK_EQ(source_label(s, 0), -1);
    source_close(s);
}

/* Arrays with reserved names get a prefix; fields may use either name. */
static void taken_names(void)
{
    float data[2] = {3, 4};
    const stk_array a[] = {{.name = "index", .data = data, .ndim = 1, .shape = (int64_t[]){2}},
                           {.name = "key", .data = data, .ndim = 1, .shape = (int64_t[]){2}}};
    struct source *s = open_arrays(a, 2);
    CHECK(s != NULL);
    CHECK_STR(source_field(s, 0)->name, "my_index");
    CHECK_STR(source_field(s, 1)->name, "my_key");
    source_close(s);
    const struct source_options o = {.arrays = a, .n_arrays = 2, .fields = "my_index, mine=key"};
    CHECK_EQ(source_open(&s, &o, &error), STK_OK);
    CHECK_STR(source_field(s, 0)->name, "my_index");
    CHECK_STR(source_field(s, 1)->name, "mine");
    source_close(s);
}

static void fails(stk_array a, stk_array b, const char *words)
{
    const stk_array both[] = {a, b};
    CHECK(open_arrays(both, 2) == NULL);
    CHECK_EQ(error.code, STK_EUSAGE);
    CHECK_SAYS(error.text, words);
}

static void what_is_refused(void)
{
    float data[8] = {0};
    const int64_t shape[9] = {2, 2, 1, 1, 1, 1, 1, 1, 1}, three[] = {3, 1}, negative[] = {2, -1},
                  huge[] = {2, INT64_MAX / 2, 3}, far[] = {INT64_MAX / 2, 1};
    const stk_array good = {.name = "a", .data = data, .dtype = STK_FLOAT32, .ndim = 2, .shape = shape};
    stk_array bad = good;
    fails(good, good, "two arrays are named a");
    bad = (stk_array){.name = "b", .data = data, .ndim = 2, .shape = three};
    fails(good, bad, "has 3 samples, but array 0 has 2");
    bad = (stk_array){.name = "b", .ndim = 2, .shape = shape};
    fails(good, bad, "no data");
    bad = (stk_array){.name = "b", .data = data, .ndim = 2, .shape = negative};
    fails(good, bad, "dimension 1 is -1");
    bad = (stk_array){.name = "b", .data = data, .ndim = 2, .shape = (int64_t[]){2, 0}};
    fails(good, bad, "rows are empty");
    bad = (stk_array){.name = "b", .data = data, .ndim = 3, .shape = huge};
    fails(good, bad, "larger than the address space");
    bad = (stk_array){.name = "b", .data = data, .ndim = 2, .shape = shape, .strides = far};
    fails(good, bad, "larger than the address space");
    bad = (stk_array){.name = "b", .data = data, .ndim = 2, .shape = shape, .device = 2};
    fails(good, bad, "host memory");
    bad = (stk_array){.name = "b", .data = data, .ndim = 0, .shape = shape};
    fails(good, bad, "0 dimensions");
    bad = (stk_array){.name = "b", .data = data, .ndim = 10, .shape = shape};
    fails(good, bad, "10 dimensions");
    bad = (stk_array){.name = "b", .data = data, .ndim = 2};
    fails(good, bad, "0 dimensions");
    bad = (stk_array){.name = "b", .data = data, .dtype = (stk_dtype)99, .ndim = 2, .shape = shape};
    fails(good, bad, "dtype");
    bad = (stk_array){.name = "a name of more than sixty-three bytes, which is what the fields have",
                      .data = data,
                      .ndim = 2,
                      .shape = shape};
    fails(good, bad, "must have 1 to 63 bytes");
    const stk_array none = {.data = data, .ndim = 2, .shape = (int64_t[]){0, 2}};
    CHECK(open_arrays(&none, 1) == NULL);
    CHECK(strstr(error.text, "no samples"));
    CHECK(open_arrays(&good, 0) == NULL);
    CHECK(open_arrays(&good, 1000) == NULL);
}

static void labels_within_classes(void)
{
    int64_t y[3] = {0, 1, 2};
    uint64_t large[2] = {1, UINT64_MAX};
    static const char *const classes[] = {"a", "b"};
    const stk_array a = {.name = "y", .data = y, .dtype = STK_INT64, .ndim = 1, .shape = (int64_t[]){3}};
    const stk_array b = {.name = "y", .data = large, .dtype = STK_UINT64, .ndim = 1, .shape = (int64_t[]){2}};
    const struct source_options o = {.arrays = &a, .n_arrays = 1, .classes = classes, .n_classes = 2};
    struct source *s = NULL;
    CHECK_EQ(source_open(&s, &o, &error), STK_EUSAGE);
    CHECK(strstr(error.text, "label 2 of sample 2"));
    y[2] = 1;
    CHECK_EQ(source_open(&s, &o, NULL), STK_OK);
    CHECK_STR(source_class(s, 1), "b");
    source_close(s);
    CHECK(open_arrays(&b, 1) == NULL);
    CHECK(strstr(error.text, "does not fit"));
}

static uint64_t fingerprint_of(const stk_array *a)
{
    struct source *s = open_arrays(a, 1);
    const uint64_t h = source_fingerprint(s);
    source_close(s);
    return h;
}

static void fingerprints(void)
{
    float data[12] = {0};
    stk_array a = {.name = "a", .data = data, .ndim = 2, .shape = (int64_t[]){4, 3}};
    const uint64_t h = fingerprint_of(&a);
    CHECK(fingerprint_of(&a) == h);
    data[11] = 1;
    CHECK(fingerprint_of(&a) != h);
    data[11] = 0;
    a.shape = (int64_t[]){3, 4};
    CHECK(fingerprint_of(&a) != h);
    a.dtype = STK_INT32;
    CHECK(fingerprint_of(&a) != h);
}

int main(int argc, char **argv)
{
    TESTS(T(images_and_labels), T(grey_images), T(any_strides), T(label_types), T(float_labels_are_tensors),
          T(taken_names), T(what_is_refused), T(labels_within_classes), T(fingerprints))
}
