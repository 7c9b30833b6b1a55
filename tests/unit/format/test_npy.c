/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_npy.c -- headers of npy files: valid, unusual and wrong ones; numbers in every order.
 */
#include "format/npy.h"

#include "test.h"

struct file {
    uint8_t p[1024];
    size_t n;
};

/* A file of this version and header, followed by the bytes 0, 1, 2, ... */
static struct file make(int version, const char *header, size_t data)
{
    struct file f = {.n = 0};
    const size_t length = strlen(header);
    memcpy(f.p, "\x93NUMPY", 6);
    f.p[6] = (uint8_t)version;
    f.p[8] = (uint8_t)length;
    f.n = version == 1 ? 10 : 12;
    memcpy(f.p + f.n, header, length);
    f.n += length;
    for (size_t i = 0; i < data; i++)
        f.p[f.n++] = (uint8_t)i;
    return f;
}

/* NULL, or why it is refused. */
static const char *parse(const struct file *f, struct npy *h)
{
    const char *why = NULL;
    const int rc = npy_parse(f->p, f->n, f->n, h, &why);
    CHECK((rc == 0) == (why == NULL));
    return why;
}

static const char *refused(const char *header, size_t data)
{
    struct npy h;
    const struct file f = make(1, header, data);
    const char *why = parse(&f, &h);
    return why ? why : "";
}

static void plain(void)
{
    struct npy h;
    for (int version = 1; version <= 3; version++) {
        const struct file f = make(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", 24);
        CHECK(parse(&f, &h) == NULL);
        CHECK_EQ(h.dtype, STK_FLOAT32);
        CHECK(!h.swapped && !h.fortran);
        CHECK_EQ(h.ndim, 2);
        CHECK_EQ(h.shape[0], 2);
        CHECK_EQ(h.shape[1], 3);
        CHECK_EQ(h.bytes, 24);
        CHECK_EQ(h.at + h.bytes, f.n);
    }
}

/* Keys in any order, quotes of either kind, no spaces, numbers as in Python 2, more bytes than needed. */
static void odd_but_right(void)
{
    struct npy h;
    struct file f = make(1, "{\"shape\":(2L,),\"descr\":\"|u1\",\"fortran_order\":True}", 9);
    CHECK(parse(&f, &h) == NULL);
    CHECK_EQ(h.dtype, STK_UINT8);
    CHECK(!h.fortran); /* one dimension */
    CHECK_EQ(h.bytes, 2);
    f = make(1, "{'descr': '>i2', 'fortran_order': False, 'shape': ()}", 2);
    CHECK(parse(&f, &h) == NULL);
    CHECK_EQ(h.ndim, 0);
    CHECK_EQ(h.bytes, 2);
    CHECK(h.swapped);
    f = make(1, "{'descr': '=i8', 'fortran_order': False, 'shape': (0, 5)}", 0);
    CHECK(parse(&f, &h) == NULL);
    CHECK_EQ(h.bytes, 0);
    CHECK(!h.swapped);
}

static void types(void)
{
    static const struct {
        const char *name;
        stk_dtype dtype;
    } all[] = {{"b1", STK_BOOL},   {"i1", STK_INT8},    {"u1", STK_UINT8},   {"i2", STK_INT16},
               {"u2", STK_UINT16}, {"i4", STK_INT32},   {"u4", STK_UINT32},  {"i8", STK_INT64},
               {"u8", STK_UINT64}, {"f2", STK_FLOAT16}, {"f4", STK_FLOAT32}, {"f8", STK_FLOAT64}};
    stk_dtype t;
    bool swapped;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char text[4] = "> ";
        memcpy(text + 1, all[i].name, 3);
        CHECK(npy_type(text, 3, &t, &swapped));
        CHECK_EQ(t, all[i].dtype);
        CHECK_EQ(swapped, dtype_bytes(t) > 1);
        CHECK(npy_type(all[i].name, 2, &t, &swapped) && !swapped);
        CHECK(npy_type(dtype_name(all[i].dtype), strlen(dtype_name(all[i].dtype)), &t, &swapped));
        CHECK_EQ(t, all[i].dtype);
    }
    CHECK(npy_type("bfloat16", 8, &t, &swapped) && t == STK_BFLOAT16);
    CHECK(!npy_type("f16", 3, &t, &swapped));
    CHECK(!npy_type("?f4", 3, &t, &swapped));
    CHECK(!npy_type("", 0, &t, &swapped));
}

