/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h -- writes and reads JSON.
 *
 * To write a document:
 *
 *     struct json j = {.f = stdout};
 *     json_open(&j, NULL, '{');
 *     json_text(&j, "source", path);
 *     json_close(&j, '}');
 *
 * To read a few values of a document:
 *
 *     const struct json_value d = json_document(text, n);
 *     if (!json_get_int(json_find(d, "samples"), &samples)) ...
 *
 * To read all values of a document in order, use a struct json_reader.
 *
 * UTF-8 text is written unchanged. A byte that is not UTF-8 is written as \udcXX, like Python's surrogateescape, so
 * that os.fsencode(json.loads(...)) returns the exact bytes of a path. Reading such an escape returns the byte.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/text.h"

/* ------------------------------------------------------------------ writing */

enum json_layout { JSON_LINES /* the default */, JSON_ONE_LINE, JSON_COMPACT /* one line without spaces */ };

/* Writes to f, or to text if f is NULL. Nothing is allocated. Write errors stay in f: see ferror() and fclose(). */
struct json {
    FILE *f;
    struct text_out *text;
    enum json_layout layout;
    int depth;
    uint32_t used; /* bit d: depth d has a value already */
    uint32_t rows; /* bit d: values at depth d have a line each */
};

/* A key is NULL inside arrays and for the document itself. */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_text(struct json *j, const char *key, const char *value); /* NULL: null */
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_real(struct json *j, const char *key, double value); /* six decimals; null if not finite */
void json_bool(struct json *j, const char *key, bool value);
void json_hex(struct json *j, const char *key, uint64_t value); /* 16 digits in quotes */
void json_raw(struct json *j, const char *key, const char *json);

/* ------------------------------------------------------------------ reading single values */

/* Where a value starts. p is NULL if there is no such value or the JSON before it is invalid. */
struct json_value {
    const char *p, *end; /* end: of the document */
};

struct json_value json_document(const void *text, size_t n);
struct json_value json_find(struct json_value object, const char *key);
struct json_value json_first(struct json_value array);
struct json_value json_next(struct json_value element);
/* Bytes of the value as they are written; 0: invalid JSON. */
size_t json_bytes(struct json_value v);
bool json_get_int(struct json_value v, int64_t *out);
bool json_get_uint(struct json_value v, uint64_t *out);
bool json_get_hex(struct json_value v, uint64_t *out); /* 1 to 16 digits in quotes */
/* Appends the text and a 0 byte, which out->len does not count. Fails if the text contains a 0 byte. */
bool json_get_text(struct json_value v, struct buf *out);

/* ------------------------------------------------------------------ reading everything in order */

struct json_reader {
    char *p, *end;
    const char *problem; /* the first problem; NULL: none */
};

enum json_kind { JSON_STRING, JSON_PLAIN /* a number, true or false */, JSON_NULL, JSON_NESTED };

bool json_fail(struct json_reader *r, const char *problem); /* returns false */
/* Skips white space and returns the next character; 0 at the end. */
char json_peek(struct json_reader *r);
/* Skips white space and c, or fails. */
bool json_expect(struct json_reader *r, char c, const char *problem);
/* Reads a string. Replaces its escapes in place, so the text must be writable. */
bool json_read_string(struct json_reader *r, struct slice *out);
/* Reads any value. A string is read as by json_read_string(); other values are returned as they are written. */
bool json_read_value(struct json_reader *r, struct slice *out, enum json_kind *kind);

#endif
