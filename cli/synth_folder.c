/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_folder.c -- the folder that `stoker synth` writes.
 *
 * A hidden file in it stores the settings. With it, a later call recognises its own folders, continues where an earlier
 * call was stopped, and removes exactly the files that were made with other settings.
 */
#include "synth_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/json.h"
#include "file.h"
#include "out.h"
#include "synth.h"

static const char recipe_name[] = ".stoker-synth.json";

/* ------------------------------------------------------------------ names */

stk_format synth_format_of(const struct args_synth *s, int64_t index)
{
    if (s->format > 0)
        return (stk_format)s->format;
    if (s->format == 0)
        return STK_JPEG;
    struct synth_rng r = synth_rng_init(s->seed ^ 0x666f726d6174u, (uint64_t)index);
    const int p = synth_pick(&r, 100);
    return p < 70 ? STK_JPEG : p < 90 ? STK_PNG : STK_WEBP;
}

static int class_path(const char *out, const struct args_synth *s, int k, char *buf, size_t n)
{
    char name[64];
    synth_class_name(synth_class_of(k, s->classes), name, sizeof name);
    return (size_t)snprintf(buf, n, "%s/%s", out, name) < n ? 0 : -1;
}

int synth_path(const char *out, const struct args_synth *s, int64_t index, char *buf, size_t n)
{
    static const char *const suffixes[] = {"", "jpg", "png", "webp"};
    char name[64];
    synth_class_name(synth_class_of((int)(index % s->classes), s->classes), name, sizeof name);
    const int len =
        snprintf(buf, n, "%s/%s/%s_%06" PRId64 ".%s", out, name, name, index, suffixes[synth_format_of(s, index)]);
    return (size_t)len < n ? 0 : -1;
}

static int recipe_path(const char *out, char *buf, size_t n)
{
    return (size_t)snprintf(buf, n, "%s/%s", out, recipe_name) < n ? 0 : -1;
}

/* ------------------------------------------------------------------ the settings */

static int same(const struct args_synth *a, const struct args_synth *b)
{
    return a->samples == b->samples && a->classes == b->classes && a->size == b->size && a->quality == b->quality &&
           a->format == b->format && a->seed == b->seed;
}

/* Returns 1 and the settings if there is a settings file. */
static int read_recipe(const char *out, struct args_synth *s)
{
    char path[SYNTH_PATH], *text;
    size_t n;
    stk_error e;
    int64_t version, classes, size, quality, format;
    uint64_t seed;
    if (recipe_path(out, path, sizeof path) || file_read(path, 1 << 16, &text, &n, &e) != STK_OK)
        return 0;
    *s = (struct args_synth){0};
    const struct json_value d = json_document(text, n);
    const bool found =
        json_get_int(json_find(d, "stoker_synth"), &version) && json_get_int(json_find(d, "samples"), &s->samples) &&
        json_get_int(json_find(d, "classes"), &classes) && json_get_int(json_find(d, "size"), &size) &&
        json_get_int(json_find(d, "quality"), &quality) && json_get_int(json_find(d, "format"), &format) &&
        json_get_hex(json_find(d, "seed"), &seed) && s->samples >= 0 && classes >= 1 && classes <= SYNTH_MAX_CLASSES &&
        format >= -1 && format <= STK_WEBP;
    free(text);
    if (!found)
        return 0;
    s->classes = (int)classes;
    s->size = (int)size;
    s->quality = (int)quality;
    s->format = (int)format;
    s->seed = seed;
    return 1;
}

int synth_folder_write_recipe(const struct args *a, int complete, stk_error *e)
{
    const struct args_synth *s = &a->synth;
    char path[SYNTH_PATH], *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f || recipe_path(a->operand, path, sizeof path))
        return file_error(e, a->operand, "cannot write the settings into it", f ? ENAMETOOLONG : ENOMEM);
    struct json j = {.f = f};
    json_open(&j, NULL, '{');
    json_int(&j, "stoker_synth", 1);
    json_int(&j, "samples", s->samples);
    json_int(&j, "classes", s->classes);
    json_int(&j, "size", s->size);
    json_int(&j, "quality", s->quality);
    json_int(&j, "format", s->format);
    json_hex(&j, "seed", s->seed);
    json_bool(&j, "complete", complete);
    json_close(&j, '}');
    const int rc = fclose(f) == 0 ? file_write(path, text, n, e) : file_error(e, path, "cannot write", ENOMEM);
    free(text);
    return rc;
}

