/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_group.c -- lists a group. Its links are a symbol table (old files), messages, or messages in a heap.
 */
#include "format/hdf5_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/hdf5_index.h"

enum { NODES_MOST = 1 << 20, HEAP_MOST = 1 << 30, SOFT_MOST = 8 };

/* ------------------------------------------------------------------ names */

int hdf5_names_add(struct hdf5_names *n, const char *name, size_t bytes, int64_t at)
{
    uint32_t number;
    const int added = names_add(&n->names, name, bytes, &number);
    if (added < 1)
        return added;
    return buf_add(&n->at, &at, sizeof at);
}

int64_t hdf5_names_at(const struct hdf5_names *n, uint32_t i)
{
    int64_t at;
    memcpy(&at, n->at.data + (size_t)i * sizeof at, sizeof at);
    return at;
}

void hdf5_names_done(struct hdf5_names *n)
{
    names_done(&n->names);
    buf_done(&n->at);
    *n = (struct hdf5_names){0};
}

static void links_done(struct hdf5_links *l)
{
    hdf5_names_done(&l->hard);
    hdf5_names_done(&l->soft);
    names_done(&l->paths);
}

static const char *add_soft(struct hdf5_links *l, const char *name, size_t n, const char *path, size_t n_path)
{
    uint32_t number;
    const bool done = names_add(&l->paths, path, n_path, &number) >= 0 && !hdf5_names_add(&l->soft, name, n, number);
    return done ? NULL : HDF5_NO_MEMORY;
}

/* ------------------------------------------------------------------ a table of symbols */

/* The local heap with the names: "HEAP", version, 3 bytes, size of its data, free, address of its data. */
struct symbols {
    struct hdf5_links *l;
    uint8_t *names;
    size_t n_names;
    int64_t left; /* nodes and symbols that the file has room for; so circular links end */
};

static const char *read_names(struct symbols *s, int64_t heap)
{
    const struct hdf5_view *v = s->l->v;
    uint8_t p[8 + 8 + 8 + 8];
    const int length = v->length_bytes;
    if (!hdf5_view_read(v, heap, p, (size_t)(8 + 2 * length + v->offset_bytes)))
        return HDF5_CUT;
    const int64_t n = hdf5_number(p + 8, length), at = hdf5_address(v, p + 8 + 2 * length);
    if (memcmp(p, "HEAP", 4) != 0 || n < 0 || n > HEAP_MOST || n > v->size)
        return HDF5_DAMAGED;
    s->names = malloc((size_t)n + 1);
    if (!s->names)
        return HDF5_NO_MEMORY;
    s->names[n] = 0;
    s->n_names = (size_t)n;
    return hdf5_view_read(v, at, s->names, (size_t)n) ? NULL : HDF5_CUT;
}

/* Offset of the name, header, kind (4), 4 bytes, 16 bytes; a soft link has the offset of its path in these. */
static const char *take_symbol(struct symbols *s, const uint8_t *p)
{
    enum { SOFT = 2 };
    const struct hdf5_view *v = s->l->v;
    const int o = v->offset_bytes;
    const int64_t name_at = hdf5_number(p, o), at = hdf5_address(v, p + o);
    if (name_at < 0 || name_at >= (int64_t)s->n_names)
        return HDF5_DAMAGED;
    const char *name = (const char *)s->names + name_at;
    if (le32(p + 2 * o) != SOFT)
        return hdf5_names_add(&s->l->hard, name, strlen(name), at) ? HDF5_NO_MEMORY : NULL;
    const uint32_t path_at = le32(p + 2 * o + 8);
    if (path_at >= s->n_names)
        return HDF5_DAMAGED;
    const char *path = (const char *)s->names + path_at;
    return add_soft(s->l, name, strlen(name), path, strlen(path));
}

