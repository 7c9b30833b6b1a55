/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.c -- Python functions that the engine calls from its threads.
 *
 * A function gets (thread, epoch, position, sample, label, random) and memoryviews of the row. The views are invalid
 * after it returns. It returns None, or a str that says why the sample is bad. The package wraps the user's function:
 * only KeyboardInterrupt and SystemExit pass, and only in the main thread.
 *
 * A signal handler may also raise before the first line of that wrapper, and then anything. Handlers run in the main
 * thread, which asks for rows: there an exception stays set until loader.c has the GIL again. No hook calls Python
 * until then; an allocator in Python may still be called (pinned.c).
 */
#include "extension.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ calling */

struct gil hooks_begin(struct hooks *h, struct hook_call *c)
{
    const struct gil gil = gil_take();
    *c = (struct hook_call){.thread = PyThread_get_thread_ident(), .next = h->calls};
    h->calls = c;
    return gil;
}

void hooks_end(struct hooks *h, struct hook_call *c, struct gil gil)
{
    struct hook_call **at = &h->calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    gil_give(gil);
}

bool hooks_inside(const struct hooks *h)
{
    const struct hook_call *c = h->calls;
    while (c && c->thread != PyThread_get_thread_ident())
        c = c->next;
    return c != NULL;
}

bool hooks_interrupted(struct gil gil)
{
    return !gil.made && PyErr_Occurred();
}

int hooks_stop(stk_error *e)
{
    snprintf(e->reason, sizeof e->reason, "interrupted");
    e->code = STK_ENOMEM; /* as with too little memory, the sample is not to blame: it is not skipped or replaced */
    return e->code;
}

static int failed(stk_error *e, PyObject *result, struct gil gil)
{
    const char *words = NULL;
    if (result && PyUnicode_Check(result))
        words = PyUnicode_AsUTF8AndSize(result, NULL);
    if (hooks_interrupted(gil) && !result)
        return hooks_stop(e);
    if (!words)
        PyErr_Clear();
    snprintf(e->reason, sizeof e->reason, "%s", words ? words : "the Python function failed without a message");
    e->code = STK_EDATA;
    return STK_EDATA;
}

/* Steals the reference to views. */
static int call(PyObject *function, const stk_row *r, PyObject *views, stk_error *e, struct gil gil)
{
    PyObject *result = NULL;
    if (views)
        result = PyObject_CallFunction(function, "(iLLLLK)N", r->thread, (long long)r->epoch, (long long)r->position,
                                       (long long)r->sample, (long long)r->label, (unsigned long long)r->random, views);
    const int rc = result == Py_None ? STK_OK : failed(e, result, gil);
    Py_XDECREF(result);
    return rc;
}

static PyObject *view_of(void *p, size_t bytes)
{
    return PyMemoryView_FromMemory(p, (Py_ssize_t)bytes, PyBUF_WRITE);
}

static int run_fill(void *user, const stk_row *row, void *const *to, stk_error *e)
{
    struct hooks *h = user;
    struct hook_call here;
    const struct gil gil = hooks_begin(h, &here);
    PyObject *views = hooks_interrupted(gil) ? NULL : PyTuple_New(h->n_fields);
    for (int i = 0; views && i < h->n_fields; i++) {
        PyObject *view = view_of(to[i], h->about[i].bytes);
        if (view)
            PyTuple_SetItem(views, i, view);
        else
            Py_CLEAR(views);
    }
    const int rc = call(h->fill, row, views, e, gil);
    hooks_end(h, &here, gil);
    return rc;
}

static size_t bytes_of(const stk_array *a)
{
    size_t n = memory_item_bytes(a->dtype);
    for (int d = 0; d < a->ndim; d++)
        n *= (size_t)a->shape[d];
    return n;
}

static int run_op(void *user, const stk_row *row, stk_error *e)
{
    struct hooks *h = user;
    const size_t in = bytes_of(row->image), out = h->on_row.result ? h->about_result.bytes : in;
    struct hook_call here;
    const struct gil gil = hooks_begin(h, &here);
    const bool stop = hooks_interrupted(gil);
    PyObject *from = stop ? NULL : view_of(row->image->data, in), *to = stop ? NULL : view_of(row->to, out);
    PyObject *views = from && to ? PyTuple_Pack(2, from, to) : NULL;
    Py_XDECREF(from);
    Py_XDECREF(to);
    snprintf(e->stage, sizeof e->stage, "op");
    const int rc = call(h->op, row, views, e, gil);
    hooks_end(h, &here, gil);
    return rc;
}

static int64_t count(void *user)
{
    return ((const struct hooks *)user)->count;
}

/* ------------------------------------------------------------------ describing */

static int take_shape(stk_array *a, struct hook_field *f, PyObject *shape)
{
    a->ndim = (int)PyTuple_Size(shape);
    if (a->ndim > HOOK_DIMS) {
        PyErr_SetString(PyExc_ValueError, "a field has too many dimensions; at most 8 are supported");
        return -1;
    }
    for (int d = 0; d < a->ndim; d++) {
        f->shape[d] = PyLong_AsLongLong(PyTuple_GetItem(shape, d));
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* (name, dtype, shape) */
static int take_field(stk_array *a, struct hook_field *f, PyObject *spec)
{
    const char *name;
    int dtype;
    PyObject *shape;
    if (!PyArg_ParseTuple(spec, "siO!", &name, &dtype, &PyTuple_Type, &shape))
        return -1;
    *a = (stk_array){.name = f->name, .dtype = (stk_dtype)dtype, .shape = f->shape, .device = 1};
    snprintf(f->name, sizeof f->name, "%s", name);
    if (take_shape(a, f, shape))
        return -1;
    f->bytes = bytes_of(a);
    return 0;
}

int hooks_set_fill(struct hooks *h, PyObject *spec)
{
    PyObject *function, *fields;
    long long n;
    if (!PyArg_ParseTuple(spec, "OLO!", &function, &n, &PyTuple_Type, &fields))
        return -1;
    h->n_fields = (int)PyTuple_Size(fields);
    if (h->n_fields > HOOK_FIELDS) {
        PyErr_SetString(PyExc_ValueError, "too many fields; a function may fill at most 14");
        return -1;
    }
    for (int i = 0; i < h->n_fields; i++)
        if (take_field(&h->fields[i], &h->about[i], PyTuple_GetItem(fields, i)))
            return -1;
    h->count = n;
    h->fill = Py_NewRef(function);
    h->fill_hooks =
        (stk_fill_hooks){.user = h, .count = count, .fill = run_fill, .fields = h->fields, .n_fields = h->n_fields};
    return 0;
}

int hooks_set_op(struct hooks *h, PyObject *spec)
{
    PyObject *function, *result;
    if (!PyArg_ParseTuple(spec, "OO", &function, &result))
        return -1;
    if (result != Py_None && take_field(&h->result, &h->about_result, result))
        return -1;
    h->op = Py_NewRef(function);
    h->on_row = (stk_op_hook){.user = h, .run = run_op, .result = result != Py_None ? &h->result : NULL};
    return 0;
}
