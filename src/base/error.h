/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h -- fills a stk_error, in the caller's memory: code, reason, path, sample.
 *
 *     return error_set(e, STK_EDATA, "decode", "the file ends after %zu bytes", n);
 *
 * e may be NULL everywhere. A stage does not know the path and the sample; its caller adds them with error_at().
 */
#ifndef ERROR_H
#define ERROR_H

#include "stoker.h"

#if defined(__GNUC__)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#else
#define PRINTF_LIKE(f, a)
#endif

/* All return the code that they store in *e. */
int error_set(stk_error *e, int code, const char *stage, const char *format, ...) PRINTF_LIKE(4, 5);
/* The same for an errno; appends its description. ENOENT and ENOTDIR become STK_ENOTFOUND, ENOMEM becomes STK_ENOMEM,
 * everything else STK_EIO. */
int error_os(stk_error *e, int os_error, const char *stage, const char *format, ...) PRINTF_LIKE(4, 5);
int error_nomem(stk_error *e, const char *stage, size_t bytes);
/* Adds where it happened. A path of NULL or a sample of -1 changes nothing. */
void error_at(stk_error *e, const char *path, int64_t sample);

/* Call this before calling a user's function. */
void error_clear(stk_error *e);
/* Call this after that function failed with rc: fills in what it left out, and replaces an rc that is not an error
 * code. */
int error_of_hook(stk_error *e, int rc, const char *stage, const char *function);
/* Whether the machine is the cause (no memory, no descriptors), not the sample. */
int error_is_machine(const stk_error *e);

#endif
