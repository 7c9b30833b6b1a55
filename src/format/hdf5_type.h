/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_type.h -- parses the types of elements.
 */
#ifndef HDF5_TYPE_H
#define HDF5_TYPE_H

#include "format/hdf5_rows.h"

enum hdf5_class {
    HDF5_CLASS_INTEGER = 0,
    HDF5_CLASS_FLOAT = 1,
    HDF5_CLASS_TIME = 2,
    HDF5_CLASS_STRING = 3,
    HDF5_CLASS_BITS = 4,
    HDF5_CLASS_OPAQUE = 5,
    HDF5_CLASS_COMPOUND = 6,
    HDF5_CLASS_REFERENCE = 7,
    HDF5_CLASS_ENUM = 8,
    HDF5_CLASS_VLEN = 9,
    HDF5_CLASS_ARRAY = 10,
    HDF5_CLASS_COMPLEX = 11
};

/* The head of every type: class and version (4 bits each), bits (3 bytes), size (4). */
struct hdf5_head {
    int kind, version;
    uint32_t bits, size;
};
bool hdf5_head_take(struct hdf5_message *m, struct hdf5_head *t);
/* A name that ends with 0; `padded`: to a multiple of 8 bytes. NULL: it has no end. */
const char *hdf5_name_take(struct hdf5_message *m, bool padded);
/* Parses the dimensions of an array type. NULL, or why it cannot be read. */
const char *hdf5_array_take(const struct hdf5_head *t, struct hdf5_message *m, struct hdf5_array *out);

/* Sets the members of *out that depend on the type; shape gets the dimensions of an array type. `member` names a member
 * of a compound type. NULL, or why it cannot be read; HDF5_STRUCTURE: a member must be named. */
extern const char HDF5_STRUCTURE[];
const char *hdf5_type_parse(const struct hdf5_view *v, struct hdf5_message *m, const char *member,
                            struct hdf5_array *out);

/* ------------------------------------------------------------------ hdf5_members.c */

enum { HDF5_MEMBER_NAME = 256, HDF5_MEMBER_DEPTH = 8 };

/* A member of a compound type that is not compound itself. Members of inner ones have names like outer.inner. */
struct hdf5_member {
    char name[HDF5_MEMBER_NAME];
    size_t at; /* its offset in the structure */
    struct hdf5_message type;
    int ndim; /* of arrays in version 1 of compound types */
    int64_t shape[4];
};

/* A walk over the members of a compound type, in the file's order. */
struct hdf5_members {
    struct hdf5_message *m;
    int depth;
    struct {
        uint32_t left, size;
        int version;
        bool hidden; /* inside an array or sequence of structures, which is not read */
        size_t at, name;
    } open[HDF5_MEMBER_DEPTH];
    char name[HDF5_MEMBER_NAME];
};
/* m starts after the head t of a compound type. */
void hdf5_members_begin(struct hdf5_members *w, const struct hdf5_head *t, struct hdf5_message *m);
/* 1: found; 0: no more; -1: the description is damaged, or nested too deep. */
int hdf5_members_next(struct hdf5_members *w, struct hdf5_member *out);

#endif
