/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_uring.c -- opens and reads through io_uring. The only file that uses liburing.
 *
 * One thread sets up the ring and uses it. If liburing was absent at build time, the kernel is too old, or a sandbox
 * forbids the calls, uring_open fails and files are read with pread.
 */
#include "read/io_uring.h"

#include "base/error.h"

#ifdef HAVE_URING
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>

struct uring {
    struct io_uring ring;
    bool registered;
};

static int set_up(struct uring *u, unsigned entries)
{
    /* The kernel handles completions when we wait for them, not at any time. Older kernels do not support it. */
    const unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    const int rc = io_uring_queue_init(entries, &u->ring, flags);
    return rc == -EINVAL ? io_uring_queue_init(entries, &u->ring, 0) : rc;
}

static bool knows(struct uring *u, int op)
{
    struct io_uring_probe *p = io_uring_get_probe_ring(&u->ring);
    const bool known = p && io_uring_opcode_supported(p, op);
    io_uring_free_probe(p);
    return known;
}

int uring_open(struct uring **out, unsigned entries, void *memory, size_t bytes, stk_error *e)
{
    struct uring *u = *out = calloc(1, sizeof *u);
    if (!u)
        return error_nomem(e, "open", sizeof *u);
    int rc = set_up(u, entries);
    if (rc != 0) {
        free(u);
        *out = NULL;
        return error_os(e, -rc, "open", "io_uring is not available");
    }
    if (!knows(u, IORING_OP_OPENAT)) {
        uring_close(u);
        *out = NULL;
        return error_set(e, STK_EIO, "open", "io_uring of this kernel cannot open files");
    }
    const struct iovec all = {.iov_base = memory, .iov_len = bytes};
    rc = io_uring_register_buffers(&u->ring, &all, 1);
    u->registered = rc == 0; /* otherwise it exceeds RLIMIT_MEMLOCK, and the kernel maps the pages at every read */
    return STK_OK;
}

void uring_close(struct uring *u)
{
    if (u)
        io_uring_queue_exit(&u->ring);
    free(u);
}

void uring_openat(struct uring *u, int dir, const char *path, int flags, uint64_t token)
{
    struct io_uring_sqe *e = io_uring_get_sqe(&u->ring);
    io_uring_prep_openat(e, dir, path, flags, 0);
    io_uring_sqe_set_data64(e, token);
}

void uring_read(struct uring *u, int fd, void *to, size_t n, int64_t at, uint64_t token)
{
    struct io_uring_sqe *e = io_uring_get_sqe(&u->ring);
    if (u->registered)
        io_uring_prep_read_fixed(e, fd, to, (unsigned)n, (__u64)at, 0);
    else
        io_uring_prep_read(e, fd, to, (unsigned)n, (__u64)at);
    io_uring_sqe_set_data64(e, token);
}

int uring_wait(struct uring *u, struct uring_event *events, int max)
{
    int rc;
    do
        rc = io_uring_submit_and_wait(&u->ring, 1);
    while (rc == -EINTR);
    if (rc < 0 && rc != -EAGAIN && rc != -EBUSY) /* these two: the completion queue is full */
        return rc;
    struct io_uring_cqe *c;
    unsigned head;
    int n = 0;
    io_uring_for_each_cqe(&u->ring, head, c)
    {
        if (n == max)
            break;
        events[n++] = (struct uring_event){.token = c->user_data, .result = c->res};
    }
    io_uring_cq_advance(&u->ring, (unsigned)n);
    return n;
}

#else

int uring_open(struct uring **out, unsigned entries, void *memory, size_t bytes, stk_error *e)
{
    (void)entries, (void)memory, (void)bytes;
    *out = NULL;
    return error_set(e, STK_EUSAGE, "open", "io_uring is not available: Stoker was built without liburing");
}

void uring_close(struct uring *u)
{
    (void)u;
}

void uring_openat(struct uring *u, int dir, const char *path, int flags, uint64_t token)
{
    (void)u, (void)dir, (void)path, (void)flags, (void)token;
}

void uring_read(struct uring *u, int fd, void *to, size_t n, int64_t at, uint64_t token)
{
    (void)u, (void)fd, (void)to, (void)n, (void)at, (void)token;
}

int uring_wait(struct uring *u, struct uring_event *events, int max)
{
    (void)u, (void)events, (void)max;
    return -1;
}
#endif
