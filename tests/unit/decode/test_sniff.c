/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sniff.c -- the first bytes of files that are not images that Stoker decodes.
 */
#include "decode/sniff.h"

#include "test.h"

static void expect(const char *bytes, size_t n, const char *name, bool is_text)
{
    uint8_t exact[64]; /* so that a sanitizer reports reads past the end */
    memcpy(exact, bytes, n);
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, exact, n);
    const struct sniffed s = sniff(copy, n);
    CHECK_STR(s.name ? s.name : "", name);
    CHECK_EQ(s.is_text, is_text);
    free(copy);
}

#define EXPECT(bytes, name)      expect(bytes, sizeof bytes - 1, name, false)
#define EXPECT_TEXT(bytes, name) expect(bytes, sizeof bytes - 1, name, true)

static void images(void)
{
    EXPECT("GIF89a", "GIF");
    EXPECT("BM\x36\0", "BMP");
    EXPECT("II*\0\x08\0\0\0", "TIFF");
    EXPECT("MM\0*\0\0\0\x08", "TIFF");
    EXPECT("\0\0\0\x1c"
           "ftypavif",
           "AVIF");
    EXPECT("\0\0\0\x1c"
           "ftypheic",
           "HEIC");
    EXPECT("\0\0\0\x1c"
           "ftypisom",
           "MP4 video");
    EXPECT("\xff\x0a\x00", "JPEG XL");
    EXPECT("\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL");
    EXPECT("\xff\xd8\xff\xe0", "JPEG");
    EXPECT("\x89PNG\r\n\x1a\n", "PNG");
    EXPECT("RIFF\0\0\0\0WEBP", "WebP");
}

static void others(void)
{
    EXPECT("%PDF-1.4", "PDF");
    EXPECT("\x1f\x8b\x08", "gzip");
    EXPECT("PK\3\4", "ZIP");
    EXPECT("\x93NUMPY", "NumPy");
    EXPECT("\x89HDF\r\n\x1a\n", "HDF5");
    EXPECT("RIFF\0\0\0\0WAVE", "");
    EXPECT("hello", "");
    EXPECT("", "");
    EXPECT("\xff\xd8", "");
}

static void texts(void)
{
    EXPECT_TEXT("<!DOCTYPE html><html>", "HTML");
    EXPECT_TEXT(" \r\n\t<HTML>", "HTML");
    EXPECT_TEXT("\xef\xbb\xbf<html>", "HTML");
    EXPECT_TEXT("<?xml version=\"1.0\"?>", "XML");
    EXPECT_TEXT("<svg xmlns=", "SVG");
    EXPECT_TEXT("{\"error\": 404}", "JSON");
    EXPECT_TEXT("version https://git-lfs.github.com/spec/v1", "a Git LFS pointer");
}

int main(int argc, char **argv)
{
    TESTS(T(images), T(others), T(texts))
}
