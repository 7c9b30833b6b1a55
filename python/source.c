/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c -- the type Source: names, labels and images without a loader; and the scan of all samples.
 */
#include "extension.h"

#include <stdlib.h>

struct source {
    PyObject_HEAD stk_source *s;
    struct options options; /* hooks point into it */
};

static PyObject *open_source(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    PyObject *dict;
    if (!PyArg_ParseTuple(args, "O!", &PyDict_Type, &dict))
        return NULL;
    struct source *o = (struct source *)PyType_GenericAlloc(type, 0);
    if (!o)
        return NULL;
    int rc = options_read(&o->options, dict);
    if (rc == 0) {
        stk_error e;
        rc = options_open_source(&o->options, &o->s, &e);
        if (rc != STK_OK)
            module_raise(PyType_GetModuleState(type), &e);
    }
    if (rc != 0) {
        Py_DECREF(o);
        return NULL;
    }
    return (PyObject *)o;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct source *o = (struct source *)self;
    stk_source_close(o->s);
    options_done(&o->options);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *count(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromLongLong(stk_source_count(((struct source *)self)->s));
}

static PyObject *kind(PyObject *self, PyObject *none)
{
    (void)none;
    return PyUnicode_FromString(stk_source_kind(((struct source *)self)->s));
}

static PyObject *fingerprint(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromUnsignedLongLong(stk_source_fingerprint(((struct source *)self)->s));
}

static PyObject *classes(PyObject *self, PyObject *none)
{
    (void)none;
    return module_classes(((struct source *)self)->s);
}

static PyObject *path(PyObject *self, PyObject *args)
{
    long long sample;
    if (!PyArg_ParseTuple(args, "L", &sample))
        return NULL;
    return module_text_of(((struct source *)self)->s, sample, stk_source_path);
}

/* One int64 for each sample, as bytes. */
static PyObject *numbers(const stk_source *s, int64_t (*of)(const stk_source *s, int64_t i))
{
    const int64_t n = stk_source_count(s);
    int64_t *all = malloc((size_t)n * sizeof *all + 1);
    if (!all)
        return PyErr_NoMemory();
    PyThreadState *thread = PyEval_SaveThread();
    for (int64_t i = 0; i < n; i++)
        all[i] = of(s, i);
    PyEval_RestoreThread(thread);
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)all, (Py_ssize_t)((size_t)n * sizeof *all));
    free(all);
    return bytes;
}

static PyObject *labels(PyObject *self, PyObject *none)
{
    (void)none;
    return numbers(((struct source *)self)->s, stk_source_label);
}

static int64_t hash_of_key(const stk_source *s, int64_t i)
{
    char key[8192];
    const size_t n = stk_source_key(s, i, key, sizeof key);
    return (int64_t)stk_hash(key, n < sizeof key ? n : sizeof key - 1, 0);
}

static PyObject *key_hashes(PyObject *self, PyObject *none)
{
    (void)none;
    return numbers(((struct source *)self)->s, hash_of_key);
}

static PyObject *key(PyObject *self, PyObject *args)
{
    long long sample;
    if (!PyArg_ParseTuple(args, "L", &sample))
        return NULL;
    return module_text_of(((struct source *)self)->s, sample, stk_source_key);
}

/* (pixels, height, width, label) */
static PyObject *image(PyObject *self, PyObject *args)
{
    long long sample;
    if (!PyArg_ParseTuple(args, "L", &sample))
        return NULL;
    uint8_t *pixels;
    int w = 0, h = 0;
    int64_t label = -1;
    stk_error e;
    PyThreadState *thread = PyEval_SaveThread();
    const int rc = stk_source_image(((struct source *)self)->s, sample, &pixels, &w, &h, &label, &e);
    PyEval_RestoreThread(thread);
    if (rc != STK_OK)
        return module_raise(PyType_GetModuleState(Py_TYPE(self)), &e);
    PyObject *bytes = PyByteArray_FromStringAndSize((const char *)pixels, (Py_ssize_t)w * h * 3);
    stk_free(pixels);
    return bytes ? Py_BuildValue("NiiL", bytes, h, w, (long long)label) : NULL;
}

