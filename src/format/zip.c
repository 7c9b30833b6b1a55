/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.c -- reads the central directory of zip archives.
 *
 *     [program]  header name extra bytes [sizes] ...  |  entry name extra comment ...  |  [end64 locator]  end comment
 *                one per file                            the central directory
 *
 * Only the entries are reliable: the sizes in the headers of files may be missing. Offsets count from the start of the
 * archive, which may follow other bytes in the file. The directory ends where `end` starts; this shows how many bytes
 * precede the archive.
 */
#include "format/zip.h"

#include <string.h>

#include "base/bytes.h"

enum {
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    ENTRY_BYTES = 46,
    HEADER_BYTES = 30,
    COMMENT_MAX = 65535,
    STORED = 0,
    DEFLATED = 8,
    DEFLATE_RATIO = 1032 /* the best compression ratio of deflate */
};

static bool is(const uint8_t *p, const char *signature)
{
    return memcmp(p, signature, 4) == 0;
}

/* Returns all n bytes, or NULL. */
static const uint8_t *need(struct zip *z, int64_t at, size_t n)
{
    size_t got = 0;
    const uint8_t *p = at >= 0 && at <= z->bytes ? z->peek(z->user, at, n, &got) : NULL;
    return got == n ? p : NULL;
}

/* ------------------------------------------------------------------ the end */

struct end {
    int64_t at;
    uint64_t bytes, offset; /* of the directory */
    bool volumes;
};

/* The last signature with enough room after it; a comment may follow. */
static int64_t find_end(struct zip *z)
{
    const int64_t most = END_BYTES + COMMENT_MAX, n = z->bytes < most ? z->bytes : most;
    const uint8_t *p = n >= END_BYTES ? need(z, z->bytes - n, (size_t)n) : NULL;
    for (int64_t i = n - END_BYTES; p && i >= 0; i--)
        if (is(p + i, "PK\5\6"))
            return z->bytes - n + i;
    return -1;
}

/* If bytes precede the archive, the locator is wrong by as much. Then `end64` is searched at its usual place. */
static const uint8_t *find_end64(struct zip *z, int64_t locator, int64_t *at)
{
    const uint8_t *p = need(z, locator, LOCATOR_BYTES);
    if (!p || !is(p, "PK\6\7"))
        return NULL;
    const uint64_t stated = le64(p + 8);
    *at = stated <= INT64_MAX ? (int64_t)stated : -1;
    p = need(z, *at, END64_BYTES);
    if (p && is(p, "PK\6\6"))
        return p;
    *at = locator - END64_BYTES;
    p = need(z, *at, END64_BYTES);
    return p && is(p, "PK\6\6") ? p : NULL;
}

static bool read_end(struct zip *z, struct end *end)
{
    const int64_t at = find_end(z);
    const uint8_t *p = at >= 0 ? need(z, at, END_BYTES) : NULL;
    if (!p)
        return false;
    *end = (struct end){.at = at, .bytes = le32(p + 12), .offset = le32(p + 16)};
    end->volumes = le16(p + 4) != 0 && le16(p + 4) != 0xffff;
    int64_t at64;
    p = find_end64(z, at - LOCATOR_BYTES, &at64);
    if (p)
        *end = (struct end){.at = at64, .bytes = le64(p + 40), .offset = le64(p + 48)};
    return true;
}

const char *zip_begin(struct zip *z)
{
    struct end end;
    if (!read_end(z, &end))
        return "is not a zip archive, or is truncated: it has no central directory at its end";
    if (end.volumes)
        return "is one volume of a multi-volume zip archive; join the volumes (zip -s 0)";
    if (end.bytes > (uint64_t)end.at || end.offset > (uint64_t)end.at - end.bytes)
        return "the offset of the central directory is outside the file";
    z->at = end.at - (int64_t)end.bytes;
    z->end = end.at;
    z->shift = z->at - (int64_t)end.offset;
    return NULL;
}

/* ------------------------------------------------------------------ entries */

struct sizes {
    uint64_t raw, bytes, header;
};

