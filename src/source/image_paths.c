/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_paths.c -- builds the index of files whose paths are known.
 */
#include "source/image_paths.h"

#include <stdio.h>
#include <string.h>

int image_paths_add(struct image_paths *p, const char *path, size_t n)
{
    const char *slash = memrchr(path, '/', n);
    const size_t n_dir = slash ? (size_t)(slash - path) + 1 : 0;
    const bool again = p->last < p->dirs.n && names_length(&p->dirs, p->last) == n_dir &&
                       memcmp(names_at(&p->dirs, p->last), path, n_dir) == 0;
    if (!again && names_add(&p->dirs, path, n_dir, &p->last) < 0)
        return -1;
    const struct image_path one = {.name = p->names.len, .dir = p->last};
    return buf_add(&p->entries, &one, sizeof one) || buf_add(&p->names, path + n_dir, n - n_dir) ||
                   buf_add(&p->names, "", 1)
               ? -1
               : 0;
}

int64_t image_paths_count(const struct image_paths *p)
{
    return (int64_t)(p->entries.len / sizeof(struct image_path));
}

static struct image_path entry(const struct image_paths *p, int64_t i)
{
    struct image_path one;
    memcpy(&one, p->entries.data + (size_t)i * sizeof one, sizeof one);
    return one;
}

size_t image_paths_get(const struct image_paths *p, int64_t i, char *buf, size_t n)
{
    const struct image_path one = entry(p, i);
    const int length = snprintf(buf, n, "%s%s", names_at(&p->dirs, one.dir), (const char *)p->names.data + one.name);
    return length > 0 ? (size_t)length : 0;
}

/* Copies all names into the pool at *at; offsets[] gets where they are. */
static void add_names(struct index *x, uint64_t *at, const struct names *s, uint64_t *offsets)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const size_t n = names_length(s, i);
        memcpy(x->pool + *at, names_at(s, i), n); /* the pool is zeroed */
        offsets[i] = *at;
        *at += n + 1;
    }
}

int image_paths_index(const struct image_paths *p, const struct names *classes, struct index *x)
{
    const struct names none = {0};
    const struct names *c = classes ? classes : &none;
    const struct index_head head = {.kind = INDEX_FILES,
                                    .n = (uint64_t)image_paths_count(p),
                                    .n_dirs = p->dirs.n,
                                    .n_classes = c->n,
                                    .pool_bytes = p->names.len + p->dirs.pool.len + c->pool.len};
    if (index_init(x, &head))
        return -1;
    uint64_t at = p->names.len;
    if (p->names.len > 0)
        memcpy(x->pool, p->names.data, p->names.len);
    for (uint64_t i = 0; i < head.n; i++) {
        const struct image_path one = entry(p, (int64_t)i);
        x->name_at[i] = one.name;
        x->dir_of[i] = one.dir;
    }
    add_names(x, &at, &p->dirs, x->dir_at);
    add_names(x, &at, c, x->class_at);
    for (uint64_t i = 0; i < head.n_dirs; i++)
        x->dir_label[i] = -1;
    return 0;
}

void image_paths_done(struct image_paths *p)
{
    names_done(&p->dirs);
    buf_done(&p->names);
    buf_done(&p->entries);
}
