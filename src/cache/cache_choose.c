/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_choose.c -- chooses what to keep when the caller leaves it to us.
 *
 * Pixels are fastest if all of them fit: nothing has to be decoded any more. Coefficients of JPEGs take a third of the
 * room, and help if a good part of them fits. Files help only if reading is slow, on file systems of other machines;
 * for a local disk the page cache does the same. Rows that need no decoding are kept if all of them fit.
 */
#include <stdio.h>
#include <sys/vfs.h>

#include "cache/cache.h"

static const double GIB = 1 << 30, COEFFICIENTS = 1.5; /* their size relative to the file's */

/* Whether a path is on another machine, by the type of its file system. */
static bool is_remote(const char *path)
{
    static const unsigned long kinds[] = {
        0x6969 /* NFS */,        0xff534d42 /* CIFS */, 0xfe534d42 /* SMB2 */, 0x65735546 /* FUSE */,
        0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */, 0x00c36400 /* Ceph */, 0x01021997 /* 9P */};
    struct statfs s;
    if (statfs(path, &s) != 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if ((unsigned long)s.f_type == kinds[i])
            return true;
    return false;
}

static stk_cache choose_images(const struct cache_facts *f, double room, char *words, size_t n)
{
    const double pixels = f->pixel_bytes * (double)f->samples;
    const double coefficients = COEFFICIENTS * f->file_bytes * (double)f->samples;
    if (f->looked_at > 0 && pixels <= room && !f->drafted) {
        snprintf(words, n, " (chosen: the pixels of all images take about %.2f GiB, and there is room for %.2f GiB)",
                 pixels / GIB, room / GIB);
        return STK_CACHE_PIXELS;
    }
    if (2 * f->jpegs > f->looked_at && coefficients <= 4 * room) {
        snprintf(words, n,
                 " (chosen: all pixels would take about %.2f GiB, coefficients %.2f GiB; there is room for %.2f GiB)",
                 pixels / GIB, coefficients / GIB, room / GIB);
        return STK_CACHE_DCT;
    }
    if (is_remote(f->place)) {
        snprintf(words, n, " (chosen: the files are on another machine)");
        return STK_CACHE_BYTES;
    }
    snprintf(words, n, " (chosen: all pixels would take about %.2f GiB, and there is room for %.2f GiB)", pixels / GIB,
             room / GIB);
    return STK_CACHE_NONE;
}

/* There is nothing to decode, so every kind of cache keeps the rows unchanged. */
static stk_cache choose_rows(const struct cache_facts *f, double room, char *words, size_t n)
{
    const bool asked = f->asked != STK_CACHE_AUTO;
    const double all = (double)f->row_bytes * (double)f->samples;
    const char *why = NULL;
    if (f->row_bytes == 0)
        why = "samples without an image are kept only if all have the same length";
    else if (f->in_memory)
        why = "the samples are already in memory";
    else if (!asked && !f->place)
        why = "chosen: the samples come from the caller";
    if (why) {
        snprintf(words, n, " (%s)", why);
        return STK_CACHE_NONE;
    }
    snprintf(words, n, " (rows as the source returns them: all take about %.2f GiB, and there is room for %.2f GiB)",
             all / GIB, room / GIB);
    return asked || all <= room ? STK_CACHE_BYTES : STK_CACHE_NONE;
}

stk_cache cache_choose(const struct cache_facts *f, int64_t room, char *words, size_t n)
{
    words[0] = 0;
    if (f->asked == STK_CACHE_NONE)
        return f->asked;
    if (f->rows)
        return choose_rows(f, (double)room, words, n);
    if (f->asked == STK_CACHE_PIXELS && f->drafted) {
        snprintf(words, n, " (with fidelity=draft every new crop is decoded again; pixels are not kept)");
        return STK_CACHE_NONE;
    }
    if (f->asked != STK_CACHE_AUTO)
        return f->asked;
    if (!f->place) {
        snprintf(words, n, " (chosen: the samples come from the caller)");
        return STK_CACHE_NONE;
    }
    return choose_images(f, (double)room, words, n);
}
