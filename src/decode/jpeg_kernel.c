/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_kernel.c -- fills the table of JPEG kernels for a CPU.
 */
#include "decode/jpeg_kernel.h"

#include "base/cpu.h"

void jpeg_kernels_fill(struct jpeg_kernels *k, stk_cpu cpu)
{
    jpeg_kernels_c(k);
#if defined(__x86_64__)
    if (cpu == STK_CPU_AVX2 || cpu == STK_CPU_AVX512)
        jpeg_kernels_avx2(k);
    if (cpu == STK_CPU_AVX512)
        jpeg_kernels_avx512(k);
    if (cpu == STK_CPU_AVX512 && cpu_has_vbmi()) {
        k->dct_decode = dct_decode_vbmi;
        k->dct_encode = dct_encode_vbmi;
    }
#else
    (void)cpu;
#endif
}
