/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_stderr.c -- lets a libpng.a that was not built for shared objects be linked into one.
 *
 * Debian's archive refers to the variable stderr in a way that only programs may. The linker substitutes this variable
 * (--wrap=stderr). libpng writes to stderr only if it has no functions for errors and warnings, and the engine always
 * sets these functions.
 */
#include <stdio.h>

extern FILE *const __wrap_stderr;
FILE *const __wrap_stderr = NULL;
