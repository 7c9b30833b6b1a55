/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_view.h -- the low level of an HDF5 file: numbers, addresses, and the messages that describe objects.
 *
 * The bytes are not trusted. Functions return NULL, or what is wrong: a constant.
 */
#ifndef HDF5_VIEW_H
#define HDF5_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file on disk or in memory. Addresses are relative to base. */
struct hdf5_view {
    int fd; /* -1: in memory */
    const uint8_t *memory;
    int64_t size, base;
    int64_t root;                   /* address of the root group */
    int offset_bytes, length_bytes; /* of addresses and sizes */
};

extern const char HDF5_CUT[], HDF5_DAMAGED[], HDF5_NO_MEMORY[];

/* The caller sets fd, or memory and size. Reads the superblock for the rest. */
const char *hdf5_view_open(struct hdf5_view *v);
bool hdf5_view_read(const struct hdf5_view *v, int64_t at, void *to, size_t n);
/* A little-endian number of 1 to 8 bytes; -1: too large for int64. */
int64_t hdf5_number(const uint8_t *p, int bytes);
/* -1: undefined. */
int64_t hdf5_address(const struct hdf5_view *v, const uint8_t *p);

/* ------------------------------------------------------------------ messages */

enum {
    HDF5_MESSAGE_SPACE = 1,
    HDF5_MESSAGE_LINK_INFO = 2,
    HDF5_MESSAGE_TYPE = 3,
    HDF5_MESSAGE_OLD_FILL = 4,
    HDF5_MESSAGE_FILL = 5,
    HDF5_MESSAGE_LINK = 6,
    HDF5_MESSAGE_EXTERNAL = 7,
    HDF5_MESSAGE_LAYOUT = 8,
    HDF5_MESSAGE_FILTERS = 11,
    HDF5_MESSAGE_TABLE = 17,
};
enum { HDF5_SHARED = 2 }; /* flag: the message is stored elsewhere */

/* The rest of a message; reading moves p. */
struct hdf5_message {
    int type, flags;
    const uint8_t *p, *end;
    int64_t at; /* of p in the file */
};

bool hdf5_has(const struct hdf5_message *m, size_t n);
void hdf5_skip(struct hdf5_message *m, size_t n);     /* n bytes that hdf5_has() confirmed */
int64_t hdf5_take(struct hdf5_message *m, int bytes); /* a number; -1: too large, or missing */
int64_t hdf5_take_address(const struct hdf5_view *v, struct hdf5_message *m);

/* Calls each() for all messages of the object whose header is at this address, until it returns a reason. */
typedef const char *hdf5_each(void *user, struct hdf5_message *m);
const char *hdf5_messages(const struct hdf5_view *v, int64_t header, hdf5_each *each, void *user);

#endif
