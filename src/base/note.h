/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.h -- small JSON documents that we write beside data, and read back.
 *
 *     struct note n = {0};
 *     note_open(&n, NULL, '{');
 *     note_int(&n, "samples", 1000);
 *     note_close(&n, '}');
 *     if (n.failed) ...                  no memory; n.text is the document otherwise
 *     note_done(&n);
 *
 * A key is NULL inside arrays and for the document itself. Bytes that are no UTF-8 are written as \udcXX, as Python's
 * surrogateescape does, and come back as they were. Reading takes any bytes, and stays within them.
 */
#ifndef NOTE_H
#define NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct note {
    struct buf text;
    int depth;
    bool failed, used; /* used: something stands before at this depth */
};

void note_open(struct note *n, const char *key, char bracket);
void note_close(struct note *n, char bracket);
void note_int(struct note *n, const char *key, int64_t value);
void note_text(struct note *n, const char *key, const char *value);
void note_hex(struct note *n, const char *key, uint64_t value); /* 16 digits in quotes */
void note_done(struct note *n);

/* A value in a document; p is NULL when there is none. */
struct note_value {
    const char *p, *end; /* where it begins, where the document ends */
};

struct note_value note_document(const void *text, size_t n);
struct note_value note_find(struct note_value object, const char *key);
/* Elements of an array, one after the other. */
struct note_value note_first(struct note_value array);
struct note_value note_next(struct note_value element);
bool note_get_int(struct note_value v, int64_t *out);
bool note_get_hex(struct note_value v, uint64_t *out);
/* The text behind what out holds, and a 0 that is not counted. */
bool note_get_text(struct note_value v, struct buf *out);

#endif
