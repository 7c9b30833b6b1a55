/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing.h -- makes the n-th call of a function fail, for tests that try every failure.
 *
 * The linker replaces NAME by __wrap_NAME (-Wl,--wrap=NAME). Functions for large files have names of their own. The
 * functions below are those that every such test wraps. A test adds its own with WRAP, then sets failing, and fail_in
 * to n.
 */
#ifndef FAILING_H
#define FAILING_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Which call fails: counted down while armed. */
static atomic_int fail_in = -1, calls;
static _Atomic(const char *) failing = "";

static int fails(const char *kind)
{
    if (strcmp(kind, failing) != 0)
        return 0;
    calls++;
    return atomic_fetch_sub(&fail_in, 1) == 0;
}

#define WRAP(kind, type, name, params, args, on_failure, error)                                                        \
    type __real_##name params;                                                                                         \
    type __wrap_##name params;                                                                                         \
    type __wrap_##name params                                                                                          \
    {                                                                                                                  \
        if (fails(kind)) {                                                                                             \
            errno = error;                                                                                             \
            return on_failure;                                                                                         \
        }                                                                                                              \
        return __real_##name args;                                                                                     \
    }

WRAP("memory", void *, malloc, (size_t n), (n), NULL, ENOMEM)
WRAP("memory", void *, calloc, (size_t n, size_t m), (n, m), NULL, ENOMEM)
WRAP("memory", void *, realloc, (void *p, size_t n), (p, n), NULL, ENOMEM)
WRAP("read", ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), -1, EIO)
WRAP("read", ssize_t, pread64, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), -1, EIO)
WRAP("write", ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), -1, ENOSPC)
WRAP("write", ssize_t, pwrite64, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), -1, ENOSPC)
WRAP("thread", int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *x), (t, a, f, x),
     EAGAIN, EAGAIN)

#define WRAP_OPEN(name, params, args)                                                                                  \
    int __real_##name params;                                                                                          \
    int __wrap_##name params;                                                                                          \
    int __wrap_##name params                                                                                           \
    {                                                                                                                  \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                                                \
        va_end(rest);                                                                                                  \
        if (fails("read")) {                                                                                           \
            errno = EMFILE;                                                                                            \
            return -1;                                                                                                 \
        }                                                                                                              \
        return __real_##name args;                                                                                     \
    }

WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(openat, (int fd, const char *path, int flags, ...), (fd, path, flags, mode))
WRAP_OPEN(openat64, (int fd, const char *path, int flags, ...), (fd, path, flags, mode))

#endif
