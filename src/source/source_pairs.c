/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_pairs.c -- a folder of images and a folder of masks: images/a.jpg and masks/a.png; also Cityscapes' naming,
 * leftImg8bit/train/aachen/x_leftImg8bit.png and gtFine/train/aachen/x_gtFine_labelIds.png.
 *
 * A mask has the name of its image, perhaps with a suffix (a_mask.png), in the same folder below masks/.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "source/annotated.h"
#include "source/query.h"

struct pairs {
    struct annotated_files files; /* its folder has the masks */
    char *folder;                 /* its path, as typed */
    struct image_paths masks;     /* of each sample; "": none */
};

struct naming {
    const char *prefix, *kind;
    const char *images;       /* the default folder */
    const char *masks[5];     /* the default folders, in the order in which they are tried */
    const char *image_suffix; /* of the names of images without .png; removed */
    const char *suffixes[8];  /* that the names of masks may have instead */
};

static const struct naming pairs_naming = {
    .prefix = "pairs:",
    .kind = "images and masks",
    .images = "images",
    .masks = {"masks", "mask", "annotations", "labels"},
    .image_suffix = "",
    .suffixes = {"", "_mask", "_masks", "_seg", "_gt", "_label", "_labels"},
};

static const struct naming cityscapes_naming = {
    .prefix = "cityscapes:",
    .kind = "Cityscapes",
    .images = "leftImg8bit",
    .masks = {"gtFine", "gtCoarse"},
    .image_suffix = "_leftImg8bit",
};

/* ------------------------------------------------------------------ finding masks */

static size_t stem_of(const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    return dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
}

/* Masks by their paths without the suffix of the file. */
static int index_masks(const struct image_paths *masks, struct names *stems, stk_error *e)
{
    for (int64_t i = 0; i < image_paths_count(masks); i++) {
        char path[PATH_MAX];
        uint32_t number;
        image_paths_get(masks, i, path, sizeof path);
        const int added = names_add(stems, path, stem_of(path), &number);
        if (added < 0)
            return error_nomem(e, "open", masks->names.len);
        if (added == 0)
            return error_set(e, STK_EDATA, "open", "there are two masks named %.300s, with different suffixes", path);
    }
    return STK_OK;
}

/* The number of the mask of an image; -1: it has none. */
static int64_t find_mask(const struct naming *n, const struct names *stems, const char *image)
{
    char path[PATH_MAX + 64];
    const size_t ending = strlen(n->image_suffix);
    size_t stem = stem_of(image);
    if (stem >= ending && memcmp(image + stem - ending, n->image_suffix, ending) == 0)
        stem -= ending;
    for (int k = 0; n->suffixes[k]; k++) {
        uint32_t number;
        const int length = snprintf(path, sizeof path, "%.*s%s", (int)stem, image, n->suffixes[k]);
        if (length > 0 && names_find(stems, path, (size_t)length, &number))
            return number;
    }
    return -1;
}

/* Fills p->masks; fails if no image has a mask. */
static int match(struct pairs *p, const struct naming *n, const struct image_paths *found, stk_error *e)
{
    struct names stems = {0};
    char image[PATH_MAX], mask[PATH_MAX];
    int64_t good = 0;
    int rc = index_masks(found, &stems, e);
    for (int64_t i = 0; i < image_paths_count(&p->files.images) && rc == STK_OK; i++) {
        image_paths_get(&p->files.images, i, image, sizeof image);
        const int64_t k = find_mask(n, &stems, image);
        const size_t length = k < 0 ? 0 : image_paths_get(found, k, mask, sizeof mask);
        good += k >= 0;
        if (image_paths_add(&p->masks, mask, length))
            rc = error_nomem(e, "open", p->masks.names.len);
    }
    if (rc == STK_OK && good == 0) {
        image_paths_get(&p->files.images, 0, image, sizeof image);
        rc = error_set(e, STK_ENOTFOUND, "open",
                       "none of its %lld images has a mask; the mask of %.200s should be %.*s.png below %.200s",
                       (long long)image_paths_count(&p->files.images), image, (int)stem_of(image), image, p->folder);
    }
    names_done(&stems);
    return rc;
}

