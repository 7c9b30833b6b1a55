/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c -- the module _stoker: its state, its types, and functions that belong to no type.
 */
#include "extension.h"

#include <string.h>

int module_path(PyObject *value, void *bytes)
{
    const int rc = PyUnicode_FSConverter(value, bytes);
    if (rc || !PyErr_ExceptionMatches(PyExc_ValueError))
        return rc;
    PyObject *type, *why, *trace;
    PyErr_Fetch(&type, &why, &trace);
    PyErr_NormalizeException(&type, &why, &trace);
    PyObject *errors = PyImport_ImportModule("stoker._errors");
    PyObject *error = errors ? PyObject_CallMethod(errors, "unusable", "OO", value, why) : NULL;
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(errors);
    Py_XDECREF(type);
    Py_XDECREF(why);
    Py_XDECREF(trace);
    return 0;
}

PyObject *module_text(const char *bytes)
{
    return PyUnicode_DecodeFSDefault(bytes);
}

PyObject *module_words(const char *utf8)
{
    return PyUnicode_DecodeUTF8(utf8, (Py_ssize_t)strlen(utf8), "replace");
}

PyObject *module_classes(const stk_source *s)
{
    const int n = stk_source_n_classes(s);
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *name = module_text(stk_source_class(s, i));
        if (!name || PyList_SetItem(list, i, name))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *module_text_of(const stk_source *s, int64_t sample, size_t (*of)(const stk_source *, int64_t, char *, size_t))
{
    char text[8192];
    of(s, sample, text, sizeof text);
    return module_text(text);
}

PyObject *module_raise(const struct state *s, const stk_error *e)
{
    if (PyErr_Occurred()) /* a signal handler has raised in a hook in this thread */
        return NULL;
    if (!s->make_error) {
        PyErr_SetString(PyExc_RuntimeError, e->text);
        return NULL;
    }
    /* N steals the reference. If it is NULL, the call fails with the exception that is set. */
    PyObject *error = PyObject_CallFunction(s->make_error, "iiLsNN", e->code, e->os_error, (long long)e->sample,
                                            e->stage, module_text(e->path), module_words(e->reason));
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

static PyObject *on_error(PyObject *module, PyObject *make)
{
    struct state *s = PyModule_GetState(module);
    Py_XDECREF(s->make_error);
    s->make_error = Py_NewRef(make);
    Py_RETURN_NONE;
}

static PyObject *version(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return PyUnicode_FromString(stk_version());
}

static PyObject *info(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    stk_info i;
    stk_info_get(&i);
    return Py_BuildValue("{szszszsssssssisisdsisLsLsLsN}", "jpeg", i.jpeg, "png", i.png, "webp", i.webp, "version",
                         stk_version(), "cpu_in_use", i.cpu_in_use, "cpu_has", i.cpu_has, "cpus_online", i.cpus_online,
                         "cpus_affinity", i.cpus_affinity, "cpus_quota", i.cpus_quota, "threads", i.threads,
                         "memory_total", (long long)i.memory_total, "memory_limit", (long long)i.memory_limit, "memory",
                         (long long)i.memory, "cache_dir", module_text(i.cache_dir));
}

static PyObject *noise(PyObject *module, PyObject *args)
{
    Py_buffer to;
    unsigned long long seed;
    int uniform;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*Kp", &to, &seed, &uniform))
        return NULL;
    stk_noise(to.buf, (size_t)to.len / sizeof(float), seed, uniform ? STK_NOISE_UNIFORM : STK_NOISE_NORMAL);
    PyBuffer_Release(&to);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"on_error", on_error, METH_O, "Sets the function that makes exceptions."},
    {"version", version, METH_NOARGS, "The version of the engine."},
    {"info", info, METH_NOARGS, "The machine, and the defaults that follow from it."},
    {"wait", closing_wait, METH_NOARGS, "Waits until all garbage collected loaders are closed."},
    {"sheet", draw_sheet, METH_VARARGS,
     "sheet(pixels, width, height, channels, columns, title, under, captions): (PNG, width, height)"},
    {"noise", noise, METH_VARARGS, "noise(array, seed, uniform): fills an array of float32."},
    {"scan", source_scan, METH_VARARGS, "scan(options, decode, runs): (overview, findings)."},
    {"pack", pack_source, METH_VARARGS,
     "pack(options, out, to, as, quality, shard_size, resize_short, resize_long, baseline, force, begin, progress): "
     "report."},
    {"unpack", pack_undo, METH_VARARGS, "unpack(source, out, force, threads): report."},
    {0},
};

static int add_type(PyObject *module, PyObject **type, PyType_Spec *spec)
{
    *type = PyType_FromModuleAndSpec(module, spec, NULL);
    return *type ? PyModule_AddType(module, (PyTypeObject *)*type) : -1;
}

static int execute(PyObject *module)
{
    struct state *s = PyModule_GetState(module);
    if (gil_init())
        return -1;
    if (add_type(module, &s->memory_type, &memory_spec) || add_type(module, &s->loader_type, &loader_spec) ||
        add_type(module, &s->source_type, &source_spec) || add_type(module, &s->arrow_type, &arrow_spec) ||
        add_type(module, &s->ops_type, &ops_spec))
        return -1;
#define ODD_WORDS(name, bit, words) words ";"
    return PyModule_AddStringConstant(module, "oddities", STK_ODDITIES(ODD_WORDS));
#undef ODD_WORDS
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    const struct state *s = PyModule_GetState(module);
    Py_VISIT(s->memory_type);
    Py_VISIT(s->loader_type);
    Py_VISIT(s->source_type);
    Py_VISIT(s->arrow_type);
    Py_VISIT(s->ops_type);
    Py_VISIT(s->make_error);
    return 0;
}

static int clear(PyObject *module)
{
    struct state *s = PyModule_GetState(module);
    Py_CLEAR(s->memory_type);
    Py_CLEAR(s->loader_type);
    Py_CLEAR(s->source_type);
    Py_CLEAR(s->arrow_type);
    Py_CLEAR(s->ops_type);
    Py_CLEAR(s->make_error);
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,          .m_name = "_stoker",    .m_doc = "The engine.",
    .m_size = sizeof(struct state), .m_methods = functions, .m_slots = slots,
    .m_traverse = traverse,         .m_clear = clear,       .m_free = release,
};

PyMODINIT_FUNC PyInit__stoker(void);
PyMODINIT_FUNC PyInit__stoker(void)
{
    return PyModuleDef_Init(&definition);
}
