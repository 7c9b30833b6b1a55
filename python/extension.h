/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extension.h -- what the files of the extension module _stoker share.
 *
 * The module is thin: it turns Python's objects into the options of stoker.h and batches into buffers.
 * What users see is the package stoker, in Python. There is no global state: types and the maker of
 * exceptions are in the state of the module.
 */
#ifndef EXTENSION_H
#define EXTENSION_H

#include <Python.h>

#include <stdbool.h>
#include <sys/types.h>

#include "stoker.h"

struct state {
    PyObject *memory_type, *loader_type, *source_type, *arrow_type;
    PyObject *make_error; /* called with the parts of a stk_error, gives an exception */
    int n_closing;        /* loaders that are being closed by threads of their own, in this process: closing.c */
    pid_t closing_pid;
};

/* module.c */
/* Sets the exception for *e; returns NULL. */
PyObject *module_raise(const struct state *s, const stk_error *e);
/* As PyUnicode_FSConverter; reports text with a null byte as a UsageError. */
int module_path(PyObject *value, void *bytes);
/* A path or name as bytes to str, as os.fsdecode does. */
PyObject *module_text(const char *bytes);
/* Words, which may have been cut in the middle of a letter. */
PyObject *module_words(const char *utf8);

/* memory.c */
extern PyType_Spec memory_spec;
const char *memory_dtype_name(stk_dtype t);
size_t memory_item_bytes(stk_dtype t);
/* The field a of a batch; the object keeps the memory of the field, not the batch. */
PyObject *memory_new(const struct state *s, const stk_batch *b, const stk_array *a);

/* arrow.c: a table in Arrow's memory. */
struct arrow;
struct arrow_slot;
extern PyType_Spec arrow_spec;

/* What one loader has of a table: which chunk each of its threads is at. */
struct arrow_reader {
    struct arrow *table; /* NULL: none */
    struct arrow_slot *slots;
};

/* hooks.c: functions of Python that the engine calls from its threads. */
enum { HOOK_FIELDS = 14, HOOK_DIMS = 8 };

struct hook_field {
    char name[64];
    int64_t shape[HOOK_DIMS];
    size_t bytes;
};

/* A call under way, on the stack of its thread. */
struct hook_call {
    unsigned long thread;
    struct hook_call *next;
};

struct hooks {
    PyObject *fill, *op; /* callables; NULL: none */
    struct arrow_reader arrow;
    struct hook_call *calls; /* under the GIL */
    int64_t count;
    stk_array fields[HOOK_FIELDS];
    struct hook_field about[HOOK_FIELDS];
    int n_fields;
    stk_array result;
    struct hook_field about_result;
    stk_fill_hooks fill_hooks;
    stk_cells_hooks cells_hooks;
    stk_op_hook on_row;
};

/* (callable, count, ((name, dtype, shape), ...)) and (callable, None or (name, dtype, shape)). */
int hooks_set_fill(struct hooks *h, PyObject *spec);
int hooks_set_op(struct hooks *h, PyObject *spec);
/* Whether this thread is in one of the functions, or on its way. */
bool hooks_inside(const struct hooks *h);
/* Around a call of Python's from a thread of the engine. */
PyGILState_STATE hooks_begin(struct hooks *h, struct hook_call *c);
void hooks_end(struct hooks *h, struct hook_call *c, PyGILState_STATE gil);

/* options.c: a dict becomes options, and what they point to. */
struct options {
    stk_options o;
    PyObject *kept;   /* list of bytes objects */
    Py_buffer *views; /* arrays, subset, weights */
    int n_views;
    stk_array *arrays;
    const char **classes, **sources, **source_fields;
    struct hooks hooks;
};

int options_read(struct options *to, PyObject *dict); /* 0, or -1 with an exception; options_done in both cases */
void options_done(struct options *o);
/* Opens the source that the options describe. Releases the GIL meanwhile. */
int options_open_source(const struct options *o, stk_source **out, stk_error *e);

/* closing.c */
PyObject *closing_wait(PyObject *module, PyObject *none);

/* draw.c */
PyObject *draw_sheet(PyObject *module, PyObject *args);

/* loader.c, source.c */
extern PyType_Spec loader_spec, source_spec;
PyObject *source_scan(PyObject *module, PyObject *args); /* goes over all samples */

/* pack.c */
PyObject *pack_source(PyObject *module, PyObject *args);
PyObject *pack_undo(PyObject *module, PyObject *args);

#endif
