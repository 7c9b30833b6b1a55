/* SPDX-License-Identifier: Apache-2.0 */
/*
 * levels.h -- what the bytes of an image become in a batch.
 */
#ifndef LEVELS_H
#define LEVELS_H

#include "transform/kernel.h"
#include "transform/ops.h"

/* Fills the tables and the numbers: scaled and normalised in float32, in torchvision's order of operations, then
 * rounded once to the type of the batch. */
void levels_init(struct levels *v, const struct ops *ops, enum store_dtype d);
/* Whether the kernels' arithmetic gives what the tables hold, for every byte and channel. */
bool levels_exact(const struct levels *v, const struct kernels *k, enum store_shape s, enum store_dtype d);

/* Mean and standard deviation of a channel, in single precision as in torch; 0 and 1 without Normalize. */
void levels_constants(const struct ops *ops, int ch, float *mean, float *std);

uint16_t levels_f16(float x);
uint16_t levels_bf16(float x);

#endif
