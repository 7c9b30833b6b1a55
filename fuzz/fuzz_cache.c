/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_cache.c -- the index of a segment of the cache. Any bytes give valid records, or none.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "cache/segment.h"
#include "fuzz.h"

static void each(void *user, const struct segment_record *r)
{
    if (!segment_record_good(r) || r->n == 0 || r->n > INT32_MAX || r->at > INT64_MAX / 2)
        abort();
    ++*(size_t *)user;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct segment s;
    size_t n = 0;
    segment_none(&s);
    s.index = memfd_create("index", MFD_CLOEXEC);
    if (s.index < 0 || file_write_at(s.index, data, size, 0) != 0)
        return 0;
    segment_news(&s, each, &n);
    if (n > size / sizeof(struct segment_record) || s.seen > (int64_t)size)
        abort();
    segment_news(&s, each, &n); /* nothing is seen twice */
    if (n > size / sizeof(struct segment_record))
        abort();
    segment_close(&s);
    return 0;
}
