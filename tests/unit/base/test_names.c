/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_names.c -- distinct byte strings, and which files count as images.
 * Covers names.c and image_file.c.
 */
#include "base/names.h"

#include "base/image_file.h"
#include "test.h"

static void numbers_stay(void)
{
    struct names s = {0};
    uint32_t i;
    for (int round = 0; round < 2; round++)
        for (uint32_t k = 0; k < 5000; k++) {
            char text[32];
            const int n = snprintf(text, sizeof text, "name %u", k * 7919u);
            CHECK_EQ(names_add(&s, text, (size_t)n, &i), round == 0);
            CHECK_EQ(i, k);
        }
    CHECK_EQ(s.n, 5000);
    CHECK_STR(names_at(&s, 3), "name 23757");
    CHECK_EQ(names_length(&s, 3), 10);
    CHECK(names_find(&s, "name 0", 6, &i) && i == 0);
    CHECK(!names_find(&s, "name 1", 6, &i));
    names_done(&s);
    names_done(&s);
    CHECK(!names_find(&s, "name 0", 6, &i));
}

static void any_bytes(void)
{
    struct names s = {0};
    uint32_t i;
    CHECK_EQ(names_add(&s, "a\0b", 3, &i), 1);
    CHECK_EQ(names_add(&s, "a\0c", 3, &i), 1);
    CHECK_EQ(names_add(&s, "", 0, &i), 1);
    CHECK_EQ(names_add(&s, "", 0, &i), 0);
    CHECK_EQ(i, 2);
    CHECK_EQ(names_add(&s, "a\0b", 3, &i), 0);
    CHECK_EQ(i, 0);
    names_done(&s);
}

static void byte_order(void)
{
    static const char *const words[] = {"b", "a", "\xff", "a-b", "a", "", "B", "ab"};
    static const char *const sorted[] = {"", "B", "a", "a-b", "ab", "b", "\xff"};
    struct names s = {0};
    uint32_t i;
    for (int k = 0; k < 8; k++)
        names_add(&s, words[k], strlen(words[k]), &i);
    uint32_t *order = names_sorted(&s);
    CHECK_EQ(s.n, 7);
    for (uint32_t k = 0; k < 7; k++)
        CHECK_STR(names_at(&s, order[k]), sorted[k]);
    free(order);
    names_done(&s);
}

static const char *nearest(const struct names *s, const char *word)
{
    struct nearest n = {.word = word};
    names_nearest(s, &n);
    return n.found;
}

static void what_was_meant(void)
{
    static const char *const words[] = {"goldfish", "tench", "great_white_shark"};
    struct names s = {0};
    uint32_t i;
    for (int k = 0; k < 3; k++)
        names_add(&s, words[k], strlen(words[k]), &i);
    CHECK_STR(nearest(&s, "Goldfisch"), "goldfish");
    CHECK_STR(nearest(&s, "tenchh"), "tench");
    CHECK(nearest(&s, "zebra") == NULL);
    char longer[200];
    memset(longer, 'x', sizeof longer);
    longer[199] = 0;
    CHECK(nearest(&s, longer) == NULL);
    names_done(&s);
}

static void suffixes(void)
{
    static const char *const yes[] = {"a.jpg", "a.JPEG", "a.b.Png", "x.webp", "x.TIFF", "x.tif",
                                      ".jpg",  "a.jpe",  "a.jfif",  "a.bmp",  "a.ppm",  "a.pgm"};
    static const char *const no[] = {"a", "jpg", "a.jpg.txt", "a.gif", "a.jpgx", "a.jp", "", ".", "a.", "a.jpegg"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        CHECK(image_file_suffix(yes[i], strlen(yes[i])));
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        CHECK(!image_file_suffix(no[i], strlen(no[i])));
}

static void first_bytes(void)
{
    CHECK(image_file_magic((const uint8_t *)"\xff\xd8\xff\xe0", 4));
    CHECK(image_file_magic((const uint8_t *)"\x89PNG\r\n\x1a\n", 8));
    CHECK(image_file_magic((const uint8_t *)"RIFF1234WEBPVP8 ", 16));
    CHECK(!image_file_magic((const uint8_t *)"RIFF1234WAVEfmt ", 16));
    CHECK(!image_file_magic((const uint8_t *)"\xff\xd8", 2));
    CHECK(!image_file_magic((const uint8_t *)"", 0));
}

static void junk(void)
{
    CHECK(image_file_junk(".DS_Store"));
    CHECK(image_file_junk(".ipynb_checkpoints"));
    CHECK(image_file_junk("Thumbs.db"));
    CHECK(image_file_junk("__MACOSX"));
    CHECK(image_file_junk("Desktop.ini"));
    CHECK(image_file_junk("System Volume Information"));
    CHECK(!image_file_junk("thumbs.jpg"));
    CHECK(!image_file_junk("_cat"));
    CHECK(!image_file_junk("dog"));
}

int main(int argc, char **argv)
{
    TESTS(T(numbers_stay), T(any_bytes), T(byte_order), T(what_was_meant), T(suffixes), T(first_bytes), T(junk))
}
