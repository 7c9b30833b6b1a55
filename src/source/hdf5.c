/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5.c -- the structure of an HDF5 file, through libhdf5.
 *
 * libhdf5 prints its errors unless told not to, and has one lock for everything, if it has one at all. So it is asked
 * while a source is opened, by one thread, with its printing off; where the bytes lie is then read from the file itself
 * (hdf5_index.c), and the data without it. What we cannot unpack it may: such datasets stay open, and are read
 * under its lock.
 */
#include "source/hdf5.h"

#define H5_USE_110_API
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/size.h"
#include "source/io.h"

struct hdf5 {
    hid_t file;
    struct hdf5_view view;
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

static int refuse(stk_error *e, const char *why)
{
    return error_set(e, STK_EDATA, "open", "%s", why);
}

/* ------------------------------------------------------------------ life */

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

static bool view_init(struct hdf5 *h)
{
    const hid_t made = H5Fget_create_plist(h->file);
    hsize_t base = 0;
    size_t offset = 0, length = 0;
    const bool known = H5Pget_userblock(made, &base) >= 0 && H5Pget_sizes(made, &offset, &length) >= 0;
    H5Pclose(made);
    h->view.base = (int64_t)base;
    h->view.offset_bytes = (int)offset;
    h->view.length_bytes = (int)length;
    return known && offset >= 2 && offset <= 8 && length >= 2 && length <= 8 && h->view.base <= h->view.size;
}

/* The descriptor that data is read through. */
static int open_own(struct hdf5 *h, const char *path, stk_error *e)
{
    struct stat st;
    h->view.fd = open(path, IO_OPEN_FLAGS);
    if (h->view.fd < 0 || fstat(h->view.fd, &st) != 0)
        return error_os(e, errno, "open", "cannot be opened");
    if (!S_ISREG(st.st_mode))
        return error_set(e, STK_EUSAGE, "open", "is no file");
    h->view.size = st.st_size;
    return STK_OK;
}

static int open_quietly(struct hdf5 *h, const char *path, stk_error *e)
{
    h->file = open_file(path);
    if (h->file < 0)
        return fails(e, "cannot be opened as HDF5");
    return view_init(h) ? STK_OK : fails(e, "has an HDF5 header that is not understood");
}

int hdf5_open(struct hdf5 **out, const char *path, stk_error *e)
{
    struct hdf5 *h = *out = calloc(1, sizeof *h);
    if (!h)
        return error_nomem(e, "open", sizeof *h);
    h->file = -1;
    int rc = open_own(h, path, e);
    if (rc == STK_OK) {
        const struct quiet q = quiet_begin();
        rc = open_quietly(h, path, e);
        quiet_end(q);
    }
    if (rc != STK_OK) {
        hdf5_close(h);
        *out = NULL;
    }
    return rc;
}

void hdf5_settle(struct hdf5 *h)
{
    if (h->file >= 0)
        H5Fclose(h->file);
    h->file = -1;
}

void hdf5_close(struct hdf5 *h)
{
    if (!h)
        return;
    hdf5_settle(h);
    if (h->view.fd >= 0)
        close(h->view.fd);
    free(h);
}

const struct hdf5_view *hdf5_view(const struct hdf5 *h)
{
    return &h->view;
}

/* ------------------------------------------------------------------ names */

struct listing {
    struct names *datasets, *groups;
    int64_t *others;
    bool no_memory;
};

static herr_t list_one(hid_t group, const char *name, const H5L_info_t *link, void *user)
{
    struct listing *l = user;
    H5O_info_t object;
    uint32_t number;
    const bool here = link->type == H5L_TYPE_HARD || link->type == H5L_TYPE_SOFT;
    if (!here || H5Oget_info_by_name2(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
        ++*l->others;
        return 0;
    }
    struct names *to = object.type == H5O_TYPE_DATASET ? l->datasets : object.type == H5O_TYPE_GROUP ? l->groups : NULL;
    *l->others += !to;
    l->no_memory = to && names_add(to, name, strlen(name), &number) < 0;
    return l->no_memory ? -1 : 0;
}

/* false: it was listed before, as groups in a circle would be. */
static bool is_new(struct names *seen, hid_t group, bool *no_memory)
{
    H5O_info_t object;
    uint32_t number;
    char address[20];
    if (H5Oget_info2(group, &object, H5O_INFO_BASIC) < 0)
        return false;
    const int n = snprintf(address, sizeof address, "%llx", (unsigned long long)object.addr);
    const int added = names_add(seen, address, (size_t)n, &number);
    *no_memory = added < 0;
    return added > 0;
}

int hdf5_list(struct hdf5 *h, const char *group, struct names *seen, struct names *datasets, struct names *groups,
              int64_t *others, stk_error *e)
{
    struct listing l = {datasets, groups, others, false};
    const struct quiet q = quiet_begin();
    int rc = STK_OK;
    const hid_t g = H5Gopen2(h->file, group[0] ? group : "/", H5P_DEFAULT);
    if (g < 0)
        rc = error_set(e, STK_EUSAGE, "open", "has no group %s", group);
    else if (is_new(seen, g, &l.no_memory) && H5Literate(g, H5_INDEX_NAME, H5_ITER_INC, NULL, list_one, &l) < 0)
        rc = fails(e, "has a group that cannot be listed");
    if (l.no_memory)
        rc = error_nomem(e, "open", 0);
    if (g >= 0)
        H5Gclose(g);
    quiet_end(q);
    return rc;
}

/* ------------------------------------------------------------------ types */

static stk_dtype integer_type(size_t bytes, bool is_signed)
{
    switch (bytes) {
    case 1:
        return is_signed ? STK_INT8 : STK_UINT8;
    case 2:
        return is_signed ? STK_INT16 : STK_UINT16;
    case 4:
        return is_signed ? STK_INT32 : STK_UINT32;
    case 8:
        return is_signed ? STK_INT64 : STK_UINT64;
    default:
        return STK_DTYPE_DEFAULT;
    }
}

/* By the parts of IEEE's formats, and bfloat16. */
static stk_dtype float_type(hid_t type)
{
    static const struct {
        size_t bytes, exponent, exponent_bits, fraction_bits, bias;
        stk_dtype dtype;
    } known[] = {
        {2, 10, 5, 10, 15, STK_FLOAT16},
        {2, 7, 8, 7, 127, STK_BFLOAT16},
        {4, 23, 8, 23, 127, STK_FLOAT32},
        {8, 52, 11, 52, 1023, STK_FLOAT64},
    };
    size_t sign = 0, exponent = 0, exponent_bits = 0, fraction = 0, fraction_bits = 0;
    const size_t bytes = H5Tget_size(type), bias = H5Tget_ebias(type);
    if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &fraction, &fraction_bits) < 0 || fraction != 0)
        return STK_DTYPE_DEFAULT;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (bytes == known[i].bytes && sign == 8 * bytes - 1 && exponent == known[i].exponent &&
            exponent_bits == known[i].exponent_bits && fraction_bits == known[i].fraction_bits && bias == known[i].bias)
            return known[i].dtype;
    return STK_DTYPE_DEFAULT;
}

