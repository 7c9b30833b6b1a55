/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h -- strings and values of JSON, one after the other, in a text that may be written to.
 */
#ifndef JSON_H
#define JSON_H

#include "format/lines.h"

struct json {
    char *p, *end;
    const char *problem; /* the first one; NULL: none */
};

enum json_kind { JSON_STRING, JSON_PLAIN /* number, true, false */, JSON_NULL, JSON_NESTED };

bool json_fail(struct json *j, const char *problem); /* false */
/* The next character that is no space; 0 at the end. */
char json_peek(struct json *j);
/* Takes that character, or fails. */
bool json_expect(struct json *j, char c, const char *problem);
/* A string, undone in place. */
bool json_string(struct json *j, struct slice *out);
/* Any value: strings undone, the others as they are written. */
bool json_value(struct json *j, struct slice *out, enum json_kind *kind);

#endif
