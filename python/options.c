/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c -- converts a dict to stk_options, and owns everything they point to.
 */
#include "arrow.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ plain values */

enum kind { INT, I64, U64, DOUBLE, TEXT };

#define AT(member) offsetof(stk_options, member)

static const struct {
    const char *name;
    enum kind kind;
    size_t at;
} plain[] = {
    {"source", TEXT, AT(source)},
    {"take", I64, AT(take)},
    {"ops", TEXT, AT(ops)},
    {"dtype", INT, AT(dtype)},
    {"layout", INT, AT(layout)},
    {"sizes", INT, AT(sizes)},
    {"fidelity", INT, AT(fidelity)},
    {"no_exif", INT, AT(no_exif)},
    {"batch_size", I64, AT(batch_size)},
    {"shuffle", INT, AT(shuffle)},
    {"drop_last", INT, AT(drop_last)},
    {"pad_last", INT, AT(pad_last)},
    {"seed", U64, AT(seed)},
    {"rank", INT, AT(rank)},
    {"world_size", INT, AT(world_size)},
    {"on_error", INT, AT(on_error)},
    {"max_bad", DOUBLE, AT(max_bad)},
    {"threads", INT, AT(threads)},
    {"memory", I64, AT(memory)},
    {"cache", INT, AT(cache)},
    {"cache_dir", TEXT, AT(cache_dir)},
    {"fields", TEXT, AT(fields)},
    {"cache_size", I64, AT(cache_size)},
    {"steps_per_epoch", I64, AT(steps_per_epoch)},
    {"sampled", INT, AT(sampled)},
    {"keep_empty", INT, AT(keep_empty)},
    {"idle", INT, AT(idle)},
    {"cache_shared", INT, AT(cache_shared)},
    {"device", TEXT, AT(device)},
    {"device_work", INT, AT(device_work)},
};

/* Converts str or os.PathLike to bytes that live as long as the options. */
static const char *keep_text(struct options *to, PyObject *value)
{
    PyObject *bytes = NULL;
    if (!module_path(value, &bytes))
        return NULL;
    const int rc = PyList_Append(to->kept, bytes);
    Py_DECREF(bytes);
    return rc == 0 ? PyBytes_AsString(bytes) : NULL;
}

