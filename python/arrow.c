/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow.c -- tables in Arrow's memory, by the Arrow C data interface.
 *
 * A table consists of chunks of rows (record batches, row groups). Each chunk is an ArrowArray of struct type. The
 * package converts columns to a few plain storage forms and passes the form of each (_arrow.py). A cell is a pointer
 * into a chunk's buffers and is found without the GIL. A Python function loads the chunks of a file when a row of
 * theirs is needed. When loaded chunks hold more than `limit` bytes, the least recently used ones are released.
 *
 * Invariants, under lock:
 *   (1) a chunk with pins is not released.
 *   (2) each thread of a loader pins at most one chunk: the one whose cells it lent last.
 * No thread holds the lock while it waits for the GIL or releases a chunk.
 */
#include "arrow.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From the specification of the interface. */
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

enum { SLOTS = 1025 + 1, LEVELS = 8 };
enum storage { NUMBERS, BITS, BYTES32, BYTES64, BYTES_FIXED, IMAGE };

struct arrow_column {
    enum storage storage;
    int item;           /* bytes of a number or of a fixed-size value; IMAGE: width of the offsets of "bytes" */
    int levels[LEVELS]; /* nested lists, outermost first: 32 or 64 is the width of the offsets, -n a fixed length n */
    int n_levels;
    int path_width; /* IMAGE, a struct {"bytes", "path"}: width of the offsets of "path" */
    int64_t shape[LEVELS];
};

struct chunk {
    int64_t first, rows;
    const char *name, *key;  /* with the path as the user typed it; with the path within the source */
    struct ArrowArray array; /* release NULL: not loaded */
    bool loading;
    int pins;
    uint64_t used;
    size_t bytes;
};

struct arrow {
    PyObject_HEAD int n_columns;
    struct arrow_column *columns;
    stk_column *about;
    struct chunk *chunks;
    int64_t n_chunks, count;
    int64_t *starts, window; /* first rows of the chunks; samples that are shuffled together, 0: all */
    PyObject *load;          /* loads a chunk; NULL: all chunks are loaded */
    PyObject *kept;          /* bytes objects that own the names */
    const char *kind;
    uint64_t fingerprint, clock;
    size_t limit, held;
    pthread_mutex_t lock;
    pthread_cond_t loaded;
};

struct arrow_slot {
    struct chunk *at; /* pinned; NULL: none */
};

/* ------------------------------------------------------------------ cells */

static bool valid(const struct ArrowArray *a, int64_t i)
{
    const uint8_t *bits = a->null_count == 0 ? NULL : a->buffers[0];
    return !bits || (bits[i / 8] >> (i % 8) & 1);
}

static int bad(stk_error *e, const char *words)
{
    snprintf(e->reason, sizeof e->reason, "%s", words);
    return STK_EDATA;
}

static int64_t offset_at(const void *offsets, int width, int64_t i)
{
    return width == 64 ? ((const int64_t *)offsets)[i] : ((const int32_t *)offsets)[i];
}

/* Empty buffers may be NULL. */
static const void *somewhere(const void *p)
{
    return p ? p : "";
}

static void bytes_cell(const struct ArrowArray *a, int64_t i, int width, stk_cell *to)
{
    const int64_t begin = offset_at(a->buffers[1], width, i), end = offset_at(a->buffers[1], width, i + 1);
    const uint8_t *data = somewhere(a->buffers[2]);
    *to = (stk_cell){.bytes = data + begin, .n = (size_t)(end - begin)};
}

/* Goes one list level down: from the `n` lists at *at to their elements. All inner lists must have the same length. */
static int enter(const struct ArrowArray **a, int width, int64_t *at, int64_t *n, int64_t *each, stk_error *e)
{
    const struct ArrowArray *inside = (*a)->children[0];
    if (width < 0) {
        *each = -width;
        *at = *at * *each + inside->offset;
        *n *= *each;
    } else {
        const void *offsets = (*a)->buffers[1];
        const int64_t begin = offset_at(offsets, width, *at), end = offset_at(offsets, width, *at + *n);
        *each = *n > 0 ? offset_at(offsets, width, *at + 1) - begin : 0;
        for (int64_t i = 0; i < *n; i++)
            if (offset_at(offsets, width, *at + i + 1) - offset_at(offsets, width, *at + i) != *each)
                return bad(e, "inner lists differ in length; all inner lists of a value must have the same length");
        *at = begin + inside->offset;
        *n = end - begin;
    }
    for (int64_t i = 0; inside->null_count != 0 && inside->buffers[0] && i < *n; i++)
        if (!valid(inside, *at + i))
            return bad(e, "a list contains a null; fill nulls before loading");
    *a = inside;
    return STK_OK;
}

