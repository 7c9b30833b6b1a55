/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.c -- reads the headers of tar archives.
 *
 *     [x: path, size]  [L: long name]  header  content, padded to 512  |  ...  |  a block of zeros
 *
 * Extended headers before the header of a member give it a longer name or a larger size (PAX: x, and g for all members
 * that follow; GNU: L). They are read at once, so that reading never goes back. If the size of the archive is not
 * known, only the byte after a file shows whether the file is complete. So tar_next() reports a truncated file after
 * it.
 */
#include "format/tar.h"

#include <string.h>

enum {
    AT_SIZE = 124,
    AT_SUM = 148,
    AT_TYPE = 156,
    AT_MAGIC = 257,
    AT_PREFIX = 345,
    AT_SPARSE_MORE = 482, /* GNU: whether further blocks of the sparse map follow the header */
    AT_MAP_MORE = 504,    /* the same in such a block */
    AT_STAR = 508,        /* "tar": the prefix is shorter */
    NAME_BYTES = 100,
    SIZE_BYTES = 12,
    SUM_BYTES = 8,
    PREFIX_BYTES = 155,
    STAR_PREFIX_BYTES = 131
};

/* ------------------------------------------------------------------ numbers */

/* Octal digits between spaces, ended by a space or a zero; an empty field is 0. -1: not a number. */
static int64_t octal(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n && p[i] == ' ')
        i++;
    int64_t v = 0;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
        if (v > INT64_MAX >> 3)
            return -1;
        v = v << 3 | (p[i] - '0');
    }
    return i == n || p[i] == ' ' || p[i] == 0 ? v : -1;
}

/* Octal, or base 256 after a byte of 0x80 (0xff would be negative). */
static int64_t number(const uint8_t *p, size_t n)
{
    if (!(p[0] & 0x80))
        return octal(p, n);
    int64_t v = p[0] & 0x7f;
    for (size_t i = 1; i < n; i++) {
        if (v > INT64_MAX >> 8)
            return -1;
        v = v << 8 | p[i];
    }
    return v;
}

static int64_t decimal(const uint8_t *p, size_t n)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9' || v > (INT64_MAX - 9) / 10)
            return -1;
        v = v * 10 + (p[i] - '0');
    }
    return n > 0 ? v : -1;
}

/* Whether the checksum is right: the sum of all bytes, with spaces in place of the checksum. Some old writers summed
 * signed bytes. */
static bool is_header(const uint8_t *block)
{
    uint32_t sum = 0, high = 0;
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += block[i];
    for (int i = 0; i < TAR_BLOCK; i++)
        high += block[i] >> 7;
    for (int i = AT_SUM; i < AT_SUM + SUM_BYTES; i++) {
        sum += (uint32_t)' ' - block[i];
        high -= block[i] >> 7;
    }
    const int64_t stated = octal(block + AT_SUM, SUM_BYTES);
    return stated == (int64_t)sum || stated == (int64_t)sum - 256 * (int64_t)high;
}

static bool is_zero(const uint8_t *block)
{
    return block[0] == 0 && memcmp(block, block + 1, TAR_BLOCK - 1) == 0;
}

/* ------------------------------------------------------------------ extended headers */

/* The length of a field that ends with a zero, or fills its room. */
static size_t length_of(const uint8_t *p, size_t n)
{
    const uint8_t *zero = memchr(p, 0, n);
    return zero ? (size_t)(zero - p) : n;
}

static bool key_is(const uint8_t *key, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(key, word, n) == 0;
}

static void forget(struct tar_meta *x)
{
    x->path.len = 0;
    x->has_path = x->sparse = false;
    x->size = -1;
}

static int set_path(struct tar_meta *x, const uint8_t *p, size_t n)
{
    x->path.len = 0;
    x->has_path = n > 0; /* an empty value removes an earlier one */
    return buf_add(&x->path, p, n);
}

