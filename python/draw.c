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

/* Marks as bytes: a mask, masks of boxes, boxes, labels and keypoints; an empty one is missing. */
static bool marks_of(PyObject *list, const struct sheet_image *image, int mask_bytes, int numbers, struct marks *to)
{
    const size_t pixels = (size_t)image->w * (size_t)image->h;
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        char *at[5];
        Py_ssize_t n[5];
        PyObject *one = PyList_GetItem(list, i);
        for (int k = 0; k < 5; k++)
            if (!PyTuple_Check(one) || PyBytes_AsStringAndSize(PyTuple_GetItem(one, k), &at[k], &n[k]))
                return false;
        to[i] = (struct marks){.mask = (size_t)n[0] == pixels * (size_t)mask_bytes ? (uint8_t *)at[0] : NULL,
                               .mask_bytes = mask_bytes,
                               .each = (uint8_t *)at[1],
                               .n_each = (int)((size_t)n[1] / pixels),
                               .boxes = (float *)(void *)at[2],
                               .n_boxes = (int)(n[2] / 16),
                               .labels = n[3] ? (int64_t *)(void *)at[3] : NULL,
                               .points = n[4] ? (float *)(void *)at[4] : NULL,
                               .n_points = numbers ? (int)(n[4] / 4 / numbers) : 0,
                               .point_numbers = numbers};
        const int most = to[i].n_boxes > to[i].n_each ? to[i].n_boxes : to[i].n_each;
        if (n[3] / 8 < most)
            to[i].labels = NULL;
    }
    return true;
}

struct names {
    const char **texts;
    Py_ssize_t n;
};

static const char *name_of(void *user, int64_t label)
{
    const struct names *names = user;
    return label >= 0 && label < names->n ? names->texts[label] : NULL;
}

/* sheet(pixels, width, height, channels, columns, title, under, captions, marks, mask bytes, numbers of a keypoint,
 * names): (PNG, its width, its height). Without marks, the list is empty. */
PyObject *draw_sheet(PyObject *module, PyObject *args)
{
    Py_buffer pixels;
    PyObject *captions, *marks, *labels;
    struct grid g = {0};
    int mask_bytes, numbers;
    if (!PyArg_ParseTuple(args, "y*iiiissO!O!iiO!", &pixels, &g.first.w, &g.first.h, &g.first.channels, &g.columns,
                          &g.title, &g.under, &PyList_Type, &captions, &PyList_Type, &marks, &mask_bytes, &numbers,
                          &PyList_Type, &labels))
        return NULL;
    PyObject *result = NULL;
    const Py_ssize_t n = PyList_Size(captions);
    g.n = n < INT_MAX ? (int)n : 0;
    g.first.px = pixels.buf;
    struct sheet s = {0};
    const char **texts = NULL;
    struct names names = {NULL, PyList_Size(labels)};
    struct marks *all = NULL;
    if (!fits(&g, pixels.len, n) || (PyList_Size(marks) != 0 && PyList_Size(marks) != n))
        PyErr_SetString(PyExc_ValueError,
                        "a sheet needs 1 to 4096 images of 1 or 3 channels, and one caption for each");
    else if ((texts = texts_of(captions, g.n)) != NULL && (names.texts = texts_of(labels, (int)names.n)) != NULL &&
             (all = calloc((size_t)n, sizeof *all)) != NULL && marks_of(marks, &g.first, mask_bytes, numbers, all)) {
        g.captions = texts;
        g.marks = PyList_Size(marks) ? all : NULL;
        g.name = name_of;
        g.user = &names;
        if (grid_draw(&s, &g) == 0)
            result = encoded(module, &s);
        else
            PyErr_NoMemory();
    }
    sheet_done(&s);
    free(all);
    free(names.texts);
    free(texts);
    PyBuffer_Release(&pixels);
    return result;
}
