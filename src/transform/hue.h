/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hue.h -- turns the hue of pixels as torchvision does it on tensors, in single precision. The kernel `hue` does it as
 * Pillow does, with 256 hues.
 */
#ifndef HUE_H
#define HUE_H

#include <stdint.h>

/* n pixels of three bytes; turn: from -0.5 to 0.5. */
void hue_line(uint8_t *dst, const uint8_t *src, int32_t n, float turn);

#endif
