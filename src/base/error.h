/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h -- fills a stk_error: code, words, path, sample, in the caller's memory.
 *
 *     return error_set(e, STK_EDATA, "decode", "the file ends after %zu bytes", n);
 *
 * Every function takes e == NULL. What a stage does not know (path, sample) its caller adds with
 * error_at.
 */
#ifndef ERROR_H
#define ERROR_H

#include "stoker.h"

#if defined(__GNUC__)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#else
#define PRINTF_LIKE(f, a)
#endif

/* All return the code that *e then has. */
int error_set(stk_error *e, int code, const char *stage, const char *format, ...) PRINTF_LIKE(4, 5);
/* The same with an errno, whose words are appended. ENOENT and ENOTDIR become STK_ENOTFOUND, ENOMEM becomes STK_ENOMEM,
 * everything else STK_EIO. */
int error_os(stk_error *e, int os_error, const char *stage, const char *format, ...) PRINTF_LIKE(4, 5);
int error_nomem(stk_error *e, const char *stage, size_t bytes);
/* Adds where it happened; path may be NULL (unchanged), sample -1 (unchanged). */
void error_at(stk_error *e, const char *path, int64_t sample);

/* Before a caller's own function is asked: nothing is known of an error. */
void error_clear(stk_error *e);
/* After it failed with rc: what it left unsaid is filled in, and what is no error's code does not pass for one. */
int error_of_hook(stk_error *e, int rc, const char *stage, const char *function);
/* Whether the machine is to blame and not the sample: no memory, no descriptors. */
int error_is_machine(const stk_error *e);

#endif