static int set_plain(struct options *to, enum kind kind, void *at, PyObject *value)
{
    switch (kind) {
    case INT:
        *(int *)at = (int)PyLong_AsLong(value);
        break;
    case I64:
        *(int64_t *)at = PyLong_AsLongLong(value);
        break;
    case U64:
        *(uint64_t *)at = PyLong_AsUnsignedLongLong(value);
        break;
    case DOUBLE:
        *(double *)at = PyFloat_AsDouble(value);
        break;
    case TEXT:
        *(const char **)at = keep_text(to, value);
        break;
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int take_plain(struct options *to, PyObject *dict)
{
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        PyObject *value = PyDict_GetItemString(dict, plain[i].name);
        if (value && value != Py_None && set_plain(to, plain[i].kind, (char *)&to->o + plain[i].at, value))
            return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------ lists and arrays */

static int take_names(struct options *to, PyObject *list, const char ***out, int *n)
{
    *n = (int)PyList_Size(list);
    *out = calloc((size_t)*n + 1, sizeof **out);
    if (*n < 0 || !*out)
        return -1;
    for (int i = 0; i < *n; i++) {
        PyObject *name = PyList_GetItem(list, i);
        if (name != Py_None && !((*out)[i] = keep_text(to, name)))
            return -1;
    }
    return 0;
}

static Py_buffer *add_view(struct options *to, PyObject *object, int flags)
{
    Py_buffer *views = realloc(to->views, ((size_t)to->n_views + 1) * sizeof *views);
    if (!views) {
        PyErr_NoMemory();
        return NULL;
    }
    to->views = views;
    if (PyObject_GetBuffer(object, &views[to->n_views], flags))
        return NULL;
    return &views[to->n_views++];
}

/* A dense buffer of 8-byte numbers. The package made it so. */
static const void *take_numbers(struct options *to, PyObject *object, int64_t *n)
{
    const Py_buffer *view = add_view(to, object, PyBUF_C_CONTIGUOUS);
    if (!view)
        return NULL;
    *n = view->len / 8;
    return view->buf;
}

/* (weights, counts), of the same length. */
static int take_mix(struct options *to, PyObject *pair)
{
    PyObject *weights, *counts;
    int64_t n = 0;
    if (!PyArg_ParseTuple(pair, "OO", &weights, &counts))
        return -1;
    to->o.mix = take_numbers(to, weights, &n);
    to->o.n_mix = (int)n;
    to->o.mix_counts = to->o.mix ? take_numbers(to, counts, &n) : NULL;
    return to->o.mix_counts ? 0 : -1;
}

/* The shape, followed by the strides in elements. */
static int64_t *shape_of(const Py_buffer *view)
{
    int64_t *shape = calloc(2 * (size_t)view->ndim + 2, sizeof *shape);
    if (!shape)
        return NULL;
    for (int d = 0; d < view->ndim; d++) {
        if (view->itemsize < 1 || view->strides[d] % view->itemsize != 0) {
            PyErr_Format(PyExc_ValueError,
                         "a stride of %zd bytes is not a multiple of the item size, %zd bytes; copy the array first",
                         view->strides[d], view->itemsize);
            free(shape);
            return NULL;
        }
        shape[d] = view->shape[d];
        shape[view->ndim + d] = view->strides[d] / view->itemsize;
    }
    return shape;
}

/* [(name, dtype, buffer), ...] */
static int take_arrays(struct options *to, PyObject *list)
{
    const int n = (int)PyList_Size(list);
    to->arrays = calloc((size_t)n + 1, sizeof *to->arrays);
    if (n < 0 || !to->arrays)
        return -1;
    for (int i = 0; i < n; i++) {
        PyObject *name, *object;
        int dtype;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OiO", &name, &dtype, &object))
            return -1;
        stk_array *a = &to->arrays[i];
        a->name = keep_text(to, name);
        const Py_buffer *view = a->name ? add_view(to, object, PyBUF_STRIDES) : NULL;
        if (!view)
            return -1;
        a->data = view->buf;
        a->dtype = (stk_dtype)dtype;
        a->ndim = view->ndim;
        a->device = 1;
        a->shape = shape_of(view);
        if (!a->shape)
            return -1;
        a->strides = a->shape + view->ndim;
        to->o.n_arrays = i + 1;
    }
    to->o.arrays = to->arrays;
    return 0;
}

static int take_rest(struct options *to, PyObject *dict)
{
    stk_options *o = &to->o;
    PyObject *value;
    int n;
    if ((value = PyDict_GetItemString(dict, "classes")) && take_names(to, value, &to->classes, &o->n_classes))
        return -1;
    if ((value = PyDict_GetItemString(dict, "sources")) && take_names(to, value, &to->sources, &o->n_sources))
        return -1;
    if ((value = PyDict_GetItemString(dict, "source_fields")) && take_names(to, value, &to->source_fields, &n))
        return -1;
    if ((value = PyDict_GetItemString(dict, "subset")) && !(o->subset = take_numbers(to, value, &o->n_subset)))
        return -1;
    if ((value = PyDict_GetItemString(dict, "weights")) && !(o->weights = take_numbers(to, value, &o->n_weights)))
        return -1;
    if ((value = PyDict_GetItemString(dict, "mix")) && take_mix(to, value))
        return -1;
    if ((value = PyDict_GetItemString(dict, "arrays")) && take_arrays(to, value))
        return -1;
    if ((value = PyDict_GetItemString(dict, "fill")) && hooks_set_fill(&to->hooks, value))
        return -1;
    if ((value = PyDict_GetItemString(dict, "arrow"))) {
        if (arrow_reader_init(&to->hooks.arrow, value))
            return -1;
        arrow_hooks(&to->hooks, &to->hooks.cells_hooks);
    }
    if ((value = PyDict_GetItemString(dict, "op")) && hooks_set_op(&to->hooks, value))
        return -1;
    if ((value = PyDict_GetItemString(dict, "allocator"))) {
        to->pinned = Py_NewRef(value);
        to->allocator = pinned_allocator(value);
        o->allocator = &to->allocator;
    }
    o->classes = to->classes;
    o->sources = to->sources;
    o->source_fields = to->source_fields;
    o->fill_hooks = to->hooks.fill ? &to->hooks.fill_hooks : NULL;
    o->cells_hooks = to->hooks.arrow.table ? &to->hooks.cells_hooks : NULL;
    o->op = to->hooks.op ? &to->hooks.on_row : NULL;
    return 0;
}

int options_read(struct options *to, PyObject *dict)
{
    memset(to, 0, sizeof *to);
    to->kept = PyList_New(0);
    if (!to->kept || take_plain(to, dict) || take_rest(to, dict)) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void options_done(struct options *o)
{
    for (int i = 0; i < o->n_views; i++)
        PyBuffer_Release(&o->views[i]);
    for (int i = 0; o->arrays && i < o->o.n_arrays; i++)
        free((void *)(uintptr_t)o->arrays[i].shape);
    free(o->views);
    free(o->arrays);
    free((void *)o->classes);
    free((void *)o->sources);
    free((void *)o->source_fields);
    Py_CLEAR(o->kept);
    Py_CLEAR(o->pinned);
    Py_CLEAR(o->hooks.fill);
    Py_CLEAR(o->hooks.op);
    arrow_reader_done(&o->hooks.arrow);
    memset(o, 0, sizeof *o);
}

int options_open_source(const struct options *from, stk_source **out, stk_error *e)
{
    const stk_options *o = &from->o;
    const stk_source_options source = {
        .source = o->source,
        .sources = o->sources,
        .n_sources = o->n_sources,
        .arrays = o->arrays,
        .n_arrays = o->n_arrays,
        .fill_hooks = o->fill_hooks,
        .cells_hooks = o->cells_hooks,
        .classes = o->classes,
        .n_classes = o->n_classes,
        .fields = o->fields,
        .source_fields = o->source_fields,
        .no_exif = o->no_exif,
        .threads = o->threads,
        .memory = o->memory,
        .cache_dir = o->cache_dir,
    };
    PyThreadState *thread = PyEval_SaveThread();
    const int rc = stk_source_open(out, &source, e);
    PyEval_RestoreThread(thread);
    return rc;
}
