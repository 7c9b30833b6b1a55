/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_out.c -- writes the headers of tar archives.
 *
 * Owner and time are zero, so that the same files always make the same archive.
 */
#include "format/tar.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct ustar {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

static const uint64_t ustar_size_most = 077777777777;

static int add_head(struct buf *out, const struct ustar *from, char type, uint64_t bytes)
{
    struct ustar h = *from;
    memcpy(h.mode, "0000644", 8);
    memcpy(h.uid, "0000000", 8);
    memcpy(h.gid, "0000000", 8);
    memcpy(h.mtime, "00000000000", 12);
    memcpy(h.magic, "ustar", 6);
    memcpy(h.version, "00", 2);
    h.type = type;
    const uint64_t size = bytes > ustar_size_most ? 0 : bytes; /* then the PAX header has it */
    snprintf(h.size, sizeof h.size, "%011" PRIo64, size & ustar_size_most);
    memset(h.checksum, ' ', sizeof h.checksum);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((const uint8_t *)&h)[i];
    snprintf(h.checksum, 7, "%06o", sum & 0777777);
    return buf_add(out, &h, sizeof h);
}

/* A name of up to 256 bytes is split into two fields at a "/". */
static bool split(struct ustar *h, const char *name, size_t n)
{
    if (n <= sizeof h->name) {
        memcpy(h->name, name, n);
        return true;
    }
    for (size_t at = n - sizeof h->name - 1; at < n && at <= sizeof h->prefix; at++)
        if (name[at] == '/' && at > 0 && at + 1 < n) {
            memcpy(h->prefix, name, at);
            memcpy(h->name, name + at + 1, n - at - 1);
            return true;
        }
    return false;
}

/* "length key=value\n"; the length includes itself. */
static int add_record(struct buf *out, const char *key, const char *value, size_t n)
{
    char digits[24];
    size_t length = strlen(key) + n + 3, total = length;
    do {
        total = length + (size_t)snprintf(digits, sizeof digits, "%zu", total);
    } while (total != length + (size_t)snprintf(digits, sizeof digits, "%zu", total));
    return buf_printf(out, "%zu %s=", total, key) || buf_add(out, value, n) || buf_add(out, "\n", 1) ? -1 : 0;
}

static bool is_ascii(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] > 126)
            return false;
    return true;
}

static int add_pax(struct buf *out, const char *name, size_t n, bool long_name, uint64_t bytes)
{
    static const char zeros[TAR_BLOCK];
    struct buf records = {0};
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, bytes);
    int rc = long_name && !is_ascii(name, n) ? add_record(&records, "hdrcharset", "BINARY", 6) : 0;
    if (rc == 0 && long_name)
        rc = add_record(&records, "path", name, n);
    if (rc == 0 && bytes > ustar_size_most)
        rc = add_record(&records, "size", digits, (size_t)length);
    struct ustar h = {.name = "PaxHeader"};
    if (rc == 0)
        rc = add_head(out, &h, 'x', records.len);
    if (rc == 0)
        rc = buf_add(out, records.data, records.len);
    if (rc == 0)
        rc = buf_add(out, zeros, tar_out_padding(records.len));
    buf_done(&records);
    return rc;
}

int tar_out_head(struct buf *out, const char *name, size_t n, uint64_t bytes)
{
    struct ustar h = {0};
    const bool fits = split(&h, name, n);
    if (!fits)
        memcpy(h.name, name, sizeof h.name);
    if ((!fits || bytes > ustar_size_most) && add_pax(out, name, n, !fits, bytes))
        return -1;
    return add_head(out, &h, '0', bytes);
}
