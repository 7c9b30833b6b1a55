/* SPDX-License-Identifier: Apache-2.0 */
/* test_image_file.c -- where an image ends, with anything after it. */
#include "base/image_file.h"
#include "test.h"

/* Whether the image ends after n bytes, however many follow, and does not end within fewer. */
static void ends(const char *bytes, size_t n)
{
    uint8_t p[256] = {0};
    memcpy(p, bytes, n);
    CHECK_EQ(image_file_end(p, sizeof p), n);
    for (size_t cut = 0; cut < n; cut++)
        CHECK_EQ(image_file_end(p, cut), 0);
}

static void of_every_format(void)
{
    /* An end inside a segment, a stuffed byte, a restart, a second scan. */
    static const char jpeg[] =
        "\xff\xd8\xff\xe1\0\6\xff\xd9xx\xff\xda\0\3z\1\2\xff\0\3\xff\xd0\4\xff\xff\xda\0\2zz\xff\xd9";
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\4IDATIENDcccc\0\0\0\0IENDcccc";
    static const char webp[] = "RIFF\x0c\0\0\0WEBPVP8 abcd";
    ends(jpeg, sizeof jpeg - 1);
    ends(png, sizeof png - 1);
    ends(webp, sizeof webp - 1);
    CHECK_EQ(image_file_end((const uint8_t *)"nothing of that kind", 20), 0);
}

int main(int argc, char **argv)
{
    TESTS(T(of_every_format))
}
