/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c -- the type Memory: one field of a batch, as a buffer and through DLPack.
 *
 * NumPy uses the buffer protocol, the other libraries use DLPack. Each array keeps a reference. When the last one is
 * gone, the loader can use the memory for another batch. A DLPack capsule refers to the engine's memory and not to this
 * object, so that its deleter may run in any thread, without the GIL. Memory of a GPU is copied to the host if it is
 * used as a buffer.
 */
#include "extension.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct memory {
    PyObject_HEAD stk_memory *memory;
    void *data;
    int device, device_id; /* as DLPack numbers them; 1 is host memory */
    void *copy;            /* of device memory, in host memory; NULL: not made */
    stk_dtype dtype;
    int ndim;
    Py_ssize_t item, shape[HOOK_DIMS + 1], strides[HOOK_DIMS + 1];
};

/* Two format letters mean 64 bits. NumPy's int64 uses the letter of long if long has 64 bits. */
#if LONG_MAX == INT64_MAX
#define INT64_FORMAT  "l"
#define UINT64_FORMAT "L"
#else
#define INT64_FORMAT  "q"
#define UINT64_FORMAT "Q"
#endif

/* bfloat16 has no format letter. As a buffer it is uint16. */
static const struct {
    const char *name, *format;
    uint8_t code, bytes; /* code: of DLPack */
} types[] = {
    [STK_FLOAT32] = {"float32", "f", 2, 4},
    [STK_FLOAT16] = {"float16", "e", 2, 2},
    [STK_BFLOAT16] = {"bfloat16", "H", 4, 2},
    [STK_UINT8] = {"uint8", "B", 1, 1},
    [STK_INT8] = {"int8", "b", 0, 1},
    [STK_INT16] = {"int16", "h", 0, 2},
    [STK_UINT16] = {"uint16", "H", 1, 2},
    [STK_INT32] = {"int32", "i", 0, 4},
    [STK_UINT32] = {"uint32", "I", 1, 4},
    [STK_INT64] = {"int64", INT64_FORMAT, 0, 8},
    [STK_UINT64] = {"uint64", UINT64_FORMAT, 1, 8},
    [STK_FLOAT64] = {"float64", "d", 2, 8},
    [STK_BOOL] = {"bool", "?", 6, 1},
};

const char *memory_dtype_name(stk_dtype t)
{
    return types[t].name;
}

size_t memory_item_bytes(stk_dtype t)
{
    return (size_t)t < sizeof types / sizeof types[0] ? types[t].bytes : 0;
}

PyObject *memory_new(const struct state *s, const stk_batch *b, const stk_array *a)
{
    struct memory *m = PyObject_New(struct memory, (PyTypeObject *)s->memory_type);
    if (!m)
        return NULL;
    m->memory = stk_batch_retain_field(b, a->name);
    m->data = a->data;
    m->device = a->device;
    m->device_id = a->device_id;
    m->copy = NULL;
    m->dtype = a->dtype;
    m->ndim = a->ndim;
    m->item = types[a->dtype].bytes;
    Py_ssize_t stride = m->item;
    for (int d = a->ndim - 1; d >= 0; d--) {
        m->shape[d] = (Py_ssize_t)a->shape[d];
        m->strides[d] = stride;
        stride *= m->shape[d];
    }
    return (PyObject *)m;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    stk_memory_release(((struct memory *)self)->memory);
    free(((struct memory *)self)->copy);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ------------------------------------------------------------------ the buffer protocol */

static Py_ssize_t bytes_of(const struct memory *m)
{
    Py_ssize_t n = m->item;
    for (int d = 0; d < m->ndim; d++)
        n *= m->shape[d];
    return n;
}

/* Copies device memory to the host, and waits for it. */
static void *copied(struct memory *m)
{
    if (m->copy)
        return m->copy;
    const size_t n = (size_t)bytes_of(m);
    void *to = malloc(n + 1);
    stk_error e = {0};
    if (!to)
        return PyErr_NoMemory();
    PyThreadState *thread = PyEval_SaveThread();
    const int rc = stk_memory_read(m->memory, to, n, &e);
    PyEval_RestoreThread(thread);
    if (rc != STK_OK || m->copy) /* another thread may have made it meanwhile */
        free(to);
    else
        m->copy = to;
    if (rc != STK_OK)
        PyErr_SetString(PyExc_BufferError, e.text);
    return rc == STK_OK ? m->copy : NULL;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct memory *m = (struct memory *)self;
    void *data = m->data;
    if (m->device != 1 && (flags & PyBUF_WRITABLE)) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError, "the batch is in the memory of a GPU, and a host copy cannot be written to");
        return -1;
    }
    if (m->device != 1 && !(data = copied(m))) {
        view->obj = NULL;
        return -1;
    }
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && m->ndim > 1) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError,
                        "a batch is in row-major order and cannot be given out in column-major order; copy it first");
        return -1;
    }
    *view = (Py_buffer){
        .buf = data,
        .len = bytes_of(m),
        .readonly = m->device != 1,
        .itemsize = m->item,
        .ndim = m->ndim,
        .format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)types[m->dtype].format : NULL,
        .shape = (flags & PyBUF_ND) ? m->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? m->strides : NULL,
    };
    view->obj = Py_NewRef(self);
    return 0;
}

