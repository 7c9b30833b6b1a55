/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_turbo_inner.h -- what jpeg_turbo.c and jpeg_turbo_write.c share. They include <jpeglib.h> before it.
 */
#ifndef JPEG_TURBO_INNER_H
#define JPEG_TURBO_INNER_H

#include <setjmp.h>

#include "decode/jpeg_turbo.h"

/* One thread's; all of it belongs to one image. */
struct jpeg_turbo {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    struct jpeg_source_mgr src;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    bool at_end; /* ran out of bytes */
    bool too_many_scans;
    bool rows_done;
    bool markers; /* are kept */
};

void jpeg_turbo_begin(struct jpeg_turbo *j, const struct image_job *job);
/* After jpeg_turbo_begin and setjmp(j->jump): all coefficients, or NULL if some are missing or damaged. */
jvirt_barray_ptr *jpeg_turbo_coefficients(struct jpeg_turbo *j, const struct image_job *job);
/* A hook that prints nothing. */
void jpeg_turbo_no_message(j_common_ptr c);

#endif
