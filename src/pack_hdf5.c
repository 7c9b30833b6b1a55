/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_hdf5.c -- data.h5: "images", an array where pictures are raw and of one size, else their bytes; "labels", with
 * the names of the classes as an attribute; "keys".
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "pack/target.h"
#include "source/hdf5_out.h"

static const char name[] = "data.h5", temp[] = ".data.h5.part";

struct hdf5_target {
    struct hdf5_out *out;
    struct packed_field form; /* of the first picture */
    int64_t *labels;
    bool unlabelled; /* some samples have none */
    struct buf keys; /* ended by 0 each */
    const char **key_list;
};

static int begin(struct target *t, stk_error *e)
{
    char path[PATH_MAX];
    struct hdf5_target *s = calloc(1, sizeof *s);
    t->state = s;
    if (s)
        s->labels = calloc((size_t)t->o.samples + 1, sizeof *s->labels);
    if (!s || !s->labels)
        return error_nomem(e, "write", (size_t)t->o.samples * sizeof *s->labels);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", t->o.out, temp) >= sizeof path)
        return error_os(e, ENAMETOOLONG, "write", "cannot make its file");
    return hdf5_out_new(&s->out, path, e);
}

static void close_target(struct target *t)
{
    struct hdf5_target *s = t->state;
    if (!s)
        return;
    hdf5_out_free(s->out);
    unlinkat(t->dir, temp, 0); /* not there when all went well */
    free(s->labels);
    free(s->key_list);
    buf_done(&s->keys);
    free(s);
    t->state = NULL;
}

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    struct hdf5_target *s = t->state;
    if (p->picture < 0)
        return error_set(e, STK_EUSAGE, "pack", "HDF5 takes samples with a picture");
    const struct packed_field *f = &p->fields[p->picture];
    if (t->in_shard == 0)
        s->form = *f;
    if (f->ndim != s->form.ndim || memcmp(f->shape, s->form.shape, sizeof f->shape) != 0)
        return error_set(
            e, STK_EDATA, "pack",
            "has %lld x %lld pixels and those before it %lld x %lld: one array takes one size; end the ops "
            "with CenterCrop(%lld) or the like, or leave out raw",
            (long long)f->shape[1], (long long)f->shape[0], (long long)s->form.shape[1], (long long)s->form.shape[0],
            (long long)s->form.shape[0]);
    s->labels[t->in_shard] = p->label;
    s->unlabelled |= p->label < 0;
    if (buf_add(&s->keys, p->key.data, p->key.len) || buf_add(&s->keys, "", 1))
        return error_nomem(e, "write", s->keys.len);
    t->bytes += (int64_t)(f->n - f->numbers);
    return hdf5_out_row(s->out, packed_bytes(p, f) + f->numbers, f->n - f->numbers, f->ndim, f->shape, e);
}

static int list_keys(struct hdf5_target *s, int64_t n, stk_error *e)
{
    s->key_list = calloc((size_t)n + 1, sizeof *s->key_list);
    if (!s->key_list)
        return error_nomem(e, "write", (size_t)n * sizeof *s->key_list);
    const char *p = (const char *)s->keys.data;
    for (int64_t i = 0; i < n; i++, p += strlen(p) + 1)
        s->key_list[i] = p;
    return STK_OK;
}

static int on_disk(struct target *t, stk_error *e)
{
    const int fd = openat(t->dir, temp, O_RDONLY | O_CLOEXEC);
    int why = fd < 0 || fsync(fd) ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (!why && renameat(t->dir, temp, t->dir, name))
        why = errno;
    return why ? error_os(e, why, "write", "cannot bring data.h5 to disk") : STK_OK;
}

static int end(struct target *t, stk_error *e)
{
    struct hdf5_target *s = t->state;
    struct shard_line line = {.samples = t->written};
    int rc = list_keys(s, t->written, e);
    if (rc == STK_OK)
        rc = hdf5_out_end(s->out, s->unlabelled ? NULL : s->labels, s->key_list, t->written, t->o.classes,
                          t->o.n_classes, e);
    if (rc == STK_OK)
        rc = on_disk(t, e);
    if (rc == STK_OK)
        rc = outfile_check(t->dir, name, &line.bytes, &line.sum, e);
    if (rc != STK_OK)
        return rc;
    memcpy(line.name, name, sizeof name);
    t->bytes = line.bytes;
    return journal_add(&t->journal, &line, e);
}

const struct target_format target_hdf5 = {
    .to = STK_TO_HDF5, .name = "hdf5", .begin = begin, .write = put, .end = end, .close = close_target};
