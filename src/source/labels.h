/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.h -- labels that are text: whole numbers as written, or names of classes.
 *
 *     struct labels all = {0};
 *     names_add(&all.names, text, n, &number);        every label
 *     labels_settle(&all, &given, e);                 all.value[number] is what it stands for
 *     labels_done(&all);
 */
#ifndef LABELS_H
#define LABELS_H

#include "base/names.h"
#include "stoker.h"

struct labels {
    struct names names;
    int64_t *value; /* of each */
    uint32_t *rank; /* of classes: the names in byte order; NULL: they are numbers, or were given */
};

/* Numbers, if all are, have to be among the given classes, where there are any; names are, or become classes. */
int labels_settle(struct labels *all, const struct names *given, stk_error *e);
void labels_done(struct labels *all); /* also zeroed */

#endif