/* "SNOD", version, 0, symbols (2), symbols. */
static const char *take_symbols(struct symbols *s, int64_t at)
{
    const struct hdf5_view *v = s->l->v;
    const size_t entry = 2 * (size_t)v->offset_bytes + 24;
    uint8_t head[8], p[2 * 8 + 24];
    if (!hdf5_view_read(v, at, head, sizeof head))
        return HDF5_CUT;
    if (memcmp(head, "SNOD", 4) != 0)
        return HDF5_DAMAGED;
    s->left -= 1 + le16(head + 6);
    const char *why = s->left < 0 ? HDF5_DAMAGED : NULL;
    for (int i = 0; i < le16(head + 6) && !why; i++)
        why = hdf5_view_read(v, at + 8 + i * (int64_t)entry, p, entry) ? take_symbol(s, p) : HDF5_CUT;
    return why;
}

/* A node of the B-tree: "TREE", 0, level, entries (2), left, right, then key, child, key, child ... */
struct node {
    int level, entries;
    int64_t right, children;
};

static const char *read_node(const struct hdf5_view *v, int64_t at, struct node *n)
{
    const int o = v->offset_bytes;
    uint8_t p[8 + 8 + 8];
    if (!hdf5_view_read(v, at, p, (size_t)(8 + 2 * o)))
        return HDF5_CUT;
    *n = (struct node){p[5], le16(p + 6), hdf5_address(v, p + 8 + o), at + 8 + 2 * o + v->length_bytes};
    return memcmp(p, "TREE\0", 5) == 0 ? NULL : HDF5_DAMAGED;
}

static const char *read_child(const struct hdf5_view *v, const struct node *n, int i, int64_t *at)
{
    uint8_t p[8];
    const int step = v->offset_bytes + v->length_bytes;
    if (!hdf5_view_read(v, n->children + (int64_t)i * step, p, (size_t)v->offset_bytes))
        return HDF5_CUT;
    *at = hdf5_address(v, p);
    return NULL;
}

/* Leaves are linked from left to right, so one path down is enough. */
static const char *walk_symbols(struct symbols *s, int64_t tree)
{
    const struct hdf5_view *v = s->l->v;
    struct node n;
    int64_t at = tree;
    const char *why = read_node(v, at, &n);
    while (!why && n.level > 0) {
        const int level = n.level;
        why = n.entries > 0 ? read_child(v, &n, 0, &at) : HDF5_DAMAGED;
        if (!why)
            why = read_node(v, at, &n);
        if (!why && n.level != level - 1)
            why = HDF5_DAMAGED;
    }
    for (int nodes = 0; !why; nodes++) {
        const uint32_t before = s->l->hard.names.n + s->l->soft.names.n;
        for (int i = 0; i < n.entries && !why; i++) {
            why = read_child(v, &n, i, &at);
            if (!why)
                why = take_symbols(s, at);
        }
        if (why || n.right < 0)
            break;
        /* A leaf without a new name means circular links. */
        why = s->l->hard.names.n + s->l->soft.names.n == before || nodes > NODES_MOST ? HDF5_DAMAGED
                                                                                      : read_node(v, n.right, &n);
    }
    return why;
}

static const char *read_table(struct hdf5_links *l, struct hdf5_message *m)
{
    struct symbols s = {.l = l, .left = l->v->size / 8}; /* the smallest size of either */
    const int64_t tree = hdf5_take_address(l->v, m), heap = hdf5_take_address(l->v, m);
    const char *why = read_names(&s, heap);
    if (!why)
        why = walk_symbols(&s, tree);
    free(s.names);
    return why;
}

/* ------------------------------------------------------------------ links as messages */

/* Version, flags, kind?, order (8)?, character set?, length of the name, name, target. */
const char *hdf5_link_parse(struct hdf5_links *l, struct hdf5_message *m)
{
    enum { HARD = 0, SOFT = 1 };
    const int64_t version = hdf5_take(m, 1), flags = hdf5_take(m, 1);
    if (version != 1 || flags < 0)
        return HDF5_DAMAGED;
    const int64_t kind = flags & 8 ? hdf5_take(m, 1) : HARD;
    const size_t between = (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0);
    if (!hdf5_has(m, between))
        return HDF5_DAMAGED;
    hdf5_skip(m, between);
    const int64_t n = hdf5_take(m, 1 << (flags & 3));
    const char *name = (const char *)m->p;
    if (n < 1 || !hdf5_has(m, (size_t)n) || memchr(name, 0, (size_t)n))
        return HDF5_DAMAGED;
    hdf5_skip(m, (size_t)n);
    if (kind == HARD) {
        const int64_t at = hdf5_take_address(l->v, m);
        return hdf5_names_add(&l->hard, name, (size_t)n, at) ? HDF5_NO_MEMORY : NULL;
    }
    if (kind != SOFT) {
        l->others++;
        return NULL;
    }
    const int64_t bytes = hdf5_take(m, 2);
    if (bytes < 0 || !hdf5_has(m, (size_t)bytes) || memchr(m->p, 0, (size_t)bytes))
        return HDF5_DAMAGED;
    return add_soft(l, name, (size_t)n, (const char *)m->p, (size_t)bytes);
}

