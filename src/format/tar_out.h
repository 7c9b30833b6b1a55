/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_out.h -- members of a tar: ustar, with a PAX header where a name or a size does not fit into that.
 */
#ifndef TAR_OUT_H
#define TAR_OUT_H

#include "base/buf.h"

enum { TAR_BLOCK = 512 };

/* All that stands before the bytes of a member, behind what out holds: same bytes for the same name and size. 0, or -1:
 * no memory. */
int tar_out_head(struct buf *out, const char *name, size_t name_bytes, uint64_t bytes);
/* How many zeros follow so many bytes. */
static inline size_t tar_out_padding(uint64_t bytes)
{
    return (size_t)(-bytes % TAR_BLOCK);
}

#endif
