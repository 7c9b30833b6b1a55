/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c -- groups the files of an archive into samples.
 */
#include "source/group.h"

#include <stdio.h>
#include <string.h>

#include "base/image_file.h"
#include "base/text.h"

/* WebDataset's metadata, whose path starts with "__name__", and what systems leave behind ("__MACOSX/"). */
static bool is_metadata(const char *name, size_t n)
{
    const char *slash = memchr(name, '/', n);
    const size_t first = slash ? (size_t)(slash - name) : n;
    if (first >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + first - 2, "__", 2) == 0)
        return true;
    return slash && first == 8 && memcmp(name, "__MACOSX", 8) == 0;
}

static bool is_junk(const char *base, size_t n)
{
    char name[32];
    if (base[0] == '.')
        return true;
    if (n >= sizeof name)
        return false;
    memcpy(name, base, n);
    name[n] = 0;
    return image_file_junk(name);
}

bool group_split(const char *name, size_t n, size_t *n_key, char part[COLUMN_NAME])
{
    const char *slash = memrchr(name, '/', n), *base = slash ? slash + 1 : name;
    const size_t n_base = n - (size_t)(base - name);
    const char *dot = n_base > 0 ? memchr(base, '.', n_base) : NULL;
    if (!dot || is_junk(base, n_base) || is_metadata(name, n))
        return false;
    *n_key = (size_t)(dot - name);
    const size_t length = n - *n_key - 1;
    if (length == 0 || length >= COLUMN_NAME)
        return false;
    for (size_t i = 0; i < length; i++)
        part[i] = text_lower(dot[1 + i]);
    part[length] = 0;
    return true;
}

static int begin(struct group *g, const char *key, size_t n)
{
    if (g->begun && g->key.len == n && memcmp(g->key.data, key, n) == 0)
        return 0;
    g->key.len = 0;
    g->begun = true;
    return buf_reserve(&g->key, n + 1) || buf_add(&g->key, key, n) || record_begin(g->scan, key, n) ? -1 : 0;
}

/* Stores the suffix of an image, unless it is "jpg", "png" or "webp", which is what it becomes if nothing is known. */
static int spell(struct group *g, const char *part, const char *suffix)
{
    const size_t n = strlen(part);
    const bool usual = (n == 3 && (memcmp(suffix, "jpg", 3) == 0 || memcmp(suffix, "png", 3) == 0)) ||
                       (n == 4 && memcmp(suffix, "webp", 4) == 0);
    return usual || strchr(part, '.') || !image_file_suffix(suffix - 1, n + 1) ? 0
                                                                               : record_spelling(g->scan, suffix, n);
}

int group_add(struct group *g, const char *name, size_t n, struct part p, const struct part_extra *extra)
{
    size_t n_key;
    char part[COLUMN_NAME];
    g->added = group_split(name, n, &n_key, part);
    if (!g->added)
        return 0;
    return begin(g, name, n_key) || record_part(g->scan, part, strlen(part), p, extra) ||
                   spell(g, part, name + n_key + 1)
               ? -1
               : 0;
}

bool group_wants_label(const char *name, size_t n, int64_t bytes)
{
    size_t n_key;
    char part[COLUMN_NAME];
    return bytes > 0 && bytes <= GROUP_LABEL_MOST && group_split(name, n, &n_key, part) && strcmp(part, "cls") == 0;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int group_label(struct group *g, const uint8_t *text, size_t n)
{
    while (n > 0 && is_space(text[n - 1]))
        n--;
    while (n > 0 && is_space(text[0])) {
        text++;
        n--;
    }
    return n > 0 && !memchr(text, 0, n) ? record_label(g->scan, (const char *)text, n) : 0;
}

int group_bad(struct group *g, const char *name, size_t n, int64_t at, const char *reason)
{
    size_t n_key;
    char part[COLUMN_NAME], place[32];
    if (name && !group_split(name, n, &n_key, part))
        return 0;
    if (!name) {
        n_key = (size_t)snprintf(place, sizeof place, "@%lld", (long long)at);
        name = place;
    }
    return begin(g, name, n_key) ? -1 : record_bad(g->scan, at, reason);
}

void group_done(struct group *g)
{
    buf_done(&g->key);
}