/* h5py's bool is an enumeration of FALSE and TRUE. */
static bool is_bool(hid_t type)
{
    int8_t no = 1, yes = 0;
    return H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 && H5Tenum_valueof(type, "FALSE", &no) >= 0 &&
           H5Tenum_valueof(type, "TRUE", &yes) >= 0 && no == 0 && yes == 1;
}

static bool take_numbers(hid_t type, struct hdf5_array *out)
{
    const H5T_class_t kind = H5Tget_class(type);
    const size_t bytes = H5Tget_size(type);
    const H5T_order_t order = H5Tget_order(type);
    out->item = bytes;
    out->swapped = bytes > 1 && order != H5Tget_order(H5T_NATIVE_INT);
    if (bytes > 1 && order != H5T_ORDER_LE && order != H5T_ORDER_BE)
        return false;
    if (kind == H5T_ENUM && is_bool(type)) {
        out->dtype = STK_BOOL;
    } else if (kind == H5T_ENUM) {
        const hid_t base = H5Tget_super(type);
        out->dtype = integer_type(bytes, H5Tget_sign(base) == H5T_SGN_2);
        H5Tclose(base);
    } else if (kind == H5T_FLOAT) {
        out->dtype = float_type(type);
    } else if (kind == H5T_INTEGER && H5Tget_precision(type) == 8 * bytes && H5Tget_offset(type) == 0) {
        out->dtype = integer_type(bytes, H5Tget_sign(type) == H5T_SGN_2);
    }
    return out->dtype != STK_DTYPE_DEFAULT;
}

