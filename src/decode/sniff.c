/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.c -- a table of first bytes.
 */
#include "decode/sniff.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

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

/* word is in lower case. */
static bool starts(const uint8_t *p, size_t n, const char *word)
{
    const size_t len = strlen(word);
    if (n < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (text_lower((char)p[i]) != word[i])
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

/* ------------------------------------------------------------------ words */

enum { SIGNATURE = 8 };

static const struct {
    const char *name;
    size_t len, least; /* a file with at least so many right bytes, including the second, is taken for a damaged one */
    uint8_t bytes[SIGNATURE];
} signatures[] = {
    {"PNG", 8, 5, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}},
    {"JPEG", 3, 2, {0xff, 0xd8, 0xff}},
    {"WebP", 4, 4, {'R', 'I', 'F', 'F'}},
};
enum { N_SIGNATURES = sizeof signatures / sizeof signatures[0] };

/* " ff d8" */
static const char *hex(char buf[3 * SIGNATURE + 1], const uint8_t *p, size_t n)
{
    buf[0] = 0;
    for (size_t i = 0; i < n && i < SIGNATURE; i++)
        snprintf(buf + 3 * i, 4, " %02x", p[i]);
    return buf;
}

static size_t equal_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
    size_t equal = 0;
    for (size_t i = 0; i < n; i++)
        equal += a[i] == b[i];
    return equal;
}

static void damaged(int i, const uint8_t *bytes, const char *more, char *words)
{
    char is[3 * SIGNATURE + 1], right[3 * SIGNATURE + 1];
    const size_t n = signatures[i].len;
    snprintf(words, SNIFF_WORDS, "damaged %s: its first bytes are%s, not%s%s", signatures[i].name, hex(is, bytes, n),
             hex(right, signatures[i].bytes, n), more);
}

static bool riff_words(const uint8_t *bytes, size_t n, char *words)
{
    enum { WEBP_SIGNATURE = 12, WEBP = 2 };
    const bool riff = n >= 4 && memcmp(bytes, "RIFF", 4) == 0;
    const bool webp = n >= WEBP_SIGNATURE && memcmp(bytes + 8, "WEBP", 4) == 0;
    if (riff && n < WEBP_SIGNATURE)
        snprintf(words, SNIFF_WORDS, "the file ends after %zu bytes, inside the signature of a WebP", n);
    else if (riff)
        snprintf(words, SNIFF_WORDS, "%s",
                 webp ? "damaged WebP: its first chunk is neither VP8, VP8L nor VP8X"
                      : "is a RIFF file, but not a WebP image");
    else if (webp)
        damaged(WEBP, bytes, "", words);
    return riff || webp;
}

/* A signature that is cut off, or with some wrong bytes. */
static bool signature_words(const uint8_t *bytes, size_t n, char *words)
{
    for (int i = 0; i < N_SIGNATURES; i++) {
        const uint8_t *right = signatures[i].bytes;
        const size_t len = signatures[i].len;
        if (n >= 2 && n < len && memcmp(bytes, right, n) == 0) {
            snprintf(words, SNIFF_WORDS, "the file ends after %zu bytes, inside the signature of a %s", n,
                     signatures[i].name);
            return true;
        }
        const bool text_mode = i == 0 && n >= len && memcmp(bytes, "\x89PNG\n\x1a\n", 7) == 0;
        const bool near = n >= len && bytes[1] == right[1] && equal_bytes(bytes, right, len) >= signatures[i].least;
        if (near || text_mode) {
            damaged(i, bytes, text_mode ? "; line endings were changed, as by a transfer in text mode" : "", words);
            return true;
        }
    }
    return false;
}

void sniff_words(const struct sniffed *s, const uint8_t *bytes, size_t n, char words[SNIFF_WORDS])
{
    char start[3 * SIGNATURE + 1];
    if (s->is_text)
        snprintf(words, SNIFF_WORDS, "is %s, not an image", s->name);
    else if (s->name && !s->format)
        snprintf(words, SNIFF_WORDS, "its format is %s, not JPEG, PNG or WebP", s->name);
    else if (!riff_words(bytes, n, words) && !signature_words(bytes, n, words))
        snprintf(words, SNIFF_WORDS, "is not a JPEG, PNG or WebP image: it starts with%s", hex(start, bytes, n));
}
