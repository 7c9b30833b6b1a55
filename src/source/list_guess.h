/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_guess.h -- what the columns of a list are, by looking at its rows.
 */
#ifndef LIST_GUESS_H
#define LIST_GUESS_H

#include "format/json.h"
#include "source/columns.h"

enum { LIST_GUESSES = 1024 }; /* columns; later ones are left out */

struct list_guess {
    struct guess *of;
    uint64_t hash[LIST_GUESSES]; /* of their names: rows may have any number of names that are left out */
    int n, room;
    int next; /* the one that is likely to come next */
};

/* A cell of a row under a name; of columns of one name, which tables may have, the number tells. What a table has is a
 * string. 0, or -1: no memory. */
int list_guess_see(struct list_guess *g, int number, struct slice name, enum json_kind kind, struct slice text);
/* A name of which only the beginning is known: a column that cannot be had. 0, or -1: no memory. */
int list_guess_see_long(struct list_guess *g, struct slice beginning);
/* Adds the columns, in the order in which they were seen. 0, or -1: no memory. */
int list_guess_columns(const struct list_guess *g, bool table, struct columns *c);
void list_guess_done(struct list_guess *g);

#endif
