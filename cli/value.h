/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.h -- parses numbers as people type them. Returns 0, or -1 if the text is not a number or is out of range.
 */
#ifndef VALUE_H
#define VALUE_H

#include <stdint.h>

int value_uint64(const char *s, uint64_t *out);
int value_int64(const char *s, int64_t min, int64_t max, int64_t *out);
int value_size(const char *s, int64_t *out); /* 512M, 2GiB, 1.5G, 4096: K, M, G, T are powers of 1024 */
int value_share(const char *s, double *out); /* 0 to 1: 0.05, 5% */
int value_weight(const char *s, const char **end, double *out); /* 0 or more, up to a comma or the end */
int value_grid(const char *s, int *columns, int *rows);         /* 8x5 */

#endif
