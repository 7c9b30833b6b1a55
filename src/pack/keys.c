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
    if (4 * (k->n + 1) > 3 * k->room && grow(k))
        return -1;
    return put(k, hash ? hash : 1);
}

/* Whether the part of a path at p is "." or "..". */
static bool is_dots(const char *p)
{
    const size_t n = strcspn(p, "/");
    return n > 0 && n < 3 && p[0] == '.' && (n == 1 || p[1] == '.');
}

void keys_tidy(char *name)
{
    char *to = name;
    for (const char *p = name; *p;) {
        const size_t n = strcspn(p, "/"), step = n + (p[n] == '/');
        if (n == 2 && is_dots(p)) {
            to = name;
        } else if (n > 0 && !is_dots(p)) {
            memmove(to, p, step);
            to += step;
        }
        p += step;
    }
    *to = 0;
}

static int escape(const char *name, size_t n, struct buf *out)
{
    const char *slash = memrchr(name, '/', n);
    const size_t last = slash ? (size_t)(slash - name) + 1 : 0;
    for (size_t i = 0; i < n; i++) {
        const char c = name[i];
        const bool odd = c == '%' || (c == '.' && i >= last);
        if (odd ? buf_printf(out, "%%%02X", (unsigned char)c) : buf_add(out, &c, 1))
            return -1;
    }
    return 0;
}

static int escape_whole(const char *name, struct buf *out)
{
    return escape(name, strlen(name), out) || buf_add_str(out, "%") ? -1 : 0;
}

static int end(struct buf *out)
{
    if (buf_add(out, "", 1))
        return -1;
    out->len--;
    return 0;
}

/* As add(), of the key from start on. */
static int add_from(struct keys *k, size_t start, const struct buf *out)
{
    return add(k, hash_bytes(out->data + start, out->len - start, 0));
}

/* A key that is taken, with the first number behind it that makes it a new one. */
static int add_number(struct keys *k, size_t start, int64_t number, struct buf *out)
{
    const bool whole = out->len > start && out->data[out->len - 1] == '%';
    const size_t stem = out->len - whole;
    int added = 0;
    for (int64_t i = number; added == 0; i++) {
        out->len = stem;
        if (buf_printf(out, "-%lld%s", (long long)i, whole ? "%" : ""))
            return -1;
        added = add_from(k, start, out);
    }
    return added < 0 ? -1 : end(out);
}

int keys_make(struct keys *k, const char *name, size_t suffix, int64_t number, struct buf *out)
{
    const size_t start = out->len;
    if (escape_whole(name, out))
        return -1;
    const int fresh = add_from(k, start, out); /* also where it is not the key: so the same name is known again */
    if (fresh < 0)
        return -1;
    if (suffix < 2 || name[suffix - 2] == '/')
        return fresh ? end(out) : add_number(k, start, number, out);
    out->len = start;
    if (escape(name, suffix - 1, out))
        return -1;
    const int added = add_from(k, start, out);
    if (added != 0)
        return added < 0 ? -1 : end(out);
    if (!fresh)
        return add_number(k, start, number, out);
    out->len = start;
    return escape_whole(name, out) ? -1 : end(out);
}

int keys_take(struct keys *k, const char *key, int64_t number, struct buf *out)
{
    const size_t start = out->len;
    if (buf_add_str(out, key))
        return -1;
    const int added = add_from(k, start, out);
    if (added != 0)
        return added < 0 ? -1 : end(out);
    return add_number(k, start, number, out);
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