/* Reads one record of a PAX header. 0, or -1: no memory. Sets *damaged if it is invalid. */
static int pax_set(struct tar_meta *x, const uint8_t *key, size_t n_key, const uint8_t *p, size_t n,
                   const char **damaged)
{
    const bool sparse_name = key_is(key, n_key, "GNU.sparse.name");
    if (n_key >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
        x->sparse = true;
    if (sparse_name || (key_is(key, n_key, "path") && !x->sparse)) {
        const size_t length = length_of(p, n);
        if (length < n)
            *damaged = "its name contains a zero byte";
        return set_path(x, p, length);
    }
    if (key_is(key, n_key, "size")) {
        x->size = n > 0 ? decimal(p, n) : -1;
        if (n > 0 && x->size < 0)
            *damaged = "the size in its extended header is not a number";
    }
    return 0;
}

/* Records are "length key=value\n"; the length is that of the whole record. */
static int pax(struct tar_meta *x, const uint8_t *p, size_t n, const char **damaged)
{
    while (n > 0 && p[0] != 0) {
        size_t digits = 0;
        while (digits < n && p[digits] >= '0' && p[digits] <= '9')
            digits++;
        const int64_t length = decimal(p, digits);
        const size_t begin = digits + 1;
        if (length < (int64_t)begin + 2 || length > (int64_t)n || p[digits] != ' ' || p[length - 1] != '\n')
            break;
        const uint8_t *key = p + begin, *end = p + length - 1;
        const uint8_t *equals = memchr(key, '=', (size_t)(end - key));
        if (!equals)
            break;
        if (pax_set(x, key, (size_t)(equals - key), equals + 1, (size_t)(end - equals - 1), damaged))
            return -1;
        p += length;
        n -= (size_t)length;
    }
    if (n > 0 && p[0] != 0)
        *damaged = "its extended header is damaged";
    return 0;
}

/* Reads the content of an extended header, at t->at. */
static int take_meta(struct tar *t, uint8_t type, int64_t size)
{
    if (size > TAR_META_MAX) {
        t->damaged = "its extended header is longer than 1 MiB";
        return 0;
    }
    size_t got = 0;
    const uint8_t *p = size > 0 ? t->peek(t->user, t->at, (size_t)size, &got) : NULL;
    if (got < (size_t)size) {
        t->damaged = "the archive ends inside its extended header";
        return 0;
    }
    if (type == 'x' || type == 'X' || type == 'g')
        return size > 0 ? pax(type == 'g' ? &t->all : &t->next, p, got, &t->damaged) : 0;
    return type == 'L' && size > 0 && !t->next.has_path ? set_path(&t->next, p, length_of(p, got)) : 0;
}

/* ------------------------------------------------------------------ members */

static bool is_meta(uint8_t type)
{
    return type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
}

/* Links, devices, folders and pipes have no content, whatever size their headers say. */
static bool is_bare(uint8_t type)
{
    return type >= '1' && type <= '6';
}

/* Only ustar has a prefix there. GNU has times there; older formats have nothing reliable. */
static size_t prefix_of(const uint8_t *block)
{
    if (memcmp(block + AT_MAGIC, "ustar", 6) != 0)
        return 0;
    const bool star = memcmp(block + AT_STAR, "tar", 4) == 0;
    return length_of(block + AT_PREFIX, star ? STAR_PREFIX_BYTES : PREFIX_BYTES);
}

static int name_of(struct tar *t, const uint8_t *block, struct tar_member *m)
{
    const struct tar_meta *x = t->next.has_path ? &t->next : t->all.has_path ? &t->all : NULL;
    if (x) {
        m->name = (const char *)x->path.data;
        m->n_name = x->path.len;
        return 0;
    }
    const size_t n = length_of(block, NAME_BYTES), prefix = prefix_of(block);
    t->name.len = 0;
    if (prefix && (buf_add(&t->name, block + AT_PREFIX, prefix) || buf_add(&t->name, "/", 1)))
        return -1;
    if (buf_add(&t->name, block, n))
        return -1;
    m->name = (const char *)t->name.data;
    m->n_name = t->name.len;
    return 0;
}

static int64_t size_of(const struct tar *t, const uint8_t *block)
{
    if (t->next.size >= 0)
        return t->next.size;
    return t->all.size >= 0 ? t->all.size : number(block + AT_SIZE, SIZE_BYTES);
}

static int64_t round_up(int64_t n)
{
    return (n + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* Further blocks of the map of a sparse file precede its content. */
static void pass_map(struct tar *t, bool more)
{
    while (more) {
        size_t got;
        const uint8_t *block = t->peek(t->user, t->at, TAR_BLOCK, &got);
        more = got == TAR_BLOCK && block[AT_MAP_MORE];
        t->at += TAR_BLOCK;
    }
}

static enum tar_found bad(struct tar *t, struct tar_member *m, const char *reason)
{
    m->reason = reason;
    forget(&t->next);
    t->damaged = NULL;
    t->first = -1;
    return TAR_BAD;
}

/* Searches the next header. Blocks of zeros may be content here. */
static void find_header(struct tar *t)
{
    size_t got;
    const uint8_t *block;
    do {
        t->at += TAR_BLOCK;
        block = t->peek(t->user, t->at, TAR_BLOCK, &got);
    } while (got == TAR_BLOCK && !is_header(block));
}

/* Reports a header of which only the offset is known. */
static enum tar_found lost(struct tar *t, struct tar_member *m, const char *reason)
{
    m->name = NULL;
    m->n_name = 0;
    find_header(t);
    return bad(t, m, reason);
}

/* The header of a member. TAR_END: it is not reported. */
static enum tar_found own(struct tar *t, const uint8_t *block, int64_t size, struct tar_member *m)
{
    const uint8_t type = block[AT_TYPE];
    if (name_of(t, block, m))
        return TAR_NOMEM;
    const bool folder = type == 0 && m->n_name > 0 && m->name[m->n_name - 1] == '/';
    const bool file = (type == '0' || type == 0 || type == '7') && !folder;
    const bool sparse = type == 'S' || (file && (t->next.sparse || t->all.sparse));
    t->at += TAR_BLOCK;
    if (type == 'S')
        pass_map(t, block[AT_SPARSE_MORE]);
    m->at = t->at;
    m->bytes = is_bare(type) ? 0 : size;
    t->at += round_up(m->bytes);
    if (sparse)
        return bad(t, m, "is a sparse file, which Stoker does not read; make the archive without --sparse");
    if (t->damaged)
        return bad(t, m, t->damaged);
    t->first = -1;
    if (!file) {
        forget(&t->next);
        return TAR_END;
    }
    t->last = m->header;
    t->until = m->bytes > 0 ? m->at + m->bytes : 0;
    return TAR_FILE;
}

static bool was_cut(struct tar *t)
{
    const int64_t until = t->until;
    t->until = 0;
    if (until == 0 || t->bytes != INT64_MAX)
        return until > t->bytes;
    size_t got;
    t->peek(t->user, until - 1, 1, &got);
    return got == 0;
}

/* Reads one header. TAR_END: continue with the next. */
static enum tar_found step(struct tar *t, const uint8_t *block, struct tar_member *m)
{
    if (!is_header(block))
        return lost(t, m, "the checksum of its header is wrong");
    const uint8_t type = block[AT_TYPE];
    const int64_t size = is_meta(type) ? number(block + AT_SIZE, SIZE_BYTES) : size_of(t, block);
    if ((size < 0 || size > INT64_MAX / 4 || t->at > INT64_MAX / 4) && !is_bare(type))
        return lost(t, m, "the size in its header is not a number");
    if (!is_meta(type))
        return own(t, block, size, m);
    t->at += TAR_BLOCK;
    if (take_meta(t, type, size))
        return TAR_NOMEM;
    t->at += round_up(size);
    return TAR_END;
}

enum tar_found tar_next(struct tar *t, struct tar_member *m)
{
    *m = (struct tar_member){.header = t->last};
    if (t->at == 0)
        forget(&t->all);
    if (was_cut(t))
        return TAR_CUT;
    forget(&t->next);
    t->first = -1;
    for (;;) {
        size_t got;
        const uint8_t *block = t->peek(t->user, t->at, TAR_BLOCK, &got);
        *m = (struct tar_member){.header =
                                     t->first >= 0 ? t->first : t->at}; /* drops extended headers of skipped members */
        if (got == TAR_BLOCK && is_zero(block))
            got = 0;
        if (got == 0)
            return t->first >= 0 ? bad(t, m, "the archive ends after its extended header") : TAR_END;
        if (got < TAR_BLOCK) {
            t->at += TAR_BLOCK;
            return bad(t, m, "the archive ends inside its header");
        }
        if (block[AT_TYPE] != 'g') /* the rest is not a member */
            t->first = m->header;
        const enum tar_found found = step(t, block, m);
        if (found != TAR_END)
            return found;
    }
}

void tar_done(struct tar *t)
{
    buf_done(&t->next.path);
    buf_done(&t->all.path);
    buf_done(&t->name);
}
