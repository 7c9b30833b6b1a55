/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.c -- a table of first bytes.
 */
#include "decode/sniff.h"

#include <string.h>

struct magic {
    const char *name;
    uint8_t at, len;
    char bytes[9];
    stk_format format;
};

static const struct magic magics[] = {
    {"JPEG", 0, 3, "\xff\xd8\xff", STK_JPEG},
    {"PNG", 0, 8, "\x89PNG\r\n\x1a\n", STK_PNG},
    {"WebP", 8, 4, "WEBP", STK_WEBP},
    {"GIF", 0, 4, "GIF8", STK_FORMAT_UNKNOWN},
    {"BMP", 0, 2, "BM", STK_FORMAT_UNKNOWN},
    {"TIFF", 0, 4, "II*\0", STK_FORMAT_UNKNOWN},
    {"TIFF", 0, 4, "MM\0*", STK_FORMAT_UNKNOWN},
    {"AVIF", 4, 8, "ftypavif", STK_FORMAT_UNKNOWN},
    {"AVIF", 4, 8, "ftypavis", STK_FORMAT_UNKNOWN},
    {"HEIC", 4, 8, "ftypheic", STK_FORMAT_UNKNOWN},
    {"HEIC", 4, 8, "ftypheix", STK_FORMAT_UNKNOWN},
    {"HEIF", 4, 8, "ftypmif1", STK_FORMAT_UNKNOWN},
    {"MP4 video", 4, 4, "ftyp", STK_FORMAT_UNKNOWN},
    {"JPEG XL", 0, 2, "\xff\x0a", STK_FORMAT_UNKNOWN},
    {"JPEG XL", 4, 8, "JXL \r\n\x87\n", STK_FORMAT_UNKNOWN},
    {"JPEG 2000", 4, 8, "jP  \r\n\x87\n", STK_FORMAT_UNKNOWN},
    {"JPEG 2000", 0, 4, "\xff\x4f\xff\x51", STK_FORMAT_UNKNOWN},
    {"ICO", 0, 4, "\0\0\1\0", STK_FORMAT_UNKNOWN},
    {"PSD", 0, 4, "8BPS", STK_FORMAT_UNKNOWN},
    {"OpenEXR", 0, 4, "\x76\x2f\x31\x01", STK_FORMAT_UNKNOWN},
    {"Radiance HDR", 0, 8, "#?RADIAN", STK_FORMAT_UNKNOWN},
    {"QOI", 0, 4, "qoif", STK_FORMAT_UNKNOWN},
    {"DDS", 0, 4, "DDS ", STK_FORMAT_UNKNOWN},
    {"PDF", 0, 5, "%PDF-", STK_FORMAT_UNKNOWN},
    {"gzip", 0, 2, "\x1f\x8b", STK_FORMAT_UNKNOWN},
    {"Zstandard", 0, 4, "\x28\xb5\x2f\xfd", STK_FORMAT_UNKNOWN},
    {"bzip2", 0, 3, "BZh", STK_FORMAT_UNKNOWN},
    {"xz", 0, 6,
     "\xfd"
     "7zXZ\0",
     STK_FORMAT_UNKNOWN},
    {"ZIP", 0, 4, "PK\3\4", STK_FORMAT_UNKNOWN},
    {"NumPy", 0, 6, "\x93NUMPY", STK_FORMAT_UNKNOWN},
    {"HDF5", 0, 8, "\x89HDF\r\n\x1a\n", STK_FORMAT_UNKNOWN},
    {"Python pickle", 0, 2, "\x80\4", STK_FORMAT_UNKNOWN},
    {"PPM", 0, 3, "P6\n", STK_FORMAT_UNKNOWN},
    {"PGM", 0, 3, "P5\n", STK_FORMAT_UNKNOWN},
};

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* word is in small letters. */
static bool starts(const uint8_t *p, size_t n, const char *word)
{
    const size_t len = strlen(word);
    if (n < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (lower(p[i]) != word[i])
            return false;
    return true;
}

static struct sniffed text(const uint8_t *p, size_t n)
{
    static const struct {
        const char *start, *name;
    } words[] = {{"<!doctype html", "HTML"},
                 {"<html", "HTML"},
                 {"<head", "HTML"},
                 {"<svg", "SVG"},
                 {"<?xml", "XML"},
                 {"version https://git-lfs", "a Git LFS pointer"},
                 {"{", "JSON"}};
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
        p += 3;
        n -= 3;
    }
    while (n && strchr(" \t\r\n", p[0]) && p[0]) {
        p++;
        n--;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (starts(p, n, words[i].start))
            return (struct sniffed){.name = words[i].name, .is_text = true};
    return (struct sniffed){.name = NULL};
}

struct sniffed sniff(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        const struct magic *m = &magics[i];
        if (n >= (size_t)m->at + m->len && memcmp(bytes + m->at, m->bytes, m->len) == 0)
            return (struct sniffed){.name = m->name, .format = m->format};
    }
    return text(bytes, n);
}
