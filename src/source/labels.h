/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.h -- labels stored as text: integers, or names of classes.
 *
 *     struct labels all = {0};
 *     names_add(&all.names, text, n, &number);        for every label
 *     labels_resolve(&all, &given, e);                 all.value[number] is its value
 *     labels_done(&all);
 */
#ifndef LABELS_H
#define LABELS_H

#include "base/names.h"
#include "stoker.h"

struct labels {
    struct names names;
    int64_t *value; /* of each name */
    uint32_t *rank; /* the names in byte order, if they are classes; NULL: they are numbers, or classes were given */
};

/* If all labels are integers, those are the values. Otherwise the labels are names of classes: of the given ones, if
 * there are any, or of all that occur. Fails if a label is not among the given classes. */
int labels_resolve(struct labels *all, const struct names *given, stk_error *e);
void labels_done(struct labels *all); /* accepts zeroed memory */

#endif