static int numbers_cell(const struct arrow_column *c, const stk_column *about, const struct ArrowArray *a, int64_t at,
                        stk_cell *to, stk_error *e)
{
    int64_t n = 1;
    *to = (stk_cell){.dtype = about->dtype, .ndim = c->n_levels};
    for (int d = 0; d < c->n_levels; d++) {
        const int rc = enter(&a, c->levels[d], &at, &n, &to->shape[d], e);
        if (rc != STK_OK)
            return rc;
    }
    to->bytes = n > 0 ? (const uint8_t *)somewhere(a->buffers[1]) + at * c->item : (const uint8_t *)"";
    to->n = (size_t)n * (size_t)c->item;
    return STK_OK;
}

/* {"bytes", "path"}: the engine reads the file if "bytes" is null. */
static void image_cell(const struct arrow_column *c, const struct ArrowArray *a, int64_t at, stk_cell *to)
{
    const struct ArrowArray *bytes = a->children[0], *path = a->n_children > 1 ? a->children[1] : NULL;
    if (valid(bytes, at + bytes->offset)) {
        bytes_cell(bytes, at + bytes->offset, c->item, to);
    } else if (path && valid(path, at + path->offset)) {
        bytes_cell(path, at + path->offset, c->path_width, to);
        to->file = to->bytes;
        to->bytes = NULL;
    }
}

static int cell_of(const struct arrow *t, int column, int64_t row, const struct chunk *chunk, stk_cell *to,
                   stk_error *e)
{
    static const uint8_t no_and_yes[] = {0, 1};
    const struct arrow_column *c = &t->columns[column];
    const struct ArrowArray *a = chunk->array.children[column];
    const int64_t at = row + chunk->array.offset + a->offset;
    if (!valid(a, at))
        return STK_OK;
    switch (c->storage) {
    case BITS:
        *to = (stk_cell){
            .bytes = &no_and_yes[((const uint8_t *)a->buffers[1])[at / 8] >> (at % 8) & 1], .n = 1, .dtype = STK_BOOL};
        return STK_OK;
    case BYTES32:
    case BYTES64:
        bytes_cell(a, at, c->storage == BYTES64 ? 64 : 32, to);
        return STK_OK;
    case BYTES_FIXED:
        *to = (stk_cell){.bytes = (const uint8_t *)somewhere(a->buffers[1]) + at * c->item, .n = (size_t)c->item};
        return STK_OK;
    case IMAGE:
        image_cell(c, a, at, to);
        return STK_OK;
    default:
        return numbers_cell(c, &t->about[column], a, at, to, e);
    }
}

/* ------------------------------------------------------------------ chunks */

static struct chunk *chunk_of(const struct arrow *t, int64_t sample)
{
    int64_t low = 0, high = t->n_chunks;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (t->chunks[middle].first <= sample)
            low = middle;
        else
            high = middle;
    }
    return &t->chunks[low];
}

/* Whether an array has the buffers and children that its column is read from. */
static bool fits(const struct arrow_column *c, const struct ArrowArray *a)
{
    for (int d = 0; d < c->n_levels; d++) {
        if (a->n_children != 1 || a->n_buffers < (c->levels[d] < 0 ? 1 : 2))
            return false;
        a = a->children[0];
    }
    if (c->storage == IMAGE)
        return a->n_children >= 1 && a->children[0]->n_buffers == 3 &&
               (a->n_children < 2 || a->children[1]->n_buffers == 3);
    return a->n_buffers == (c->storage == BYTES32 || c->storage == BYTES64 ? 3 : 2);
}

