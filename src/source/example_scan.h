/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_scan.h -- looks at the examples of a TFRecord file while it is scanned.
 */
#ifndef EXAMPLE_SCAN_H
#define EXAMPLE_SCAN_H

#include "base/crc32c.h"
#include "source/example_columns.h"
#include "source/records.h"

/* A record's data of `bytes` bytes at `at`, with its checksum behind it. 0, or -1: no memory. */
int example_scan(struct example_look *l, struct record_scan *sc, const struct crc32c *crc, int64_t at, int64_t bytes);

#endif
