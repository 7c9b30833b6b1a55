/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_zip.c -- any bytes as a zip archive. Members that can be read are inside it, and decompress to their size.
 */
#include <string.h>

#include "format/gunzip.h"
#include "format/zip.h"
#include "fuzz.h"

struct memory {
    const uint8_t *p;
    size_t n;
};

static const uint8_t *peek(void *user, int64_t at, size_t n, size_t *got)
{
    const struct memory *m = user;
    require(at >= 0);
    const size_t left = at < (int64_t)m->n ? m->n - (size_t)at : 0;
    *got = n < left ? n : left;
    return *got ? m->p + at : NULL;
}

static void decompress(const uint8_t *p, const struct zip_member *m)
{
    enum { ROOM = 1 << 16 };
    if (!m->deflated || m->raw > ROOM)
        return;
    struct gunzip *z = gunzip_new(GUNZIP_DEFLATE);
    uint8_t *out = malloc(ROOM);
    if (z && out)
        require(gunzip_whole(z, p, (size_t)m->bytes, out, (size_t)m->raw) <= m->raw);
    free(out);
    gunzip_free(z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory memory = {data, size};
    struct zip z = {.peek = peek, .user = &memory, .bytes = (int64_t)size};
    if (zip_begin(&z))
        return 0;
    int64_t entry = -1;
    for (struct zip_member m; zip_next(&z, &m);) {
        require(m.entry > entry);
        entry = m.entry;
        require(m.n_name == 0 || !memchr(m.name, 0, m.n_name));
        if (!m.reason)
            zip_locate(&z, &m);
        if (m.reason)
            continue;
        require(m.at >= 0 && m.bytes >= 0 && m.at + m.bytes <= (int64_t)size && m.raw >= 0);
        decompress(data + m.at, &m);
    }
    return 0;
}
