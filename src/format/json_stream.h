/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_stream.h -- the elements of the arrays of a JSON document that is too large for memory:
 *
 *     {"info": {...}, "images": [{...}, {...}], "annotations": [{...}, ...]}
 *
 *     struct json_stream s = {.read = read_file, .user = &fd, .wanted = keys};
 *     while ((rc = json_stream_next(&s, &element)) > 0) ... element.array, element.text
 *     json_stream_done(&s);
 *
 * Only strings and brackets are checked here; whoever parses an element checks the rest. An object of an element is
 * read with json_object_next().
 */
#ifndef JSON_STREAM_H
#define JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { JSON_STREAM_ELEMENT = 1 << 28 }; /* bytes of the largest element */

struct json_element {
    int array;         /* index in wanted */
    int64_t at;        /* its offset in the document */
    struct slice text; /* valid until the next call; may be written to */
};

struct json_stream {
    /* Reads up to n bytes and returns how many; 0: the end; -1: failed. */
    int64_t (*read)(void *user, void *to, size_t n);
    void *user;
    const char *const *wanted; /* the keys of the arrays, at most 31; ended by NULL */
    const char *problem;       /* after -1: what is wrong; NULL: read() failed or there is no memory */
    bool no_memory;
    int64_t offset;  /* of the problem in the document */
    unsigned found;  /* bit i: the document has the array wanted[i] */
    struct buf text; /* the rest is private */
    size_t at;       /* where reading is */
    int64_t base;    /* offset of text in the document */
    int array;       /* that is being read; -1: an array that is not wanted */
    bool begun, first, inside, ended;
};

/* Returns 1 and an element, 0 at the end of the document, or -1. */
int json_stream_next(struct json_stream *s, struct json_element *out);
void json_stream_done(struct json_stream *s);

/* ------------------------------------------------------------------ the members of an object */

/* Where reading an object or an array is. p starts at its first byte. A 0 byte must follow the text, not necessarily at
 * once: values may be skipped up to there. */
struct json_cursor {
    char *p, *end;
    const char *problem;
    bool begun;
};

/* The next member of an object: its key, without quotes, and its value, both as they are written. false: there are no
 * more, or there is a problem. */
bool json_object_next(struct json_cursor *c, struct slice *key, struct slice *value);
/* The next element of an array. */
bool json_array_next(struct json_cursor *c, struct slice *value);

#endif
