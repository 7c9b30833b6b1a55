/* SPDX-License-Identifier: Apache-2.0 */
/*
 * voc.h -- the objects of an annotation in Pascal VOC's format, which is XML.
 *
 *     struct voc v = {.p = text, .end = text + n};
 *     while (voc_next(&v, &object)) ...      in order
 *     if (v.problem) ...                     what is wrong with the file
 *
 * Entities are not expanded: a file that declares some is refused.
 */
#ifndef VOC_H
#define VOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { VOC_DEPTH = 16, VOC_NAME = 32 }; /* of elements, and bytes of their names, with the 0 at the end */

struct voc_object {
    struct slice name; /* without escapes; valid as long as the text */
    double box[4];     /* left, top, right, bottom, as written */
    bool difficult, truncated;
};

struct voc {
    char *p, *end;       /* the text, which is written to */
    const char *problem; /* NULL: none */
    bool ended;          /* the root element was closed */
    int n_objects;       /* so far; of a problem: in which object it is */
    /* The rest is private. */
    int depth;
    char path[VOC_DEPTH][VOC_NAME]; /* the elements that are open */
    struct slice text;              /* of the innermost element */
    struct voc_object object;
    unsigned seen; /* of the object: bits 0 to 3 for the sides of the box, bit 4 for the name */
};

bool voc_next(struct voc *v, struct voc_object *out);

#endif