/* ------------------------------------------------------------------ sets */

static int choose_set(struct image_paths *images, const char *prefix, char set[1024], stk_error *e)
{
    struct names sets = {0};
    struct image_paths kept = {0};
    int rc = STK_OK;
    for (uint32_t i = 0; i < images->dirs.n && rc == STK_OK; i++) {
        const char *dir = names_at(&images->dirs, i);
        const size_t n = strcspn(dir, "/");
        uint32_t ignored;
        if (dir[n] == '/' && annotated_is_set(dir, n) && names_add(&sets, dir, n, &ignored) < 0)
            rc = error_nomem(e, "open", n);
    }
    if (rc == STK_OK)
        rc = annotated_set(prefix, &sets, set, e);
    const size_t n = strlen(set);
    for (int64_t i = 0; i < image_paths_count(images) && rc == STK_OK && n > 0; i++) {
        char path[PATH_MAX];
        const size_t length = image_paths_get(images, i, path, sizeof path);
        if (strncmp(path, set, n) == 0 && path[n] == '/' && image_paths_add(&kept, path, length))
            rc = error_nomem(e, "open", length);
    }
    if (rc == STK_OK && n > 0) {
        image_paths_done(images);
        *images = kept;
        kept = (struct image_paths){0};
    }
    image_paths_done(&kept);
    names_done(&sets);
    return rc;
}

/* ------------------------------------------------------------------ reading */

static size_t mask_path(const struct source *s, int64_t i, char *buf, size_t n)
{
    return image_paths_get(&((const struct pairs *)files_extra_state(s))->masks, i, buf, n);
}

static int read_mask(const void *state, const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct pairs *p = state;
    char path[PATH_MAX];
    if (image_paths_get(&p->masks, i, path, sizeof path) == 0)
        return error_set(e, STK_EDATA, "read", "there is no mask with its name in %.300s or its subfolders", p->folder);
    r->derived.len = 0;
    const int rc = annotated_load(s, r, p->files.dir, path, 0, &r->derived, e);
    if (rc == STK_ENOTFOUND)
        return error_set(e, STK_EDATA, "read", "its mask %.300s no longer exists below %.300s", path, p->folder);
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (s->fields[f].column >= 0)
            r->cells[f] = (struct cell){.bytes = r->derived.data, .n = r->derived.len};
    return rc;
}

static uint64_t fingerprint(const void *state, const struct source *s)
{
    return annotated_hash(s, ((const struct pairs *)state)->files.dir, mask_path);
}

static void free_pairs(void *state)
{
    struct pairs *p = state;
    annotated_files_done(&p->files);
    image_paths_done(&p->masks);
    free(p->folder);
    free(p);
}

/* ------------------------------------------------------------------ opening */

static char *join(const char *folder, const char *below)
{
    struct buf b = {0};
    const size_t n = strlen(folder);
    if (buf_printf(&b, "%s%s%s/", folder, n > 0 && folder[n - 1] != '/' ? "/" : "", below) || buf_add(&b, "", 1)) {
        buf_done(&b);
        return NULL;
    }
    return (char *)b.data;
}

/* The folder of the masks: as the query says, or the first that exists. */
static const char *masks_folder(const struct naming *n, const char *folder, const char *query, char value[1024])
{
    if (query_get(query, "masks", value, 1024))
        return value;
    for (int i = 0; n->masks[i]; i++)
        if (annotated_has_folder(folder, n->masks[i]))
            return n->masks[i];
    return n->masks[0];
}

