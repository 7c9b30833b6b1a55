/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/error.h"
#include "test.h"

static void says_what_and_where(void)
{
    stk_error e;
    CHECK_EQ(error_set(&e, STK_EDATA, "decode", "the file ends after %d bytes", 12), STK_EDATA);
    CHECK_EQ(e.sample, -1);
    CHECK_STR(e.text, "the file ends after 12 bytes");
    error_at(&e, "a/b.jpg", 17);
    CHECK_EQ(e.sample, 17);
    CHECK_STR(e.path, "a/b.jpg");
    CHECK_STR(e.text, "a/b.jpg: the file ends after 12 bytes");
    CHECK_STR(e.stage, "decode");
}

static void system_errors(void)
{
    stk_error e;
    CHECK_EQ(error_os(&e, ENOENT, "read", "cannot open"), STK_ENOTFOUND);
    CHECK_STR(e.text, "cannot open: No such file or directory");
    CHECK_EQ(e.os_error, ENOENT);
    CHECK_EQ(error_os(&e, ENOMEM, "read", "x"), STK_ENOMEM);
    CHECK_EQ(error_os(&e, EACCES, "read", "x"), STK_EIO);
}

static void takes_null(void)
{
    CHECK_EQ(error_set(NULL, STK_EUSAGE, "open", "x"), STK_EUSAGE);
    CHECK_EQ(error_os(NULL, EIO, "open", "x"), STK_EIO);
    error_at(NULL, "x", 1);
}

static void long_paths_keep_their_end(void)
{
    char path[5000];
    memset(path, 'a', sizeof path);
    memcpy(path + sizeof path - 9, "/end.jpg", 9);
    stk_error e;
    error_set(&e, STK_EIO, "read", "no");
    error_at(&e, path, -1);
    CHECK_EQ(strlen(e.path), sizeof e.path - 1);
    CHECK(strncmp(e.path, "...", 3) == 0);
    CHECK_STR(e.path + strlen(e.path) - 8, "/end.jpg");
}

static void codes_have_words(void)
{
    CHECK_STR(stk_code_words(STK_EDATA), "bad sample");
    CHECK_STR(stk_code_words(-5), "unknown code");
}

int main(int argc, char **argv)
{
    TESTS(T(says_what_and_where), T(system_errors), T(takes_null), T(long_paths_keep_their_end), T(codes_have_words))
}