static void refusals(void)
{
    static const struct {
        const char *descr, *words;
    } all[] = {{"'|O'", "objects"},     {"'O'", "objects"},     {"[('a', '<i4'), ('b', '<f4')]", "structures"},
               {"'|V8'", "structures"}, {"'<U5'", "text"},      {"'|S3'", "text"},
               {"'<c16'", "complex"},   {"'<M8[ns]'", "dates"}, {"'<f16'", "unknown"},
               {"''", "unknown"},       {"'<'", "unknown"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char header[128];
        snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (1,), }", all[i].descr);
        CHECK(strstr(refused(header, 64), all[i].words) != NULL);
    }
}

static void lies(void)
{
    static const char *const shapes[] = {"(3,)", "(4294967296, 4294967296)", "(9223372036854775807,)",
                                         "(99999999999999999999,)", "(3037000500, 3037000500, 0, 2)"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char header[128];
        snprintf(header, sizeof header, "{'descr': '<i8', 'fortran_order': False, 'shape': %s, }", shapes[i]);
        CHECK(refused(header, 16)[0] != 0);
    }
    CHECK(strstr(refused("{'descr': 'u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1)}", 1), "dimensions"));
}

static void nonsense(void)
{
    static const char *const headers[] = {"",
                                          "{",
                                          "{}",
                                          "[]",
                                          "{'descr'",
                                          "{'descr': }",
                                          "{'descr': 'u1'}",
                                          "{'descr': 'u1, 'fortran_order': False",
                                          "{'descr': 'u1', 'fortran_order': 1, 'shape': (1,)}",
                                          "{'descr': 'u1', 'fortran_order': False, 'shape': 1}",
                                          "{'descr': 'u1', 'fortran_order': False, 'shape': (-1,)}",
                                          "{'descr': 'u1', 'fortran_order': False, 'shape': (1 1)}",
                                          "{'descr': 'u1', 'fortran_order': False, 'shape': (1,)} x",
                                          "{'descr': 'u1', 'fortran_order': False, 'shape': (1,), 'more': 1}",
                                          "{'descr': 'u1' 'fortran_order': False, 'shape': (1,)}"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        CHECK(refused(headers[i], 8)[0] != 0);
}

static void cut_anywhere(void)
{
    struct npy h;
    const struct file f = make(2, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }\n", 32);
    for (size_t n = 0; n < f.n; n++) {
        struct file cut = f;
        cut.n = n;
        CHECK(parse(&cut, &h) != NULL);
    }
    struct file other = f;
    other.p[6] = 4;
    CHECK(strstr(parse(&other, &h), "version") != NULL);
    other = f;
    other.p[10] = 1; /* 64 KiB more than there are */
    CHECK(parse(&other, &h) != NULL);
    other.p[11] = 255;
    CHECK(strstr(parse(&other, &h), "64 KiB") != NULL);
}

static void orders(void)
{
    struct npy h;
    struct file f = make(1, "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3), }", 12);
    CHECK(parse(&f, &h) == NULL);
    CHECK(h.fortran && h.swapped);
    uint16_t to[6];
    npy_copy(&h, f.p + h.at, to);
    static const uint16_t as[] = {0x0001, 0x0405, 0x0809, 0x0203, 0x0607, 0x0a0b};
    CHECK(memcmp(to, as, sizeof as) == 0);

    uint32_t w = 0x01020304;
    npy_swap(&w, 1, 4);
    CHECK_EQ(w, 0x04030201);
    uint64_t d[2] = {0x0102030405060708, 0x1112131415161718};
    npy_swap(d, 2, 8);
    CHECK(d[0] == 0x0807060504030201 && d[1] == 0x1817161514131211);
    uint8_t b = 7;
    npy_swap(&b, 1, 1);
    CHECK_EQ(b, 7);
}

int main(int argc, char **argv)
{
    TESTS(T(plain), T(odd_but_right), T(types), T(refusals), T(lies), T(nonsense), T(cut_anywhere), T(orders))
}