static int scan(struct pairs *p, const struct naming *n, const char *folder, int threads, char set[1024], stk_error *e)
{
    struct image_paths masks = {0};
    const int dir = annotated_folder(folder, "");
    if (dir < 0)
        return error_os(e, errno, "open", "the folder %.300s cannot be opened", folder);
    int rc = annotated_scan(&p->files.images, dir, threads, e);
    close(dir);
    if (rc == STK_OK)
        rc = choose_set(&p->files.images, n->prefix, set, e);
    if (rc == STK_OK && image_paths_count(&p->files.images) == 0)
        rc = error_set(e, STK_EUSAGE, "open", "there are no images below %.300s", folder);
    p->files.dir = annotated_folder(p->folder, "");
    if (rc == STK_OK && p->files.dir < 0)
        rc = error_os(e, errno, "open", "the folder %.300s cannot be opened", p->folder);
    if (rc == STK_OK)
        rc = annotated_scan(&masks, p->files.dir, threads, e);
    if (rc == STK_OK)
        rc = match(p, n, &masks, e);
    image_paths_done(&masks);
    return rc;
}

static int open_with(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                     const struct naming *n, stk_error *e)
{
    static const struct column columns[] = {
        {.name = "image", .kind = STK_IMAGE},
        {.name = "mask", .kind = STK_BYTES, .follow = FOLLOW_MASK},
    };
    const uint64_t began_ns = now_ns();
    char root[PATH_MAX], value[1024], set[1024] = "";
    snprintf(root, sizeof root, "%s", names_at(paths, 0));
    query_get(query, "set", set, sizeof set);
    int rc = n == &pairs_naming && !query_get(query, "images", value, sizeof value)
                 ? annotated_enter_set(n->prefix, root, set, e)
                 : STK_OK;
    struct pairs *p = rc == STK_OK ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return rc != STK_OK ? rc : error_nomem(e, "open", sizeof *p);
    p->files.dir = -1;
    p->folder = join(root, masks_folder(n, root, query, value));
    char *images = join(root, query_get(query, "images", value, sizeof value) ? value : n->images);
    rc = p->folder && images && !columns_add(&p->files.columns, &columns[0]) &&
                 !columns_add(&p->files.columns, &columns[1])
             ? scan(p, n, images, o->threads, set, e)
             : error_nomem(e, "open", PATH_MAX);
    if (rc == STK_OK)
        rc = annotated_open(s, o,
                            &(struct annotated){.kind = n->kind,
                                                .path = names_at(paths, 0),
                                                .folder = images,
                                                .paths = &p->files.images,
                                                .columns = &p->files.columns,
                                                .began_ns = began_ns},
                            e);
    free(images);
    image_paths_done(&p->files.images);
    return annotated_end(
        s, rc, &(struct files_extra){.read = read_mask, .done = free_pairs, .state = p, .fingerprint = fingerprint});
}

int source_pairs_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                      stk_error *e)
{
    static const char *const known[] = {"images", "masks", "set", NULL};
    const int rc = annotated_check(paths, "folder", query, known, e);
    return rc == STK_OK ? open_with(s, o, paths, query, &pairs_naming, e) : rc;
}

int source_cityscapes_open(struct source *s, const struct source_options *o, const struct names *paths,
                           const char *query, stk_error *e)
{
    static const char *const known[] = {"images", "masks", "set", "target", NULL};
    char target[64] = "labelIds", fine[128], coarse[128];
    const int rc = annotated_check(paths, "folder", query, known, e);
    if (rc != STK_OK)
        return rc;
    query_get(query, "target", target, sizeof target);
    snprintf(fine, sizeof fine, "_gtFine_%s", target);
    snprintf(coarse, sizeof coarse, "_gtCoarse_%s", target);
    struct naming n = cityscapes_naming;
    n.suffixes[0] = fine;
    n.suffixes[1] = coarse;
    return open_with(s, o, paths, query, &n, e);
}

bool source_pairs_is(const char *folder)
{
    const bool images = annotated_has_folder(folder, "images");
    for (int i = 0; i < 2; i++) /* masks and mask; the others may be something else */
        if (images ? annotated_has_folder(folder, pairs_naming.masks[i])
                   : annotated_has_sets(folder, pairs_naming.masks[i]))
            return true;
    return false;
}

bool source_cityscapes_is(const char *folder)
{
    return annotated_has_folder(folder, cityscapes_naming.images) &&
           (annotated_has_folder(folder, "gtFine") || annotated_has_folder(folder, "gtCoarse"));
}
