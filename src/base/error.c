/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.c -- fills a stk_error: code, reason, path and sample.
 *
 * Every change composes `text` again, so that it is always complete: "path: reason". The reason ends with the
 * description of the errno, if there is one.
 */
#undef _GNU_SOURCE /* the strerror_r of POSIX, not of glibc */
#define _POSIX_C_SOURCE 200809L
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void compose(stk_error *e)
{
    if (e->path[0])
        snprintf(e->text, sizeof e->text, "%s: %s", e->path, e->reason);
    else
        snprintf(e->text, sizeof e->text, "%s", e->reason);
}

static void begin(stk_error *e, int code, int os_error, const char *stage)
{
    e->code = code;
    e->os_error = os_error;
    e->sample = -1;
    e->path[0] = 0;
    snprintf(e->stage, sizeof e->stage, "%s", stage);
}

int error_set(stk_error *e, int code, const char *stage, const char *format, ...)
{
    if (!e)
        return code;
    begin(e, code, 0, stage);
    va_list args;
    va_start(args, format);
    vsnprintf(e->reason, sizeof e->reason, format, args);
    va_end(args);
    compose(e);
    return code;
}

static int code_of(int os_error)
{
    switch (os_error) {
    case ENOENT:
    case ENOTDIR:
        return STK_ENOTFOUND;
    case ENOMEM:
        return STK_ENOMEM;
    default:
        return STK_EIO;
    }
}

int error_os(stk_error *e, int os_error, const char *stage, const char *format, ...)
{
    const int code = code_of(os_error);
    if (!e)
        return code;
    begin(e, code, os_error, stage);
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(e->reason, sizeof e->reason, format, args);
    va_end(args);
    char words[128];
    if (strerror_r(os_error, words, sizeof words) != 0)
        snprintf(words, sizeof words, "error %d", os_error);
    if (n >= 0 && (size_t)n < sizeof e->reason)
        snprintf(e->reason + n, sizeof e->reason - (size_t)n, ": %s", words);
    compose(e);
    return code;
}

int error_nomem(stk_error *e, const char *stage, size_t bytes)
{
    return error_set(e, STK_ENOMEM, stage, "no memory for %zu bytes", bytes);
}

void error_at(stk_error *e, const char *path, int64_t sample)
{
    if (!e)
        return;
    if (sample >= 0)
        e->sample = sample;
    if (path) {
        const size_t n = strlen(path), room = sizeof e->path - 1;
        if (n <= room)
            memcpy(e->path, path, n + 1);
        else /* keep the end of a long path, which says more than its start */
            snprintf(e->path, sizeof e->path, "...%s", path + (n - (room - 3)));
    }
    compose(e);
}

void error_clear(stk_error *e)
{
    if (e)
        *e = (stk_error){.sample = -1};
}

int error_of_hook(stk_error *e, int rc, const char *stage, const char *function)
{
    const int code = rc < STK_EUSAGE ? STK_EDATA : rc;
    if (e && e->reason[0] == 0)
        return error_set(e, code, stage, "%s failed with code %d", function, rc);
    if (e) {
        e->code = code;
        if (e->stage[0] == 0)
            snprintf(e->stage, sizeof e->stage, "%s", stage);
        compose(e);
    }
    return code;
}

int error_is_machine(const stk_error *e)
{
    return e->code == STK_ENOMEM || e->os_error == EMFILE || e->os_error == ENFILE || e->os_error == ENOMEM;
}

const char *stk_code_words(int code)
{
    switch (code) {
#define WORDS(name, value, words)                                                                                      \
    case value:                                                                                                        \
        return words;
        STK_CODES(WORDS)
#undef WORDS
    default:
        return "unknown code";
    }
}
