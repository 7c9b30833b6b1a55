/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c -- converts the name of a sample to its key in a tar, and back.
 *
 * Only the hashes of taken keys are stored. If two keys have the same hash, the later one is treated as taken and
 * represents its whole name, which is always correct.
 */
#include "pack/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/image_file.h"

/* Returns whether the hash is new. There must be room. */
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

/* Whether a reader would misunderstand this character: a dot ends the key, and WebDataset skips "__x__". */
static bool is_special(const char *name, size_t i, size_t last)
{
    return name[i] == '%' || (name[i] == '.' && i >= last) || (i == 0 && name[0] == '_' && name[1] == '_');
}

static int escape(const char *name, size_t n, struct buf *out)
{
    const char *slash = memrchr(name, '/', n);
    const size_t last = slash ? (size_t)(slash - name) + 1 : 0;
    for (size_t i = 0; i < n; i++)
        if (is_special(name, i, last) ? buf_printf(out, "%%%02X", (unsigned char)name[i]) : buf_add(out, name + i, 1))
            return -1;
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

/* Adds the key that begins at start. Returns 1 if it is new, 0 if it is taken, -1 when out of memory. */
static int add_from(struct keys *k, size_t start, const struct buf *out)
{
    const uint64_t hash = hash_bytes(out->data + start, out->len - start, 0);
    if (4 * (k->n + 1) > 3 * k->room && grow(k))
        return -1;
    return put(k, hash ? hash : 1);
}

/* Makes the key of a name from its first `stem` bytes, or from the whole name if that key is taken or stem is 0. Always
 * adds the key of the whole name, so that the same name is recognised later. Returns 1, 0 if the name is taken, or -1
 * when out of memory. */
static int try_name(struct keys *k, const char *name, size_t stem, struct buf *out)
{
    const size_t start = out->len;
    if (escape_whole(name, out))
        return -1;
    const int fresh = add_from(k, start, out);
    if (fresh <= 0 || stem == 0 || name[stem - 1] == '/')
        return fresh;
    out->len = start;
    if (escape(name, stem, out))
        return -1;
    const int added = add_from(k, start, out);
    if (added != 0)
        return added;
    out->len = start;
    return escape_whole(name, out) ? -1 : 1;
}

int keys_make(struct keys *k, const char *name, size_t suffix, int64_t number, struct buf *out)
{
    const size_t start = out->len, stem = suffix < 2 ? 0 : suffix - 1, cut = stem ? stem : strlen(name);
    struct buf other = {0};
    int made = try_name(k, name, stem, out);
    for (int64_t i = number; made == 0; i++) {
        out->len = start;
        other.len = 0;
        if (buf_add(&other, name, cut) || buf_printf(&other, "-%lld", (long long)i))
            break;
        const size_t longer = other.len;
        made = buf_add_str(&other, name + cut) || end(&other)
                   ? -1
                   : try_name(k, (const char *)other.data, stem ? longer : 0, out);
    }
    buf_done(&other);
    return made == 1 ? end(out) : -1;
}

int keys_take(struct keys *k, const char *key, int64_t number, struct buf *out)
{
    const size_t start = out->len, n = strlen(key);
    const bool whole = keys_is_whole(key);
    int added = buf_add(out, key, n) ? -1 : add_from(k, start, out);
    for (int64_t i = number; added == 0; i++) {
        out->len = start + n - whole;
        added = buf_printf(out, "-%lld%s", (long long)i, whole ? "%" : "") ? -1 : add_from(k, start, out);
    }
    return added == 1 ? end(out) : -1;
}

int keys_unique(struct keys *k, const char *name, int64_t number, struct buf *out)
{
    const size_t start = out->len, n = strlen(name);
    const size_t cut = image_file_suffix(name, n) ? (size_t)(strrchr(name, '.') - name) : n;
    int added = buf_add(out, name, n) ? -1 : add_from(k, start, out);
    for (int64_t i = number; added == 0; i++) {
        out->len = start;
        added = buf_add(out, name, cut) || buf_printf(out, "-%lld%s", (long long)i, name + cut)
                    ? -1
                    : add_from(k, start, out);
    }
    return added == 1 ? end(out) : -1;
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

bool keys_is_whole(const char *key)
{
    const size_t n = strlen(key);
    return n > 0 && key[n - 1] == '%';
}

int keys_decode(const char *key, struct buf *out)
{
    const size_t n = strlen(key) - keys_is_whole(key);
    for (size_t i = 0; i < n; i++) {
        char c = key[i];
        if (c == '%' && n - i > 2 && digit(key[i + 1]) >= 0 && digit(key[i + 2]) >= 0) {
            c = (char)(digit(key[i + 1]) << 4 | digit(key[i + 2]));
            i += 2;
        }
        if (buf_add(out, &c, 1))
            return -1;
    }
    return end(out);
}

/* Whether a whole name fits the content of its file: it has the suffix of the field, or is not the name of an image. */
static bool fits(const char *name, const char *field)
{
    const size_t n = strlen(name);
    return !image_file_suffix(name, n) || image_file_same(strrchr(name, '.') + 1, field);
}

int keys_name(const char *key, const char *field, bool first, struct buf *out)
{
    const size_t start = out->len;
    if (keys_decode(key, out))
        return -1;
    if (first && keys_is_whole(key) && fits((const char *)out->data + start, field))
        return 0;
    return buf_add_str(out, ".") || buf_add_str(out, field) ? -1 : end(out);
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
