/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5.c -- datasets that only libhdf5 can read.
 *
 * libhdf5 prints its errors unless told not to, and has one lock for everything, if it has one at all: one that has
 * none is not used. Bytes are asked for as they lie in the file, so that what follows is the same for all datasets.
 */
#include "source/hdf5.h"

#include "base/error.h"

#ifdef HAVE_HDF5

#define H5_USE_110_API
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

struct hdf5 {
    hid_t file;
};

/* ------------------------------------------------------------------ errors */

/* libhdf5's own printing, while it is off. */
struct quiet {
    H5E_auto2_t print;
    void *user;
};

static struct quiet quiet_begin(void)
{
    struct quiet q = {0};
    H5Eget_auto2(H5E_DEFAULT, &q.print, &q.user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return q;
}

static void quiet_end(struct quiet q)
{
    H5Eset_auto2(H5E_DEFAULT, q.print, q.user);
}

static herr_t first_words(unsigned n, const H5E_error2_t *error, void *user)
{
    char *words = user;
    (void)n;
    if (!words[0] && error->desc)
        snprintf(words, 200, "%s", error->desc);
    return 0;
}

/* With what libhdf5 says of it. */
static int fails(stk_error *e, const char *what)
{
    char words[200] = "";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_words, words);
    return error_set(e, STK_EDATA, "open", "%s%s%s", what, words[0] ? ": libhdf5 says: " : "", words);
}

/* ------------------------------------------------------------------ files */

static hid_t open_file(const char *path)
{
    const hid_t how = H5Pcreate(H5P_FILE_ACCESS);
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(how, 0, 1); /* nothing is written, and some file systems cannot lock */
#endif
    H5Pset_fclose_degree(how, H5F_CLOSE_STRONG);
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, how);
    H5Pclose(how);
    return file;
}

void hdf5_close(struct hdf5 *h)
{
    if (h && h->file >= 0)
        H5Fclose(h->file);
    free(h);
}

static int open_once(struct hdf5 **h, const char *path, stk_error *e)
{
    hbool_t safe = 0;
    H5is_library_threadsafe(&safe);
    if (!safe)
        return error_set(e, STK_EDATA, "open", "and libhdf5 was built without thread-safety");
    if (*h)
        return STK_OK;
    struct hdf5 *one = calloc(1, sizeof *one);
    if (!one)
        return error_nomem(e, "open", sizeof *one);
    one->file = open_file(path);
    if (one->file < 0) {
        hdf5_close(one);
        return fails(e, "and libhdf5 cannot open the file");
    }
    *h = one;
    return STK_OK;
}

/* ------------------------------------------------------------------ rows */

static bool read_rows(const struct hdf5_array *a, int64_t row, hid_t space, hid_t type, void *to)
{
    hsize_t start[H5S_MAX_RANK] = {(hsize_t)row}, count[H5S_MAX_RANK];
    hid_t memory = H5S_ALL, from = H5S_ALL;
    const int n = H5Sget_simple_extent_ndims(space);
    if (n > 0 && H5Sget_simple_extent_dims(space, count, NULL) == n && a->shape[0] == (int64_t)count[0]) {
        count[0] = 1;
        memory = H5Screate_simple(n, count, NULL);
        from = space;
        if (memory < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0)
            return false;
    }
    const bool done = H5Dread((hid_t)a->number, type, memory, from, H5P_DEFAULT, to) >= 0;
    if (memory != H5S_ALL)
        H5Sclose(memory);
    return done;
}

static bool read_foreign(const struct hdf5_array *a, int64_t row, void *to)
{
    const struct quiet q = quiet_begin();
    const hid_t space = H5Dget_space((hid_t)a->number), type = H5Dget_type((hid_t)a->number);
    const bool done = read_rows(a, row, space, type, to);
    H5Sclose(space);
    H5Tclose(type);
    quiet_end(q);
    return done;
}

/* Whether libhdf5 can undo all filters of a dataset. */
static bool filters_here(hid_t set)
{
    const hid_t made = H5Dget_create_plist(set);
    bool here = true;
    for (int i = 0; i < H5Pget_nfilters(made) && here; i++) {
        unsigned flags, config;
        size_t none = 0;
        const H5Z_filter_t id = H5Pget_filter2(made, (unsigned)i, &flags, &none, NULL, 0, NULL, &config);
        here = H5Zfilter_avail(id) > 0;
    }
    H5Pclose(made);
    return here;
}

static int attach(struct hdf5 **h, const char *path, const char *dataset, struct hdf5_array *a, stk_error *e)
{
    const int rc = open_once(h, path, e);
    if (rc != STK_OK)
        return rc;
    const hid_t set = H5Dopen2((*h)->file, dataset, H5P_DEFAULT);
    if (set < 0)
        return fails(e, "and libhdf5 cannot open it");
    if (!filters_here(set)) {
        H5Dclose(set);
        return error_set(e, STK_EDATA, "open", "nor to libhdf5 (HDF5_PLUGIN_PATH is where it looks for more)");
    }
    a->foreign = read_foreign;
    a->number = set; /* closed with the file */
    return STK_OK;
}

int hdf5_attach(struct hdf5 **h, const char *path, const char *dataset, struct hdf5_array *a, stk_error *e)
{
    if (a->type == HDF5_VLEN || a->type == HDF5_VLEN_TEXT)
        return error_set(e, STK_EDATA, "open", "and has elements of variable length");
    const struct quiet q = quiet_begin();
    const int rc = attach(h, path, dataset, a, e);
    quiet_end(q);
    return rc;
}

#else

int hdf5_attach(struct hdf5 **h, const char *path, const char *dataset, struct hdf5_array *a, stk_error *e)
{
    (void)h, (void)path, (void)dataset, (void)a;
    return error_set(e, STK_EDATA, "open", "and this build has no libhdf5 that could read it");
}

void hdf5_close(struct hdf5 *h)
{
    (void)h;
}

#endif
