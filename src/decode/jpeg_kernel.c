/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_kernel.c -- fills the table of JPEG kernels for a CPU.
 */
#include "decode/jpeg_kernel.h"

void jpeg_kernels_fill(struct jpeg_kernels *k, stk_cpu cpu)
{
    jpeg_kernels_c(k);
    (void)cpu;
}
