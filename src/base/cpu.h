/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.h -- CPUs, memory and instruction sets that this process may use; the clock.
 */
#ifndef CPU_H
#define CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

struct machine {
    int cpus_online, cpus_affinity;
    double cpus_quota;                  /* CPUs the cgroup grants; 0: no quota */
    int local_ranks;                    /* processes that a launcher started on this machine; 0: no launcher */
    int64_t memory_total, memory_limit; /* of the machine; of the cgroup (0: no limit) */
    int64_t memory_available;           /* free, or used only by the page cache; in the cgroup, if that has less */
    bool avx2, avx512;                  /* avx2: with FMA, F16C and PCLMUL; avx512: F, BW, DQ, VL and VNNI */
};

void machine_look(struct machine *m);
/* For tests: reads /proc and /sys below another folder. */
void machine_look_under(struct machine *m, const char *root);
/* Default number of threads, by affinity and quota, divided by the ranks on this machine; at least 1. */
int machine_threads(const struct machine *m);
/* Default memory of a loader: a quarter of what is available, divided by the ranks on this machine. */
int64_t machine_memory(const struct machine *m);
/* The best instruction set of this CPU, or the one asked for. STK_EUSAGE: the CPU lacks it. */
int cpu_choose(stk_cpu asked, stk_cpu *out, stk_error *e);
const char *cpu_name(stk_cpu c);
/* VBMI, VBMI2 and BMI2. Not every CPU with AVX-512 has them. */
bool cpu_has_vbmi(void);
/* The CRC-32C instruction (SSE4.2) and carry-less multiplication. */
bool cpu_has_crc32c(void);
/* AVX-512 with 64-bit multiplication. */
bool cpu_has_avx512dq(void);

/* Prefetches the first bytes of memory that is read soon. */
static inline void cpu_near(const void *p, size_t n)
{
    enum { CPU_LINE = 64, CPU_NEAR = 2048 };
    for (size_t i = 0; i < n && i < CPU_NEAR; i += CPU_LINE)
        __builtin_prefetch((const char *)p + i);
}

/* Monotonic nanoseconds. */
uint64_t now_ns(void);

#endif
