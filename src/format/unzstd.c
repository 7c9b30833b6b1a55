/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unzstd.c -- decompresses with libzstd. The caller limits the window: see unzstd_needs().
 */
#include "format/unzstd.h"

#include "base/bytes.h"

/* Magic (4), flags, window?, dictionary (0, 1, 2, 4), content size (0, 1, 2, 4, 8). Without a window, the content is
 * the window. */
static uint64_t window_of(const uint8_t *p, size_t n)
{
    static const size_t dictionary[] = {0, 1, 2, 4}, sizes[] = {1, 2, 4, 8};
    if (n < 6 || le32(p) != UINT32_C(0xfd2fb528))
        return 0;
    if (!(p[4] & 32))
        return ((UINT64_C(8) + (p[5] & 7)) << (p[5] >> 3)) << 7;
    const size_t at = 5 + dictionary[p[4] & 3], bytes = sizes[p[4] >> 6];
    uint64_t size = bytes == 2 ? 256 : 0;
    for (size_t i = 0; i < bytes && at + bytes <= n; i++)
        size += (uint64_t)p[at + i] << 8 * i;
    return size;
}

size_t unzstd_needs(const uint8_t *p, size_t n)
{
    enum { BESIDE = 512 << 10 };
    const uint64_t window = window_of(p, n);
    return BESIDE + (window > SIZE_MAX / 4 ? SIZE_MAX / 4 : (size_t)window);
}

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
    if (z)
        ZSTD_DCtx_setParameter(z->stream, ZSTD_d_windowLogMax, ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
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
