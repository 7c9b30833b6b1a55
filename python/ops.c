/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c -- the type Ops: ops on images in memory, for those that follow a function in Python.
 */
#include "extension.h"

struct ops {
    PyObject_HEAD stk_ops *o;
    size_t item; /* bytes of an element of the result */
};

static PyObject *open_ops(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    const char *text;
    int dtype, layout;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "sii", &text, &dtype, &layout))
        return NULL;
    struct ops *self = (struct ops *)PyType_GenericAlloc(type, 0);
    stk_error e;
    if (!self || stk_ops_open(&self->o, text, (stk_dtype)dtype, (stk_layout)layout, &e) == STK_OK) {
        if (self)
            self->item = memory_item_bytes((stk_dtype)dtype);
        return (PyObject *)self;
    }
    Py_DECREF(self);
    return module_raise(PyType_GetModuleState(type), &e);
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    stk_ops_close(((struct ops *)self)->o);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *shape(PyObject *self, PyObject *args)
{
    int w, h;
    unsigned long long random;
    int64_t of[3];
    stk_error e;
    if (!PyArg_ParseTuple(args, "iiK", &h, &w, &random))
        return NULL;
    if (stk_ops_shape(((struct ops *)self)->o, w, h, random, of, &e) != STK_OK)
        return module_raise(PyType_GetModuleState(Py_TYPE(self)), &e);
    return Py_BuildValue("LLL", (long long)of[0], (long long)of[1], (long long)of[2]);
}

/* Whether the buffers have the sizes that the engine assumes. */
static int check(const struct ops *o, const Py_buffer *pixels, int w, int h, uint64_t random, const Py_buffer *to,
                 stk_error *e)
{
    int64_t of[3];
    const int rc = stk_ops_shape(o->o, w, h, random, of, e);
    if (rc != STK_OK)
        return rc;
    if (pixels->len / 3 / w < h || (size_t)to->len / o->item < (size_t)(of[0] * of[1] * of[2])) {
        PyErr_SetString(PyExc_ValueError, "the memory of the image or of the result is too small");
        return STK_EUSAGE;
    }
    return STK_OK;
}

/* run(pixels, height, width, random, to) */
static PyObject *run(PyObject *self, PyObject *args)
{
    const struct ops *o = (const struct ops *)self;
    Py_buffer pixels, to;
    int w, h;
    unsigned long long random;
    stk_error e;
    if (!PyArg_ParseTuple(args, "y*iiKw*", &pixels, &h, &w, &random, &to))
        return NULL;
    int rc = check(o, &pixels, w, h, random, &to, &e);
    if (rc == STK_OK) {
        PyThreadState *thread = PyEval_SaveThread();
        rc = stk_ops_run(o->o, pixels.buf, w, h, random, to.buf, &e);
        PyEval_RestoreThread(thread);
    }
    PyBuffer_Release(&pixels);
    PyBuffer_Release(&to);
    if (rc == STK_OK)
        Py_RETURN_NONE;
    return PyErr_Occurred() ? NULL : module_raise(PyType_GetModuleState(Py_TYPE(self)), &e);
}

static PyMethodDef methods[] = {
    {"shape", shape, METH_VARARGS, "shape(height, width, random): the shape of the result."},
    {"run", run, METH_VARARGS, "run(pixels, height, width, random, to): writes the result."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_new, open_ops},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Ops of the engine, for images in memory."},
    {0, NULL},
};

PyType_Spec ops_spec = {
    .name = "stoker._stoker.Ops",
    .basicsize = sizeof(struct ops),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
