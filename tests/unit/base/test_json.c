/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_json.c -- documents are read back as they were written; reading a truncated or damaged one stays within it.
 */
#include "base/json.h"
#include "test.h"

static const char odd_name[] = "tab\t quote\" back\\ \xff \xc3\xa9 \x01 \xed\xa0\x80.jpg";

static void fill(struct json *j)
{
    json_open(j, NULL, '{');
    json_int(j, "samples", -12);
    json_text(j, "name", odd_name);
    json_text(j, "odd \"name\"", NULL);
    json_hex(j, "sum", UINT64_C(0x0123456789abcdef));
    json_open(j, "inside", '{');
    json_text(j, "n", "}");
    json_close(j, '}');
    json_open(j, "empty", '[');
    json_close(j, ']');
    json_open(j, "list", '[');
    for (int i = 0; i < 3; i++) {
        json_open(j, NULL, '{');
        json_int(j, "i", i);
        json_text(j, "brackets", "}]{[,:");
        json_close(j, '}');
    }
    json_close(j, ']');
    json_real(j, "real", 0.5);
    json_real(j, "no real", 1e308 * 10);
    json_bool(j, "yes", true);
    json_uint(j, "most", UINT64_MAX);
    json_int(j, "last", INT64_MAX);
    json_close(j, '}');
}

static char *document(bool compact, size_t *n)
{
    char *text = NULL;
    struct json j = {.f = open_memstream(&text, n), .layout = compact ? JSON_COMPACT : JSON_LINES};
    fill(&j);
    CHECK(fclose(j.f) == 0);
    return text;
}

static void read_back(void)
{
    for (int compact = 0; compact < 2; compact++) {
        struct buf b = {0};
        int64_t v, i = 0;
        uint64_t u;
        size_t n;
        char *text = document(compact, &n);
        const struct json_value d = json_document(text, n);
        CHECK(strstr(text, "tab\\u0009 quote\\\" back\\\\ \\udcff \xc3\xa9 \\u0001 \\udced\\udca0\\udc80.jpg"));
        CHECK(json_get_int(json_find(d, "samples"), &v) && v == -12);
        CHECK(!json_get_uint(json_find(d, "samples"), &u));
        CHECK(json_get_text(json_find(d, "name"), &b));
        CHECK_STR((const char *)b.data, odd_name);
        CHECK(json_get_text(json_find(json_find(d, "inside"), "n"), &b)); /* appends */
        CHECK_EQ(b.len, sizeof odd_name);
        CHECK(json_get_hex(json_find(d, "sum"), &u) && u == UINT64_C(0x0123456789abcdef));
        CHECK(!json_get_text(json_find(d, "samples"), &b) && !json_get_int(json_find(d, "sum"), &v));
        CHECK(json_get_uint(json_find(d, "most"), &u) && u == UINT64_MAX);
        CHECK(!json_get_int(json_find(d, "most"), &v));
        CHECK(json_get_int(json_find(d, "last"), &v) && v == INT64_MAX);
        CHECK(!json_first(json_find(d, "empty")).p && !json_find(d, "nothing").p && !json_find(d, "nam").p);
        for (struct json_value e = json_first(json_find(d, "list")); e.p; e = json_next(e), i++)
            CHECK(json_get_int(json_find(e, "i"), &v) && v == i);
        CHECK_EQ(i, 3);
        CHECK_EQ(json_bytes(d), compact ? n : n - 1); /* the line feed */
        buf_done(&b);
        free(text);
    }
}

static void layout(void)
{
    size_t n;
    char *text = document(false, &n);
    CHECK(
        strstr(text, "  \"inside\": {\"n\": \"}\"},\n  \"empty\": [],\n  \"list\": [\n    {\"i\": 0, \"brackets\": "));
    CHECK(strstr(text, "\"real\": 0.500000,\n  \"no real\": null,\n  \"yes\": true,\n"));
    free(text);
    text = document(true, &n);
    CHECK(strstr(text, "\"inside\":{\"n\":\"}\"},\"empty\":[],\"list\":[{\"i\":0,\"brackets\":") &&
          !strchr(text, '\n'));
    free(text);
}

static bool text_of(const char *json, const char *expected)
{
    struct buf b = {0};
    const bool good = json_get_text(json_document(json, strlen(json)), &b);
    const bool equal = good && strcmp((const char *)b.data, expected) == 0;
    buf_done(&b);
    return equal;
}

static void escapes(void)
{
    CHECK(text_of(" \"\\u00e9\\u20ac\\ud83d\\ude00\\udcff\\n\\/\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff\n/"));
    CHECK(!text_of("\"a\\u0000\"", "a")); /* not a C string */
    CHECK(!text_of("\"\\ud83d\"", ""));   /* half of a pair */
    CHECK(!text_of("\"\\x41\"", "A"));
    CHECK(!text_of("\"a\nb\"", "a\nb"));
    CHECK(!text_of("\"a", "a"));
}

static void numbers(void)
{
    static const char *const wrong[] = {"",   "-",   "1.5",  "1e3", "9223372036854775808",  "12a", "\"1\"",
                                        "[]", "--1", "null", "- 1", "18446744073709551616", "true"};
    int64_t v;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(!json_get_int(json_document(wrong[i], strlen(wrong[i])), &v));
}

static void look_at(const char *p, size_t n)
{
    struct buf b = {0};
    int64_t v;
    uint64_t sum;
    const struct json_value d = json_document(p, n);
    json_get_int(json_find(d, "last"), &v);
    json_get_hex(json_find(d, "sum"), &sum);
    json_get_text(json_find(d, "name"), &b);
    for (struct json_value e = json_first(json_find(d, "list")); e.p; e = json_next(e))
        json_get_text(json_find(e, "brackets"), &b);
    buf_done(&b);
}

/* Each copy has exactly its size in memory, so that the sanitizer sees a read past the end. */
static void damage(void)
{
    size_t n;
    char *text = document(false, &n);
    for (size_t cut = 0; cut <= n; cut++) {
        char *copy = malloc(cut ? cut : 1);
        memcpy(copy, text, cut);
        look_at(copy, cut);
        CHECK(cut == n || json_bytes(json_document(copy, cut)) == 0 || cut == n - 1);
        for (size_t i = 0; i < 4 && cut == n; i++)
            for (size_t k = 0; k < cut; k++) {
                const char was = copy[k];
                copy[k] = "\"\\{\0"[i];
                look_at(copy, cut);
                copy[k] = was;
            }
        free(copy);
    }
    free(text);
}

int main(int argc, char **argv)
{
    TESTS(T(read_back), T(layout), T(escapes), T(numbers), T(damage))
}