/* Moves the array out of its capsule. */
static int take_array(const struct arrow *t, PyObject *capsule, int64_t rows, struct ArrowArray *to)
{
    struct ArrowArray *from = PyCapsule_GetPointer(capsule, "arrow_array");
    if (!from)
        return -1;
    bool good = from->release && from->length == rows && from->n_children == t->n_columns;
    for (int i = 0; good && i < t->n_columns; i++)
        good = fits(&t->columns[i], from->children[i]);
    if (!good) {
        PyErr_SetString(PyExc_ValueError,
                        "a chunk has other columns or another number of rows than the table declared");
        return -1;
    }
    *to = *from;
    from->release = NULL;
    return 0;
}

/* An exception such as KeyboardInterrupt stays set, as in hooks.c. */
static int failed(stk_error *e, struct gil gil)
{
    if (!gil.made && !PyErr_ExceptionMatches(PyExc_Exception))
        return hooks_stop(e);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    snprintf(e->reason, sizeof e->reason, "cannot read the chunk: %s",
             words ? words : "Arrow's reader failed without a message");
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    return STK_EDATA;
}

/* Calls the Python function that loads a chunk. It returns (array, bytes). */
static int load(struct hooks *h, int thread, struct chunk *c, struct ArrowArray *to, size_t *bytes, stk_error *e)
{
    struct arrow *t = h->arrow.table;
    struct hook_call here;
    const struct gil gil = hooks_begin(h, &here);
    const bool stop = hooks_interrupted(gil);
    PyObject *got = NULL;
    if (!stop)
        got = PyObject_CallFunction(t->load, "iL", thread, (long long)(c - t->chunks));
    PyObject *capsule;
    Py_ssize_t n = 0;
    int rc = STK_OK;
    if (!got || !PyArg_ParseTuple(got, "On", &capsule, &n) || take_array(t, capsule, c->rows, to))
        rc = stop ? hooks_stop(e) : failed(e, gil);
    *bytes = (size_t)n;
    Py_XDECREF(got);
    hooks_end(h, &here, gil);
    return rc;
}

/* Under lock: moves the least recently used chunks to `to` until the limit holds. Returns how many. The caller releases
 * them without the lock. */
enum { DROPPED = 16 };
static int drop_some(struct arrow *t, struct ArrowArray *to)
{
    int n = 0;
    while (t->held > t->limit && n < DROPPED) {
        struct chunk *oldest = NULL;
        for (int64_t i = 0; i < t->n_chunks; i++) {
            struct chunk *c = &t->chunks[i];
            if (c->array.release && c->pins == 0 && (!oldest || c->used < oldest->used))
                oldest = c;
        }
        if (!oldest)
            break;
        to[n++] = oldest->array;
        oldest->array.release = NULL;
        t->held -= oldest->bytes;
    }
    return n;
}

static int load_chunk(struct hooks *h, int thread, struct chunk *c, stk_error *e)
{
    struct arrow *t = h->arrow.table;
    struct ArrowArray array = {0}, dropped[DROPPED];
    size_t bytes = 0;
    c->loading = true;
    pthread_mutex_unlock(&t->lock);
    const int rc = load(h, thread, c, &array, &bytes, e);
    pthread_mutex_lock(&t->lock);
    c->loading = false;
    pthread_cond_broadcast(&t->loaded);
    if (rc != STK_OK)
        return rc;
    c->array = array;
    c->bytes = bytes;
    t->held += bytes;
    c->pins++; /* keeps this one */
    const int n = drop_some(t, dropped);
    c->pins--;
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < n; i++)
        dropped[i].release(&dropped[i]);
    pthread_mutex_lock(&t->lock);
    return STK_OK;
}

