/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_names.c -- the name of a sample in a pack.
 *
 * In a tar and in a folder, a sample has a key, and the names of its fields follow the key (pack/keys.h). TFRecord
 * files and arrays contain the name itself: the file name, or the key in the source. A name depends on the names before
 * it, but not on the content of samples. So a run that continues another makes the same names.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/image_file.h"
#include "pack/packer.h"

enum { NAME_BYTES = 4096 };

/* Where the image suffix begins in a name, after its dot. 0: there is none. */
static size_t suffix_at(const char *name)
{
    const size_t n = strlen(name);
    return image_file_suffix(name, n) ? (size_t)(strrchr(name, '.') - name) + 1 : 0;
}

const char *packer_suffix(const struct packer *p, int64_t sample, char *buf, size_t n)
{
    char name[NAME_BYTES];
    const char *own = source_has_keys(p->source) ? source_suffix(p->source, sample) : NULL;
    if (p->names && source_key(p->source, sample, name, sizeof name) < sizeof name)
        own = suffix_at(name) ? name + suffix_at(name) : NULL;
    if (!own || (p->suffix && !image_file_same(own, p->suffix)))
        return NULL;
    snprintf(buf, n, "%s", own);
    return buf;
}

/* Gives a name the suffix that its image will have. Returns where the suffix begins, or 0 if the key has to contain it:
 * "dct" replaces the suffix of a JPEG, and unpacking replaces "dct" by "jpg". */
static size_t take_suffix(const struct packer *p, char name[NAME_BYTES])
{
    const size_t at = suffix_at(name);
    if (at && p->suffix && !image_file_same(name + at, p->suffix))
        snprintf(name + at, NAME_BYTES - at, "%s", p->suffix);
    return p->how.as == STK_AS_DCT && strcmp(name + at, "jpg") != 0 ? 0 : at;
}

/* Replaces a key of a pack by the name that it was made from. A name without a suffix gets that of its image. A whole
 * name with another spelling of it (1.JPG for jpg) stays whole, or it would become the name of another sample. */
static int take_key(const struct packer *p, int64_t sample, char name[NAME_BYTES], size_t *suffix)
{
    struct buf plain = {0};
    char own[16];
    const bool whole = keys_is_whole(name), bare = whole || !p->suffix;
    const char *of_image = packer_suffix(p, sample, own, sizeof own) ? own : p->suffix;
    if (keys_decode(name, &plain))
        return -1;
    snprintf(name, NAME_BYTES, "%s%s%s", (const char *)plain.data, bare ? "" : ".", bare ? "" : of_image);
    *suffix = whole ? take_suffix(p, name) : plain.len + 1;
    if (whole && p->suffix && strcmp(name + *suffix, p->suffix) != 0)
        *suffix = 0;
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

/* Returns 0, or -1 when out of memory. */
static int make_key(struct packer *p, char name[NAME_BYTES], struct packed *s)
{
    const bool keyed = source_has_keys(p->source);
    size_t suffix = strlen(name) + 1;
    if (keyed && source_is_pack(p->source)) {
        if (has_files(p) && !p->suffix) /* fields and suffixes do not change */
            return keys_take(&p->keys, name, s->sample, &s->key);
        if (take_key(p, s->sample, name, &suffix))
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
        return error_set(e, STK_EDATA, "pack", "its name has more than %zu bytes; rename it",
                         sizeof name - PACKED_NAME);
    keys_tidy(name);
    const bool none = !name[0];
    if (none)
        snprintf(name, sizeof name, "%09" PRId64, s->sample);
    const int rc = none ? keys_take(&p->keys, name, s->sample, &s->key) : make_key(p, name, s);
    return rc ? error_nomem(e, "pack", sizeof name) : STK_OK;
}