static int take_vlen(const struct hdf5 *h, hid_t type, struct hdf5_array *out, stk_error *e)
{
    const hid_t base = H5Tget_super(type);
    const bool numbers = take_numbers(base, out);
    H5Tclose(base);
    out->type = HDF5_VLEN;
    out->item = 8 + (size_t)h->view.offset_bytes;
    return numbers ? STK_OK : refuse(e, "has elements of variable length that are not plain numbers");
}

/* An element of an array type has dimensions of its own: they come last. */
static int take_array(hid_t *type, struct hdf5_array *out, stk_error *e)
{
    hsize_t dims[H5S_MAX_RANK];
    const int n = H5Tget_array_ndims(*type);
    if (n < 0 || out->ndim + n > HDF5_DIMS || H5Tget_array_dims2(*type, dims) < 0)
        return refuse(e, "has more dimensions than can be read (9)");
    for (int d = 0; d < n; d++)
        out->shape[out->ndim++] = (int64_t)dims[d];
    const hid_t base = H5Tget_super(*type);
    H5Tclose(*type);
    *type = base;
    return STK_OK;
}

static int take_type(const struct hdf5 *h, hid_t *type, struct hdf5_array *out, stk_error *e)
{
    int rc = STK_OK;
    if (H5Tget_class(*type) == H5T_ARRAY)
        rc = take_array(type, out, e);
    if (rc != STK_OK)
        return rc;
    out->item = H5Tget_size(*type);
    out->dtype = STK_UINT8;
    switch (H5Tget_class(*type)) {
    case H5T_STRING:
        out->type = H5Tis_variable_str(*type) > 0 ? HDF5_VLEN_TEXT : HDF5_TEXT;
        out->spaces = H5Tget_strpad(*type) == H5T_STR_SPACEPAD;
        out->terminated = out->type == HDF5_VLEN_TEXT || H5Tget_strpad(*type) == H5T_STR_NULLTERM;
        out->item = out->type == HDF5_VLEN_TEXT ? 8 + (size_t)h->view.offset_bytes : out->item;
        return STK_OK;
    case H5T_OPAQUE:
        out->type = HDF5_BLOCK;
        return STK_OK;
    case H5T_VLEN:
        return take_vlen(h, *type, out, e);
    case H5T_COMPOUND:
        return refuse(e, "has compound elements (structures); give each member a dataset of its own");
    case H5T_REFERENCE:
        return refuse(e, "has references as elements");
    case H5T_INTEGER:
    case H5T_FLOAT:
    case H5T_ENUM:
        out->type = HDF5_NUMBERS;
        out->dtype = STK_DTYPE_DEFAULT;
        return take_numbers(*type, out) ? STK_OK : refuse(e, "has numbers of a form that machines do not have");
    default:
        return refuse(e, "has elements of a type (time or bits) that is not read");
    }
}

/* ------------------------------------------------------------------ shape and layout */

