/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h -- groups the files of an archive into samples, as WebDataset does: consecutive files whose names are equal
 * up to the first dot are the parts of one sample.
 *
 *     n01/0017.jpg  n01/0017.cls  n01/0017.seg.png      key n01/0017, parts jpg, cls, seg.png
 */
#ifndef GROUP_H
#define GROUP_H

#include "source/records.h"

enum { GROUP_LABEL_MOST = 1024 }; /* bytes of a part that is a label */

struct group {
    struct record_scan *scan;
    struct buf key; /* of the current sample */
    bool begun;
    bool added; /* the last file is a part */
};

/* Splits a file name into a key of *n_key bytes and the name of the part, in lower case. false: the file is not part of
 * a sample: it is hidden, its path starts with __name__, it has no dot, or the part's name is too long. */
bool group_split(const char *name, size_t n, size_t *n_key, char part[COLUMN_NAME]);

/* Adds a file. Returns 0, or -1: out of memory. */
int group_add(struct group *g, const char *name, size_t n, struct part p, const struct part_extra *extra);
/* Whether a file of this name and size contains the label; then group_label takes the content of the file added last.
 */
bool group_wants_label(const char *name, size_t n, int64_t bytes);
int group_label(struct group *g, const uint8_t *text, size_t n);
/* Marks the sample of an unreadable file as bad. name is NULL if the file's name is unknown. */
int group_bad(struct group *g, const char *name, size_t n, int64_t at, const char *reason);
void group_done(struct group *g);

#endif
