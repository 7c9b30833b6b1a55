/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif.c -- finds tag 0x0112 in the first directory of a TIFF block, and nothing else.
 *
 *     "II" or "MM", 42, offset of the directory
 *     directory: count, then entries of 12 bytes: tag, type, count, value or its offset
 *
 * Damaged blocks are judged as in Pillow, the reference. Entries before the damage count. The first of two equal tags
 * wins. A block without a TIFF header means "upright", and XMP is ignored. A block without the tag leaves it to XMP.
 */
#include "decode/exif.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

enum { ORIENTATION = 0x0112, UPRIGHT = 1, UNSAID = 0, ENTRY_BYTES = 12 };

enum { SKIP = -1, BROKEN = -2 }; /* instead of a position */

enum tiff_type {
    BYTE = 1,
    ASCII,
    SHORT,
    LONG,
    RATIONAL,
    SBYTE,
    UNDEFINED,
    SSHORT,
    SLONG,
    SRATIONAL,
    FLOAT,
    DOUBLE,
    IFD,
    LONG8 = 16
};

struct tiff {
    const uint8_t *p;
    size_t n;
    bool big;
};

static uint32_t u16(const struct tiff *t, size_t at)
{
    return t->big ? be16(t->p + at) : le16(t->p + at);
}

static uint32_t u32(const struct tiff *t, size_t at)
{
    return t->big ? be32(t->p + at) : le32(t->p + at);
}

static size_t type_bytes(uint32_t type)
{
    static const uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

static double real32(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static uint64_t u64(const struct tiff *t, size_t at)
{
    const uint64_t a = u32(t, at), b = u32(t, at + 4);
    return t->big ? a << 32 | b : b << 32 | a;
}

static double real64(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static double ratio(double a, double b)
{
    return b != 0 ? a / b : 0;
}

/* The first number at `at`, whatever its type; 0 for types that are not numbers. */
static double number(const struct tiff *t, uint32_t type, size_t at)
{
    switch (type) {
    case SHORT:
        return u16(t, at);
    case LONG:
    case IFD:
        return u32(t, at);
    case SBYTE:
        return (int8_t)t->p[at];
    case SSHORT:
        return (int16_t)u16(t, at);
    case SLONG:
        return (int32_t)u32(t, at);
    case RATIONAL:
        return ratio(u32(t, at), u32(t, at + 4));
    case SRATIONAL:
        return ratio((int32_t)u32(t, at), (int32_t)u32(t, at + 4));
    case FLOAT:
        return real32(u32(t, at));
    case DOUBLE:
        return real64(u64(t, at));
    case LONG8:
        return (double)u64(t, at);
    default:
        return 0;
    }
}

static int meaning(double v)
{
    return v >= 1 && v <= 8 && v == (int)v ? (int)v : UPRIGHT;
}

/* The position of the value of the entry at `at`. *outside adds up the bytes of values that do not fit their
 * entries. */
static int64_t value_at(const struct tiff *t, size_t at, uint64_t *outside)
{
    const uint64_t bytes = (uint64_t)type_bytes(u16(t, at + 2)) * u32(t, at + 4);
    if (bytes == 0)
        return SKIP;
    if (bytes <= 4)
        return (int64_t)at + 8;
    *outside += bytes;
    if (*outside > t->n)
        return SKIP;
    const uint64_t offset = u32(t, at + 8);
    return offset + bytes > t->n ? BROKEN : (int64_t)offset;
}

static int directory(const struct tiff *t, size_t at)
{
    if (t->n < 2 || at > t->n - 2)
        return UNSAID;
    uint64_t outside = 0;
    const uint32_t count = u16(t, at);
    at += 2;
    for (uint32_t i = 0; i < count && t->n - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES) {
        const int64_t value = value_at(t, at, &outside);
        if (value == BROKEN)
            return UNSAID;
        if (value != SKIP && u16(t, at) == ORIENTATION)
            return meaning(number(t, u16(t, at + 2), (size_t)value));
    }
    return UNSAID;
}

static int from_tiff(const uint8_t *p, size_t n)
{
    static const uint8_t prefix[6] = "Exif\0";
    for (int i = 0; i < 2 && n >= sizeof prefix && memcmp(p, prefix, sizeof prefix) == 0; i++) {
        p += sizeof prefix;
        n -= sizeof prefix;
    }
    if (n == 0)
        return UNSAID;
    const struct tiff t = {p, n, p[0] == 'M'};
    if (n < 8 || !(p[0] == 'M' || p[0] == 'I') || p[1] != p[0])
        return UPRIGHT;
    const uint32_t magic = u16(&t, 2);
    if (magic != 42 && magic != 42 << 8 && !(t.big && magic == 43))
        return UPRIGHT;
    return directory(&t, u32(&t, 4));
}

static int from_xmp(const uint8_t *p, size_t n)
{
    static const char name[] = "tiff:Orientation";
    const size_t len = sizeof name - 1;
    const uint8_t *const end = p + n;
    while (p && (p = memchr(p, 't', (size_t)(end - p))) != NULL) {
        if ((size_t)(end - p) < len + 2)
            return UNSAID;
        if (memcmp(p, name, len) != 0) {
            p++;
            continue;
        }
        p += len;
        const uint8_t *digit = p[0] == '>' ? p + 1 : p[0] == '=' && p[1] == '"' ? p + 2 : end;
        if (digit < end && *digit >= '0' && *digit <= '9')
            return meaning(*digit - '0');
    }
    return UNSAID;
}

int exif_orientation(const struct exif *x)
{
    int o = x->tiff ? from_tiff(x->tiff, x->tiff_bytes) : UNSAID;
    if (o == UNSAID && x->xmp)
        o = from_xmp(x->xmp, x->xmp_bytes);
    return o == UNSAID ? UPRIGHT : o;
}