/* Numbers that do not fit into 32 bits are in an extra field, in this order. */
static bool take_64(const uint8_t *p, size_t n, struct sizes *s)
{
    uint64_t *const wide[] = {&s->raw, &s->bytes, &s->header};
    for (int i = 0; i < 3; i++) {
        if (*wide[i] != UINT32_MAX)
            continue;
        if (n < 8)
            return false;
        *wide[i] = le64(p);
        p += 8;
        n -= 8;
    }
    return true;
}

static bool widen(const uint8_t *p, size_t n, struct sizes *s)
{
    while (n >= 4) {
        const size_t length = le16(p + 2);
        if (length > n - 4)
            break; /* other programs write extra data without valid fields */
        if (le16(p) == 1)
            return take_64(p + 4, length, s);
        p += 4 + length;
        n -= 4 + length;
    }
    return true;
}

static const char *refuse(const struct zip *z, const struct zip_member *m, int flags, int method, const struct sizes *s)
{
    if (flags & 1)
        return "is encrypted";
    if (method != STORED && method != DEFLATED)
        return method == 9    ? "is compressed with deflate64; Stoker reads stored and deflated files"
               : method == 12 ? "is compressed with bzip2; Stoker reads stored and deflated files"
               : method == 14 ? "is compressed with LZMA; Stoker reads stored and deflated files"
               : method == 93 ? "is compressed with zstd; Stoker reads stored and deflated files"
                              : "is compressed with an unknown method; Stoker reads stored and deflated files";
    if (s->header > INT64_MAX / 2 || s->bytes > INT64_MAX / 2 || (int64_t)(s->header + s->bytes) > z->bytes - z->shift)
        return "its offset is outside the archive";
    if (method == STORED && s->raw != s->bytes)
        return "is stored, but its two sizes differ";
    if (method == DEFLATED && s->raw / DEFLATE_RATIO > s->bytes)
        return "its size is larger than its compressed bytes can produce";
    return memchr(m->name, 0, m->n_name) ? "its name contains a zero byte" : NULL;
}

/* Reads an entry at p with its variable parts. */
static void take_entry(const struct zip *z, const uint8_t *p, struct zip_member *m)
{
    const int flags = le16(p + 8), method = le16(p + 10);
    struct sizes s = {.bytes = le32(p + 20), .raw = le32(p + 24), .header = le32(p + 42)};
    m->name = (const char *)p + ENTRY_BYTES;
    m->n_name = le16(p + 28);
    const bool wide = widen(p + ENTRY_BYTES + m->n_name, le16(p + 30), &s);
    m->reason = wide ? refuse(z, m, flags, method, &s) : "its sizes are damaged";
    const void *zero = memchr(m->name, 0, m->n_name);
    m->n_name = zero ? (size_t)((const char *)zero - m->name) : m->n_name;
    m->crc = le32(p + 16);
    m->deflated = method == DEFLATED;
    if (m->reason)
        return;
    m->bytes = (int64_t)s.bytes;
    m->raw = (int64_t)s.raw;
    m->header = (int64_t)s.header + z->shift;
}

static bool damaged(struct zip *z, struct zip_member *m)
{
    z->at = z->end;
    m->reason = "the central directory is damaged; later files are not read";
    return true;
}

bool zip_next(struct zip *z, struct zip_member *m)
{
    do {
        *m = (struct zip_member){.entry = z->at};
        if (z->at >= z->end)
            return false;
        const uint8_t *p = need(z, z->at, ENTRY_BYTES);
        if (!p || !is(p, "PK\1\2"))
            return damaged(z, m);
        const size_t n = ENTRY_BYTES + (size_t)le16(p + 28) + le16(p + 30) + le16(p + 32);
        p = (int64_t)n <= z->end - z->at ? need(z, z->at, n) : NULL;
        if (!p)
            return damaged(z, m);
        z->at += (int64_t)n;
        take_entry(z, p, m);
    } while (m->n_name > 0 && m->name[m->n_name - 1] == '/'); /* skips folders */
    return true;
}

void zip_locate(struct zip *z, struct zip_member *m)
{
    const uint8_t *p = need(z, m->header, HEADER_BYTES);
    if (!p || !is(p, "PK\3\4")) {
        m->reason = "the central directory points to an offset without a header";
        return;
    }
    m->at = m->header + HEADER_BYTES + le16(p + 26) + le16(p + 28);
    if (m->at > z->bytes - m->bytes)
        m->reason = "the archive ends inside it";
}
