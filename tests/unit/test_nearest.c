/* SPDX-License-Identifier: Apache-2.0 */
/* test_nearest.c -- which name was meant. */
#include "base/nearest.h"

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

int main(int argc, char **argv)
{
    TESTS(T(the_nearest_is_found), T(what_is_far_is_not))
}
