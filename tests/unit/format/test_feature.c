/* SPDX-License-Identifier: Apache-2.0 */
#include "format/feature.h"

#include "support/protos.h"
#include "test.h"

static struct feature measured(const struct buf *b, bool steps)
{
    struct feature f = {.p = b->data, .n = b->len, .steps = steps};
    CHECK(feature_measure(&f));
    return f;
}

static void ints(void)
{
    static const int64_t v[] = {0, 1, 127, 128, -1, INT64_MAX, INT64_MIN, 300};
    for (int packed = 0; packed < 2; packed++) {
        struct buf b = {0};
        int64_t got[8];
        proto_ints(&b, v, 8, packed);
        const struct feature f = measured(&b, false);
        CHECK_EQ(f.kind, FEATURE_INTS);
        CHECK_EQ(f.count, 8);
        CHECK_EQ(feature_room(&f), sizeof v);
        CHECK(feature_make(&f, got));
        CHECK(memcmp(got, v, sizeof v) == 0);
        buf_done(&b);
    }
}

static void floats(void)
{
    static const float v[] = {0, 1.5f, -2, 1e30f};
    for (int packed = 0; packed < 2; packed++) {
        struct buf b = {0};
        float got[4];
        proto_floats(&b, v, 4, packed);
        const struct feature f = measured(&b, false);
        CHECK_EQ(f.kind, FEATURE_FLOATS);
        CHECK_EQ(f.count, 4);
        CHECK((f.whole != NULL) == packed); /* contiguous values are not copied */
        CHECK(!f.whole || memcmp(f.whole, v, sizeof v) == 0);
        CHECK(feature_make(&f, got));
        CHECK(memcmp(got, v, sizeof v) == 0);
        buf_done(&b);
    }
}

static void strings(void)
{
    static const char *const v[] = {"one", "", "t\"w\\o\n"};
    struct buf b = {0}, json = {0};
    proto_strings(&b, v, 3);
    struct feature f = measured(&b, false);
    CHECK_EQ(f.count, 3);
    CHECK_EQ(f.bytes, 9);
    CHECK(!f.whole);
    CHECK(feature_json(&f, &json) && buf_add(&json, "", 1) == 0);
    CHECK_STR((const char *)json.data, "[\"one\",\"\",\"t\\\"w\\\\o\\u000a\"]");
    b.len = 0;
    proto_strings(&b, v, 1);
    f = measured(&b, false);
    CHECK(f.whole && f.bytes == 3 && memcmp(f.whole, "one", 3) == 0);
    buf_done(&b);
    buf_done(&json);
}

/* Several lists of one kind form one list. */
static void merged(void)
{
    static const int64_t v[] = {1, 2, 3};
    int64_t got[4];
    struct buf b = {0};
    proto_ints(&b, v, 3, 1);
    proto_ints(&b, v + 2, 1, 0);
    const struct feature f = measured(&b, false);
    CHECK_EQ(f.count, 4);
    CHECK(feature_make(&f, got));
    CHECK(got[0] == 1 && got[2] == 3 && got[3] == 3);
    buf_done(&b);
}

static void empty(void)
{
    struct buf b = {0};
    struct feature f = measured(&(struct buf){.data = (uint8_t *)""}, false);
    CHECK_EQ(f.kind, FEATURE_NONE);
    CHECK_EQ(f.count, 0);
    proto_ints(&b, NULL, 0, 1);
    f = measured(&b, false);
    CHECK_EQ(f.kind, FEATURE_INTS);
    CHECK_EQ(f.count, 0);
    CHECK_EQ(f.each, 0);
    buf_done(&b);
}

static void steps(void)
{
    static const int64_t v[] = {1, 2, 3, 4, 5, 6};
    struct buf all = {0}, step = {0};
    int64_t got[6];
    for (int i = 0; i < 3; i++) {
        proto_ints(&step, v + 2 * i, 2, i % 2);
        proto_message(&all, 1, &step);
    }
    struct feature f = measured(&all, true);
    CHECK_EQ(f.n_steps, 3);
    CHECK_EQ(f.each, 2);
    CHECK(feature_make(&f, got) && memcmp(got, v, sizeof v) == 0);
    proto_ints(&step, v, 1, 0);
    proto_message(&all, 1, &step);
    f = measured(&all, true);
    CHECK_EQ(f.each, -1);
    CHECK_EQ(f.n_steps, 4);
    f = measured(&(struct buf){.data = (uint8_t *)""}, true);
    CHECK_EQ(f.n_steps, 0);
    buf_done(&all);
    buf_done(&step);
}

static void damaged(void)
{
    static const struct {
        const char *p;
        size_t n;
    } bad[] = {
        {"\x0a\x05xx", 4},                                                    /* ends within a list */
        {"\x12\x05\x0a\x03xxx", 7},                                           /* floats of three bytes */
        {"\x1a\x03\x0a\x01\x80", 5},                                          /* ends within a number */
        {"\x1a\x02\x08\x01\x12\x05\x0d\0\0\0\0", 11},                         /* two kinds */
        {"\x0a\x02\x08\x01", 4},                                              /* a number for a string */
        {"\x18\x01", 2},                                                      /* a number for a list */
        {"\x1a\x0d\x0a\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 15}, /* a number of eleven bytes */
    };
    int64_t to[8];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct feature f = {.p = (const uint8_t *)bad[i].p, .n = bad[i].n};
        CHECK(!feature_measure(&f) || !feature_make(&f, to));
    }
}

int main(int argc, char **argv)
{
    TESTS(T(ints), T(floats), T(strings), T(merged), T(empty), T(steps), T(damaged))
}
