/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_values.h -- what a JSON object has under names, those of nested objects joined by dots: "meta.author".
 */
#ifndef LIST_VALUES_H
#define LIST_VALUES_H

#include "base/sample.h"
#include "format/json.h"

enum { VALUE_NAME = COLUMN_NAME - 1 }; /* bytes of a joined name */

struct list_value {
    const char *name; /* joined; lent for the call */
    size_t name_bytes;
    bool too_long;       /* only the beginning of the name is given; the value may be an object */
    enum json_kind kind; /* NESTED: an array */
    struct slice text;   /* strings undone, the others as they are written */
};

/* Calls each for all values that are no objects, in order, until it returns false. NULL, or what is wrong. */
const char *list_values(struct slice record, bool (*each)(void *user, const struct list_value *v), void *user);

#endif
