/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look.c -- methods of Loader that change nothing: counts, names, state, statistics, explain().
 */
#include "loader.h"

#include <unistd.h>

static PyObject *get_number(PyObject *self, int64_t (*of)(stk_loader *l))
{
    struct loader *o = (struct loader *)self;
    PyThreadState *thread;
    stk_loader *l = loader_begin(o, &thread); /* a thread that allocates waits for the GIL with the ring's lock */
    if (!l)
        return NULL;
    const int64_t n = of(l);
    loader_end(o, thread);
    return PyLong_FromLongLong(n);
}

static int64_t length_of(stk_loader *l)
{
    return stk_length(l);
}

static int64_t count_of(stk_loader *l)
{
    return stk_loader_count(l);
}

PyObject *loader_length(PyObject *self, PyObject *none)
{
    (void)none;
    return get_number(self, length_of);
}

PyObject *loader_count(PyObject *self, PyObject *none)
{
    (void)none;
    return get_number(self, count_of);
}

PyObject *loader_epoch(PyObject *self, PyObject *none)
{
    (void)none;
    return get_number(self, stk_loader_epoch);
}

/* Releases the GIL, because the call waits for locks. */
static int get_mixed(stk_loader *l, int i, stk_mix_stats *to)
{
    PyThreadState *thread = PyEval_SaveThread();
    const int rc = stk_loader_mix(l, i, to);
    PyEval_RestoreThread(thread);
    return rc;
}

