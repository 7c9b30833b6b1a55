/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_file.c -- recognises files of images without decoding them.
 *
 * A suffix of up to five letters becomes one integer, so that a comparison takes a few instructions. Formats that
 * cannot be decoded count as images, too: so the indices of samples are the same as in ImageFolder, and such a file is
 * reported as a bad sample.
 */
#include "base/image_file.h"

#include <string.h>
#include <strings.h>

#include "base/bytes.h"

#define FOLD(a, b, c, d) ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24)

static bool known(uint64_t suffix)
{
    switch (suffix) {
    case FOLD('j', 'p', 'g', 0):
    case FOLD('j', 'p', 'e', 'g'):
    case FOLD('j', 'p', 'e', 0):
    case FOLD('j', 'f', 'i', 'f'):
    case FOLD('p', 'n', 'g', 0):
    case FOLD('w', 'e', 'b', 'p'):
    case FOLD('b', 'm', 'p', 0):
    case FOLD('p', 'p', 'm', 0):
    case FOLD('p', 'g', 'm', 0):
    case FOLD('t', 'i', 'f', 0):
    case FOLD('t', 'i', 'f', 'f'):
        return true;
    default:
        return false;
    }
}

bool image_file_suffix(const char *name, size_t n)
{
    uint64_t suffix = 0;
    for (int letters = 0; n > 0 && letters <= 4; letters++) {
        const uint8_t c = (uint8_t)name[--n];
        if (c == '.')
            return known(suffix);
        suffix = suffix << 8 | (c >= 'A' && c <= 'Z' ? c | 0x20u : c);
    }
    return false;
}

/* The usual suffix of JPEG for any of its suffixes. */
static const char *usual(const char *suffix)
{
    static const char *const jpeg[] = {"jpeg", "jpe", "jfif"};
    for (size_t i = 0; i < sizeof jpeg / sizeof jpeg[0]; i++)
        if (strcasecmp(suffix, jpeg[i]) == 0)
            return "jpg";
    return suffix;
}

bool image_file_same(const char *a, const char *b)
{
    return strcasecmp(usual(a), usual(b)) == 0;
}

bool image_file_magic(const uint8_t *p, size_t n)
{
    if (n >= 3 && memcmp(p, "\xff\xd8\xff", 3) == 0)
        return true;
    if (n >= 8 && (memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0 || memcmp(p, "\x89stkDCT1", 8) == 0))
        return true;
    return n >= 12 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WEBP", 4) == 0;
}

/* Segments of a JPEG have a length. Only the entropy-coded data after a scan header has none; it ends at the next
 * marker. */
static size_t jpeg_end(const uint8_t *p, size_t n)
{
    size_t at = 2;
    bool coded = false;
    while (at + 2 <= n) {
        if (coded || p[at] != 0xff) {
            const uint8_t *mark = memchr(p + at, 0xff, n - at - 1);
            if (!mark)
                return 0;
            at = (size_t)(mark - p);
        }
        const uint8_t marker = p[at + 1];
        if (marker == 0xff || marker == 0 || (marker >= 0xd0 && marker <= 0xd7)) {
            at += marker == 0xff ? 1 : 2;
            continue;
        }
        if (marker == 0xd9)
            return at + 2;
        if (at + 4 > n)
            return 0;
        at += 2 + (size_t)be16(p + at + 2);
        coded = marker == 0xda;
    }
    return 0;
}

static size_t png_end(const uint8_t *p, size_t n)
{
    for (size_t at = 8; at + 12 <= n; at += 12 + (size_t)be32(p + at))
        if (memcmp(p + at + 4, "IEND", 4) == 0)
            return at + 12;
    return 0;
}

size_t image_file_end(const uint8_t *p, size_t n)
{
    if (n < IMAGE_FILE_MAGIC || !image_file_magic(p, n))
        return 0;
    if (p[0] == 0xff)
        return jpeg_end(p, n);
    if (p[0] == 0x89)
        return p[1] == 'P' ? png_end(p, n) : 0;
    const size_t webp = 8 + (size_t)le32(p + 4);
    return webp <= n ? webp : 0;
}

bool image_file_junk(const char *name)
{
    static const char *const junk[] = {"thumbs.db", "ehthumbs.db",  "desktop.ini", "__macosx",
                                       "@eadir",    "$recycle.bin", "lost+found",  "System Volume Information"};
    if (name[0] == '.')
        return true;
    if (!strchr("tedTED_@$lLsS", name[0])) /* the usual case */
        return false;
    for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++)
        if (strcasecmp(name, junk[i]) == 0)
            return true;
    return false;
}
