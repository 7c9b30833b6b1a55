/* SPDX-License-Identifier: Apache-2.0 */
#include "source/list_values.h"

#include "test.h"

static char seen[2048];

static bool see(void *user, const struct list_value *v)
{
    static const char kinds[] = "sp0a";
    const size_t at = strlen(seen);
    if (v->too_long) {
        CHECK_EQ(v->name_bytes, VALUE_NAME);
        snprintf(seen + at, sizeof seen - at, "%.3s~;", v->name);
        return true;
    }
    snprintf(seen + at, sizeof seen - at, "%.*s=%c%.*s;", (int)v->name_bytes, v->name, kinds[v->kind], (int)v->text.n,
             v->text.p);
    return !user;
}

/* All values as text, or what is wrong. */
static const char *values(const char *text)
{
    static char copy[1024];
    seen[0] = 0;
    const size_t n = strlen(text);
    memcpy(copy, text, n + 1);
    const char *problem = list_values((struct slice){copy, n}, see, NULL);
    return problem ? problem : seen;
}

static void names(void)
{
    CHECK_STR(values("{}"), "");
    CHECK_STR(values("{\"a\": 1, \"b\": \"x\\ny\", \"c\": null, \"d\": true}"), "a=p1;b=sx\ny;c=0null;d=ptrue;");
    CHECK_STR(values("{\"m\": {\"a\": {\"b\": 2}, \"e\": {}}, \"z\": 3}"), "m.a.b=p2;z=p3;");
    CHECK_STR(values("{\"m\": {\"a\": 1}, \"n\": {\"a\": 2}}"), "m.a=p1;n.a=p2;");
    CHECK_STR(values("{\"l\": [1, [2], \"\\u0041\", {\"x\": 1}], \"k\": 1}"),
              "l=a[1, [2], \"\\u0041\", {\"x\": 1}];k=p1;");
}

static void wrong(void)
{
    CHECK_STR(values("[1]"), "not a JSON object");
    CHECK_STR(values("{\"a\": {\"b\": 1}"), "a comma or } was expected");
    CHECK_STR(values("{\"a\": 1} x"), "text follows the JSON object");
    CHECK_STR(values("{\"a\" 1}"), "a colon was expected");
    CHECK_STR(values("{\"a\": [1}"), "brackets do not match");
}

static void deep(void)
{
    char text[1024] = "";
    for (int i = 0; i < 70; i++)
        memcpy(text + 5 * i, "{\"a\":", 6);
    CHECK_STR(values(text), "nested more than 64 deep");
}

/* A name that is too long is cut off, and its object is not entered. */
static void long_names(void)
{
    enum { N = VALUE_NAME };
    char *text = malloc(2 * N);
    memset(text, 'n', 2 * N);
    memcpy(text, "{\"", 2);
    snprintf(text + N + 20, N - 20, "\":{\"b\":1},\"c\":2}");
    seen[0] = 0;
    CHECK(!list_values((struct slice){text, strlen(text)}, see, NULL));
    CHECK_STR(seen, "nnn~;c=p2;");
    free(text);
}

/* The enclosing names leave no room for the dot, or only for the dot. */
static void long_joined_names(void)
{
    char text[VALUE_NAME + 64];
    for (int outer = VALUE_NAME - 2; outer <= VALUE_NAME; outer++) {
        memset(text, 'n', sizeof text);
        memcpy(text, "{\"", 2);
        snprintf(text + 2 + outer, sizeof text - 2 - (size_t)outer, "\":{\"bb\":1},\"c\":2}");
        seen[0] = 0;
        CHECK(!list_values((struct slice){text, strlen(text)}, see, NULL));
        CHECK_STR(seen, "nnn~;c=p2;");
    }
}

static void stopped(void)
{
    char text[] = "{\"a\": 1, \"b\": 2}";
    seen[0] = 0;
    CHECK(!list_values((struct slice){text, strlen(text)}, see, seen));
    CHECK_STR(seen, "a=p1;");
}

static void cut(void)
{
    static const char text[] = "{\"a\": {\"b\": [1, \"x\"], \"c\": \"\\u00e4\"}, \"d\": -1.5e3}";
    for (size_t n = 0; n + 1 < sizeof text - 1; n++) {
        char *copy = malloc(n ? n : 1);
        memcpy(copy, text, n);
        CHECK(list_values((struct slice){copy, n}, see, NULL) != NULL);
        free(copy);
        seen[0] = 0;
    }
}

int main(int argc, char **argv)
{
    TESTS(T(names), T(wrong), T(deep), T(long_names), T(long_joined_names), T(stopped), T(cut))
}
