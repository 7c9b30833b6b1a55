/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.h -- the files of a zip archive, as its central directory has them; also zip64.
 *
 *     struct zip z = {.peek = peek, .user = ..., .bytes = ...};
 *     if ((reason = zip_begin(&z)) != NULL) ...             it is no zip archive
 *     for (struct zip_member m; zip_next(&z, &m);) ...
 *         zip_locate(&z, &m)                                where its bytes are; costs a look at that place
 *
 * Folders are passed over. Names are data: nothing is said about where they would lead. Unpacking is gunzip.h's:
 * GUNZIP_DEFLATE, m.raw bytes, which must have m.crc.
 */
#ifndef ZIP_H
#define ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zip_member {
    const char *name; /* as stored, lent until the next call; not ended by 0, and none inside */
    size_t n_name;
    int64_t entry;  /* of the central directory: where it is */
    int64_t header; /* where the file's own is */
    int64_t at;     /* its bytes: known after zip_locate */
    int64_t bytes;  /* packed */
    int64_t raw;    /* unpacked */
    uint32_t crc;
    bool deflated;      /* else stored */
    const char *reason; /* why it cannot be read; NULL: it can */
};

struct zip {
    /* n bytes from `at` on, lent until the next call; fewer only at the end, none before the start. */
    const uint8_t *(*peek)(void *user, int64_t at, size_t n, size_t *got);
    void *user;
    int64_t bytes; /* of the archive */
    /* Inside. */
    int64_t at, end; /* what is left of the central directory */
    int64_t shift;   /* what precedes the archive: a program that unpacks it, say */
};

/* NULL, or why this cannot be read as a zip archive. */
const char *zip_begin(struct zip *z);
/* false: there are no more. A directory that is damaged ends with a member that has a reason and no name. */
bool zip_next(struct zip *z, struct zip_member *m);
/* Finds the bytes of a member without a reason; it may get one. Its name is no longer lent. */
void zip_locate(struct zip *z, struct zip_member *m);

#endif
