/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_names.c -- what a sample is called in a pack.
 *
 * In a tar and in a folder it has a key, behind which its fields are named (pack/keys.h). TFRecord files and arrays
 * hold the name itself: that of the file, or the source's own key. A name depends on those before it, but not on what
 * is in the samples: a run that goes on makes the same names again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/picture.h"
#include "pack/packer.h"

enum { NAME_BYTES = 4096 };

/* Where the suffix of a picture begins in a name; 0: it has none. */
static size_t suffix_at(const char *name)
{
    const size_t n = strlen(name);
    return picture_suffix(name, n) ? (size_t)(strrchr(name, '.') - name) + 1 : 0;
}

const char *packer_suffix(const struct packer *p, int64_t sample, char *buf, size_t n)
{
    char name[NAME_BYTES];
    if (!p->names || source_key(p->source, sample, name, sizeof name) >= sizeof name)
        return NULL;
    const size_t at = suffix_at(name);
    if (at == 0 || (p->suffix && !picture_same(name + at, p->suffix)))
        return NULL;
    snprintf(buf, n, "%s", name + at);
    return buf;
}

/* Gives a name the suffix that its picture will have; where that begins, or 0. */
static size_t take_suffix(const struct packer *p, char name[NAME_BYTES])
{
    const size_t at = suffix_at(name);
    if (at && p->suffix && !picture_same(name + at, p->suffix))
        snprintf(name + at, NAME_BYTES - at, "%s", p->suffix);
    return at;
}

/* From a key of a pack to the name that it was made of. Without a suffix of its own it gets that of the pictures. */
static int take_key(const struct packer *p, char name[NAME_BYTES], size_t *suffix)
{
    struct buf plain = {0};
    const bool whole = keys_is_whole(name);
    if (keys_decode(name, &plain))
        return -1;
    snprintf(name, NAME_BYTES, "%s%s%s", (const char *)plain.data, whole || !p->suffix ? "" : ".",
             whole || !p->suffix ? "" : p->suffix);
    *suffix = whole ? take_suffix(p, name) : plain.len + 1;
    buf_done(&plain);
    return 0;
}

bool packer_has_keys(const struct packer *p)
{
    return p->names || source_has_keys(p->source) || source_has_key_column(p->source);
}

static bool has_files(const struct packer *p)
{
    return p->how.to == STK_TO_TAR || p->how.to == STK_TO_FOLDER;
}

/* 0, or -1: no memory. */
static int make_key(struct packer *p, char name[NAME_BYTES], struct packed *s)
{
    const bool keyed = source_has_keys(p->source);
    size_t suffix = strlen(name) + 1;
    if (keyed && source_is_pack(p->source)) {
        if (has_files(p) && !p->suffix) /* fields and suffixes stay */
            return keys_take(&p->keys, name, s->sample, &s->key);
        if (take_key(p, name, &suffix))
            return -1;
    } else if (!keyed && p->names) {
        suffix = take_suffix(p, name);
    }
    return has_files(p) ? keys_make(&p->keys, name, suffix, s->sample, &s->key)
                        : keys_unique(&p->keys, name, s->sample, &s->key);
}

int packer_key(struct packer *p, struct packed *s, stk_error *e)
{
    char name[NAME_BYTES] = "";
    s->key.len = 0;
    const size_t n = packer_has_keys(p) ? source_key(p->source, s->sample, name, sizeof name) : 0;
    if (n >= sizeof name - PACKED_NAME)
        return error_set(e, STK_EDATA, "pack", "its name has more than %zu bytes", sizeof name - PACKED_NAME);
    keys_tidy(name);
    const bool none = !name[0];
    if (none)
        snprintf(name, sizeof name, "%09" PRId64, s->sample);
    const int rc = none ? keys_take(&p->keys, name, s->sample, &s->key) : make_key(p, name, s);
    return rc ? error_nomem(e, "pack", sizeof name) : STK_OK;
}
