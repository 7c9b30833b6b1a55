/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pattern.c -- braces and globs.
 */
#include <string.h>

#include "source/recognise.h"
#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

static void gives(const char *pattern, const char *const *files)
{
    struct names out = {0};
    CHECK_EQ(pattern_files(pattern, &out, &error), STK_OK);
    uint32_t n = 0;
    for (; files[n]; n++)
        if (n < out.n)
            CHECK_STR(names_at(&out, n), files[n]);
    CHECK_EQ(out.n, n);
    names_done(&out);
}

static void braces(void)
{
    gives("plain.tar", (const char *[]){"plain.tar", NULL});
    gives("a-{008..011}.tar", (const char *[]){"a-008.tar", "a-009.tar", "a-010.tar", "a-011.tar", NULL});
    gives("a-{8..11}.tar", (const char *[]){"a-8.tar", "a-9.tar", "a-10.tar", "a-11.tar", NULL});
    gives("a-{2..1}", (const char *[]){"a-2", "a-1", NULL});
    gives("{x,y}/{1..2}", (const char *[]){"x/1", "x/2", "y/1", "y/2", NULL});
    gives("a{b}c", (const char *[]){"a{b}c", NULL});
    gives("a{b,c", (const char *[]){"a{b,c", NULL});
    gives("a{,b}", (const char *[]){"a", "ab", NULL});
    struct names out = {0};
    CHECK_EQ(pattern_files("{0..999}{0..999}{0..999}", &out, &error), STK_EUSAGE);
    CHECK_EQ(pattern_files("{5..999999999999999999}{a,b}", &out, &error), STK_EUSAGE);
    names_done(&out);
}

static void globs(void)
{
    temp_file("b.tar", "x");
    temp_file("a.tar", "x");
    temp_file("a{1,2}.tar", "x");
    char one[512], two[512];
    snprintf(one, sizeof one, "%s", temp_path("a.tar"));
    snprintf(two, sizeof two, "%s", temp_path("b.tar"));
    gives(temp_path("?.tar"), (const char *[]){one, two, NULL});
    snprintf(one, sizeof one, "%s", temp_path("a{1,2}.tar"));
    gives(one, (const char *[]){one, NULL});
    struct names out = {0};
    CHECK_EQ(pattern_files(temp_path("*.zip"), &out, &error), STK_ENOTFOUND);
    names_done(&out);
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(braces), T(globs))
}
