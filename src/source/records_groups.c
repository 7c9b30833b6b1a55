/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_groups.c -- merges image formats and finds classes in groups of files, once all shards are scanned.
 *
 * If some samples have a jpg and some a png, but none has both, these become one part, "image". If samples consist only
 * of an image, and all are in folders, the first folder after their common prefix is the class.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/image_file.h"
#include "source/records_index.h"

/* ------------------------------------------------------------------ image formats */

static bool is_image(const char *part)
{
    char name[COLUMN_NAME + 1];
    snprintf(name, sizeof name, ".%s", part);
    return strcmp(part, "dct") == 0 || (!strchr(part, '.') && image_file_suffix(name, strlen(name)));
}

/* Whether a sample of the list has images of two formats. The items of a sample are consecutive. */
static bool has_two(const struct record_list *l)
{
    const struct record_item *items = (const void *)l->items.data;
    const size_t n = l->items.len / sizeof *items;
    int64_t sample = -1;
    uint32_t format = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].name == (uint32_t)RECORD_ALL || !is_image(names_at(&l->part_names, items[i].name)))
            continue;
        if (items[i].sample == sample && items[i].name != format)
            return true;
        sample = items[i].sample;
        format = items[i].name;
    }
    return false;
}

/* The number of image formats, at most 2. */
static int count_formats(const struct record_list *lists, uint32_t n)
{
    const char *first = NULL;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < lists[i].part_names.n; k++) {
            const char *name = names_at(&lists[i].part_names, k);
            if (first && is_image(name) && strcmp(name, first) != 0)
                return 2;
            if (!first && is_image(name))
                first = name;
        }
    return first != NULL;
}

/* Renames all image parts of a list to "image". */
static int rename_images(struct record_list *l)
{
    struct names names = {0};
    uint32_t *to = malloc(((size_t)l->part_names.n + 1) * sizeof *to);
    int rc = to ? 0 : -1;
    for (uint32_t k = 0; k < l->part_names.n && rc == 0; k++) {
        const char *name = names_at(&l->part_names, k);
        name = is_image(name) ? "image" : name;
        rc = names_add(&names, name, strlen(name), &to[k]) < 0 ? -1 : 0;
    }
    struct record_item *items = (void *)l->items.data;
    for (size_t i = 0; rc == 0 && i < l->items.len / sizeof *items; i++)
        if (items[i].name != (uint32_t)RECORD_ALL)
            items[i].name = to[items[i].name];
    free(to);
    if (rc == 0) {
        names_done(&l->part_names);
        l->part_names = names;
    } else {
        names_done(&names);
    }
    return rc;
}

static int merge_images(struct record_list *lists, uint32_t n)
{
    if (count_formats(lists, n) < 2)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (has_two(&lists[i]))
            return 0;
    for (uint32_t i = 0; i < n; i++)
        if (rename_images(&lists[i]))
            return -1;
    return 0;
}

/* ------------------------------------------------------------------ classes */

/* Whether samples consist only of an image, without labels. */
static bool only_images(const struct record_list *lists, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (lists[i].label_names.n > 0 || lists[i].part_names.n > 1 || (lists[i].n > 0 && !lists[i].keyed))
            return false;
        for (uint32_t k = 0; k < lists[i].part_names.n; k++)
            if (!is_image(names_at(&lists[i].part_names, k)) && strcmp(names_at(&lists[i].part_names, k), "image"))
                return false;
    }
    return true;
}

/* The common prefix of all keys, up to a folder. */
struct common {
    const char *key; /* any key; NULL: none yet */
    size_t n;
    bool all; /* all keys are in a folder */
};

/* Whether a key is "@" and an offset, for a file whose name is unknown. */
static bool is_offset(const char *key)
{
    return key[0] == '@' && key[1 + strspn(key + 1, "0123456789")] == 0;
}

/* The length up to the last slash but one, so that one folder remains. */
static size_t prefix_most(const char *key, size_t n)
{
    const char *slash = memrchr(key, '/', n);
    slash = slash ? memrchr(key, '/', (size_t)(slash - key)) : NULL;
    return slash ? (size_t)(slash - key) + 1 : 0;
}

static void shorten(struct common *c, const char *key)
{
    const size_t n = strlen(key);
    if (is_offset(key))
        return;
    c->all = c->all && memchr(key, '/', n);
    const size_t most = prefix_most(key, n);
    if (!c->key) {
        c->key = key;
        c->n = most;
        return;
    }
    size_t same = 0;
    const size_t end = most < c->n ? most : c->n;
    while (same < end && key[same] == c->key[same])
        same++;
    while (same > 0 && key[same - 1] != '/')
        same--;
    c->n = same;
}

static int label_list(struct record_list *l, size_t common)
{
    const char *key = (const char *)l->keys.data;
    for (int64_t i = 0; i < l->n; i++, key = record_next_key(key)) {
        if (is_offset(key))
            continue;
        const char *folder = key + common, *slash = strchr(folder, '/');
        uint32_t number;
        if (names_add(&l->label_names, folder, (size_t)(slash - folder), &number) < 0)
            return -1;
        number++;
        memcpy(l->labels.data + (size_t)i * sizeof number, &number, sizeof number);
    }
    return 0;
}

static int label_by_folder(struct record_list *lists, uint32_t n)
{
    struct common c = {.all = true};
    for (uint32_t i = 0; i < n && c.all; i++) {
        const char *key = (const char *)lists[i].keys.data;
        for (int64_t k = 0; k < lists[i].n && c.all; k++, key = record_next_key(key))
            shorten(&c, key);
    }
    for (uint32_t i = 0; i < n && c.all && c.key; i++)
        if (label_list(&lists[i], c.n))
            return -1;
    return 0;
}

int records_groups(struct record_list *lists, uint32_t n)
{
    if (merge_images(lists, n))
        return -1;
    return only_images(lists, n) ? label_by_folder(lists, n) : 0;
}