/* Loads and pins the chunk for a thread, and unpins its previous one. */
static int go_to(struct hooks *h, int thread, struct chunk *c, stk_error *e)
{
    struct arrow *t = h->arrow.table;
    struct arrow_slot *s = &h->arrow.slots[thread];
    if (!t->load || s->at == c) {
        s->at = c;
        return STK_OK;
    }
    int rc = STK_OK;
    pthread_mutex_lock(&t->lock);
    if (s->at)
        s->at->pins--;
    s->at = NULL;
    while (rc == STK_OK && !c->array.release) {
        if (c->loading)
            pthread_cond_wait(&t->loaded, &t->lock);
        else
            rc = load_chunk(h, thread, c, e);
    }
    if (rc == STK_OK) {
        c->pins++;
        c->used = ++t->clock;
        s->at = c;
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

/* ------------------------------------------------------------------ the hooks */

static int64_t count(void *user)
{
    return ((const struct hooks *)user)->arrow.table->count;
}

static int cells(void *user, int thread, int64_t sample, const int *wanted, int n, stk_cell *to, stk_error *e)
{
    struct hooks *h = user;
    const struct arrow *t = h->arrow.table;
    if (thread < 0 || thread >= SLOTS)
        return bad(e, "too many threads; set threads to at most 1024");
    struct chunk *c = chunk_of(t, sample);
    int rc = go_to(h, thread, c, e);
    for (int k = 0; k < n && rc == STK_OK; k++) {
        rc = cell_of(t, wanted[k], sample - c->first, c, &to[k], e);
        if (rc != STK_OK) {
            char words[600];
            snprintf(words, sizeof words, "%s: %.500s", t->about[wanted[k]].name, e->reason);
            bad(e, words);
        }
    }
    return rc;
}

static size_t named(const char *chunk, int64_t row, char *buf, size_t n)
{
    const int length = snprintf(buf, n, "%s%srow %lld", chunk, chunk[0] ? " " : "", (long long)row);
    return length > 0 ? (size_t)length : 0;
}

/* The chunks of a table in memory have no names: its rows are counted from the first row of the table. */
static size_t key(void *user, int64_t sample, char *buf, size_t n)
{
    const struct chunk *c = chunk_of(((const struct hooks *)user)->arrow.table, sample);
    return named(c->key, c->key[0] ? sample - c->first : sample, buf, n);
}

static size_t path(void *user, int64_t sample, char *buf, size_t n)
{
    const struct chunk *c = chunk_of(((const struct hooks *)user)->arrow.table, sample);
    return named(c->name, c->name[0] ? sample - c->first : sample, buf, n);
}

void arrow_hooks(struct hooks *h, stk_cells_hooks *to)
{
    const struct arrow *t = h->arrow.table;
    *to = (stk_cells_hooks){.user = h,
                            .count = count,
                            .cells = cells,
                            .columns = t->about,
                            .n_columns = t->n_columns,
                            .key = key,
                            .path = path,
                            .kind = t->kind,
                            .fingerprint = t->fingerprint,
                            .blocks = t->starts,
                            .n_blocks = t->window > 0 ? t->n_chunks : 0,
                            .window = t->window};
}

int arrow_reader_init(struct arrow_reader *r, PyObject *table)
{
    r->slots = calloc(SLOTS, sizeof *r->slots);
    if (!r->slots) {
        PyErr_NoMemory();
        return -1;
    }
    r->table = (struct arrow *)Py_NewRef(table);
    return 0;
}

void arrow_reader_done(struct arrow_reader *r)
{
    if (!r->table)
        return;
    pthread_mutex_lock(&r->table->lock);
    for (int i = 0; i < SLOTS; i++)
        if (r->slots[i].at && r->table->load)
            r->slots[i].at->pins--;
    pthread_mutex_unlock(&r->table->lock);
    free(r->slots);
    Py_DECREF((PyObject *)r->table);
    *r = (struct arrow_reader){0};
}

/* ------------------------------------------------------------------ the object */

/* Copies text; the copy lives as long as the table. */
static const char *keep(struct arrow *t, PyObject *text)
{
    PyObject *bytes = NULL;
    if (!module_path(text, &bytes))
        return NULL;
    const int rc = PyList_Append(t->kept, bytes);
    Py_DECREF(bytes);
    return rc == 0 ? PyBytes_AsString(bytes) : NULL;
}

/* (name, kind, dtype, shape, label, storage, item, levels, path_width) */
static int take_column(struct arrow *t, int i, PyObject *spec)
{
    struct arrow_column *c = &t->columns[i];
    stk_column *about = &t->about[i];
    PyObject *name, *shape, *levels;
    int kind, dtype, storage;
    if (!PyArg_ParseTuple(spec, "OiiO!iiiO!i", &name, &kind, &dtype, &PyTuple_Type, &shape, &about->label, &storage,
                          &c->item, &PyTuple_Type, &levels, &c->path_width))
        return -1;
    about->name = keep(t, name);
    about->kind = (stk_kind)kind;
    about->dtype = (stk_dtype)dtype;
    about->ndim = (int)PyTuple_Size(shape);
    about->shape = c->shape;
    c->storage = (enum storage)storage;
    c->n_levels = (int)PyTuple_Size(levels);
    if (about->ndim > LEVELS || c->n_levels > LEVELS) {
        PyErr_SetString(PyExc_ValueError, "a column has too many dimensions; at most 8 are supported");
        return -1;
    }
    for (int d = 0; d < about->ndim; d++)
        c->shape[d] = PyLong_AsLongLong(PyTuple_GetItem(shape, d));
    for (int d = 0; d < c->n_levels; d++)
        c->levels[d] = (int)PyLong_AsLong(PyTuple_GetItem(levels, d));
    return about->name && !PyErr_Occurred() ? 0 : -1;
}

/* (name, key, rows, array or None) */
static int take_chunk(struct arrow *t, int64_t i, PyObject *spec)
{
    struct chunk *c = &t->chunks[i];
    PyObject *name, *key_of, *array;
    long long rows;
    if (!PyArg_ParseTuple(spec, "OOLO", &name, &key_of, &rows, &array))
        return -1;
    c->first = t->starts[i] = t->count;
    c->rows = rows;
    c->name = keep(t, name);
    c->key = c->name ? keep(t, key_of) : NULL;
    t->count += rows;
    if (!c->key || (array != Py_None && take_array(t, array, rows, &c->array)))
        return -1;
    return 0;
}

static int fill_in(struct arrow *t, PyObject *columns, PyObject *chunks)
{
    t->n_columns = (int)PyTuple_Size(columns);
    t->columns = calloc((size_t)t->n_columns + 1, sizeof *t->columns);
    t->about = calloc((size_t)t->n_columns + 1, sizeof *t->about);
    const int64_t n = PyTuple_Size(chunks);
    t->chunks = calloc((size_t)n + 1, sizeof *t->chunks);
    t->starts = calloc((size_t)n + 1, sizeof *t->starts);
    if (!t->columns || !t->about || !t->chunks || !t->starts) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < t->n_columns; i++)
        if (take_column(t, i, PyTuple_GetItem(columns, i)))
            return -1;
    for (; t->n_chunks < n; t->n_chunks++)
        if (take_chunk(t, t->n_chunks, PyTuple_GetItem(chunks, (Py_ssize_t)t->n_chunks)))
            return -1;
    return 0;
}

/* Arrow(columns, chunks, load or None, limit, kind, fingerprint, window) */
static PyObject *new_table(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    PyObject *columns, *chunks, *function, *kind;
    long long limit, window;
    unsigned long long fingerprint;
    if (!PyArg_ParseTuple(args, "O!O!OLOKL", &PyTuple_Type, &columns, &PyTuple_Type, &chunks, &function, &limit, &kind,
                          &fingerprint, &window))
        return NULL;
    struct arrow *t = (struct arrow *)PyType_GenericAlloc(type, 0);
    if (!t)
        return NULL;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->loaded, NULL);
    t->kept = PyList_New(0);
    t->load = function == Py_None ? NULL : Py_NewRef(function);
    t->limit = (size_t)limit;
    t->window = window;
    t->fingerprint = fingerprint;
    t->kind = t->kept ? keep(t, kind) : NULL;
    if (!t->kind || fill_in(t, columns, chunks)) {
        Py_DECREF((PyObject *)t);
        return NULL;
    }
    return (PyObject *)t;
}

static void dealloc(PyObject *self)
{
    struct arrow *t = (struct arrow *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int64_t i = 0; t->chunks && i < t->n_chunks; i++)
        if (t->chunks[i].array.release)
            t->chunks[i].array.release(&t->chunks[i].array);
    free(t->chunks);
    free(t->starts);
    free(t->columns);
    free(t->about);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->loaded);
    Py_CLEAR(t->load);
    Py_CLEAR(t->kept);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *get_held(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromSize_t(((struct arrow *)self)->held);
}

static PyGetSetDef getset[] = {{"held", get_held, NULL, "Bytes of the loaded chunks.", NULL}, {0}};

static PyType_Slot slots[] = {
    {Py_tp_new, new_table},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, getset},
    {Py_tp_doc, "A table in Arrow's memory, as the engine reads it."},
    {0, NULL},
};

PyType_Spec arrow_spec = {
    .name = "stoker._stoker.Arrow",
    .basicsize = sizeof(struct arrow),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