/* The dimensions of the dataset itself; those of chunks are given first. */
static int take_shape(hid_t set, hid_t made, struct hdf5_array *out, stk_error *e)
{
    hsize_t shape[H5S_MAX_RANK], most[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(set);
    const H5S_class_t kind = H5Sget_simple_extent_type(space);
    const int n = H5Sget_simple_extent_dims(space, shape, most);
    H5Sclose(space);
    if (kind == H5S_NULL || n < 0)
        return refuse(e, "has no elements, and no shape");
    if (n > HDF5_DIMS)
        return refuse(e, "has more dimensions than can be read (9)");
    out->ndim = out->chunks.ndim = n;
    const bool chunked = H5Pget_layout(made) == H5D_CHUNKED;
    if (chunked && H5Pget_chunk(made, H5S_MAX_RANK, chunk) != n)
        return fails(e, "has chunks of an unknown shape");
    for (int d = 0; d < n; d++) {
        if (shape[d] > INT64_MAX / 2)
            return refuse(e, "is larger than files can be");
        out->shape[d] = out->chunks.shape[d] = (int64_t)shape[d];
        out->chunks.most[d] = most[d] > INT64_MAX / 2 ? -1 : (int64_t)most[d];
        out->chunks.chunk[d] = chunked ? (int64_t)chunk[d] : 1;
    }
    return STK_OK;
}

/* *foreign: there is one that only libhdf5 can undo. */
static int take_filters(hid_t made, struct hdf5_array *out, bool *foreign, stk_error *e)
{
    const int n = H5Pget_nfilters(made);
    *foreign = n > HDF5_FILTERS;
    for (int i = 0; i < n; i++) {
        unsigned flags, values[1] = {0}, config;
        size_t n_values = 1;
        char name[64] = "";
        const H5Z_filter_t id =
            H5Pget_filter2(made, (unsigned)i, &flags, &n_values, values, sizeof name, name, &config);
        if (i < HDF5_FILTERS) {
            out->filters.of[i].id = id;
            out->filters.of[i].item = values[0];
            out->filters.n = i + 1;
        }
        if (hdf5_filter_here(id))
            continue;
        *foreign = true;
        if (H5Zfilter_avail(id) <= 0)
            return error_set(e, STK_EDATA, "open",
                             "is packed by the filter %.60s (number %d), which is neither known here nor to libhdf5 "
                             "(HDF5_PLUGIN_PATH is where it looks)",
                             name[0] ? name : "without a name", (int)id);
    }
    return STK_OK;
}

static int take_fill(hid_t made, hid_t type, struct hdf5_array *out, stk_error *e)
{
    H5D_fill_value_t state = H5D_FILL_VALUE_UNDEFINED;
    const bool plain = out->type != HDF5_VLEN && out->type != HDF5_VLEN_TEXT;
    if (!plain || H5Pfill_value_defined(made, &state) < 0 || state != H5D_FILL_VALUE_USER_DEFINED)
        return STK_OK;
    const size_t bytes = H5Tget_size(type);
    out->fill = calloc(1, bytes);
    if (!out->fill)
        return error_nomem(e, "open", bytes);
    if (bytes == out->item && H5Pget_fill_value(made, type, out->fill) >= 0)
        return STK_OK;
    return fails(e, "has a fill value that cannot be read");
}

static int take_sizes(struct hdf5_array *out, stk_error *e)
{
    size_t row = out->item, chunk = out->item;
    for (int d = 0; d < out->ndim; d++) {
        if (d > 0)
            row = size_mul(row, (size_t)out->shape[d]);
        if (d < out->chunks.ndim)
            chunk = size_mul(chunk, (size_t)out->chunks.chunk[d]);
        else
            chunk = size_mul(chunk, (size_t)out->shape[d]);
    }
    const size_t rows = out->ndim > 0 ? (size_t)out->shape[0] : 1;
    if (row > SIZE_MAX / 4 || size_mul(row, rows ? rows : 1) > INT64_MAX || chunk > UINT32_MAX)
        return refuse(e, "has rows or chunks that are larger than can be read");
    out->row_bytes = row;
    out->chunks.chunk_bytes = (uint32_t)chunk;
    return STK_OK;
}

static int take_layout(const struct hdf5 *h, hid_t set, hid_t made, struct hdf5_array *out, bool *foreign, stk_error *e)
{
    struct hdf5_layout l;
    H5O_info_t object;
    if (H5Pget_external_count(made) > 0 || H5Pget_layout(made) == H5D_VIRTUAL) {
        *foreign = true;
        return STK_OK;
    }
    if (H5Oget_info2(set, &object, H5O_INFO_BASIC) < 0)
        return fails(e, "has no header");
    const char *why = hdf5_layout_read(&h->view, (int64_t)object.addr, &l);
    if (!why && l.place == HDF5_IN_CHUNKS) {
        why = hdf5_chunks_init(&out->chunks);
        if (!why)
            why = hdf5_chunks_read(&h->view, &l, &out->chunks);
    }
    if (why == HDF5_INDEX_UNKNOWN) {
        hdf5_chunks_done(&out->chunks);
        *foreign = true;
        return STK_OK;
    }
    out->place = l.place;
    out->at = l.at;
    out->edges_unfiltered = l.edges_unfiltered;
    if (!why && l.place == HDF5_IN_ONE && out->ndim > 0 &&
        l.bytes / (int64_t)(out->row_bytes ? out->row_bytes : 1) < out->shape[0])
        why = "is shorter than its shape says";
    return why ? refuse(e, why) : STK_OK;
}

/* ------------------------------------------------------------------ what only libhdf5 reads */

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

/* libhdf5 keeps the dataset; it must be able to do so for many threads. */
static int keep_foreign(hid_t *set, struct hdf5_array *out, stk_error *e)
{
    hbool_t safe = 0;
    H5is_library_threadsafe(&safe);
    if (!safe)
        return refuse(e, "can only be read by libhdf5, which was built without thread-safety here");
    if (out->type == HDF5_VLEN || out->type == HDF5_VLEN_TEXT)
        return refuse(e, "has elements of variable length, packed or placed in a way that is not read");
    out->foreign = read_foreign;
    out->number = *set;
    *set = -1;
    return STK_OK;
}

/* ------------------------------------------------------------------ datasets */

/* All of it is one row: a dimension of 1 in front, in chunks too. */
static int make_whole(struct hdf5_array *a, stk_error *e)
{
    struct hdf5_chunks *c = &a->chunks;
    if (a->ndim == HDF5_DIMS)
        return refuse(e, "has more dimensions than can be read (8 of a sample)");
    if (a->ndim > 0)
        a->row_bytes *= (size_t)a->shape[0];
    memmove(a->shape + 1, a->shape, (size_t)a->ndim * sizeof a->shape[0]);
    memmove(c->chunk + 1, c->chunk, (size_t)c->ndim * sizeof c->chunk[0]);
    memmove(c->grid + 1, c->grid, (size_t)c->ndim * sizeof c->grid[0]);
    a->shape[0] = c->chunk[0] = c->grid[0] = 1;
    a->ndim++;
    c->ndim++;
    return STK_OK;
}

/* Chunks have the dimensions of an element, too. */
static void widen_chunks(struct hdf5_array *a)
{
    for (int d = a->chunks.ndim; d < a->ndim; d++) {
        a->chunks.chunk[d] = a->shape[d];
        a->chunks.grid[d] = 1;
    }
    a->chunks.ndim = a->ndim;
}

static int describe(const struct hdf5 *h, hid_t *set, hid_t made, hid_t *type, struct hdf5_array *out, stk_error *e)
{
    bool foreign = false, elsewhere = false;
    int rc = take_shape(*set, made, out, e);
    if (rc == STK_OK)
        rc = take_type(h, type, out, e);
    if (rc == STK_OK)
        rc = take_sizes(out, e);
    if (rc == STK_OK)
        rc = take_filters(made, out, &foreign, e);
    if (rc == STK_OK)
        rc = take_fill(made, *type, out, e);
    if (rc == STK_OK)
        rc = take_layout(h, *set, made, out, &elsewhere, e);
    if (rc == STK_OK && (foreign || elsewhere))
        rc = keep_foreign(set, out, e);
    if (rc == STK_OK)
        widen_chunks(out);
    return rc;
}

int hdf5_describe(struct hdf5 *h, const char *name, bool whole, struct hdf5_array *out, stk_error *e)
{
    *out = (struct hdf5_array){0};
    const struct quiet q = quiet_begin();
    int rc = STK_OK;
    hid_t set = H5Dopen2(h->file, name, H5P_DEFAULT);
    if (set < 0) {
        rc = fails(e, "cannot be opened");
    } else {
        const hid_t made = H5Dget_create_plist(set);
        hid_t type = H5Dget_type(set);
        rc = made < 0 || type < 0 ? fails(e, "has no type") : describe(h, &set, made, &type, out, e);
        H5Tclose(type);
        H5Pclose(made);
    }
    if (set >= 0)
        H5Dclose(set);
    quiet_end(q);
    if (rc == STK_OK && whole)
        rc = make_whole(out, e);
    if (rc != STK_OK)
        hdf5_array_done(out);
    return rc;
}