/* [(share, delivered samples), ...] of a mixture; otherwise empty. */
static PyObject *mixed(stk_loader *l)
{
    PyObject *list = PyList_New(0);
    stk_mix_stats m;
    for (int i = 0; list && get_mixed(l, i, &m) == STK_OK; i++) {
        PyObject *one = Py_BuildValue("(dL)", m.share, (long long)m.delivered);
        if (!one || PyList_Append(list, one))
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

PyObject *loader_stats(PyObject *self, PyObject *none)
{
    (void)none;
    struct loader *o = (struct loader *)self;
    stk_loader *l = loader_enter(o);
    if (!l)
        return NULL;
    static const char *const limits[] = {"unknown", "read", "decode", "transform", "op", "consumer"};
    stk_stats s = {0};
    PyThreadState *thread = PyEval_SaveThread();
    stk_stats_get(l, &s);
    PyEval_RestoreThread(thread);
    PyObject *sources = mixed(l);
    loader_leave(o);
    if (!sources)
        return NULL;
    return Py_BuildValue(
        "{sdsdsLsLsLsLsdsdsdsdsdsisLsLsLsLsssLsLsLsLsLsLsLsdsdsdsLsLsN}", "seconds", s.seconds, "waited_s", s.waited_s,
        "batches", (long long)s.batches, "samples", (long long)s.samples, "bad", (long long)s.bad, "read_bytes",
        (long long)s.read_bytes, "read_s", s.read_s, "decode_s", s.decode_s, "transform_s", s.transform_s, "op_s",
        s.op_s, "idle_s", s.idle_s, "threads", s.threads, "memory_bytes", (long long)s.memory_bytes, "memory_limit",
        (long long)s.memory_limit, "kept_bytes", (long long)s.kept_bytes, "warnings", (long long)s.warnings, "limit",
        limits[s.limit], "cache_entries", (long long)s.cache_entries, "cache_bytes", (long long)s.cache_bytes,
        "cache_disk_bytes", (long long)s.cache_disk_bytes, "cache_hits", (long long)s.cache_hits, "cache_misses",
        (long long)s.cache_misses, "device_bytes", (long long)s.device_bytes, "copied_bytes", (long long)s.copied_bytes,
        "copy_s", s.copy_s, "kernel_s", s.kernel_s, "stream_waited_s", s.stream_waited_s, "device_samples",
        (long long)s.device_samples, "device_decoded", (long long)s.device_decoded, "sources", sources);
}

static PyObject *text_about(PyObject *self, size_t (*of)(stk_loader *l, char *buf, size_t n))
{
    struct loader *o = (struct loader *)self;
    PyThreadState *thread;
    stk_loader *l = loader_begin(o, &thread);
    if (!l)
        return NULL;
    char text[8192];
    of(l, text, sizeof text);
    loader_end(o, thread);
    return module_words(text);
}

PyObject *loader_explain(PyObject *self, PyObject *none)
{
    (void)none;
    return text_about(self, stk_explain);
}

PyObject *loader_state_text(PyObject *self, PyObject *none)
{
    (void)none;
    return text_about(self, stk_state_get);
}

static int bad_sample(stk_loader *l, int64_t i, stk_error *e)
{
    PyThreadState *thread = PyEval_SaveThread();
    const int rc = stk_loader_bad_sample(l, i, e);
    PyEval_RestoreThread(thread);
    return rc;
}

/* [(sample, path, stage, reason)] */
PyObject *loader_bad_samples(PyObject *self, PyObject *none)
{
    (void)none;
    struct loader *o = (struct loader *)self;
    stk_loader *l = loader_enter(o);
    if (!l)
        return NULL;
    PyObject *list = PyList_New(0);
    stk_error e;
    for (int64_t i = 0; list && bad_sample(l, i, &e) == STK_OK; i++) {
        PyObject *bad =
            Py_BuildValue("LNsN", (long long)e.sample, module_text(e.path), e.stage, module_words(e.reason));
        if (!bad || PyList_Append(list, bad))
            Py_CLEAR(list);
        Py_XDECREF(bad);
    }
    loader_leave(o);
    return list;
}

PyObject *loader_classes(PyObject *self, PyObject *none)
{
    (void)none;
    struct loader *o = (struct loader *)self;
    stk_loader *l = loader_enter(o);
    if (!l)
        return NULL;
    PyObject *list = module_classes(stk_loader_source(l));
    loader_leave(o);
    return list;
}

static PyObject *text_of(PyObject *self, PyObject *args, size_t (*of)(const stk_source *, int64_t, char *, size_t))
{
    struct loader *o = (struct loader *)self;
    long long sample;
    if (!PyArg_ParseTuple(args, "L", &sample))
        return NULL;
    stk_loader *l = loader_enter(o);
    if (!l)
        return NULL;
    PyObject *text = module_text_of(stk_loader_source(l), sample, of);
    loader_leave(o);
    return text;
}

PyObject *loader_path(PyObject *self, PyObject *args)
{
    return text_of(self, args, stk_source_path);
}

PyObject *loader_key(PyObject *self, PyObject *args)
{
    return text_of(self, args, stk_source_key);
}

/* Arguments: (sample or None, position or None, epoch). */
PyObject *loader_drawn(PyObject *self, PyObject *args)
{
    struct loader *o = (struct loader *)self;
    PyObject *which, *where;
    long long epoch;
    if (!PyArg_ParseTuple(args, "OOL", &which, &where, &epoch))
        return NULL;
    const int64_t sample = which == Py_None ? -1 : PyLong_AsLongLong(which);
    const int64_t position = where == Py_None ? -1 : PyLong_AsLongLong(where);
    if (PyErr_Occurred())
        return NULL;
    PyThreadState *thread;
    stk_loader *l = loader_begin(o, &thread);
    if (!l)
        return NULL;
    char text[STK_DRAWN_BYTES];
    stk_error e;
    const int rc = stk_loader_drawn(l, which == Py_None ? NULL : &sample, where == Py_None ? NULL : &position, epoch,
                                    text, sizeof text, &e);
    loader_end(o, thread);
    return rc == STK_OK ? PyUnicode_FromString(text) : module_raise(loader_state(self), &e);
}

/* Arguments: (first position, rows, row, epoch). */
PyObject *loader_blended(PyObject *self, PyObject *args)
{
    struct loader *o = (struct loader *)self;
    long long first, rows, row, epoch;
    if (!PyArg_ParseTuple(args, "LLLL", &first, &rows, &row, &epoch))
        return NULL;
    PyThreadState *thread;
    stk_loader *l = loader_begin(o, &thread);
    if (!l)
        return NULL;
    char text[STK_DRAWN_BYTES];
    stk_error e;
    const int rc = stk_loader_blended(l, first, rows, row, epoch, text, sizeof text, &e);
    loader_end(o, thread);
    return rc == STK_OK ? PyUnicode_FromString(text) : module_raise(loader_state(self), &e);
}

PyObject *loader_inside(PyObject *self, PyObject *none)
{
    (void)none;
    const struct loader *o = (struct loader *)self;
    return PyBool_FromLong(o->l && o->pid == getpid() && hooks_inside(&o->options->hooks));
}
