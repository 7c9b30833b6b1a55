/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decompress.c -- decompresses with the library that a stream needs.
 */
#include "format/decompress.h"

#include <string.h>

enum stream_form stream_form_of(const uint8_t *first, size_t n)
{
    if (n >= 3 && memcmp(first, "\x1f\x8b\x08", 3) == 0)
        return STREAM_GZIP;
    return n >= 4 && memcmp(first, "\x28\xb5\x2f\xfd", 4) == 0 ? STREAM_ZSTD : STREAM_PLAIN;
}

const char *stream_form_name(enum stream_form form)
{
    static const char *const names[] = {"plain", "gzip", "zlib", "zstd"};
    return names[form];
}

const char *stream_missing(enum stream_form form)
{
    if (form == STREAM_PLAIN || (form == STREAM_ZSTD ? unzstd_here() : gunzip_here()))
        return NULL;
    return form == STREAM_ZSTD ? "libzstd" : "zlib";
}

bool decompress_open(struct decompressor *d, enum stream_form form)
{
    if (form == STREAM_ZSTD)
        d->unzstd = unzstd_new();
    else
        d->gunzip = gunzip_new(form == STREAM_GZIP ? GUNZIP_GZIP : GUNZIP_ZLIB);
    return decompress_is_open(d);
}

bool decompress_is_open(const struct decompressor *d)
{
    return d->gunzip || d->unzstd;
}

void decompress_close(struct decompressor *d)
{
    gunzip_free(d->gunzip);
    unzstd_free(d->unzstd);
    *d = (struct decompressor){0};
}

void decompress_again(struct decompressor *d)
{
    if (d->unzstd)
        unzstd_again(d->unzstd);
    else
        gunzip_again(d->gunzip);
}

enum gunzip_state decompress_run(struct decompressor *d, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out)
{
    return d->unzstd ? unzstd_run(d->unzstd, in, n_in, out, n_out) : gunzip_run(d->gunzip, in, n_in, out, n_out);
}

size_t decompress_needs(enum stream_form form, const uint8_t *p, size_t n)
{
    return form == STREAM_ZSTD ? unzstd_needs(p, n) : (size_t)GUNZIP_BYTES;
}
