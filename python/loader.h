/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h -- the type Loader, for loader.c, look.c and closing.c.
 */
#ifndef LOADER_H
#define LOADER_H

#include "extension.h"

struct loader {
    PyObject_HEAD stk_loader *l; /* NULL: closed */
    struct options *options;     /* on the heap, because it may outlive the object: see closing.c */
    pid_t pid;                   /* of the process that opened it; a forked child does not have the other users */
    int users;
    bool closing;
    char **wanted; /* names of the fields in a batch; NULL: all but those that exist by name only */
    int n_wanted;
};

const struct state *loader_state(PyObject *self);
/* Returns the loader, or NULL with an exception if it is closed. Call loader_leave after each success. */
stk_loader *loader_enter(struct loader *o);
void loader_leave(struct loader *o);
/* The same for calls that take time or wait for locks: the GIL is released in between. */
stk_loader *loader_begin(struct loader *o, PyThreadState **thread);
void loader_end(struct loader *o, PyThreadState *thread);

/* closing.c: starts a thread that closes the loader. False: it could not start one, and changed nothing. */
bool loader_close_later(struct loader *o);

/* look.c: methods */
PyObject *loader_length(PyObject *self, PyObject *none);
PyObject *loader_count(PyObject *self, PyObject *none);
PyObject *loader_epoch(PyObject *self, PyObject *none);
PyObject *loader_stats(PyObject *self, PyObject *none);
PyObject *loader_explain(PyObject *self, PyObject *none);
PyObject *loader_state_text(PyObject *self, PyObject *none);
PyObject *loader_bad_samples(PyObject *self, PyObject *none);
PyObject *loader_classes(PyObject *self, PyObject *none);
PyObject *loader_path(PyObject *self, PyObject *args);
PyObject *loader_key(PyObject *self, PyObject *args);
PyObject *loader_drawn(PyObject *self, PyObject *args);
PyObject *loader_blended(PyObject *self, PyObject *args);
PyObject *loader_inside(PyObject *self, PyObject *none);

#endif
