/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decompress.c -- the table of unpackers.
 */
#include "format/decompress.h"

#include "format/unzstd.h"

static void *open_gzip(void)
{
    return gunzip_new(GUNZIP_GZIP);
}

static void *open_zlib(void)
{
    return gunzip_new(GUNZIP_ZLIB);
}

static void close_gunzip(void *z)
{
    gunzip_free(z);
}

static void again_gunzip(void *z)
{
    gunzip_again(z);
}

static enum gunzip_state run_gunzip(void *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out)
{
    return gunzip_run(z, in, n_in, out, n_out);
}

static size_t needs_gunzip(const uint8_t *p, size_t n)
{
    (void)p, (void)n;
    return GUNZIP_BYTES;
}

static void *open_zstd(void)
{
    return unzstd_new();
}

static void close_zstd(void *z)
{
    unzstd_free(z);
}

static void again_zstd(void *z)
{
    unzstd_again(z);
}

static enum gunzip_state run_zstd(void *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out)
{
    return unzstd_run(z, in, n_in, out, n_out);
}

static const struct decompressor unpackers[] = {
    [STREAM_GZIP] = {"gzip", "zlib", gunzip_here, open_gzip, close_gunzip, again_gunzip, needs_gunzip, run_gunzip},
    [STREAM_ZLIB] = {"zlib", "zlib", gunzip_here, open_zlib, close_gunzip, again_gunzip, needs_gunzip, run_gunzip},
    [STREAM_ZSTD] = {"zstd", "libzstd", unzstd_here, open_zstd, close_zstd, again_zstd, unzstd_needs, run_zstd},
};

const struct decompressor *decompress_by(enum stream_form form)
{
    return &unpackers[form];
}
