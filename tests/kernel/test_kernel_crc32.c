/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kernel_crc32.c -- CRC-32: compares plain C with the definition, bit by bit, and every instruction set with both.
 *
 *     STOKER_SEED=17 test_kernel_crc32   repeats a run with the same data
 *     test_kernel_crc32 --bench          GB/s
 */
#include "base/crc32.h"
#include "twins.h"

static uint32_t defined(const uint8_t *p, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~crc;
}

static void known(void)
{
    for (int s = 0; s < n_sets; s++) {
        const struct crc32 *crc = crc32_choose(sets[s]);
        CHECK_EQ(crc->of((const uint8_t *)"", 0), 0);
        CHECK_EQ(crc->of((const uint8_t *)"123456789", 9), 0xcbf43926);
        CHECK_EQ(crc->of((const uint8_t *)"\0\0\0\rIHDR" + 4, 4), 0xa8a1ae0a);
    }
}

/* All alignments. The memory ends with the data, so that the sanitizer reports reads past it. */
static void one_size(size_t n, size_t shift)
{
    uint8_t *all = malloc(n + shift), *p = all + shift;
    fill(p, n);
    const uint32_t want = defined(p, n);
    for (int s = 0; s < n_sets; s++) {
        const uint32_t got = crc32_choose(sets[s])->of(p, n);
        if (got != want)
            printf("seed %" PRIu64 ": %zu bytes on %s\n", seed, n, cpu_name(sets[s]));
        CHECK_EQ(got, want);
    }
    free(all);
}

static void every_size(void)
{
    for (size_t n = 0; n < 1100; n++)
        for (size_t shift = 1; shift <= 64; shift += n < 300 ? 1 : 7)
            one_size(n, shift);
    for (int i = 0; i < 300; i++)
        one_size((size_t)below(100000), 1 + (size_t)below(64));
}

/* The checksum does not depend on where plain C continues it. */
static void in_pieces(void)
{
    uint8_t p[5000];
    fill(p, sizeof p);
    const uint32_t want = defined(p, sizeof p);
    for (int i = 0; i < 1000; i++) {
        uint32_t crc = UINT32_MAX;
        for (size_t at = 0, n; at < sizeof p; at += n) {
            n = 1 + (size_t)below(i + 1);
            n = n < sizeof p - at ? n : sizeof p - at;
            crc = crc32_add(crc, p + at, n);
        }
        CHECK_EQ(~crc, want);
    }
}

static int bench_all(void)
{
    static const size_t sizes[] = {8, 64, 1024, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int s = 0; s < n_sets; s++) {
            const size_t n = sizes[i];
            const struct crc32 *crc = crc32_choose(sets[s]);
            uint8_t *p = calloc(1, n);
            uint64_t bytes = 0, began = now_ns();
            uint32_t sum = 0;
            while (now_ns() - began < 300000000)
                for (int k = 0; k < 16; k++, bytes += n)
                    sum ^= crc->of(p, n);
            printf("%-6s %8zu bytes: %6.2f GB/s (%08x)\n", cpu_name(sets[s]), n,
                   (double)bytes / (double)(now_ns() - began), sum);
            free(p);
        }
    return 0;
}

int main(int argc, char **argv)
{
    twins_begin("test_kernel_crc32");
    if (argc > 1 && strcmp(argv[1], "--bench") == 0)
        return bench_all();
    twins_say();
    TESTS(T(known), T(every_size), T(in_pieces))
}
