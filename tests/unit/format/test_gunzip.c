/* SPDX-License-Identifier: Apache-2.0 */
/* test_gunzip.c -- gzip, zlib and bare deflate: in pieces, as a whole, truncated at every byte, damaged. */
#include "format/gunzip.h"
#include "test.h"

/* "hello hello hello hello\n", as Python's zlib compresses it. */
static const uint8_t deflated[] = {0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0xb9, 0x00};
static const uint8_t text[] = "hello hello hello hello\n";
enum { TEXT = sizeof text - 1 };
static const uint8_t zlib_stream[] = {0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8,
                                      0x40, 0x27, 0xb9, 0x00, 0x70, 0xbe, 0x08, 0xbb};

static void whole(void)
{
    uint8_t out[64];
    struct gunzip *z = gunzip_new(GUNZIP_ZLIB);
    for (int again = 0; again < 2; again++) {
        CHECK_EQ(gunzip_whole(z, zlib_stream, sizeof zlib_stream, out, sizeof out), TEXT);
        CHECK(memcmp(out, text, TEXT) == 0);
    }
    CHECK_EQ(gunzip_whole(z, zlib_stream, sizeof zlib_stream, out, TEXT), TEXT);
    CHECK_EQ(gunzip_whole(z, zlib_stream, sizeof zlib_stream, out, TEXT - 1), -1);
    gunzip_free(z);
    z = gunzip_new(GUNZIP_DEFLATE);
    CHECK_EQ(gunzip_whole(z, deflated, sizeof deflated, out, sizeof out), TEXT);
    gunzip_free(z);
}

static void cut(void)
{
    uint8_t out[64];
    struct gunzip *z = gunzip_new(GUNZIP_ZLIB);
    for (size_t n = 0; n < sizeof zlib_stream; n++)
        CHECK_EQ(gunzip_whole(z, zlib_stream, n, out, sizeof out), -1);
    for (size_t at = 0; at < sizeof zlib_stream; at++) {
        uint8_t broken[sizeof zlib_stream];
        memcpy(broken, zlib_stream, sizeof broken);
        broken[at] ^= 0x10;
        const int64_t n = gunzip_whole(z, broken, sizeof broken, out, sizeof out);
        CHECK(n == -1 || at == 1); /* the header's second byte has room for a change of level */
    }
    gunzip_free(z);
}

static void in_pieces(void)
{
    uint8_t out[64], *to = out;
    const uint8_t *in = zlib_stream;
    struct gunzip *z = gunzip_new(GUNZIP_ZLIB);
    enum gunzip_state state = GUNZIP_MORE;
    size_t left = sizeof zlib_stream;
    while (state == GUNZIP_MORE && left > 0) {
        size_t one = 1, room = 3;
        left--;
        state = gunzip_run(z, &in, &one, &to, &room);
        while (state == GUNZIP_MORE && room == 0) {
            room = 3;
            state = gunzip_run(z, &in, &one, &to, &room);
        }
    }
    CHECK_EQ(state, GUNZIP_END);
    CHECK_EQ(to - out, TEXT);
    CHECK(memcmp(out, text, TEXT) == 0);
    gunzip_free(z);
    gunzip_free(NULL);
}

int main(int argc, char **argv)
{
    if (!gunzip_here()) {
        printf("skipped: there is no zlib in this build\n");
        return 77;
    }
    TESTS(T(whole), T(cut), T(in_pieces))
}
