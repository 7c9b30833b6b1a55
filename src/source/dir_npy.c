/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dir_npy.c -- the type and shape of the arrays in a folder of npy files.
 *
 * Some files, spread over the folder, are inspected. A dimension in which they differ is left open.
 */
#include "source/source_dir.h"

#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "format/npy.h"
#include "source/columns.h"
#include "source/files.h"

enum { LOOKED_AT = 16 };

bool dir_npy_is(const struct source *s)
{
    char key[PATH_MAX];
    const size_t n = s->count > 0 ? source_key(s, 0, key, sizeof key) : 0;
    return n > 0 && n < sizeof key && text_has_suffix(key, ".npy");
}

/* false: the file is bad; reading it will report why. */
static bool look(const struct source *s, struct reading *r, int64_t i, struct npy *h)
{
    stk_error ignored;
    const char *why;
    return source_peek(s, r, i, NPY_HEAD, &ignored) == STK_OK &&
           npy_parse(r->bytes, r->n_bytes, UINT64_MAX, h, &why) == 0 && h->ndim <= FIELD_DIMS;
}

/* Leaves dimensions open in which the file differs. */
static int widen(struct column *c, const struct npy *h)
{
    if (h->dtype != c->dtype || h->ndim != c->ndim)
        return -1;
    for (int d = 0; d < h->ndim; d++)
        if (h->shape[d] != c->shape[d])
            c->shape[d] = -1;
    return 0;
}

static int find_form(const struct source *s, struct column *c, stk_error *e)
{
    struct reading r = {0};
    int rc = STK_OK;
    bool found = false;
    const int64_t step = s->count / LOOKED_AT + 1;
    for (int64_t i = 0; i < s->count && rc == STK_OK; i += step) {
        struct npy h;
        if (!look(s, &r, i, &h))
            continue;
        if (!found) {
            c->dtype = h.dtype;
            c->ndim = h.ndim;
            memcpy(c->shape, h.shape, sizeof c->shape);
        } else if (widen(c, &h)) {
            rc = error_set(e, STK_EUSAGE, "open",
                           "the npy files differ in type or in their number of dimensions; convert them to one type "
                           "and one number of dimensions");
        }
        found = true;
    }
    buf_done(&r.file);
    if (rc == STK_OK && !found)
        rc = error_set(
            e, STK_EUSAGE, "open",
            "none of the npy files that were tried can be read; write them again, with numpy.save and as numbers");
    return rc;
}

int dir_npy_fields(struct source *s, const struct source_options *o, stk_error *e)
{
    const bool labels = s->n_fields > 1;
    const char *fields = o->fields && o->fields[0] ? o->fields : labels ? "data, label" : "data";
    struct column one = {.name = "data", .kind = STK_TENSOR};
    struct columns all = {.items = &one, .n = 1, .room = 1, .labels = labels};
    int rc = find_form(s, &one, e);
    if (rc == STK_OK)
        rc = columns_bind(s, &all, fields, e);
    files_add_bytes(s);
    return rc;
}
