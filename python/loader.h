/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h -- a loader as an object of Python's, for loader.c, look.c and closing.c.
 */
#ifndef LOADER_H
#define LOADER_H

#include "extension.h"

struct loader {
    PyObject_HEAD stk_loader *l; /* NULL: closed */
    struct options *options;     /* apart, as it may outlive the object: see closing.c */
    pid_t pid;                   /* in a forked child the other users are not there */
    int users;
    bool closing;
    char **wanted; /* names of the fields to hand out; NULL: all but those on request */
    int n_wanted;
};

const struct state *loader_state(PyObject *self);
/* The loader, when it is open, or NULL with an exception; each enter has its leave. */
stk_loader *loader_enter(struct loader *o);
void loader_leave(struct loader *o);

/* closing.c: closes the loader some time soon, in a thread of its own; false: it could not, and nothing was done. */
bool loader_close_later(struct loader *o);

/* look.c: methods */
PyObject *loader_length(PyObject *self, PyObject *none);
PyObject *loader_count(PyObject *self, PyObject *none);
PyObject *loader_epoch(PyObject *self, PyObject *none);
PyObject *loader_stats(PyObject *self, PyObject *none);
PyObject *loader_explain(PyObject *self, PyObject *none);
PyObject *loader_bad_samples(PyObject *self, PyObject *none);
PyObject *loader_classes(PyObject *self, PyObject *none);
PyObject *loader_path(PyObject *self, PyObject *args);
PyObject *loader_key(PyObject *self, PyObject *args);
PyObject *loader_drawn(PyObject *self, PyObject *args);
PyObject *loader_inside(PyObject *self, PyObject *none);

#endif
