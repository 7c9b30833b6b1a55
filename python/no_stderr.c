/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_stderr.c -- lets a libpng.a that was not made for shared objects be linked into one.
 *
 * Debian's archive refers to the variable stderr in a way that only programs can; the linker puts
 * this one in its place (--wrap=stderr). libpng writes to it only when it has no functions for errors and
 * warnings, and the engine always gives it some.
 */
#include <stdio.h>

extern FILE *const __wrap_stderr;
FILE *const __wrap_stderr = NULL;