/* Version, flags, maximum order (8)?, heap, index by name, index by order? */
static const char *read_info(struct hdf5_links *l, struct hdf5_message *m)
{
    const int64_t version = hdf5_take(m, 1), flags = hdf5_take(m, 1);
    if (version != 0 || flags < 0)
        return HDF5_DAMAGED;
    if (flags & 1)
        hdf5_take(m, 8);
    const int64_t heap = hdf5_take_address(l->v, m), index = hdf5_take_address(l->v, m);
    return heap < 0 || index < 0 ? NULL : hdf5_dense_read(l, heap, index);
}

static const char *take_links(void *user, struct hdf5_message *m)
{
    struct hdf5_links *l = user;
    switch (m->type) {
    case HDF5_MESSAGE_TABLE:
        return read_table(l, m);
    case HDF5_MESSAGE_LINK:
        return hdf5_link_parse(l, m);
    case HDF5_MESSAGE_LINK_INFO:
        return read_info(l, m);
    default:
        return NULL;
    }
}

/* ------------------------------------------------------------------ objects */

enum kind { OTHER, SHAPED, DATASET, GROUP }; /* SHAPED: has a shape, but no values */

static const char *take_kind(void *user, struct hdf5_message *m)
{
    enum kind *kind = user;
    if (m->type == HDF5_MESSAGE_SPACE && *kind == OTHER)
        *kind = SHAPED;
    if (m->type == HDF5_MESSAGE_LAYOUT)
        *kind = DATASET;
    if (m->type == HDF5_MESSAGE_TABLE || m->type == HDF5_MESSAGE_LINK_INFO || m->type == HDF5_MESSAGE_LINK)
        *kind = GROUP;
    return NULL;
}

/* A damaged object is OTHER. Returns NULL, or HDF5_NO_MEMORY. */
static const char *kind_of(const struct hdf5_view *v, int64_t at, enum kind *out, bool *damaged)
{
    *out = OTHER;
    const char *why = at < 0 ? NULL : hdf5_messages(v, at, take_kind, out);
    *damaged = why || *out == SHAPED;
    if (*damaged)
        *out = OTHER;
    return why == HDF5_NO_MEMORY ? why : NULL;
}

/* The groups of recent paths: the soft links of a group mostly lead to the same other group. */
struct passed {
    struct {
        int64_t at;
        struct hdf5_links links;
    } of[4];
    int n; /* groups so far; the older ones were replaced */
};

static void passed_done(struct passed *p)
{
    for (int i = 0; i < (int)(sizeof p->of / sizeof p->of[0]); i++)
        links_done(&p->of[i].links);
}

/* Returns the links of a group. */
static const char *look_into(struct passed *p, const struct hdf5_view *v, int64_t at, const struct hdf5_links **out)
{
    const int most = (int)(sizeof p->of / sizeof p->of[0]);
    for (int i = 0; i < p->n && i < most; i++)
        if (p->of[i].at == at) {
            *out = &p->of[i].links;
            return NULL;
        }
    const int i = p->n % most;
    links_done(&p->of[i].links);
    p->of[i].links = (struct hdf5_links){.v = v};
    p->of[i].at = -1;
    p->n++;
    const char *why = hdf5_messages(v, at, take_links, &p->of[i].links);
    if (!why)
        p->of[i].at = at;
    *out = &p->of[i].links;
    return why;
}