/* ------------------------------------------------------------------ DLPack, from its specification */

struct dl_device {
    int32_t type, id;
};
struct dl_type {
    uint8_t code, bits;
    uint16_t lanes;
};
struct dl_tensor {
    void *data;
    struct dl_device device;
    int32_t ndim;
    struct dl_type dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
};

/* Owned by a capsule. */
struct export
{
    struct dl_managed managed;
    int64_t shape[HOOK_DIMS + 1], strides[HOOK_DIMS + 1];
};

static void delete_export(struct dl_managed *self)
{
    stk_memory_release(self->context);
    free(self);
}

/* Called when a capsule is freed, maybe while an exception is set. A consumer that took the tensor has renamed the
 * capsule and calls the deleter. */
static void capsule_gone(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return;
    struct dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
}

/* Lets the consumer's stream wait for the memory, as DLPack's protocol says: None and 0 are the legacy default stream;
 * -1 is a consumer that does not wait, so that the host has to. */
static int use_stream(PyObject *self, const struct memory *m, PyObject *keywords)
{
    PyObject *given = keywords ? PyDict_GetItemString(keywords, "stream") : NULL;
    const long long stream = given && given != Py_None ? PyLong_AsLongLong(given) : 0;
    if (PyErr_Occurred())
        return -1;
    stk_error e = {0};
    char byte;
    PyThreadState *thread = PyEval_SaveThread();
    const int rc = stream == -1 ? stk_memory_read(m->memory, &byte, bytes_of(m) > 0, &e)
                                : stk_memory_use(m->memory, (void *)(intptr_t)(stream ? stream : 1), &e);
    PyEval_RestoreThread(thread);
    if (rc != STK_OK)
        module_raise(PyType_GetModuleState(Py_TYPE(self)), &e);
    return rc == STK_OK ? 0 : -1;
}

static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)args; /* max_version, dl_device and copy are ignored: this is the first version of the struct */
    struct memory *m = (struct memory *)self;
    if (m->device != 1 && use_stream(self, m, keywords))
        return NULL;
    struct export *x = calloc(1, sizeof *x);
    if (!x)
        return PyErr_NoMemory();
    x->managed = (struct dl_managed){
        .tensor = {.data = m->data,
                   .device = {.type = m->device, .id = m->device_id},
                   .ndim = m->ndim,
                   .dtype = {types[m->dtype].code, (uint8_t)(types[m->dtype].bytes * 8), 1},
                   .shape = x->shape,
                   .strides = x->strides},
        .context = m->memory,
        .deleter = delete_export,
    };
    for (int d = 0; d < m->ndim; d++) {
        x->shape[d] = m->shape[d];
        x->strides[d] = m->strides[d] / m->item;
    }
    PyObject *capsule = PyCapsule_New(&x->managed, "dltensor", capsule_gone);
    if (!capsule) {
        free(x);
        return NULL;
    }
    stk_memory_retain(m->memory);
    return capsule;
}

static PyObject *dlpack_device(PyObject *self, PyObject *none)
{
    (void)none;
    const struct memory *m = (struct memory *)self;
    return Py_BuildValue("(ii)", m->device, m->device_id);
}

/* ------------------------------------------------------------------ attributes */

static PyObject *get_shape(PyObject *self, void *none)
{
    (void)none;
    const struct memory *m = (struct memory *)self;
    PyObject *shape = PyTuple_New(m->ndim);
    for (int d = 0; shape && d < m->ndim; d++) {
        PyObject *n = PyLong_FromSsize_t(m->shape[d]);
        if (!n) {
            Py_DECREF(shape);
            return NULL;
        }
        PyTuple_SetItem(shape, d, n);
    }
    return shape;
}

static PyObject *get_dtype(PyObject *self, void *none)
{
    (void)none;
    return PyUnicode_FromString(types[((struct memory *)self)->dtype].name);
}

static PyObject *get_address(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromVoidPtr(((struct memory *)self)->data);
}

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS, "A DLPack capsule."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS,
     "The device as DLPack numbers it: (1, 0) is host memory, (2, N) is cuda:N."},
    {0},
};

static PyGetSetDef getset[] = {
    {"shape", get_shape, NULL, "The shape, rows first.", NULL},
    {"dtype", get_dtype, NULL, "The name of the dtype.", NULL},
    {"address", get_address, NULL, "The address of the first element.", NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc}, {Py_bf_getbuffer, get_buffer},        {Py_tp_methods, methods},
    {Py_tp_getset, getset},   {Py_tp_doc, "One field of a batch."}, {0, NULL},
};

PyType_Spec memory_spec = {
    .name = "stoker._stoker.Memory",
    .basicsize = sizeof(struct memory),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
