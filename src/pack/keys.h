/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h -- from the name of a sample to its key in a tar, and back.
 *
 * Readers of a tar split a file's name at the first dot of its last part: before it is the key, behind it the field.
 * They skip names that begin with "__x__". So a dot in a stem is written as %2E, % as %25, and the first _ of a leading
 * "__" as %5F. A key that ends with % stands for a whole name, and the suffix behind the key is no part of it:
 *
 *     cat/1.jpg  ->  cat/1 + jpg          a.b.png  ->  a%2Eb + png          odd.suffix  ->  odd%2Esuffix% + jpg
 *
 * The last form is also for a second name with the same stem: 1.jpg and 1.png in one folder are two samples. A name
 * that comes again gets a number, so that each sample has a key and a file of its own: cat/1-17 + jpg. Names made by
 * keys_make() with the suffix that is written differ when they are decoded again.
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

/* A name without what leads out of its folder: behind the last "..", without a "/" before it, "." and empty parts. */
void keys_tidy(char *name);
/* Appends the key of a tidy name to out, with a 0 that is not counted. suffix: where in the name the suffix begins that
 * will follow the key, behind its dot; 0: the key stands for the whole name. number: where to begin to count when the
 * name is taken. 0, or -1: no memory. */
int keys_make(struct keys *k, const char *name, size_t suffix, int64_t number, struct buf *out);
/* The same for a key that is one already. */
int keys_take(struct keys *k, const char *key, int64_t number, struct buf *out);
/* The same for the name of a file, as it is: one that comes again gets the number before its suffix. */
int keys_unique(struct keys *k, const char *name, int64_t number, struct buf *out);
void keys_done(struct keys *k); /* also zeroed */

bool keys_is_whole(const char *key);
/* Appends the name that a key was made of, without a suffix where it is not a whole one. 0, or -1: no memory. */
int keys_decode(const char *key, struct buf *out);
/* Appends the name of the file that holds a field; first: the field that the key was made for. */
int keys_name(const char *key, const char *field, bool first, struct buf *out);
/* Whether a name stays below the folder it is written to: relative, without "..", with something in every part. */
bool keys_is_safe(const char *name);

#endif
