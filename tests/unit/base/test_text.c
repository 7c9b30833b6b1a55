/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "test.h"

static bool is(const char *p, size_t n)
{
    return text_is((const uint8_t *)p, n);
}

static void texts(void)
{
    CHECK(is("", 0));
    CHECK(is("plain\r\n\ttext~", 13));
    CHECK(is("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9));
    CHECK(is("\xf4\x8f\xbf\xbf", 4)); /* the last character there is */
}

static void others(void)
{
    CHECK(!is("a\0b", 3));
    CHECK(!is("\x7f", 1));
    CHECK(!is("\x1b[0m", 4));
    CHECK(!is("\x80", 1));     /* begins in the middle */
    CHECK(!is("\xc0\xaf", 2)); /* longer than it need be */
    CHECK(!is("\xe0\x80\xaf", 3));
    CHECK(!is("\xf0\x80\x80\xaf", 4));
    CHECK(!is("\xed\xa0\x80", 3));     /* half of a pair */
    CHECK(!is("\xf4\x90\x80\x80", 4)); /* beyond the last one */
    CHECK(!is("\xff\xd8\xff\xe0", 4));
}

static void cut(void)
{
    static const char text[] = "\xe2\x82\xac";
    for (size_t n = 1; n < 3; n++)
        CHECK(!is(text, n));
}

static void put_within_its_room(void)
{
    char room[8] = "";
    struct text_out t = {.buf = room, .n = sizeof room};
    text_put(&t, "%d, ", 12);
    CHECK_STR(room, "12, ");
    text_put(&t, "%s", "34567");
    CHECK_STR(room, "12, 345");
    text_put(&t, "%s", "more");
    CHECK_STR(room, "12, 345");
    CHECK_EQ(t.used, 13);
    t = (struct text_out){.buf = room, .n = sizeof room};
    text_add(&t, "12, 3", 4);
    CHECK_STR(room, "12, ");
    text_add(&t, "34567", 5);
    text_add(&t, "more", 4);
    CHECK_STR(room, "12, 345");
    CHECK_EQ(t.used, 13);
}

int main(int argc, char **argv)
{
    TESTS(T(texts), T(others), T(cut), T(put_within_its_room))
}
