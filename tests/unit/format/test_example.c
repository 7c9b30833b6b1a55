/* SPDX-License-Identifier: Apache-2.0 */
#include "format/example.h"

#include "support/protos.h"
#include "test.h"

static const struct example_names names = {.of = {{"image", 5}, {"label", 5}, {"tokens", 6}}, .n = 3};

/* {label: 7, image: "xyz", other: [1.5]} and, as steps, tokens: [[1], [2]]. */
static void make(struct buf *out, int reversed)
{
    static const char *const image[] = {"xyz"};
    static const float other[] = {1.5f};
    const int64_t label = 7, tokens[] = {1, 2};
    struct buf map = {0}, feature = {0}, list = {0};
    for (int i = 0; i < 3; i++) {
        const int which = reversed ? 2 - i : i;
        if (which == 0)
            proto_ints(&feature, &label, 1, 1);
        else if (which == 1)
            proto_strings(&feature, image, 1);
        else
            proto_floats(&feature, other, 1, 1);
        proto_entry(&map, which == 0 ? "label" : which == 1 ? "image" : "other", &feature);
    }
    proto_message(out, 1, &map);
    for (int i = 0; i < 2; i++) {
        proto_ints(&feature, &tokens[i], 1, 1);
        proto_message(&list, 1, &feature);
    }
    proto_entry(&map, "tokens", &list);
    proto_message(out, 2, &map);
    buf_done(&map);
    buf_done(&feature);
    buf_done(&list);
}

static void found(void)
{
    for (int reversed = 0; reversed < 2; reversed++) {
        struct feature f[FIELD_MAX];
        struct buf b = {0};
        make(&b, reversed);
        CHECK(example_find(&names, b.data, b.len, f));
        for (int i = 0; i < names.n; i++)
            CHECK(f[i].p && feature_measure(&f[i]));
        CHECK(f[0].whole && memcmp(f[0].whole, "xyz", 3) == 0);
        CHECK_EQ(f[1].kind, FEATURE_INTS);
        CHECK_EQ(f[2].n_steps, 2);
        CHECK(f[2].steps && !f[1].steps);
        buf_done(&b);
    }
}

static void absent(void)
{
    struct feature f[FIELD_MAX];
    CHECK(example_find(&names, (const uint8_t *)"", 0, f));
    for (int i = 0; i < names.n; i++)
        CHECK(!f[i].p);
}

/* If a name appears twice, the last value counts, within one map and across two. */
static void twice(void)
{
    for (int maps = 1; maps <= 2; maps++) {
        struct buf b = {0}, map = {0}, feature = {0};
        struct feature f[FIELD_MAX];
        for (int64_t v = 1; v <= 2; v++) {
            proto_ints(&feature, &v, 1, 0);
            proto_entry(&map, "label", &feature);
            if (maps == 2 || v == 2)
                proto_message(&b, 1, &map);
        }
        int64_t got = 0;
        CHECK(example_find(&names, b.data, b.len, f) && feature_measure(&f[1]) && feature_make(&f[1], &got));
        CHECK_EQ(got, 2);
        buf_done(&b);
        buf_done(&map);
        buf_done(&feature);
    }
}

/* If an example is truncated or changed at any byte, it is read or refused, without reading past its end. */
static void damaged(void)
{
    struct buf b = {0};
    make(&b, 0);
    for (size_t n = 0; n < b.len; n++)
        for (int flip = 0; flip < 256; flip += flip ? flip : 1) {
            uint8_t *copy = malloc(b.len);
            const size_t keep = flip ? b.len : n;
            memcpy(copy, b.data, b.len);
            copy[n] = (uint8_t)(copy[n] ^ flip);
            uint8_t *exact = malloc(keep ? keep : 1);
            memcpy(exact, copy, keep);
            struct feature f[FIELD_MAX];
            int64_t to[64];
            if (example_find(&names, exact, keep, f))
                for (int i = 0; i < names.n; i++)
                    if (f[i].p && feature_measure(&f[i]) && feature_room(&f[i]) <= sizeof to)
                        feature_make(&f[i], to);
            free(copy);
            free(exact);
        }
    buf_done(&b);
}

int main(int argc, char **argv)
{
    TESTS(T(found), T(absent), T(twice), T(damaged))
}
