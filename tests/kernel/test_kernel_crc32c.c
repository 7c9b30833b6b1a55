/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kernel_crc32c.c -- CRC-32C: compares plain C with the definition, bit by bit, and the CPU's instruction with
 * both.
 *
 *     STOKER_SEED=17 test_kernel_crc32c   repeats a run with the same data
 *     test_kernel_crc32c --bench          GB/s
 */
#include "base/crc32c.h"

#include "base/cpu.h"
#include "base/rng.h"
#include "test.h"

static struct rng rng;
static uint64_t seed;

static uint32_t defined(const uint8_t *p, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    return ~crc;
}

/* RFC 3720, B.4. */
static void known(void)
{
    uint8_t zeros[32] = {0}, ones[32], up[32];
    memset(ones, 255, sizeof ones);
    for (int i = 0; i < 32; i++)
        up[i] = (uint8_t)i;
    for (stk_cpu cpu = STK_CPU_DEFAULT; cpu <= STK_CPU_C; cpu++) {
        const struct crc32c *crc = crc32c_choose(cpu);
        CHECK_EQ(crc->of(zeros, 32), 0x8a9136aa);
        CHECK_EQ(crc->of(ones, 32), 0x62a8ab43);
        CHECK_EQ(crc->of(up, 32), 0x46dd794e);
        CHECK_EQ(crc->of((const uint8_t *)"123456789", 9), 0xe3069283);
        CHECK_EQ(crc32c_masked(crc, zeros, 8), 0x07980329); /* before an empty TFRecord */
    }
}

static void every_size(void)
{
    const struct crc32c *c = crc32c_choose(STK_CPU_C), *own = crc32c_choose(STK_CPU_DEFAULT);
    if (c == own)
        printf("no instruction for it here\n");
    for (size_t n = 0; n < 10000; n += n < 1700 ? 1 : 61) {
        const size_t shift =
            1 + n % 8; /* any alignment; the memory ends with the data, so that the sanitizer reports reads past it */
        uint8_t *all = malloc(n + shift), *p = all + shift;
        for (size_t i = 0; i < n; i++)
            p[i] = (uint8_t)rng_u32(&rng);
        const uint32_t want = defined(p, n);
        if (c->of(p, n) != want || own->of(p, n) != want)
            printf("seed %" PRIu64 ": %zu bytes\n", seed, n);
        CHECK_EQ(c->of(p, n), want);
        CHECK_EQ(own->of(p, n), want);
        free(all);
    }
}

static void bench(const char *name, const struct crc32c *crc, size_t n)
{
    uint8_t *p = calloc(1, n);
    const uint64_t began = now_ns();
    uint64_t bytes = 0;
    uint32_t sum = 0;
    while (now_ns() - began < 300000000)
        for (int i = 0; i < 16; i++, bytes += n)
            sum ^= crc->of(p, n);
    printf("%-6s %8zu bytes: %6.2f GB/s (%08x)\n", name, n, (double)bytes / (double)(now_ns() - began), sum);
    free(p);
}

static int bench_all(void)
{
    static const size_t sizes[] = {8, 64, 1024, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bench("c", crc32c_choose(STK_CPU_C), sizes[i]);
        bench("own", crc32c_choose(STK_CPU_DEFAULT), sizes[i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *given = getenv("STOKER_SEED");
    seed = given ? strtoull(given, NULL, 10) : now_ns() % 1000000;
    rng_init(&rng, &(struct draw){.seed = seed}, "test_kernel_crc32c", 0);
    if (argc > 1 && strcmp(argv[1], "--bench") == 0)
        return bench_all();
    printf("seed %" PRIu64 "\n", seed);
    TESTS(T(known), T(every_size))
}
