/* SPDX-License-Identifier: Apache-2.0 */
/* test_nearest.c -- which name was meant. */
#include "base/nearest_list.h"

#include <stdio.h>

#include "test.h"

static const char *nearest(const char *word)
{
    static const char *const names[] = {"Resize", "CenterCrop", "RandomCrop", "Pad"};
    struct nearest n = {.word = word};
    for (int i = 0; i < 4; i++)
        nearest_try(&n, names[i], strlen(names[i]));
    return n.found;
}

static void the_nearest_is_found(void)
{
    CHECK_STR(nearest("Rezise"), "Resize");
    CHECK_STR(nearest("RESIZE"), "Resize");
    CHECK_STR(nearest("centercorp"), "CenterCrop");
    CHECK_STR(nearest("RandonCrop"), "RandomCrop");
    CHECK_STR(nearest("Pa"), "Pad");
    CHECK_STR(nearest("d"), "Pad");
}

static void what_is_far_is_not(void)
{
    CHECK(nearest("Normalize") == NULL);
    CHECK(nearest("Crop") == NULL);
    char longer[200];
    memset(longer, 'x', sizeof longer);
    longer[199] = 0;
    CHECK(nearest(longer) == NULL);
    struct nearest n = {.word = "Pad"};
    nearest_try(&n, longer, 199);
    CHECK(n.found == NULL);
}

static void the_hint_has_the_name_and_its_prefix(void)
{
    struct nearest n = {.word = "tread", .prefix = "--"};
    CHECK_STR(nearest_hint(&n), "");
    nearest_try(&n, "threads", 7);
    CHECK_STR(nearest_hint(&n), "; did you mean --threads?");
}

static const char *told(const char *word, int n, stk_error *e)
{
    static const char *const names[] = {"image", "caption", "score"};
    static char longer[40][40];
    struct nearest_list l = {.like.word = word};
    for (int i = 0; i < n; i++) {
        snprintf(longer[i], sizeof longer[i], "a column of many letters %d", i);
        nearest_list_add(&l, i < 3 ? names[i] : longer[i]);
    }
    CHECK(nearest_list_error(&l, "there is no", "column", e) == STK_EUSAGE);
    CHECK(l.all.data == NULL);
    return e->reason;
}

static void an_error_tells_them(void)
{
    stk_error e = {0};
    CHECK_STR(told("capton", 3, &e),
              "there is no column capton; the columns are image, caption, score; did you mean caption?");
    CHECK_STR(told("x", 1, &e), "there is no column x; the column is image");
    CHECK_STR(told("x", 0, &e), "there is no column x; the columns are none");
    CHECK(strstr(told("x", 40, &e), "a column of many letters 3, ") != NULL);
    CHECK(strstr(e.reason, " more") && !strstr(e.reason, "letters 39"));
}

int main(int argc, char **argv)
{
    TESTS(T(the_nearest_is_found), T(what_is_far_is_not), T(the_hint_has_the_name_and_its_prefix),
          T(an_error_tells_them))
}
