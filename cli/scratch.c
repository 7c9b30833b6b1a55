/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.c -- a temporary folder, and a child process that removes it.
 *
 * The child waits until the pipe to this process is closed. This happens when the folder is closed, and also when this
 * process dies in any other way.
 */
#include "scratch.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file.h"

enum { DESCRIPTORS = 16 };

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

_Noreturn static void wait_and_remove(const char *path, int from)
{
    char c;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    /* A reader of our output must not wait for this process. */
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    while (read(from, &c, 1) < 0 && errno == EINTR)
        ;
    nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static int give_up(struct scratch *s, const char *what, stk_error *e)
{
    const int error = errno;
    rmdir(s->path);
    file_error(e, s->path, what, error);
    s->path[0] = 0;
    return STK_EIO;
}

int scratch_open(struct scratch *s, stk_error *e)
{
    const char *tmp = getenv("TMPDIR");
    int ends[2];
    *s = (struct scratch){0};
    snprintf(s->path, sizeof s->path, "%s/stoker-doctor-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(s->path))
        return give_up(s, "cannot create a temporary folder", e);
    if (pipe(ends))
        return give_up(s, "cannot create a pipe", e);
    fflush(NULL);
    s->remover = fork();
    if (s->remover == 0) {
        close(ends[1]);
        wait_and_remove(s->path, ends[0]);
    }
    close(ends[0]);
    s->pipe = ends[1];
    if (s->remover > 0)
        return STK_OK;
    close(ends[1]);
    return give_up(s, "cannot start a process", e);
}

void scratch_close(struct scratch *s)
{
    if (!s->path[0])
        return;
    close(s->pipe);
    while (waitpid(s->remover, NULL, 0) < 0 && errno == EINTR)
        ;
    *s = (struct scratch){0};
}
