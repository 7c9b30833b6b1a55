/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c -- packing and unpacking; progress goes to Python functions.
 */
#include "extension.h"

struct packing {
    PyObject *begin, *progress; /* callables, or None */
    PyThreadState *thread;      /* saved while the engine runs */
    int64_t reported;           /* samples at the last call of progress */
};

static PyObject *report(const stk_pack_report *r)
{
    return Py_BuildValue("{sLsLsLsLsLsLsLsdsLsdsL}", "total", (long long)r->total, "samples", (long long)r->samples,
                         "bad", (long long)r->bad, "resumed", (long long)r->resumed, "bytes_in", (long long)r->bytes_in,
                         "bytes_out", (long long)r->bytes_out, "shards", (long long)r->shards, "seconds", r->seconds,
                         "expected_bytes", (long long)r->expected_bytes, "expected_seconds", r->expected_seconds,
                         "free_bytes", (long long)r->free_bytes);
}

/* Whether to stop: the function returned true or raised, or a signal arrived. */
static int call(PyObject *function, const stk_pack_report *r)
{
    if (function == Py_None)
        return PyErr_CheckSignals() != 0;
    PyObject *about = report(r);
    PyObject *answer = about ? PyObject_CallFunctionObjArgs(function, about, NULL) : NULL;
    const int stop = answer ? PyObject_IsTrue(answer) : 1;
    Py_XDECREF(answer);
    Py_XDECREF(about);
    return stop || PyErr_CheckSignals();
}

static int begin(void *user, const stk_pack_report *r)
{
    struct packing *p = user;
    PyEval_RestoreThread(p->thread);
    const int stop = call(p->begin, r);
    p->thread = PyEval_SaveThread();
    return stop;
}

static int progress(void *user, const stk_pack_report *r)
{
    enum { EVERY = 16 }; /* samples; taking the GIL for every sample is slow */
    struct packing *p = user;
    const int64_t done = r->samples + r->bad;
    if (done < p->reported + EVERY && done != r->total)
        return 0;
    p->reported = done;
    PyEval_RestoreThread(p->thread);
    const int stop = call(p->progress, r);
    p->thread = PyEval_SaveThread();
    return stop;
}

PyObject *pack_source(PyObject *module, PyObject *args)
{
    PyObject *dict, *out;
    struct packing p = {0};
    stk_pack_options how = {.begin = begin, .progress = progress, .user = &p};
    int to, as;
    long long shard_size;
    if (!PyArg_ParseTuple(args, "O!O&iiiLiippOO", &PyDict_Type, &dict, module_path, &out, &to, &as, &how.quality,
                          &shard_size, &how.resize_short, &how.resize_long, &how.baseline, &how.force, &p.begin,
                          &p.progress))
        return NULL;
    how.out = PyBytes_AsString(out);
    how.to = (stk_to)to;
    how.as = (stk_as)as;
    how.shard_size = shard_size;
    struct options options;
    PyObject *result = NULL;
    if (options_read(&options, dict) == 0) {
        stk_error e;
        stk_pack_report r;
        p.thread = PyEval_SaveThread();
        const int rc = stk_pack(&options.o, &how, &r, &e);
        PyEval_RestoreThread(p.thread);
        if (PyErr_Occurred() == NULL) {
            if (rc == STK_OK || rc == STK_STOPPED)
                result = report(&r);
            else
                module_raise(PyModule_GetState(module), &e);
        }
    }
    options_done(&options);
    Py_DECREF(out);
    return result;
}

PyObject *pack_undo(PyObject *module, PyObject *args)
{
    PyObject *source, *out;
    stk_unpack_options o = {0};
    if (!PyArg_ParseTuple(args, "O&O&pi", module_path, &source, module_path, &out, &o.force, &o.threads))
        return NULL;
    stk_error e;
    stk_pack_report r;
    int rc;
    o.out = PyBytes_AsString(out);
    const char *from = PyBytes_AsString(source);
    Py_BEGIN_ALLOW_THREADS rc = stk_unpack(from, &o, &r, &e);
    Py_END_ALLOW_THREADS Py_DECREF(source);
    Py_DECREF(out);
    return rc == STK_OK ? report(&r) : module_raise(PyModule_GetState(module), &e);
}
