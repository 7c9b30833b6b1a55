/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c -- from the name of a sample to its key in a tar, and back.
 *
 * Of the keys that are taken only a hash is kept. Two that share one are as good as equal: the later gets its whole
 * name as key, which is right in any case.
 */
#include "pack/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Whether it is new. There is room. */
static bool put(struct keys *k, uint64_t hash)
{
    size_t at = hash & (k->room - 1);
    while (k->slots[at] && k->slots[at] != hash)
        at = (at + 1) & (k->room - 1);
    if (k->slots[at])
        return false;
    k->slots[at] = hash;
    k->n++;
    return true;
}

static int grow(struct keys *k)
{
    struct keys more = {.room = k->room ? 2 * k->room : 1024};
    more.slots = calloc(more.room, sizeof *more.slots);
    if (!more.slots)
        return -1;
    for (size_t i = 0; i < k->room; i++)
        if (k->slots[i])
            put(&more, k->slots[i]);
    free(k->slots);
    *k = more;
    return 0;
}

/* 1 when it is new, 0 when it was there, -1: no memory. */
static int add(struct keys *k, uint64_t hash)
{
    if (2 * (k->n + 1) > k->room && grow(k))
        return -1;
    return put(k, hash ? hash : 1);
}

/* Whether the part of a path at p is "." or "..". */
static bool is_dots(const char *p)
{
    const size_t n = strcspn(p, "/");
    return n > 0 && n < 3 && p[0] == '.' && (n == 1 || p[1] == '.');
}

static int escape(const char *name, size_t n, struct buf *out)
{
    const char *slash = memrchr(name, '/', n);
    const size_t last = slash ? (size_t)(slash - name) + 1 : 0;
    bool dots = is_dots(name);
    for (size_t i = 0; i < n; i++) {
        const char c = name[i];
        int rc;
        if (c == '/' && (i == 0 || name[i - 1] == '/')) /* no empty parts */
            rc = buf_add_str(out, "%2F");
        else if (c == '%' || (c == '.' && (i >= last || dots)))
            rc = buf_printf(out, "%%%02X", (unsigned char)c);
        else
            rc = buf_add(out, &c, 1);
        if (rc)
            return -1;
        if (c == '/')
            dots = is_dots(name + i + 1);
    }
    return 0;
}

static int end(struct buf *out)
{
    if (buf_add(out, "", 1))
        return -1;
    out->len--;
    return 0;
}

int keys_make(struct keys *k, const char *name, size_t suffix, struct buf *out)
{
    const size_t n = strlen(name), start = out->len;
    if (suffix > 1 && name[suffix - 2] != '/') {
        if (escape(name, suffix - 1, out))
            return -1;
        const int added = add(k, hash_bytes(out->data + start, out->len - start, 0));
        if (added != 0)
            return added < 0 ? -1 : end(out);
        out->len = start;
    }
    if (escape(name, n, out) || buf_add_str(out, "%"))
        return -1;
    return add(k, hash_bytes(out->data + start, out->len - start, 0)) < 0 ? -1 : end(out);
}

int keys_note(struct keys *k, const char *key)
{
    return add(k, hash_bytes(key, strlen(key), 0)) < 0 ? -1 : 0;
}

void keys_done(struct keys *k)
{
    free(k->slots);
    *k = (struct keys){0};
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int keys_name(const char *key, const char *field, bool first, struct buf *out)
{
    size_t n = strlen(key);
    const bool whole = n > 0 && key[n - 1] == '%';
    n -= whole;
    for (size_t i = 0; i < n; i++) {
        char c = key[i];
        if (c == '%' && n - i > 2 && digit(key[i + 1]) >= 0 && digit(key[i + 2]) >= 0) {
            c = (char)(digit(key[i + 1]) << 4 | digit(key[i + 2]));
            i += 2;
        }
        if (buf_add(out, &c, 1))
            return -1;
    }
    if (!(whole && first) && (buf_add_str(out, ".") || buf_add_str(out, field)))
        return -1;
    return end(out);
}

bool keys_is_safe(const char *name)
{
    const char *p = name;
    for (;;) {
        const size_t n = strcspn(p, "/");
        if (n == 0 || n > 255 || is_dots(p))
            return false;
        if (p[n] == 0)
            return true;
        p += n + 1;
    }
}
