/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5.c -- datasets that only libhdf5 can read.
 *
 * libhdf5 prints its errors unless told not to, and has one lock for everything, if it has one at all: one that has
 * none is not used. Bytes are asked for as they lie in the file, so that what follows is the same for all datasets.
 */
#include "source/hdf5.h"

#include "base/error.h"
#include "source/hdf5_out.h"

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

/* ------------------------------------------------------------------ writing */

struct hdf5_out {
    hid_t file, images;
    hsize_t rows;
    int ndim; /* of a row */
};

static int write_fails(stk_error *e)
{
    const int rc = fails(e, "cannot be written");
    if (e)
        e->code = STK_EIO;
    return rc == STK_EDATA ? STK_EIO : rc;
}

int hdf5_out_new(struct hdf5_out **out, const char *path, stk_error *e)
{
    struct hdf5_out *o = calloc(1, sizeof *o);
    *out = o;
    if (!o)
        return error_nomem(e, "write", sizeof *o);
    const struct quiet q = quiet_begin();
    o->images = -1;
    o->file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const int rc = o->file < 0 ? write_fails(e) : STK_OK;
    quiet_end(q);
    return rc;
}

void hdf5_out_free(struct hdf5_out *o)
{
    if (!o)
        return;
    if (o->images >= 0)
        H5Dclose(o->images);
    if (o->file >= 0)
        H5Fclose(o->file);
    free(o);
}

/* A dataset of rows; times are left out, so that the same samples make the same bytes. */
static hid_t make_set(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *dims, const hsize_t *most,
                      const hsize_t *chunk)
{
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(ndim, dims, most);
    H5Pset_obj_track_times(how, 0);
    if (chunk)
        H5Pset_chunk(how, ndim, chunk);
    const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Pclose(how);
    H5Sclose(space);
    return set;
}

static int make_images(struct hdf5_out *o, int ndim, const int64_t *shape, stk_error *e)
{
    hsize_t dims[H5S_MAX_RANK] = {0}, most[H5S_MAX_RANK] = {H5S_UNLIMITED}, chunk[H5S_MAX_RANK] = {ndim ? 1 : 1024};
    for (int i = 0; i < ndim; i++)
        dims[i + 1] = most[i + 1] = chunk[i + 1] = (hsize_t)shape[i];
    const hid_t type = ndim ? H5Tcopy(H5T_NATIVE_UINT8) : H5Tvlen_create(H5T_NATIVE_UINT8);
    o->ndim = ndim;
    o->images = make_set(o->file, "images", type, ndim + 1, dims, most, chunk);
    H5Tclose(type);
    return o->images < 0 ? write_fails(e) : STK_OK;
}

static bool write_row(struct hdf5_out *o, const uint8_t *bytes, size_t n)
{
    hsize_t dims[H5S_MAX_RANK], start[H5S_MAX_RANK] = {o->rows};
    hid_t space = H5Dget_space(o->images);
    H5Sget_simple_extent_dims(space, dims, NULL);
    H5Sclose(space);
    dims[0] = o->rows + 1;
    if (H5Dset_extent(o->images, dims) < 0)
        return false;
    space = H5Dget_space(o->images);
    dims[0] = 1;
    const hid_t memory = H5Screate_simple(o->ndim + 1, dims, NULL), type = H5Dget_type(o->images);
    const hvl_t run = {.len = n, .p = (void *)(uintptr_t)bytes};
    bool good = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, dims, NULL) >= 0;
    good = good && H5Dwrite(o->images, type, memory, space, H5P_DEFAULT, o->ndim ? (const void *)bytes : &run) >= 0;
    H5Tclose(type);
    H5Sclose(memory);
    H5Sclose(space);
    o->rows += good;
    return good;
}

int hdf5_out_row(struct hdf5_out *o, const uint8_t *bytes, size_t n, int ndim, const int64_t *shape, stk_error *e)
{
    const struct quiet q = quiet_begin();
    int rc = o->images < 0 ? make_images(o, ndim, shape, e) : STK_OK;
    if (rc == STK_OK && !write_row(o, bytes, n))
        rc = write_fails(e);
    quiet_end(q);
    return rc;
}

static hid_t text_type(void)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

static bool write_classes(hid_t labels, const char *const *classes, int n)
{
    const hsize_t count = (hsize_t)n;
    const hid_t type = text_type(), space = H5Screate_simple(1, &count, NULL);
    const hid_t a = H5Acreate2(labels, "classes", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool good = a >= 0 && H5Awrite(a, type, classes) >= 0;
    if (a >= 0)
        H5Aclose(a);
    H5Sclose(space);
    H5Tclose(type);
    return good;
}

static bool write_column(hid_t file, const char *name, hid_t type, const void *values, int64_t n,
                         const char *const *classes, int n_classes)
{
    const hsize_t count = (hsize_t)n;
    const hid_t set = make_set(file, name, type, 1, &count, NULL, NULL);
    bool good = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    if (good && n_classes > 0)
        good = write_classes(set, classes, n_classes);
    if (set >= 0)
        H5Dclose(set);
    return good;
}

int hdf5_out_end(struct hdf5_out *o, const int64_t *labels, const char *const *keys, int64_t n,
                 const char *const *classes, int n_classes, stk_error *e)
{
    const struct quiet q = quiet_begin();
    const hid_t text = text_type();
    bool good = !labels || write_column(o->file, "labels", H5T_NATIVE_INT64, labels, n, classes, n_classes);
    good = good && write_column(o->file, "keys", text, keys, n, NULL, 0);
    H5Tclose(text);
    if (o->images >= 0)
        good = H5Dclose(o->images) >= 0 && good;
    o->images = -1;
    good = H5Fclose(o->file) >= 0 && good;
    o->file = -1;
    const int rc = good ? STK_OK : write_fails(e);
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

int hdf5_out_new(struct hdf5_out **out, const char *path, stk_error *e)
{
    (void)path;
    *out = NULL;
    return error_set(e, STK_EBUILD, "open", "this build has no libhdf5 to write HDF5 with");
}

int hdf5_out_row(struct hdf5_out *o, const uint8_t *bytes, size_t n, int ndim, const int64_t *shape, stk_error *e)
{
    (void)bytes, (void)n, (void)ndim, (void)shape;
    return hdf5_out_new(&o, NULL, e);
}

int hdf5_out_end(struct hdf5_out *o, const int64_t *labels, const char *const *keys, int64_t n,
                 const char *const *classes, int n_classes, stk_error *e)
{
    (void)labels, (void)keys, (void)n, (void)classes, (void)n_classes;
    return hdf5_out_new(&o, NULL, e);
}

void hdf5_out_free(struct hdf5_out *o)
{
    (void)o;
}

#endif
