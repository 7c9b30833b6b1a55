/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinned.c -- the memory of batches from an allocator in Python, such as torch's for page-locked memory.
 *
 * Any thread of the engine allocates, and any thread frees: the last array of a batch may go in a thread without the
 * GIL, and after the loader. Each memory keeps the allocator. Torch itself follows copies from its memory, so memory
 * goes back to torch as soon as a batch is released.
 *
 * An exception may be set meanwhile: arrays are freed while one passes through their frame, and the engine releases a
 * batch after a signal handler has raised in a hook. It stays set.
 */
#include "extension.h"

static void *allocate(void *user, size_t bytes)
{
    const struct gil gil = gil_take();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *address = PyObject_CallMethod(user, "allocate", "n", (Py_ssize_t)bytes);
    void *p = address ? PyLong_AsVoidPtr(address) : NULL;
    /* The engine reports that there is no memory. Ctrl-C stays set in the thread that asked for rows, as in hooks.c. */
    if (type || !hooks_interrupted(gil) || PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Restore(type, value, trace);
    Py_XDECREF(address);
    if (p)
        Py_INCREF(user);
    gil_give(gil);
    return p;
}

static void give_back(void *user, void *p, size_t bytes)
{
    (void)bytes;
    if (!Py_IsInitialized()) /* the process ends: its memory goes with it */
        return;
    const struct gil gil = gil_take();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *address = PyLong_FromVoidPtr(p), *none = NULL;
    if (address)
        none = PyObject_CallMethod(user, "free", "O", address);
    PyErr_Clear();
    Py_XDECREF(none);
    Py_XDECREF(address);
    Py_DECREF((PyObject *)user);
    PyErr_Restore(type, value, trace);
    gil_give(gil);
}

stk_allocator pinned_allocator(PyObject *allocator)
{
    return (stk_allocator){.user = allocator, .alloc = allocate, .free = give_back, .cached = 1};
}
