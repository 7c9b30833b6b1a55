/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.h -- what this machine has and what of it we may use; the clock.
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
    int local_ranks;                    /* processes a launcher started beside each other here; 0: none did */
    int64_t memory_total, memory_limit; /* of the machine; of the cgroup, 0: none */
    int64_t memory_available; /* free, or in use by the page cache alone; of the cgroup's, where it has less */
    bool avx2, avx512;        /* avx2: with FMA, F16C and PCLMUL; avx512: F, BW, DQ, VL and VNNI */
};

void machine_look(struct machine *m);
/* The same, with /proc and /sys below a folder: for tests. */
void machine_look_under(struct machine *m, const char *root);
/* Threads to run: affinity and quota, shared with the other ranks of this machine, at least 1. */
int machine_threads(const struct machine *m);
/* Memory of a loader that is told none: a quarter of what is available, shared with the other ranks of this machine. */
int64_t machine_memory(const struct machine *m);
/* The best set of kernels here, or the one that is asked for; STK_EUSAGE when the CPU lacks it. */
int cpu_choose(stk_cpu asked, stk_cpu *out, stk_error *e);
const char *cpu_name(stk_cpu c);
/* Of AVX-512 also VBMI and VBMI2, with BMI2: most that have it, not all. */
bool cpu_has_vbmi(void);
/* CRC-32C as an instruction (SSE4.2), and carry-less multiplication. */
bool cpu_has_crc32c(void);
/* AVX-512 with products of 64 bits. */
bool cpu_has_avx512dq(void);

/* Memory that is read soon, in its first bytes: a hint. */
static inline void cpu_near(const void *p, size_t n)
{
    enum { CPU_LINE = 64, CPU_NEAR = 2048 };
    for (size_t i = 0; i < n && i < CPU_NEAR; i += CPU_LINE)
        __builtin_prefetch((const char *)p + i);
}

/* Monotonic nanoseconds. */
uint64_t now_ns(void);

#endif
