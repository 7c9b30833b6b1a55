/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_tokens.c -- files of tokens, split into sequences.
 */
#include "support/npy_files.h"

static const uint16_t ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static void begins_with(const struct source *s, int64_t i, uint16_t first, int length)
{
    uint16_t row[16] = {0};
    CHECK_EQ(source_copy(s, NULL, i, 0, row, &error), STK_OK);
    for (int k = 0; k < length; k++)
        CHECK_EQ(row[k], first + k);
}

static void sequences(void)
{
    temp_bytes("t.bin", ten, sizeof ten);
    struct source *s = open_named("tokens:%?length=4", "t.bin", NULL);
    CHECK(s != NULL);
    CHECK_STR(source_kind(s), "token files");
    CHECK_STR(source_field(s, 0)->name, "tokens");
    CHECK_EQ(source_field(s, 0)->dtype, STK_UINT16);
    CHECK_EQ(source_count(s), 2); /* 8 and 9 are an incomplete sequence */
    begins_with(s, 1, 4, 4);
    source_close(s);
    s = open_named("tokens:%?length=5&stride=4", "t.bin", NULL); /* each with its next token */
    CHECK_EQ(source_count(s), 2);
    begins_with(s, 0, 0, 5);
    begins_with(s, 1, 4, 5);
    source_close(s);
    s = open_named("tokens:%?length=4&stride=1&offset=2", "t.bin", NULL);
    CHECK_EQ(source_count(s), 6);
    begins_with(s, 5, 6, 4);
    char path[PATH_MAX];
    source_path(s, 5, path, sizeof path);
    CHECK(strstr(path, "t.bin sequence 5") != NULL);
    source_close(s);
    s = open_named("tokens:%?length=10", "t.bin", NULL);
    CHECK_EQ(source_count(s), 1);
    source_close(s);
}

/* A sequence never spans two files. */
static void several_files(void)
{
    npy_file("m/a.npy", "<u2", "False", "(10,)", ten, sizeof ten);
    temp_bytes("m/b.bin", ten, sizeof ten - 1); /* half a token at the end */
    struct source *s = open_named("tokens:%?length=3", "m/*", NULL);
    CHECK(s != NULL);
    CHECK_EQ(source_count(s), 6);
    begins_with(s, 2, 6, 3);
    begins_with(s, 3, 0, 3);
    source_close(s);
}

static void what_is_refused(void)
{
    refused("tokens:%?length=11", "t.bin", "does not contain a complete sequence");
    refused("tokens:%?length=0", "t.bin", "length must be");
    refused("tokens:%?stride=0", "t.bin", "stride must be");
    refused("tokens:%?dtype=float32", "t.bin", "an integer type is needed");
    refused("tokens:%?lenght=4", "t.bin", "did you mean length?");
    refused("tokens:%?dtype=uint16&length=2", "m/a.npy", "already defines dtype");
    npy_file("two.npy", "<u2", "False", "(2, 5)", ten, sizeof ten);
    refused("tokens:%?length=2", "two.npy", "2 dimensions");
    refused("tokens:%?length=2", "m", "is not a regular file");
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(sequences), T(several_files), T(what_is_refused))
}
