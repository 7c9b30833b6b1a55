/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_values.h -- the values of a JSON object; names in nested objects are joined with dots: "meta.author".
 */
#ifndef LIST_VALUES_H
#define LIST_VALUES_H

#include "base/json.h"
#include "base/sample.h"

enum { VALUE_NAME = COLUMN_NAME - 1 }; /* bytes of a joined name */

struct list_value {
    const char *name; /* joined; valid during the call */
    size_t name_bytes;
    bool too_long;       /* name is cut off; the value may be an object */
    enum json_kind kind; /* NESTED: an array */
    struct slice text;   /* strings are unescaped, other values are as written */
};

/* Calls each for every value that is not an object, in order, until it returns false. Returns NULL, or what is wrong.
 */
const char *list_values(struct slice record, bool (*each)(void *user, const struct list_value *v), void *user);

#endif
