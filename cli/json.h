/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h -- writes one JSON document, and reads back the small ones that we wrote.
 *
 *     struct json j = {.f = stdout};
 *     json_open(&j, NULL, '{');
 *     json_text(&j, "source", path);
 *     json_close(&j, '}');
 *
 * A key is NULL inside arrays and for the document itself. UTF-8 text is written unchanged. A byte that
 * is not UTF-8 is written as \udcXX, like Python's surrogateescape, so that
 * os.fsencode(json.loads(...)) returns the exact bytes of a path.
 */
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *f;
    int depth;
    uint32_t used; /* bit d: depth d has a value already */
    uint32_t rows; /* bit d: values at depth d have a line each */
};

void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_text(struct json *j, const char *key, const char *value); /* NULL: null */
void json_int(struct json *j, const char *key, int64_t value);
void json_real(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, int value);
void json_hex(struct json *j, const char *key, uint64_t value); /* 16 digits in quotes */
void json_raw(struct json *j, const char *key, const char *json);

/* The start of the value of a key of the object at `text`; NULL: no such key, or invalid JSON. */
const char *json_find(const char *text, const char *key);
/* One past the value that starts here; NULL: invalid JSON. */
const char *json_end(const char *value);
int json_get_text(const char *text, const char *key, char *buf, size_t n); /* 0, or -1 */
int json_get_int(const char *text, const char *key, int64_t *out);
int json_get_hex(const char *text, const char *key, uint64_t *out);

#endif
