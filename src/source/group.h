/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h -- files of an archive become samples, as WebDataset has it: those that follow each other and are alike up to
 * the first dot of their names are the parts of one sample.
 *
 *     n01/0017.jpg  n01/0017.cls  n01/0017.seg.png      key n01/0017, parts jpg, cls, seg.png
 */
#ifndef GROUP_H
#define GROUP_H

#include "source/records.h"

enum { GROUP_LABEL_MOST = 1024 }; /* bytes of a part that is a label */

struct group {
    struct record_scan *scan;
    struct buf key; /* of the sample that was begun last */
    bool begun;
    bool added; /* the last file is a part */
};

/* Whether the file is a part of a sample: not one that a system or a tool has left there (hidden, __name__), nor
 * one without a dot. *n_key bytes of its name are the key, and its part's name in lower case, cut where it is too
 * long, ended by 0, goes to part. */
bool group_split(const char *name, size_t n, size_t *n_key, char part[COLUMN_NAME]);

/* Adds a file. 0, or -1: no memory. */
int group_add(struct group *g, const char *name, size_t n, struct part p, const struct part_extra *extra);
/* What the file holds that was added last: it may be the label. */
bool group_wants_label(const char *name, size_t n, int64_t bytes);
int group_label(struct group *g, const uint8_t *text, size_t n);
/* A file that cannot be read: so is its sample. name NULL: what it was is not known. */
int group_bad(struct group *g, const char *name, size_t n, int64_t at, const char *reason);
void group_done(struct group *g);

#endif
