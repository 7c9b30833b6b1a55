/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c -- expands a pattern into file names: braces as in a shell, then globs, in byte order.
 *
 *     a-{000..127}.tar    a-000.tar, a-001.tar, ... with leading zeros as in the pattern
 *     {train,val}/a?.tar
 */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "source/recognise.h"

enum { FILES_MOST = 1 << 20 };

bool pattern_is(const char *path)
{
    return strpbrk(path, "*?[{") != NULL;
}

static int too_many(stk_error *e)
{
    return error_set(e, STK_EUSAGE, "open", "the pattern matches more than %d files", FILES_MOST);
}

/* ------------------------------------------------------------------ braces */

/* Finds the first pair of braces that contains a range or a comma. */
static bool find_braces(const char *s, const char **open, const char **close)
{
    for (*open = strchr(s, '{'); *open; *open = strchr(*open + 1, '{')) {
        *close = strchr(*open, '}');
        if (!*close)
            return false;
        const size_t n = (size_t)(*close - *open);
        if (memchr(*open, ',', n) || memmem(*open, n, "..", 2))
            return true;
    }
    return false;
}

static int add_text(struct names *out, const char *s, const char *open, const char *middle, size_t n, const char *close,
                    stk_error *e)
{
    char text[PATH_MAX];
    uint32_t ignored;
    const int length = snprintf(text, sizeof text, "%.*s%.*s%s", (int)(open - s), s, (int)n, middle, close + 1);
    if (length < 0 || (size_t)length >= sizeof text)
        return error_set(e, STK_EUSAGE, "open", "the name of the source is longer than the system allows");
    if (out->n >= FILES_MOST)
        return too_many(e);
    return names_add(out, text, (size_t)length, &ignored) < 0 ? error_nomem(e, "open", (size_t)length) : STK_OK;
}

/* {007..12}: a range of numbers, with leading zeros if one of the two has them. */
static bool is_range(const char *p, const char *end, long long *first, long long *last, int *digits)
{
    char *stop;
    if (p == end || *p < '0' || *p > '9')
        return false;
    *first = strtoll(p, &stop, 10);
    const long from_digits = stop - p;
    if (stop + 2 >= end || stop[0] != '.' || stop[1] != '.' || stop[2] < '0' || stop[2] > '9')
        return false;
    const char *second = stop + 2;
    *last = strtoll(second, &stop, 10);
    if (stop != end || from_digits > 18 || stop - second > 18)
        return false;
    *digits = p[0] == '0' || second[0] == '0' ? (int)(from_digits > stop - second ? from_digits : stop - second) : 1;
    return true;
}

static int expand_range(struct names *out, const char *s, const char *open, const char *close, long long first,
                        long long last, int digits, stk_error *e)
{
    const long long step = first <= last ? 1 : -1;
    for (long long i = first;; i += step) {
        char number[32];
        const int n = snprintf(number, sizeof number, "%0*lld", digits, i);
        const int rc = add_text(out, s, open, number, (size_t)n, close, e);
        if (rc != STK_OK || i == last)
            return rc;
    }
}

/* Adds all expansions of one pair of braces. */
static int expand_one(struct names *out, const char *s, const char *open, const char *close, stk_error *e)
{
    long long first, last;
    int digits;
    if (is_range(open + 1, close, &first, &last, &digits))
        return expand_range(out, s, open, close, first, last, digits, e);
    for (const char *p = open + 1;; p++) {
        const char *end = memchr(p, ',', (size_t)(close - p));
        if (!end)
            end = close;
        const int rc = add_text(out, s, open, p, (size_t)(end - p), close, e);
        if (rc != STK_OK || end == close)
            return rc;
        p = end;
    }
}

/* How many names the braces expand to, without nesting; FILES_MOST + 1: too many. */
static int64_t count_names(const char *s)
{
    int64_t n = 1;
    for (const char *open, *close; n <= FILES_MOST && find_braces(s, &open, &close); s = close + 1) {
        long long first, last, ways = 1;
        int digits;
        if (is_range(open + 1, close, &first, &last, &digits))
            ways = (first < last ? last - first : first - last) + 1;
        else
            for (const char *p = open; p < close; p++)
                ways += *p == ',';
        n = ways > FILES_MOST ? FILES_MOST + 1 : n * ways;
    }
    return n;
}

/* Expands one pair of braces per pass until no name has braces. */
static int expand_braces(const char *pattern, struct names *out, stk_error *e)
{
    uint32_t ignored;
    if (count_names(pattern) > FILES_MOST)
        return too_many(e);
    if (names_add(out, pattern, strlen(pattern), &ignored) < 0)
        return error_nomem(e, "open", strlen(pattern));
    for (bool again = true; again;) {
        struct names next = {0};
        int rc = STK_OK;
        again = false;
        for (uint32_t i = 0; i < out->n && rc == STK_OK; i++) {
            const char *s = names_at(out, i), *open, *close;
            if (find_braces(s, &open, &close)) {
                again = true;
                rc = expand_one(&next, s, open, close, e);
            } else if (names_add(&next, s, strlen(s), &ignored) < 0) {
                rc = error_nomem(e, "open", strlen(s));
            }
        }
        names_done(out);
        *out = next;
        if (rc != STK_OK)
            return rc;
    }
    return STK_OK;
}

/* ------------------------------------------------------------------ globs */

static int add_glob(struct names *out, const char *pattern, stk_error *e)
{
    glob_t found;
    const int rc = glob(pattern, GLOB_ERR, NULL, &found);
    const bool nowhere = rc == GLOB_ABORTED && (errno == ENOENT || errno == ENOTDIR); /* its folder does not exist */
    if (rc == GLOB_NOMATCH || nowhere)
        return error_set(e, STK_ENOTFOUND, "open", "no file matches %.400s", pattern);
    if (rc != 0)
        return error_os(e, errno ? errno : ENOMEM, "open", "cannot be listed");
    int result = STK_OK;
    for (size_t i = 0; i < found.gl_pathc && result == STK_OK; i++) {
        uint32_t ignored;
        if (out->n >= FILES_MOST)
            result = too_many(e);
        else if (names_add(out, found.gl_pathv[i], strlen(found.gl_pathv[i]), &ignored) < 0)
            result = error_nomem(e, "open", strlen(found.gl_pathv[i]));
    }
    globfree(&found);
    return result;
}

int pattern_files(const char *pattern, struct names *out, stk_error *e)
{
    struct stat st;
    uint32_t ignored;
    if (!pattern_is(pattern) || stat(pattern, &st) == 0)
        return names_add(out, pattern, strlen(pattern), &ignored) < 0 ? error_nomem(e, "open", strlen(pattern))
                                                                      : STK_OK;
    struct names plain = {0};
    int rc = expand_braces(pattern, &plain, e);
    for (uint32_t i = 0; i < plain.n && rc == STK_OK; i++) {
        const char *s = names_at(&plain, i);
        if (strpbrk(s, "*?["))
            rc = add_glob(out, s, e);
        else if (names_add(out, s, strlen(s), &ignored) < 0)
            rc = error_nomem(e, "open", strlen(s));
    }
    names_done(&plain);
    return rc;
}
