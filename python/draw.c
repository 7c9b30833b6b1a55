/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.c -- contact sheets, the same as those of `stoker show`.
 */
#include "extension.h"

#include <limits.h>
#include <stdlib.h>

#include "grid.h"

enum { MOST = 4096 }; /* images in a sheet, and columns */

/* The texts of a list of str, which live as long as the list. NULL with an exception. */
static const char **texts_of(PyObject *list, int n)
{
    const char **texts = calloc((size_t)n + 1, sizeof *texts);
    if (!texts)
        return (const char **)PyErr_NoMemory();
    for (int i = 0; i < n; i++) {
        texts[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (!texts[i]) {
            free(texts);
            return NULL;
        }
    }
    return texts;
}

static PyObject *encoded(PyObject *module, const struct sheet *s)
{
    const stk_encode_options o = {.format = STK_PNG};
    void *png;
    size_t n;
    stk_error e;
    PyThreadState *thread = PyEval_SaveThread();
    const int rc = stk_encode(s->px, s->w, s->h, 3, (size_t)s->w * 3, &o, &png, &n, &e);
    PyEval_RestoreThread(thread);
    if (rc != STK_OK)
        return module_raise(PyModule_GetState(module), &e);
    PyObject *bytes = PyBytes_FromStringAndSize(png, (Py_ssize_t)n);
    stk_free(png);
    return bytes ? Py_BuildValue("Nii", bytes, s->w, s->h) : NULL;
}

static bool fits(const struct grid *g, Py_ssize_t bytes, Py_ssize_t captions)
{
    const struct sheet_image *i = &g->first;
    if (g->n < 1 || g->n > MOST || g->columns < 1 || g->columns > MOST || captions != g->n)
        return false;
    if (i->w < 1 || i->h < 1 || (i->channels != 1 && i->channels != 3))
        return false;
    return bytes / g->n / i->channels / i->h >= i->w;
}

/* sheet(pixels, width, height, channels, columns, title, under, captions): (PNG, its width, its height) */
PyObject *draw_sheet(PyObject *module, PyObject *args)
{
    Py_buffer pixels;
    PyObject *captions;
    struct grid g = {0};
    if (!PyArg_ParseTuple(args, "y*iiiissO!", &pixels, &g.first.w, &g.first.h, &g.first.channels, &g.columns, &g.title,
                          &g.under, &PyList_Type, &captions))
        return NULL;
    PyObject *result = NULL;
    const Py_ssize_t n = PyList_Size(captions);
    g.n = n < INT_MAX ? (int)n : 0;
    g.first.px = pixels.buf;
    struct sheet s = {0};
    const char **texts = NULL;
    if (!fits(&g, pixels.len, n))
        PyErr_SetString(PyExc_ValueError,
                        "a sheet needs 1 to 4096 images of 1 or 3 channels, and one caption for each");
    else if ((texts = texts_of(captions, g.n)) != NULL) {
        g.captions = texts;
        if (grid_draw(&s, &g) == 0)
            result = encoded(module, &s);
        else
            PyErr_NoMemory();
    }
    sheet_done(&s);
    free(texts);
    PyBuffer_Release(&pixels);
    return result;
}
