/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tar.c -- any bytes as a tar archive. The first byte chooses whether its length is known. Members are in order,
 * and inside the archive unless it is reported as cut off. The walk ends. If the second byte says so, headers get a
 * correct checksum, which few inputs would have.
 */
#include <stdio.h>
#include <string.h>

#include "format/tar.h"
#include "fuzz.h"

struct memory {
    const uint8_t *p;
    size_t n;
    bool mend;
    uint8_t block[TAR_BLOCK];
};

static void mend(uint8_t *block)
{
    memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum & 0777777);
}

static const uint8_t *peek(void *user, int64_t at, size_t n, size_t *got)
{
    struct memory *m = user;
    require(at >= 0);
    const size_t left = at < (int64_t)m->n ? m->n - (size_t)at : 0;
    *got = n < left ? n : left;
    if (*got == TAR_BLOCK && n == TAR_BLOCK && m->mend && m->p[at] != 0) {
        memcpy(m->block, m->p + at, TAR_BLOCK);
        mend(m->block);
        return m->block;
    }
    return *got ? m->p + at : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct memory m = {.p = data + 2, .n = size - 2, .mend = data[1] & 1};
    struct tar t = {.peek = peek, .user = &m, .bytes = data[0] & 1 ? (int64_t)m.n : INT64_MAX};
    struct tar_member member, last = {0};
    int64_t header = -1, sum = 0;
    for (enum tar_found f; (f = tar_next(&t, &member)) != TAR_END;) {
        require(f != TAR_NOMEM);
        if (f == TAR_CUT) {
            require(last.at + last.bytes > (int64_t)m.n);
            continue;
        }
        require(member.header > header);
        header = member.header;
        require(f == TAR_FILE || (member.reason && member.reason[0]));
        for (size_t i = 0; i < member.n_name; i++)
            sum += member.name[i];
        last = member;
    }
    tar_done(&t);
    return sum == -1;
}
