/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c -- whole files.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_error(stk_error *e, const char *path, const char *what, int os_error)
{
    *e = (stk_error){.code = os_error == ENOENT   ? STK_ENOTFOUND
                             : os_error == ENOMEM ? STK_ENOMEM
                                                  : STK_EIO,
                     .os_error = os_error,
                     .sample = -1};
    snprintf(e->path, sizeof e->path, "%s", path);
    snprintf(e->reason, sizeof e->reason, "%s: %s", what, strerror(os_error));
    snprintf(e->text, sizeof e->text, "%.900s: %s", path, e->reason);
    return e->code;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        const ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* For /dev/null, pipes and the like, which a rename must not replace. */
static int write_in_place(const char *path, const void *bytes, size_t n, stk_error *e)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return file_error(e, path, "cannot open for writing", errno);
    const int failed = write_all(fd, bytes, n) ? errno : 0;
    close(fd);
    return failed ? file_error(e, path, "cannot write", failed) : STK_OK;
}

int file_write(const char *path, const void *bytes, size_t n, stk_error *e)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return write_in_place(path, bytes, n, e);
    const size_t room = strlen(path) + 32;
    char *temp = malloc(room);
    if (!temp)
        return file_error(e, path, "cannot write", ENOMEM);
    snprintf(temp, room, "%s.%ld.tmp", path, (long)getpid());
    int os_error = 0;
    const int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || write_all(fd, bytes, n))
        os_error = errno;
    if (fd >= 0 && close(fd) && !os_error)
        os_error = errno;
    if (!os_error && rename(temp, path))
        os_error = errno;
    if (os_error && fd >= 0)
        unlink(temp);
    free(temp);
    return os_error ? file_error(e, path, "cannot write", os_error) : STK_OK;
}

int file_read(const char *path, size_t max, char **out, size_t *n, stk_error *e)
{
    *out = NULL;
    *n = 0;
    char *bytes = NULL;
    size_t len = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return file_error(e, path, "cannot open", errno);
    int os_error = 0;
    for (size_t cap = 4096; !os_error; cap *= 2) {
        char *more = realloc(bytes, cap + 1);
        if (!more) {
            os_error = ENOMEM;
            break;
        }
        bytes = more;
        ssize_t k = 1;
        while (len < cap && (k = read(fd, bytes + len, cap - len)) > 0)
            len += (size_t)k;
        if (k < 0 && errno != EINTR)
            os_error = errno;
        if (k == 0)
            break;
        if (len > max)
            os_error = EFBIG;
    }
    close(fd);
    if (os_error) {
        free(bytes);
        return file_error(e, path, "cannot read it", os_error);
    }
    bytes[len] = 0;
    *out = bytes;
    *n = len;
    return STK_OK;
}
