/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c -- fills the table of kernels for a CPU.
 *
 * A new instruction set is a file kernel_<set>.c with a function kernels_<set>, which replaces the entries where it
 * is faster, and a case here. A set that replaces arrange_weights must also replace across1, across3 and down: they
 * read what it writes.
 */
#include "transform/kernel.h"

void kernels_fill(struct kernels *k, stk_cpu cpu)
{
    kernels_c(k);
#if defined(__x86_64__)
    if (cpu == STK_CPU_AVX2 || cpu == STK_CPU_AVX512) {
        kernels_avx2(k);
        kernels_avx2_store(k);
    }
    if (cpu == STK_CPU_AVX512) {
        kernels_avx512(k);
        kernels_avx512_store(k);
    }
#else
    (void)cpu;
#endif
}
