/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_query.c -- the query after the ? of a source's name.
 */
#include "source/query.h"

#include "test.h"

static const char *const known[] = {"dtype", "shape", "offset", NULL};
static stk_error error;

static void values(void)
{
    const char *text = "dtype=uint8&shape=32,32,3&offset=16";
    char value[64], key[QUERY_TEXT], long_value[QUERY_TEXT];
    int64_t offset = 7;
    CHECK_EQ(query_check(text, known, &error), STK_OK);
    CHECK(query_get(text, "shape", value, sizeof value));
    CHECK_STR(value, "32,32,3");
    CHECK(!query_get(text, "shap", value, sizeof value));
    CHECK(!query_get(text, "shape", value, 7));
    CHECK_EQ(query_number(text, "offset", 0, 100, &offset, &error), STK_OK);
    CHECK_EQ(offset, 16);
    CHECK_EQ(query_number(text, "none", 0, 100, &offset, &error), STK_OK);
    CHECK_EQ(offset, 16);
    CHECK(query_at(text, 1, key, long_value));
    CHECK_STR(key, "shape");
    CHECK_STR(long_value, "32,32,3");
    CHECK(!query_at(text, 3, key, long_value));
}

static void nothing_said(void)
{
    char value[64];
    CHECK_EQ(query_check(NULL, known, &error), STK_OK);
    CHECK_EQ(query_check("", known, &error), STK_OK);
    CHECK(!query_get(NULL, "dtype", value, sizeof value));
}

static void refused(const char *text, const char *words)
{
    CHECK_EQ(query_check(text, known, &error), STK_EUSAGE);
    CHECK(strstr(error.text, words) != NULL);
}

static void what_is_wrong(void)
{
    int64_t n = 0;
    refused("dtpye=uint8", "did you mean dtype?");
    refused("zzzzzz=1", "dtype, shape, offset");
    refused("dtype", "key=value");
    refused("=1", "key=value");
    refused("dtype=a&&offset=1", "key=value");
    refused("dtype=a&offset=1&dtype=b", "twice");
    CHECK_EQ(query_check("dtype=", known, &error), STK_OK); /* empty, but present */
    CHECK_EQ(query_number("n=x", "n", 0, 9, &n, &error), STK_EUSAGE);
    CHECK_EQ(query_number("n=10", "n", 0, 9, &n, &error), STK_EUSAGE);
    CHECK_EQ(query_number("n=", "n", 0, 9, &n, &error), STK_EUSAGE);
    CHECK_EQ(query_number("n=99999999999999999999", "n", 0, INT64_MAX, &n, &error), STK_EUSAGE);
    char text[2 * QUERY_TEXT + 8] = "dtype=";
    memset(text + 6, 'x', sizeof text - 7);
    refused(text, "key=value");
}

int main(int argc, char **argv)
{
    TESTS(T(values), T(nothing_said), T(what_is_wrong))
}
