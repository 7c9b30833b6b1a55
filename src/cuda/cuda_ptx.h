/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_ptx.h -- the kernels of kernels.cu as PTX, which the driver compiles for its GPU.
 */
#ifndef CUDA_PTX_H
#define CUDA_PTX_H

extern const char cuda_ptx[]; /* "": built without nvcc, so there is no GPU path */

#endif