/* ------------------------------------------------------------------ the folder */

static int is_empty(const char *path)
{
    DIR *d = opendir(path);
    int entries = 0;
    if (!d)
        return 0;
    for (const struct dirent *e; (e = readdir(d));)
        entries += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return entries == 0;
}

/* Creates the folder and its parents, unless they exist. */
static int make_folders(const char *path, stk_error *e)
{
    char part[SYNTH_PATH];
    const size_t n = strlen(path);
    if (n >= sizeof part)
        return file_error(e, path, "cannot create it", ENAMETOOLONG);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != 0)
            continue;
        const char kept = part[i];
        part[i] = 0;
        if (mkdir(part, 0777) && errno != EEXIST)
            return file_error(e, part, "cannot create this folder", errno);
        part[i] = kept;
    }
    struct stat st;
    if (stat(path, &st))
        return file_error(e, path, "cannot access it", errno);
    return S_ISDIR(st.st_mode) ? STK_OK : file_error(e, path, "cannot write into it", ENOTDIR);
}

static void remove_made(const char *out, const struct args_synth *old)
{
    char path[SYNTH_PATH];
    for (int64_t i = 0; i < old->samples; i++)
        if (synth_path(out, old, i, path, sizeof path) == 0)
            unlink(path);
    for (int k = 0; k < old->classes; k++)
        if (class_path(out, old, k, path, sizeof path) == 0)
            rmdir(path); /* fails if it contains other files, which stay */
}

/* Fails early if the disk has less space than the images need at least. */
static int check_space(const struct args *a, stk_error *e)
{
    const struct args_synth *s = &a->synth;
    const double least = (double)s->samples * (double)s->size * (double)s->size * 0.1;
    struct statvfs v;
    if (statvfs(a->operand, &v))
        return STK_OK;
    const double room = (double)v.f_bavail * (double)v.f_frsize;
    if (room >= least)
        return STK_OK;
    *e = (stk_error){.code = STK_EIO, .os_error = ENOSPC, .sample = -1};
    snprintf(e->text, sizeof e->text, "%.900s: %s free, but %s images need at least %s", a->operand,
             out_bytes((int64_t)room).s, out_count(s->samples).s, out_bytes((int64_t)least).s);
    return STK_EIO;
}

static int make_classes(const struct args *a, stk_error *e)
{
    char path[SYNTH_PATH];
    const int n = a->synth.samples < a->synth.classes ? (int)a->synth.samples : a->synth.classes;
    int rc = STK_OK;
    for (int k = 0; k < n && rc == STK_OK; k++) {
        if (class_path(a->operand, &a->synth, k, path, sizeof path))
            rc = file_error(e, a->operand, "cannot create folders in it", ENAMETOOLONG);
        else
            rc = make_folders(path, e);
    }
    return rc;
}

int synth_folder_open(const struct args *a, int *keep)
{
    stk_error e = {.sample = -1};
    struct args_synth old;
    int rc = make_folders(a->operand, &e);
    if (rc != STK_OK)
        return out_fail("synth", rc, &e);
    const int made_here = read_recipe(a->operand, &old);
    if (!made_here && !a->synth.force && !is_empty(a->operand)) {
        out_say("synth", "%s is not empty and was not made by synth; --force writes into it anyway", a->operand);
        return END_USAGE;
    }
    if (made_here && !same(&old, &a->synth) && !a->synth.force) {
        out_say("synth", "%s has %s made with other options; --force replaces them", a->operand,
                out_some(old.samples, "image", "images").s);
        return END_USAGE;
    }
    *keep = made_here && same(&old, &a->synth) && !a->synth.force;
    if (made_here && !same(&old, &a->synth))
        remove_made(a->operand, &old);
    if (!*keep)
        rc = check_space(a, &e);
    if (rc == STK_OK)
        rc = make_classes(a, &e);
    if (rc == STK_OK)
        rc = synth_folder_write_recipe(a, 0, &e);
    return rc == STK_OK ? END_GOOD : out_fail("synth", rc, &e);
}
