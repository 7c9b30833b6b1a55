/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gunzip.h -- unpacks what zlib has packed: gzip files, zlib streams, bare deflate. The one user of zlib.
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
    GUNZIP_MORE, /* all input was taken, or all room was filled */
    GUNZIP_END,  /* the stream has ended, and its checksum is right; what follows was not taken */
    GUNZIP_BAD,  /* it is damaged */
    GUNZIP_NOMEM
};

enum { GUNZIP_BYTES = 64 << 10 }; /* about what one takes */

bool gunzip_here(void);           /* whether this build has zlib */
const char *gunzip_version(void); /* NULL: it has not */

struct gunzip;
struct gunzip *gunzip_new(enum gunzip_kind kind);
void gunzip_free(struct gunzip *z); /* also NULL */
/* Another stream of the same kind. */
void gunzip_again(struct gunzip *z);
/* Moves both pointers on. */
enum gunzip_state gunzip_run(struct gunzip *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out);
/* A whole stream into out, from the start on; how many bytes it had, -1 when it is damaged, cut, or does not fit. */
int64_t gunzip_whole(struct gunzip *z, const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out);

#endif
