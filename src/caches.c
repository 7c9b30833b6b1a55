/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caches.c -- lists and clears a cache folder: the indexes of src/source/ and the entries of src/cache/.
 */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "cache/cache.h"
#include "cache/folder.h"
#include "loader.h"

static bool is_kind(const char *kind)
{
    for (int k = 0; k < CACHE_KINDS; k++)
        if (strcmp(kind, cache_kind_name((enum cache_kind)k)) == 0)
            return true;
    return strcmp(kind, "index") == 0;
}

int stk_cache_list(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user, stk_error *e)
{
    char dir[PATH_MAX];
    source_cache_dir(cache_dir, dir, sizeof dir);
    if (!dir[0])
        return STK_OK;
    if (source_list_cached(dir, each, user) != 0)
        return STK_OK;
    const int why = folder_list(dir, each, user);
    return why ? error_os(e, why, "cache", "the cache folder %s cannot be read", dir) : STK_OK;
}

int stk_cache_clear(const char *cache_dir, const char *kind, const char *source, int64_t *bytes, stk_error *e)
{
    char dir[PATH_MAX], place[PATH_MAX];
    int64_t deleted = 0;
    int why = 0;
    if (kind && !is_kind(kind))
        return error_set(e, STK_EUSAGE, "cache",
                         "unknown kind of cache: %s; the kinds are index, checkpoints, bytes, dct and pixels", kind);
    if (source && source_locate(source, place, sizeof place))
        source = place;
    source_cache_dir(cache_dir, dir, sizeof dir);
    if (dir[0] && (!kind || strcmp(kind, "index") == 0))
        why = source_delete_cached(dir, source, &deleted);
    if (dir[0] && (!kind || strcmp(kind, "index") != 0)) {
        const int also = folder_clear(dir, kind, source, &deleted);
        why = also ? also : why;
    }
    if (bytes)
        *bytes = deleted;
    return why ? error_os(e, why, "cache", "some files in the cache folder %s cannot be deleted", dir) : STK_OK;
}
