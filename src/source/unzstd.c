/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unzstd.c -- unpacks through libzstd, which asks for no more than 128 MiB for a frame.
 */
#include "source/unzstd.h"

#ifdef HAVE_ZSTD

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

struct unzstd {
    ZSTD_DStream *stream;
};

bool unzstd_here(void)
{
    return true;
}

const char *unzstd_version(void)
{
    return ZSTD_versionString();
}

struct unzstd *unzstd_new(void)
{
    struct unzstd *z = calloc(1, sizeof *z);
    if (z && !(z->stream = ZSTD_createDStream())) {
        free(z);
        return NULL;
    }
    return z;
}

void unzstd_free(struct unzstd *z)
{
    if (z)
        ZSTD_freeDStream(z->stream);
    free(z);
}

void unzstd_again(struct unzstd *z)
{
    ZSTD_DCtx_reset(z->stream, ZSTD_reset_session_only);
}

enum gunzip_state unzstd_run(struct unzstd *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out)
{
    ZSTD_inBuffer from = {*in, *n_in, 0};
    ZSTD_outBuffer to = {*out, *n_out, 0};
    size_t left = 1, before;
    do {
        before = from.pos + to.pos;
        left = ZSTD_decompressStream(z->stream, &to, &from);
    } while (!ZSTD_isError(left) && left != 0 && to.pos < to.size && from.pos + to.pos > before);
    *in += from.pos;
    *n_in -= from.pos;
    *out += to.pos;
    *n_out -= to.pos;
    if (ZSTD_isError(left))
        return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? GUNZIP_NOMEM : GUNZIP_BAD;
    return left == 0 ? GUNZIP_END : GUNZIP_MORE;
}

#else

bool unzstd_here(void)
{
    return false;
}

const char *unzstd_version(void)
{
    return NULL;
}

struct unzstd *unzstd_new(void)
{
    return NULL;
}

void unzstd_free(struct unzstd *z)
{
    (void)z;
}

void unzstd_again(struct unzstd *z)
{
    (void)z;
}

enum gunzip_state unzstd_run(struct unzstd *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out)
{
    (void)z, (void)in, (void)n_in, (void)out, (void)n_out;
    return GUNZIP_BAD;
}

#endif
