/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.h -- the files of a tar archive, one after the other: v7, ustar, PAX, GNU.
 *
 *     struct tar t = {.peek = peek, .user = ..., .bytes = ...};
 *     struct tar_member m;
 *     for (enum tar_found f; (f = tar_next(&t, &m)) != TAR_END;) ...
 *     tar_done(&t);
 *
 * Folders, links, devices and whatever else is no file are passed over. A header that is damaged is told once, and
 * reading goes on at the next block that is a header. Names are data: nothing is said about where they would lead.
 */
#ifndef TAR_H
#define TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { TAR_BLOCK = 512, TAR_META_MAX = 1 << 20 }; /* a longer extended header is refused */

enum tar_found {
    TAR_FILE,
    TAR_BAD,  /* something at m->header is damaged, or cannot be read: m->reason; its name where it has one */
    TAR_CUT,  /* the archive ends inside of the file that was found last, at m->header */
    TAR_END,  /* also where peek has failed */
    TAR_NOMEM /* for a name */
};

struct tar_member {
    const char *name; /* lent until the next call; not ended by 0, and none inside; NULL: not known */
    size_t n_name;
    int64_t header;    /* where the first of its headers begins */
    int64_t at, bytes; /* its content */
    const char *reason;
};

/* What extended headers say: of the next member, or of all that follow. */
struct tar_meta {
    struct buf path;
    int64_t size; /* -1: nothing */
    bool has_path, sparse;
};

struct tar {
    /* n bytes from `at`, lent until the next call; fewer only at the end. Never goes back but within what was lent. */
    const uint8_t *(*peek)(void *user, int64_t at, size_t n, size_t *got);
    void *user;
    int64_t bytes; /* of the archive; INT64_MAX: not known */
    /* Inside. */
    int64_t at;    /* of the next header */
    int64_t first; /* header of the next member: of those that go before its own; -1: none */
    int64_t last;  /* header of the last file */
    int64_t until; /* where the last file ends, if that is still to be seen; 0: it is not */
    struct tar_meta next, all;
    struct buf name;
    const char *damaged; /* what is wrong with the extended headers of the next member */
};

enum tar_found tar_next(struct tar *t, struct tar_member *m);
void tar_done(struct tar *t); /* also twice */

#endif
