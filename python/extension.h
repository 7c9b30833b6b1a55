/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extension.h -- shared by the files of the extension module _stoker.
 *
 * The module is thin. It converts Python objects to the options of stoker.h, and batches to buffers. Users see the
 * package stoker, which is written in Python. There is no global state but in gil.c: the types and the function
 * that makes exceptions are in the module's state.
 */
#ifndef EXTENSION_H
#define EXTENSION_H

#include <Python.h>

#include <stdbool.h>
#include <sys/types.h>

#include "stoker.h"

struct state {
    PyObject *memory_type, *loader_type, *source_type, *arrow_type, *ops_type;
    PyObject *make_error; /* turns the members of a stk_error into an exception */
    int n_closing;        /* threads of closing.c that are running in this process */
    pid_t closing_pid;
};

/* module.c */
/* Sets the exception for *e, unless one is set already; returns NULL. */
PyObject *module_raise(const struct state *s, const stk_error *e);
/* As PyUnicode_FSConverter; reports text with a null byte as a UsageError. */
int module_path(PyObject *value, void *bytes);
/* Bytes of a path or name to str, as os.fsdecode does. */
PyObject *module_text(const char *bytes);
/* UTF-8 text to str. It may have been cut in the middle of a character. */
PyObject *module_words(const char *utf8);
/* A list of the classes' names. */
PyObject *module_classes(const stk_source *s);
/* Text about one sample: stk_source_path or stk_source_key. */
PyObject *module_text_of(const stk_source *s, int64_t sample,
                         size_t (*of)(const stk_source *, int64_t, char *, size_t));

/* memory.c */
extern PyType_Spec memory_spec;
const char *memory_dtype_name(stk_dtype t);
size_t memory_item_bytes(stk_dtype t);
/* Field `a` of a batch. The object keeps the memory of this field alive, not the batch. */
PyObject *memory_new(const struct state *s, const stk_batch *b, const stk_array *a);

/* arrow.c: tables in Arrow's memory. */
struct arrow;
struct arrow_slot;
extern PyType_Spec arrow_spec;

/* One loader's use of a table: the chunk that each of its threads has pinned. */
struct arrow_reader {
    struct arrow *table; /* NULL: none */
    struct arrow_slot *slots;
};

/* gil.c: the GIL for threads of the engine. */
struct gil {
    PyThreadState *made; /* for this call; NULL: Python knows the thread */
    PyGILState_STATE known;
};

int gil_init(void); /* 0, or -1 with an exception */
struct gil gil_take(void);
void gil_give(struct gil g);

/* hooks.c: Python functions that the engine calls from its threads. */
enum { HOOK_FIELDS = 14, HOOK_DIMS = 8 };

struct hook_field {
    char name[64];
    int64_t shape[HOOK_DIMS];
    size_t bytes;
};

/* A running call, on the stack of its thread. */
struct hook_call {
    unsigned long thread;
    struct hook_call *next;
};

struct hooks {
    PyObject *fill, *op; /* callables; NULL: none */
    struct arrow_reader arrow;
    struct hook_call *calls; /* protected by the GIL */
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

/* The specs are (callable, count, ((name, dtype, shape), ...)) and (callable, None or (name, dtype, shape)). */
int hooks_set_fill(struct hooks *h, PyObject *spec);
int hooks_set_op(struct hooks *h, PyObject *spec);
/* Whether this thread is inside one of the functions. */
bool hooks_inside(const struct hooks *h);
/* Take and release the GIL around a call of Python from a thread of the engine. */
struct gil hooks_begin(struct hooks *h, struct hook_call *c);
void hooks_end(struct hooks *h, struct hook_call *c, struct gil gil);
/* Whether an exception is set in the thread that asked for rows, by this call of a hook or by an earlier one. After an
 * earlier one, a hook fails without calling Python. */
bool hooks_interrupted(struct gil gil);
int hooks_stop(stk_error *e); /* the error of such a hook */

/* options.c: converts a dict to options, and owns everything they point to. */
struct options {
    stk_options o;
    PyObject *kept;   /* list of bytes objects */
    Py_buffer *views; /* arrays, subset, weights */
    int n_views;
    stk_array *arrays;
    const char **classes, **sources, **source_fields;
    struct hooks hooks;
    PyObject *pinned; /* allocates batches; NULL: the engine does */
    stk_allocator allocator;
};

int options_read(struct options *to, PyObject *dict); /* 0, or -1 with an exception; options_done in both cases */
void options_done(struct options *o);
/* Opens the source that the options describe. Releases the GIL meanwhile. */
int options_open_source(const struct options *o, stk_source **out, stk_error *e);

/* closing.c */
PyObject *closing_wait(PyObject *module, PyObject *none);

/* ops.c: ops on images in memory. */
extern PyType_Spec ops_spec;

/* draw.c */
PyObject *draw_sheet(PyObject *module, PyObject *args);

/* loader.c, source.c */
extern PyType_Spec loader_spec, source_spec;
PyObject *source_scan(PyObject *module, PyObject *args);

/* pinned.c: an object with allocate(bytes), which returns an address, and free(address). */
stk_allocator pinned_allocator(PyObject *allocator);

/* pack.c */
PyObject *pack_source(PyObject *module, PyObject *args);
PyObject *pack_undo(PyObject *module, PyObject *args);

#endif
