/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_head.h -- the markers of a JPEG, and what those before its first scan say.
 */
#ifndef JPEG_HEAD_H
#define JPEG_HEAD_H

#include "base/sample.h"

enum jpeg_marker {
    TEM = 0x01,
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    SOF3 = 0xc3,
    DHT = 0xc4,
    JPG = 0xc8,
    SOF9 = 0xc9,
    DAC = 0xcc,
    SOF15 = 0xcf,
    RST0 = 0xd0,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DQT = 0xdb,
    DNL = 0xdc,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP1 = 0xe1,
    APP2 = 0xe2,
    APP14 = 0xee,
    APP15 = 0xef,
    COM = 0xfe
};

bool jpeg_match(const uint8_t *bytes, size_t n);
int jpeg_head(const uint8_t *bytes, size_t n, struct head *out, stk_error *e);

#endif
