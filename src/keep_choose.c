/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep_choose.c -- which cache pays, for those who leave it to us.
 *
 * Pixels are the fastest where all of them fit: nothing is decoded any more. Packs of JPEG pictures take a third of the
 * room, and pay where a good part of them fits. Bytes help only where reading is what is slow, on file systems of
 * other machines; from a disk of this one the system's own cache does the same. A few files are looked at to tell
 * how large everything would be. Rows that need no decoding are kept where all of them fit.
 */
#include <limits.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/size.h"
#include "loader.h"

enum { LOOKED_AT = 32, FIRST_BYTES = 64 << 10 };

/* What a sample comes to, on average. */
struct average {
    double file, pixels; /* bytes */
    int n, jpeg;         /* how many were looked at; of them JPEG */
};

/* By its first bytes; a pack of coefficients, whose checksum is of all of it, has none before it is read. */
static bool find_head(const struct stk_loader *l, struct reading *r, int64_t i, struct head *h)
{
    const struct decode_limits limits = options_limits(&l->options);
    if (source_peek(l->source, r, i, FIRST_BYTES, NULL) != STK_OK)
        return false;
    return decode_head(r->bytes, r->n_bytes, &limits, h, NULL) == STK_OK ||
           (source_read(l->source, r, i, NULL) == STK_OK &&
            decode_head(r->bytes, r->n_bytes, &limits, h, NULL) == STK_OK);
}

static void add_sample(const struct stk_loader *l, struct reading *r, int64_t i, struct average *a)
{
    struct head h;
    struct job j;
    if (!find_head(l, r, i, &h) || plan_draw_head(l->plan, head_width(&h), head_height(&h), &j, NULL) != STK_OK)
        return;
    a->pixels += (double)j.w * j.h * j.channels;
    a->file += (double)source_bytes(l->source, i);
    a->jpeg += h.format == STK_JPEG && !h.packed;
    a->n++;
}

static struct average look(const struct stk_loader *l)
{
    struct average a = {0};
    struct reading r = {0};
    const int64_t n = l->order.samples, step = n / LOOKED_AT + 1;
    for (int64_t i = 0; i < n; i += step)
        add_sample(l, &r, l->subset ? l->subset[i] : i, &a);
    reading_done(&r);
    if (a.n > 0) {
        a.pixels /= a.n;
        a.file /= a.n;
    }
    return a;
}

/* Whether a path lies on another machine, by the kind of its file system. */
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

static const double GIB = 1 << 30, PACK = 1.5; /* a pack's size in those of the file */

/* Pixels before an op that draws would be kept whole, where draft decodes a part, and smaller: other pixels in the end.
 */
static bool drafted(const struct stk_loader *l)
{
    return l->options.fidelity == STK_DRAFT && !plan_settled(l->plan);
}

static stk_cache choose(const struct stk_loader *l, double room, char *words, size_t n)
{
    const struct average a = look(l);
    const double pixels = a.pixels * (double)l->order.samples, packs = PACK * a.file * (double)l->order.samples;
    if (a.n > 0 && pixels <= room && !drafted(l)) {
        snprintf(words, n, " (chosen: all pixels take some %.2f GiB, and there is room for %.2f)", pixels / GIB,
                 room / GIB);
        return STK_CACHE_PIXELS;
    }
    if (2 * a.jpeg > a.n && packs <= 4 * room) {
        snprintf(words, n, " (chosen: all pixels would take some %.2f GiB, coefficients %.2f; there is room for %.2f)",
                 pixels / GIB, packs / GIB, room / GIB);
        return STK_CACHE_DCT;
    }
    if (is_remote(source_location(l->source))) {
        snprintf(words, n, " (chosen: the files lie on another machine)");
        return STK_CACHE_BYTES;
    }
    snprintf(words, n, " (chosen: all pixels would take some %.2f GiB, and there is room for %.2f)", pixels / GIB,
             room / GIB);
    return STK_CACHE_NONE;
}

/* Rows are kept as they are, whatever was asked for: there is nothing to decode. */
static stk_cache choose_rows(const struct stk_loader *l, double room, char *words, size_t n)
{
    const bool asked = l->options.cache != STK_CACHE_AUTO;
    const double all = (double)l->keep.row_bytes * (double)l->order.samples;
    const char *why = NULL;
    if (l->keep.row_bytes == 0)
        why = "samples without a picture are kept only where all have the same length";
    else if (!l->reads && !source_location(l->source))
        why = "the samples are in memory as they are";
    else if (!asked && !source_location(l->source))
        why = "chosen: the samples are the caller's own";
    if (why) {
        snprintf(words, n, " (%s)", why);
        return STK_CACHE_NONE;
    }
    snprintf(words, n, " (rows as the source has them: all take some %.2f GiB, and there is room for %.2f)", all / GIB,
             room / GIB);
    return asked || all <= room ? STK_CACHE_BYTES : STK_CACHE_NONE;
}

stk_cache keep_choose(const struct stk_loader *l, int64_t room, char *words, size_t n)
{
    const stk_cache asked = l->options.cache;
    words[0] = 0;
    if (asked == STK_CACHE_NONE)
        return asked;
    if (keep_is_rows(l))
        return choose_rows(l, (double)room, words, n);
    if (asked == STK_CACHE_PIXELS && drafted(l)) {
        snprintf(words, n, " (fidelity draft decodes anew what is drawn anew; pixels are not kept)");
        return STK_CACHE_NONE;
    }
    if (asked != STK_CACHE_AUTO)
        return asked;
    if (!source_location(l->source)) {
        snprintf(words, n, " (chosen: the samples are the caller's own)");
        return STK_CACHE_NONE;
    }
    return choose(l, (double)room, words, n);
}
