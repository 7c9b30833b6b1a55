/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_file.c -- the head of a pack that is a file.
 */
#include "decode/pack_file.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

static const char magic[8] = "\x89stkDCT1";

bool pack_file_is(const uint8_t *bytes, size_t n)
{
    return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

int pack_file_check(const uint8_t *bytes, size_t n, stk_error *e)
{
    if (n < PACK_FILE_HEAD || le64(bytes + sizeof magic) != hash_bytes(bytes + PACK_FILE_HEAD, n - PACK_FILE_HEAD, 0))
        return error_set(e, STK_EDATA, "decode", "the packed coefficients are damaged: their checksum is another");
    return STK_OK;
}

int pack_file_begin(struct buf *out)
{
    static const uint8_t none[PACK_FILE_HEAD - sizeof magic];
    return buf_add(out, magic, sizeof magic) || buf_add(out, none, sizeof none) ? -1 : 0;
}

void pack_file_end(struct buf *out, size_t begin)
{
    const size_t at = begin + PACK_FILE_HEAD;
    const uint64_t sum = hash_bytes(out->data + at, out->len - at, 0);
    for (int i = 0; i < 8; i++)
        out->data[begin + sizeof magic + (size_t)i] = (uint8_t)(sum >> (8 * i));
}
