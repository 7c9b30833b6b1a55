/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unzstd.h -- decompresses zstd frame by frame; like gunzip.h. The only user of libzstd.
 */
#ifndef UNZSTD_H
#define UNZSTD_H

#include "format/gunzip.h"

bool unzstd_here(void);           /* whether this build has libzstd */
const char *unzstd_version(void); /* NULL: this build has no libzstd */

struct unzstd;
/* Bytes of memory that decompressing this frame needs: mostly its window. */
size_t unzstd_needs(const uint8_t *p, size_t n);

struct unzstd *unzstd_new(void); /* NULL: no memory, or no libzstd */
void unzstd_free(struct unzstd *z);
void unzstd_again(struct unzstd *z);
/* GUNZIP_END: a frame ended. */
enum gunzip_state unzstd_run(struct unzstd *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out);

#endif
