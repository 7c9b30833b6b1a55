/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.h -- reads the central directory of a zip archive; also zip64.
 *
 *     struct zip z = {.peek = peek, .user = ..., .bytes = ...};
 *     if ((reason = zip_begin(&z)) != NULL) ...             it is not a zip archive
 *     for (struct zip_member m; zip_next(&z, &m);) ...
 *         zip_locate(&z, &m)                                finds its bytes; reads the header of the file
 *
 * Folders are skipped. Names are not checked for "..". The caller decompresses with gunzip.h (GUNZIP_DEFLATE) and
 * checks that the m.raw bytes have the checksum m.crc.
 */
#ifndef ZIP_H
#define ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zip_member {
    const char *name; /* as stored; valid until the next call; contains no 0 and does not end with one */
    size_t n_name;
    int64_t entry;  /* offset in the central directory */
    int64_t header; /* offset of the file's own header */
    int64_t at;     /* offset of its bytes; set by zip_locate() */
    int64_t bytes;  /* compressed */
    int64_t raw;    /* decompressed */
    uint32_t crc;
    bool deflated;      /* false: stored */
    const char *reason; /* why it cannot be read; NULL: it can */
};

struct zip {
    /* Returns n bytes from `at`, valid until the next call; fewer only at the end, none before the start. */
    const uint8_t *(*peek)(void *user, int64_t at, size_t n, size_t *got);
    void *user;
    int64_t bytes; /* of the archive */
    /* Private: */
    int64_t at, end; /* the rest of the central directory */
    int64_t shift;   /* bytes before the archive, such as a program that extracts it */
};

/* NULL, or why it cannot be read as a zip archive. */
const char *zip_begin(struct zip *z);
/* false: no more. A damaged directory ends with a member that has a reason and no name. */
bool zip_next(struct zip *z, struct zip_member *m);
/* Finds the bytes of a member without a reason, or sets its reason. Its name becomes invalid. */
void zip_locate(struct zip *z, struct zip_member *m);

#endif
