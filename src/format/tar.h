/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.h -- reads and writes tar archives: v7, ustar, PAX, GNU.
 *
 *     struct tar t = {.peek = peek, .user = ..., .bytes = ...};
 *     struct tar_member m;
 *     for (enum tar_found f; (f = tar_next(&t, &m)) != TAR_END;) ...
 *     tar_done(&t);
 *
 * Only regular files are returned; folders, links and devices are skipped. A damaged header is reported once, and
 * reading continues at the next block that is a header. Names are not checked for "..".
 */
#ifndef TAR_H
#define TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { TAR_BLOCK = 512, TAR_META_MAX = 1 << 20 }; /* the longest extended header */

enum tar_found {
    TAR_FILE,
    TAR_BAD,  /* something at m->header is damaged or cannot be read: see m->reason; the name may be known */
    TAR_CUT,  /* the archive ends inside the last file, whose header is at m->header */
    TAR_END,  /* also if peek() failed */
    TAR_NOMEM /* for a name */
};

struct tar_member {
    const char *name; /* valid until the next call; contains no 0 and does not end with one; NULL: unknown */
    size_t n_name;
    int64_t header;    /* offset of its first header */
    int64_t at, bytes; /* its content */
    const char *reason;
};

/* The content of extended headers, for the next member or for all that follow. */
struct tar_meta {
    struct buf path;
    int64_t size; /* -1: not given */
    bool has_path, sparse;
};

struct tar {
    /* Returns n bytes from `at`, valid until the next call; fewer only at the end. `at` never goes back before the
     * bytes that were returned last. */
    const uint8_t *(*peek)(void *user, int64_t at, size_t n, size_t *got);
    void *user;
    int64_t bytes; /* of the archive; INT64_MAX: unknown */
    /* Private: */
    int64_t at;    /* of the next header */
    int64_t first; /* of the first extended header of the next member; -1: it has none */
    int64_t last;  /* of the header of the last file */
    int64_t until; /* end of the last file, if its last byte was not seen yet; otherwise 0 */
    struct tar_meta next, all;
    struct buf name;
    const char *damaged; /* what is wrong with the extended headers of the next member; NULL: nothing */
};

enum tar_found tar_next(struct tar *t, struct tar_member *m);
void tar_done(struct tar *t); /* may be called twice */

/* ------------------------------------------------------------------ tar_out.c: writing */

/* Appends the headers of a member: ustar, preceded by a PAX header if the name or the size does not fit. They depend on
 * nothing but name and size. 0, or -1: no memory. */
int tar_out_head(struct buf *out, const char *name, size_t name_bytes, uint64_t bytes);
/* How many zeros must follow a file of this size. */
static inline size_t tar_out_padding(uint64_t bytes)
{
    return (size_t)(-bytes % TAR_BLOCK);
}

#endif
