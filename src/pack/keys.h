/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h -- from the name of a sample to its key in a tar, and back.
 *
 * What reads a tar takes a name's part before the first dot (of the last folder) for the key, and what follows for the
 * field. So dots in a stem are written as %2E, and % as %25; a key that ends with % has the whole name before it, and
 * the suffix behind the key is no part of it:
 *
 *     cat/1.jpg  ->  cat/1 + jpg          a.b.png  ->  a%2Eb + png          odd.suffix  ->  odd%2Esuffix% + jpg
 *
 * The last form is also for a second name with the same stem (1.jpg and 1.png in one folder are two samples). A name
 * that comes again gets a number, so that each sample has a key and a file of its own: cat/1-17 + jpg.
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
/* The key of a tidy name, behind what out holds, ended by a 0 that is not counted. suffix: where in the name the field
 * begins that will follow the key, behind its dot; 0: the whole name is the key's. number: of the sample, where the
 * name is taken. 0, or -1: no memory. */
int keys_make(struct keys *k, const char *name, size_t suffix, int64_t number, struct buf *out);
/* The same for a key that is one already. */
int keys_take(struct keys *k, const char *key, int64_t number, struct buf *out);
void keys_done(struct keys *k); /* also zeroed */

/* The name that a key and its field came from, as above; first: the field is what the key was made for. */
int keys_name(const char *key, const char *field, bool first, struct buf *out);
/* Whether a name stays below the folder it is written to: relative, without "..", with something in every part. */
bool keys_is_safe(const char *name);

#endif
