/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c -- the type Loader. Batches are tuples of Memory.
 *
 * Waiting releases the GIL and checks for signals every SLICE_MS. `users` counts the threads inside the engine; close()
 * wakes them and waits until they have left, because stk_close must be the last call. Threads of the engine may be
 * inside a Python function. So every call that waits for them, or for a lock they may hold, releases the GIL first.
 * There is no tp_clear: every reference cycle through a loader also goes through Python objects that can be cleared.
 */
#include "loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLICE_MS = 50 };

const struct state *loader_state(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

static void raise_closed(struct loader *o)
{
    const stk_error e = {
        .code = STK_STOPPED, .sample = -1, .reason = "the loader is closed", .text = "the loader is closed"};
    module_raise(loader_state((PyObject *)o), &e);
}

/* In a forked child stk_next_wait fails at once; its error explains why. */
static void raise_forked(struct loader *o)
{
    stk_error e;
    stk_batch *none;
    stk_next_wait(o->l, &none, 0, &e);
    module_raise(loader_state((PyObject *)o), &e);
}

stk_loader *loader_enter(struct loader *o)
{
    if (!o->l || o->closing) {
        raise_closed(o);
        return NULL;
    }
    if (o->pid != getpid()) {
        raise_forked(o);
        return NULL;
    }
    o->users++;
    return o->l;
}

void loader_leave(struct loader *o)
{
    o->users--;
}

stk_loader *loader_begin(struct loader *o, PyThreadState **thread)
{
    stk_loader *l = loader_enter(o);
    if (l)
        *thread = PyEval_SaveThread();
    return l;
}

void loader_end(struct loader *o, PyThreadState *thread)
{
    PyEval_RestoreThread(thread);
    loader_leave(o);
}

/* ------------------------------------------------------------------ open and close */

static PyObject *open_loader(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    PyObject *dict;
    if (!PyArg_ParseTuple(args, "O!", &PyDict_Type, &dict))
        return NULL;
    struct loader *o = (struct loader *)PyType_GenericAlloc(type, 0);
    if (!o)
        return NULL;
    o->options = calloc(1, sizeof *o->options);
    if (!o->options)
        PyErr_NoMemory();
    if (!o->options || options_read(o->options, dict)) {
        Py_DECREF(o);
        return NULL;
    }
    o->pid = getpid();
    stk_error e;
    PyThreadState *thread = PyEval_SaveThread();
    const int rc = stk_open(&o->l, &o->options->o, &e);
    PyEval_RestoreThread(thread);
    if (rc != STK_OK) {
        module_raise(PyType_GetModuleState(type), &e);
        Py_DECREF(o);
        return NULL;
    }
    return (PyObject *)o;
}

static void shut(struct loader *o)
{
    stk_loader *l = o->l;
    if (!l || o->closing)
        return;
    o->closing = true;
    PyThreadState *stopping = PyEval_SaveThread(); /* a thread may wait for the GIL with the engine's lock */
    stk_stop(l);
    PyEval_RestoreThread(stopping);
    const struct timespec pause = {.tv_nsec = 200 * 1000};
    while (o->users > 0 && o->pid == getpid()) {
        PyThreadState *thread = PyEval_SaveThread();
        nanosleep(&pause, NULL);
        PyEval_RestoreThread(thread);
    }
    PyThreadState *thread = PyEval_SaveThread();
    stk_close(l);
    PyEval_RestoreThread(thread);
    o->l = NULL;
}

static PyObject *close_loader(PyObject *self, PyObject *none)
{
    (void)none;
    shut((struct loader *)self);
    Py_RETURN_NONE;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    const struct loader *o = (struct loader *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(o->options ? o->options->hooks.fill : NULL);
    Py_VISIT(o->options ? o->options->hooks.op : NULL);
    return 0;
}

/* Whether threads of the engine may be inside a Python function. */
static bool runs_python(const struct loader *o)
{
    return o->l && !o->closing && o->pid == getpid() &&
           (o->options->hooks.fill || o->options->hooks.op || o->options->hooks.arrow.table || o->options->pinned);
}

static void forget_wanted(struct loader *o)
{
    for (int i = 0; i < o->n_wanted; i++)
        free(o->wanted[i]);
    free(o->wanted);
    o->wanted = NULL;
    o->n_wanted = 0;
}

static void dealloc(PyObject *self)
{
    struct loader *o = (struct loader *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (!runs_python(o) || !loader_close_later(o))
        shut(o);
    if (o->options)
        options_done(o->options);
    free(o->options);
    forget_wanted(o);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* ------------------------------------------------------------------ batches */

/* Fields that exist by name only. fields() lists them last, in this order. */
static const char *const on_request[] = {"index", "position", "valid"};
enum { ON_REQUEST = 3 };

static const stk_array *field_at(const stk_batch *b, int i)
{
    const int n = stk_batch_n_fields(b);
    return i < n ? stk_field_at(b, i) : stk_field(b, on_request[i - n]);
}

static PyObject *tuple_of(struct loader *o, const stk_batch *b)
{
    const struct state *s = loader_state((PyObject *)o);
    const int n = o->wanted ? o->n_wanted : stk_batch_n_fields(b);
    PyObject *fields = PyTuple_New(n);
    for (int i = 0; fields && i < n; i++) {
        PyObject *m = memory_new(s, b, o->wanted ? stk_field(b, o->wanted[i]) : field_at(b, i));
        if (m)
            PyTuple_SetItem(fields, i, m);
        else
            Py_CLEAR(fields);
    }
    return fields;
}

static int wait_for(stk_loader *l, stk_batch **b, stk_error *e)
{
    for (;;) {
        PyThreadState *thread = PyEval_SaveThread();
        const int rc = stk_next_wait(l, b, SLICE_MS, e);
        PyEval_RestoreThread(thread);
        if (rc != STK_AGAIN)
            return rc;
        if (PyErr_CheckSignals())
            return -1;
    }
}

static PyObject *next_batch(PyObject *self, PyObject *none)
{
    (void)none;
    struct loader *o = (struct loader *)self;
    stk_loader *l = loader_enter(o);
    if (!l)
        return NULL;
    stk_batch *b = NULL;
    stk_error e;
    PyObject *result = NULL;
    const int rc = wait_for(l, &b, &e);
    if (rc == STK_OK)
        result = tuple_of(o, b);
    else if (rc == STK_END)
        result = Py_NewRef(Py_None);
    else if (rc == STK_STOPPED)
        raise_closed(o);
    else if (rc >= 0)
        module_raise(loader_state(self), &e);
    stk_release(b);
    loader_leave(o);
    return result;
}

/* Takes a buffer of int64, or None. */
static int take_numbers(PyObject *object, Py_buffer *view)
{
    return object == Py_None ? 0 : PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS);
}

/* The rows, or None if the batch is left out. Releases the batch, and leaves the loader. An exception that is set comes
 * from a hook in this thread: of a signal handler, or for lack of memory. */
static PyObject *hand_over(struct loader *o, int rc, stk_batch *b, const stk_error *e)
{
    PyObject *result = PyErr_Occurred()  ? NULL
                       : rc == STK_OK    ? tuple_of(o, b)
                       : rc == STK_AGAIN ? Py_NewRef(Py_None)
                                         : module_raise(loader_state((PyObject *)o), e);
    stk_release(b);
    loader_leave(o);
    return result;
}

/* Arguments: (samples, positions, epoch). Samples or positions may be None. */
static PyObject *get_rows(PyObject *self, PyObject *args)
{
    struct loader *o = (struct loader *)self;
    Py_buffer samples = {0}, positions = {0};
    PyObject *which, *where;
    long long epoch;
    if (!PyArg_ParseTuple(args, "OOL", &which, &where, &epoch))
        return NULL;
    PyObject *result = NULL;
    stk_loader *l = NULL;
    if (take_numbers(which, &samples) == 0 && take_numbers(where, &positions) == 0)
        l = loader_enter(o);
    if (l) {
        const int64_t n = (samples.obj ? samples.len : positions.len) / 8;
        stk_batch *b;
        stk_error e;
        PyThreadState *thread = PyEval_SaveThread();
        const int rc = stk_loader_get(l, samples.buf, positions.buf, n, epoch, &b, &e);
        PyEval_RestoreThread(thread);
        result = hand_over(o, rc, b, &e);
    }
    PyBuffer_Release(&samples);
    PyBuffer_Release(&positions);
    return result;
}

/* Arguments: (epoch, first, samples or None, n, where to write the row under way, or None). None: left out. */
static PyObject *make_batch(PyObject *self, PyObject *args)
{
    struct loader *o = (struct loader *)self;
    Py_buffer samples = {0}, board = {0};
    PyObject *which, *where;
    long long epoch, first, n;
    if (!PyArg_ParseTuple(args, "LLOLO", &epoch, &first, &which, &n, &where))
        return NULL;
    PyObject *result = NULL;
    stk_loader *l = NULL;
    if (take_numbers(which, &samples) == 0 && take_numbers(where, &board) == 0)
        l = loader_enter(o);
    if (l) {
        stk_batch *b;
        stk_error e;
        PyThreadState *thread = PyEval_SaveThread();
        const int rc =
            stk_loader_make(l, epoch, first, samples.buf, samples.obj ? samples.len / 8 : n, board.buf, &b, &e);
        PyEval_RestoreThread(thread);
        result = hand_over(o, rc, b, &e);
    }
    PyBuffer_Release(&samples);
    PyBuffer_Release(&board);
    return result;
}

/* Arguments: (ahead). None: the batch is not known. */
static PyObject *span_of(PyObject *self, PyObject *args)
{
    struct loader *o = (struct loader *)self;
    long long ahead;
    PyThreadState *thread;
    if (!PyArg_ParseTuple(args, "L", &ahead))
        return NULL;
    stk_loader *l = loader_begin(o, &thread);
    if (!l)
        return NULL;
    stk_error e;
    int64_t epoch, first, n;
    const int rc = stk_loader_span(l, ahead, &epoch, &first, &n, &e);
    loader_end(o, thread);
    if (rc == STK_END)
        Py_RETURN_NONE;
    return rc == STK_OK ? Py_BuildValue("LLL", (long long)epoch, (long long)first, (long long)n)
                        : module_raise(loader_state(self), &e);
}

static PyObject *pass_batch(PyObject *self, PyObject *none)
{
    (void)none;
    struct loader *o = (struct loader *)self;
    PyThreadState *thread;
    stk_loader *l = loader_begin(o, &thread);
    if (!l)
        return NULL;
    stk_error e;
    const int rc = stk_loader_pass(l, &e);
    loader_end(o, thread);
    return rc == STK_OK || rc == STK_END ? PyBool_FromLong(rc == STK_OK) : module_raise(loader_state(self), &e);
}

static PyObject *row_shape(const stk_array *a)
{
    PyObject *shape = PyTuple_New(a->ndim - 1);
    for (int d = 1; shape && d < a->ndim; d++) {
        PyObject *n = PyLong_FromLongLong(a->shape[d]);
        if (!n || PyTuple_SetItem(shape, d - 1, n))
            Py_CLEAR(shape);
    }
    return shape;
}

static const char *const kinds[] = {
    [STK_IMAGE] = "image", [STK_INT] = "int",     [STK_FLOAT] = "float",     [STK_TENSOR] = "tensor",
    [STK_BYTES] = "bytes", [STK_TEXT] = "text",   [STK_JSON] = "json",       [STK_MASK] = "mask",
    [STK_MASKS] = "masks", [STK_BOXES] = "boxes", [STK_POINTS] = "keypoints"};

/* The suffixes of the arrays that describe the rows of a ragged field. */
static PyObject *beside(const stk_batch *b, const char *name)
{
    static const char *const suffixes[] = {"offsets", "lengths", "shapes", "sizes"};
    PyObject *found = PyList_New(0);
    for (int i = 0; found && i < 4; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s.%s", name, suffixes[i]);
        if (!stk_field(b, text))
            continue;
        PyObject *word = PyUnicode_FromString(suffixes[i]);
        if (!word || PyList_Append(found, word))
            Py_CLEAR(found);
        Py_XDECREF(word);
    }
    return found;
}

/* (name, dtype, shape of a row, kind, suffixes of further arrays) */
static PyObject *about_field(const stk_batch *b, int i)
{
    const stk_array *a = field_at(b, i);
    return Py_BuildValue("NsNsN", module_text(a->name), memory_dtype_name(a->dtype), row_shape(a), kinds[a->kind],
                         beside(b, a->name));
}

/* Describes all fields. */
static PyObject *fields_of(PyObject *self, PyObject *none)
{
    (void)none;
    struct loader *o = (struct loader *)self;
    stk_loader *l = loader_enter(o);
    if (!l)
        return NULL;
    stk_batch *b;
    stk_error e;
    PyThreadState *thread = PyEval_SaveThread();
    const int rc = stk_loader_get(l, NULL, NULL, 0, 0, &b, &e);
    PyEval_RestoreThread(thread);
    if (rc != STK_OK) {
        module_raise(loader_state(self), &e);
        loader_leave(o);
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < stk_batch_n_fields(b) + ON_REQUEST; i++) {
        PyObject *about = about_field(b, i);
        if (!about || PyList_Append(list, about))
            Py_CLEAR(list);
        Py_XDECREF(about);
    }
    stk_release(b);
    loader_leave(o);
    return list;
}

/* The package passes only names that fields() listed. */
static PyObject *select_fields(PyObject *self, PyObject *args)
{
    struct loader *o = (struct loader *)self;
    PyObject *names;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &names))
        return NULL;
    forget_wanted(o);
    const int n = (int)PyTuple_Size(names);
    o->wanted = calloc((size_t)n + 1, sizeof *o->wanted);
    if (!o->wanted)
        return PyErr_NoMemory();
    for (; o->n_wanted < n; o->n_wanted++) {
        PyObject *bytes = NULL;
        if (!module_path(PyTuple_GetItem(names, o->n_wanted), &bytes))
            return NULL;
        o->wanted[o->n_wanted] = strdup(PyBytes_AsString(bytes));
        Py_DECREF(bytes);
        if (!o->wanted[o->n_wanted])
            return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ order and state */

/* Moves the loader to a saved state; NULL: to the start of an epoch. */
static PyObject *move_to(PyObject *self, const char *saved, int64_t epoch)
{
    struct loader *o = (struct loader *)self;
    PyThreadState *thread;
    stk_loader *l = loader_begin(o, &thread);
    if (!l)
        return NULL;
    stk_error e;
    const int rc = saved ? stk_state_set(l, saved, &e) : stk_set_epoch(l, epoch, &e);
    loader_end(o, thread);
    return rc == STK_OK ? Py_NewRef(Py_None) : module_raise(loader_state(self), &e);
}

static PyObject *set_epoch(PyObject *self, PyObject *args)
{
    long long epoch;
    return PyArg_ParseTuple(args, "L", &epoch) ? move_to(self, NULL, epoch) : NULL;
}

static PyObject *set_state(PyObject *self, PyObject *args)
{
    const char *saved;
    return PyArg_ParseTuple(args, "s", &saved) ? move_to(self, saved, 0) : NULL;
}

/* Arguments: (epoch, samples, starts or None). Samples and starts are buffers of int64. */
static PyObject *set_order(PyObject *self, PyObject *args)
{
    struct loader *o = (struct loader *)self;
    long long epoch;
    Py_buffer samples, starts = {0};
    if (!PyArg_ParseTuple(args, "Ly*z*", &epoch, &samples, &starts))
        return NULL;
    PyThreadState *thread;
    stk_loader *l = loader_begin(o, &thread);
    PyObject *result = NULL;
    if (l) {
        stk_error e;
        const int rc = stk_loader_set_order(l, epoch, samples.buf, samples.len / 8, starts.buf, starts.len / 8, &e);
        loader_end(o, thread);
        result = rc == STK_OK ? Py_NewRef(Py_None) : module_raise(loader_state(self), &e);
    }
    PyBuffer_Release(&samples);
    if (starts.obj)
        PyBuffer_Release(&starts);
    return result;
}

static PyMethodDef methods[] = {
    {"next", next_batch, METH_NOARGS, "The next batch, a tuple of Memory; None ends the epoch."},
    {"get", get_rows, METH_VARARGS, "get(samples, positions, epoch): makes these rows now."},
    {"make", make_batch, METH_VARARGS, "make(epoch, first, samples, n, row): makes a batch now; None: left out."},
    {"span", span_of, METH_VARARGS, "span(ahead): (epoch, first position, rows) of a batch to come; None: not known."},
    {"pass_batch", pass_batch, METH_NOARGS, "Moves past the next batch; False at the end of the epoch."},
    {"drawn", loader_drawn, METH_VARARGS, "drawn(sample, position, epoch): the random draws as JSON."},
    {"blended", loader_blended, METH_VARARGS, "blended(first, rows, row, epoch): how a row is combined, as JSON."},
    {"inside", loader_inside, METH_NOARGS, "Whether this thread is inside a function that the loader calls."},
    {"fields", fields_of, METH_NOARGS, "[(name, dtype, shape, kind, beside)]"},
    {"select", select_fields, METH_VARARGS, "Sets the names of the fields that batches have."},
    {"close", close_loader, METH_NOARGS, "Stops the threads and frees the loader."},
    {"set_epoch", set_epoch, METH_VARARGS, "Continues with the start of an epoch."},
    {"set_order", set_order, METH_VARARGS, "set_order(epoch, samples, starts)"},
    {"state", loader_state_text, METH_NOARGS, "The state as JSON text."},
    {"set_state", set_state, METH_VARARGS, "Continues where a state was saved."},
    {"length", loader_length, METH_NOARGS, "Batches in an epoch."},
    {"count", loader_count, METH_NOARGS, "Samples."},
    {"epoch", loader_epoch, METH_NOARGS, "The epoch of the next batch."},
    {"stats", loader_stats, METH_NOARGS, "Counters, as a dict."},
    {"explain", loader_explain, METH_NOARGS, "What the loader chose, and why."},
    {"bad_samples", loader_bad_samples, METH_NOARGS, "[(sample, path, stage, reason)]"},
    {"classes", loader_classes, METH_NOARGS, "Names of the classes."},
    {"path", loader_path, METH_VARARGS, "Path of a sample."},
    {"key", loader_key, METH_VARARGS, "Path within the source."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_new, open_loader},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_methods, methods},
    {Py_tp_doc, "A loader of the engine."},
    {0, NULL},
};

PyType_Spec loader_spec = {
    .name = "stoker._stoker.Loader",
    .basicsize = sizeof(struct loader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
