/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest_list.h -- an error that lists the known names after an unknown one.
 *
 *     struct nearest_list l = {.like.word = "capton"};
 *     nearest_list_add(&l, "caption"); ...
 *     return nearest_list_error(&l, "there is no", "column", e);
 *
 * Names are borrowed until nearest_list_error(), which frees everything.
 */
#ifndef NEAREST_LIST_H
#define NEAREST_LIST_H

#include "base/buf.h"
#include "base/nearest.h"
#include "base/sample.h"

struct nearest_list {
    struct nearest like; /* .word */
    struct buf all;
    int n, shown;
};

void nearest_list_add(struct nearest_list *l, const char *name);
/* "there is no column X; the columns are Y, Z and 3 more; did you mean Y?": before is "there is no", noun "column". */
int nearest_list_error(struct nearest_list *l, const char *before, const char *noun, stk_error *e);

#endif