/* Follows one step of a path. If it is a soft link, *soft is its path, from malloc. */
static const char *step(struct passed *p, const struct hdf5_view *v, int64_t *at, const char *name, size_t n,
                        char **soft)
{
    const struct hdf5_links *l;
    uint32_t i;
    const char *why = look_into(p, v, *at, &l);
    *soft = NULL;
    if (!why && names_find(&l->hard.names, name, n, &i)) {
        *at = hdf5_names_at(&l->hard, i);
    } else if (!why && names_find(&l->soft.names, name, n, &i)) {
        *soft = strdup(names_at(&l->paths, (uint32_t)hdf5_names_at(&l->soft, i)));
        why = *soft ? NULL : HDF5_NO_MEMORY;
    } else {
        *at = -1;
    }
    return why;
}

/* Appends the rest of the path to the path of a soft link. */
static char *join(char *soft, const char *rest)
{
    const size_t a = strlen(soft), b = strlen(rest);
    char *path = realloc(soft, a + b + 2);
    if (!path) {
        free(soft);
        return NULL;
    }
    path[a] = '/';
    memcpy(path + a + 1, rest, b + 1);
    return path;
}

static const char *find_path(struct passed *p, const struct hdf5_view *v, int64_t group, const char *path, int64_t *at)
{
    char *own = NULL;
    const char *why = NULL;
    int softs = 0;
    *at = path[0] == '/' ? v->root : group;
    while (!why && *at >= 0 && path[0]) {
        while (path[0] == '/')
            path++;
        const size_t n = strcspn(path, "/");
        if (n == 0 || (n == 1 && path[0] == '.')) {
            path += n;
            continue;
        }
        char *soft;
        why = step(p, v, at, path, n, &soft);
        path += n;
        if (!soft)
            continue;
        soft = join(soft, path);
        free(own);
        path = own = soft;
        why = !soft ? HDF5_NO_MEMORY : NULL;
        if (soft && soft[0] == '/')
            *at = v->root;
        if (++softs > SOFT_MOST)
            *at = -1;
    }
    free(own);
    return why;
}

const char *hdf5_find_path(const struct hdf5_view *v, int64_t group, const char *path, int64_t *at)
{
    struct passed p = {0};
    const char *why = find_path(&p, v, group, path, at);
    passed_done(&p);
    return why;
}

static const char *add_object(const struct hdf5_view *v, const char *name, int64_t at, struct hdf5_names *datasets,
                              struct hdf5_names *groups, struct hdf5_others *others)
{
    enum kind kind;
    bool damaged;
    const char *why = kind_of(v, at, &kind, &damaged);
    others->n += kind == OTHER;
    others->damaged += damaged;
    if (kind == OTHER)
        return why;
    return hdf5_names_add(kind == DATASET ? datasets : groups, name, strlen(name), at) ? HDF5_NO_MEMORY : NULL;
}

/* Adds soft links to the hard ones, with the address of their target. */
static const char *follow_soft(struct hdf5_links *l, int64_t group)
{
    struct passed p = {0};
    const char *why = NULL;
    for (uint32_t i = 0; i < l->soft.names.n && !why; i++) {
        const char *name = names_at(&l->soft.names, i);
        int64_t at;
        why = find_path(&p, l->v, group, names_at(&l->paths, (uint32_t)hdf5_names_at(&l->soft, i)), &at);
        if (why != HDF5_NO_MEMORY)
            why = hdf5_names_add(&l->hard, name, strlen(name), why ? -1 : at) ? HDF5_NO_MEMORY : NULL;
    }
    passed_done(&p);
    return why;
}

const char *hdf5_list(const struct hdf5_view *v, int64_t group, struct hdf5_names *datasets, struct hdf5_names *groups,
                      struct hdf5_others *others)
{
    struct hdf5_links l = {.v = v};
    const char *why = hdf5_messages(v, group, take_links, &l);
    if (!why)
        why = follow_soft(&l, group);
    uint32_t *order = !why && l.hard.names.n > 0 ? names_sorted(&l.hard.names) : NULL;
    if (!why && l.hard.names.n > 0 && !order)
        why = HDF5_NO_MEMORY;
    for (uint32_t i = 0; order && i < l.hard.names.n && !why; i++)
        why = add_object(v, names_at(&l.hard.names, order[i]), hdf5_names_at(&l.hard, order[i]), datasets, groups,
                         others);
    others->n += l.others;
    free(order);
    links_done(&l);
    return why;
}