static PyMethodDef methods[] = {
    {"count", count, METH_NOARGS, "Samples."},
    {"kind", kind, METH_NOARGS, "The detected kind."},
    {"fingerprint", fingerprint, METH_NOARGS, "A 64-bit hash of names, sizes and labels."},
    {"classes", classes, METH_NOARGS, "Names of the classes."},
    {"labels", labels, METH_NOARGS, "All labels, bytes of int64."},
    {"key_hashes", key_hashes, METH_NOARGS, "Hashes of all keys, bytes of uint64."},
    {"path", path, METH_VARARGS, "Path of a sample."},
    {"key", key, METH_VARARGS, "Path within the source."},
    {"image", image, METH_VARARGS, "(pixels, height, width, label)"},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_new, open_source},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "A source of the engine."},
    {0, NULL},
};

PyType_Spec source_spec = {
    .name = "stoker._stoker.Source",
    .basicsize = sizeof(struct source),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* ------------------------------------------------------------------ the scan */

struct scan {
    PyObject *found;
    PyThreadState *thread; /* saved while the engine runs */
};

static PyObject *overview(const stk_source *s, const stk_scan_options *o)
{
    char fields[2048];
    stk_overview v;
    PyThreadState *thread = PyEval_SaveThread();
    stk_source_overview(s, &v);
    const uint64_t hash = stk_source_fingerprint(s);
    stk_source_fields(s, fields, sizeof fields);
    PyEval_RestoreThread(thread);
    const int64_t all = o->subset ? o->n_subset : stk_source_count(s),
                  samples = o->take > 0 && o->take < all ? o->take : all;
    return Py_BuildValue(
        "{sssNsNsNsLsLsisKsLsLsLsLsLsL}", "kind", stk_source_kind(s), "fields", module_text(fields), "columns",
        module_text(v.columns ? v.columns : ""), "left_out", module_text(v.left_out ? v.left_out : ""), "samples",
        (long long)samples, "bytes", (long long)v.bytes, "n_classes", stk_source_n_classes(s), "fingerprint",
        (unsigned long long)hash, "ignored_hidden", (long long)v.ignored_hidden, "ignored_other",
        (long long)v.ignored_other, "ignored_loops", (long long)v.ignored_loops, "unreadable", (long long)v.unreadable,
        "empty_classes", (long long)v.empty_classes, "missing", (long long)v.missing);
}

static const char *format_name(stk_format f)
{
    return f == STK_JPEG ? "JPEG" : f == STK_PNG ? "PNG" : f == STK_WEBP ? "WebP" : "";
}

/* (sample, path, format, width, height, label, bytes, odd, code, reason, needs_memory) */
static int each(void *user, const stk_finding *f)
{
    struct scan *s = user;
    PyEval_RestoreThread(s->thread);
    PyObject *one = Py_BuildValue("LNsiiLLIiNi", (long long)f->sample, module_text(f->path), format_name(f->format),
                                  f->width, f->height, (long long)f->label, (long long)f->bytes, f->odd, f->code,
                                  module_words(f->code == STK_OK ? "" : f->reason), f->needs_memory);
    if (one)
        PyList_Append(s->found, one);
    Py_XDECREF(one);
    const int stop = PyErr_Occurred() || (f->sample % 64 == 0 && PyErr_CheckSignals());
    s->thread = PyEval_SaveThread();
    return stop;
}

/* (overview, findings); NULL with an exception. */
static PyObject *scan_source(PyObject *module, const struct options *options, stk_scan_options o)
{
    struct scan s = {.found = PyList_New(0)};
    o.each = each;
    o.user = &s;
    o.take = options->o.take;
    o.subset = options->o.subset;
    o.n_subset = options->o.n_subset;
    o.threads = options->o.threads;
    o.memory = options->o.memory;
    stk_source *source = NULL;
    stk_error e;
    PyObject *about = NULL;
    int rc = s.found ? options_open_source(options, &source, &e) : STK_OK;
    if (s.found && rc == STK_OK && (about = overview(source, &o))) {
        s.thread = PyEval_SaveThread();
        rc = stk_scan(source, &o, &e);
        PyEval_RestoreThread(s.thread);
    }
    if (rc != STK_OK && !PyErr_Occurred())
        module_raise(PyModule_GetState(module), &e);
    PyObject *result = PyErr_Occurred() ? NULL : Py_BuildValue("OO", about, s.found);
    stk_source_close(source);
    Py_XDECREF(about);
    Py_XDECREF(s.found);
    return result;
}

PyObject *source_scan(PyObject *module, PyObject *args)
{
    PyObject *dict;
    stk_scan_options o = {0};
    if (!PyArg_ParseTuple(args, "O!pp", &PyDict_Type, &dict, &o.decode, &o.runs))
        return NULL;
    struct options options;
    PyObject *result = options_read(&options, dict) == 0 ? scan_source(module, &options, o) : NULL;
    options_done(&options);
    return result;
}
