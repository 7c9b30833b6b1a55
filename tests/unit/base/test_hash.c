/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "test.h"

static void is_stable(void)
{
    /* States and caches that exist contain these values, so they must never change. */
    CHECK_EQ(hash_bytes("", 0, 0), (int64_t)0xc581d34de309d8a3u);
    CHECK_EQ(hash_bytes("stoker", 6, 0), (int64_t)0x63dca80cc9248e03u);
    CHECK_EQ(hash_mix(1, 2), (int64_t)0xc8bf8b99d2096469u);
}

static void every_byte_counts(void)
{
    uint8_t bytes[100] = {0};
    for (size_t n = 1; n <= sizeof bytes; n++) {
        const uint64_t before = hash_bytes(bytes, n, 0);
        for (size_t i = 0; i < n; i++) {
            bytes[i] ^= 1;
            CHECK(hash_bytes(bytes, n, 0) != before);
            bytes[i] ^= 1;
        }
        CHECK(hash_bytes(bytes, n, 1) != before);
        CHECK(n == 1 || hash_bytes(bytes, n - 1, 0) != before);
    }
}

/* One bit of input changes half of the bits of the result. */
static void avalanches(void)
{
    int64_t flips = 0, cases = 0;
    uint8_t bytes[40];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    const uint64_t before = hash_bytes(bytes, sizeof bytes, 5);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        flips += __builtin_popcountll(before ^ hash_bytes(bytes, sizeof bytes, 5));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cases++;
    }
    CHECK(flips > 30 * cases && flips < 34 * cases);
}

static void mixing_has_an_order(void)
{
    CHECK(hash_mix(1, 2) != hash_mix(2, 1));
    CHECK(hash_mix(0, 0) != 0);
}

int main(int argc, char **argv)
{
    TESTS(T(is_stable), T(every_byte_counts), T(avalanches), T(mixing_has_an_order))
}
