/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gunzip.h -- decompresses gzip files, zlib streams and raw deflate. The only user of zlib.
 *
 *     struct gunzip *z = gunzip_new(GUNZIP_GZIP);        NULL: no memory, or no zlib in this build
 *     while ((state = gunzip_run(z, &in, &n_in, &out, &n_out)) == GUNZIP_MORE) ...
 *     gunzip_free(z);
 */
#ifndef GUNZIP_H
#define GUNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gunzip_kind { GUNZIP_GZIP, GUNZIP_ZLIB, GUNZIP_DEFLATE };
enum gunzip_state {
    GUNZIP_MORE, /* all input was used, or the room is full */
    GUNZIP_END,  /* the stream ended with the right checksum; what follows was not used */
    GUNZIP_BAD,  /* the stream is damaged */
    GUNZIP_NOMEM
};

enum { GUNZIP_BYTES = 64 << 10 }; /* about what a decompressor needs */

bool gunzip_here(void);           /* whether this build has zlib */
const char *gunzip_version(void); /* NULL: this build has no zlib */

struct gunzip;
struct gunzip *gunzip_new(enum gunzip_kind kind);
void gunzip_free(struct gunzip *z); /* accepts NULL */
/* Starts another stream of the same kind. */
void gunzip_again(struct gunzip *z);
/* Moves both pointers. */
enum gunzip_state gunzip_run(struct gunzip *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out);
/* Decompresses a whole stream and returns its size. -1: it is damaged, truncated, or does not fit. */
int64_t gunzip_whole(struct gunzip *z, const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out);

#endif
