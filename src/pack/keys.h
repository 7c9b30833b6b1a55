/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h -- converts the name of a sample to its key in a tar, and back.
 *
 * Readers of a tar split a file name at the first dot after the last slash: the key comes before it, the field after
 * it. They skip names that begin with "__x__". So a dot in a stem becomes %2E, % becomes %25, and the first _ of a
 * leading "__" becomes %5F. A key that ends with % represents a whole name: the suffix after the key is not part of
 * that name.
 *
 *     cat/1.jpg   ->  cat/1 + jpg
 *     a.b.png     ->  a%2Eb + png
 *     odd.suffix  ->  odd%2Esuffix% + jpg
 *
 * A second name with the same stem also gets the last form: 1.jpg and 1.png in one folder are two samples. A name that
 * appears again gets a number: cat/1-17 + jpg. So every sample has its own key, and its own name after decoding.
 */
#ifndef KEYS_H
#define KEYS_H

#include <stdbool.h>

#include "base/buf.h"

/* The keys that are taken. */
struct keys {
    uint64_t *slots;
    size_t n, room;
};

/* Removes from a name everything up to the last "..", a leading "/", and parts that are "." or empty. */
void keys_tidy(char *name);
/* Appends the key of a tidy name to out, and a 0 that out->len does not count. suffix: where the suffix that will
 * follow the key begins in the name, after its dot; 0: the key represents the whole name. number: the first number to
 * try if the name is taken. Returns 0, or -1 when out of memory. */
int keys_make(struct keys *k, const char *name, size_t suffix, int64_t number, struct buf *out);
/* The same for a name that already is a key. */
int keys_take(struct keys *k, const char *key, int64_t number, struct buf *out);
/* The same for a file name, without escapes. A name that appears again gets the number before its suffix. */
int keys_unique(struct keys *k, const char *name, int64_t number, struct buf *out);
void keys_done(struct keys *k); /* accepts a zeroed struct */

bool keys_is_whole(const char *key);
/* Appends the name that a key was made from; without its suffix, unless the key represents a whole name. Returns 0, or
 * -1 when out of memory. */
int keys_decode(const char *key, struct buf *out);
/* Appends the name of the file that contains a field. first: the key was made for this field. */
int keys_name(const char *key, const char *field, bool first, struct buf *out);
/* Whether a name stays below the folder it is written to: it is relative, and no part is empty, ".", ".." or longer
 * than 255 bytes. */
bool keys_is_safe(const char *name);

#endif
