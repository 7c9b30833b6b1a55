/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_cache.c -- the index of a volume of the cache. Any bytes give valid records, or none.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "cache/volume.h"
#include "fuzz.h"

static size_t read_all(struct volume *s)
{
    struct volume_record some[VOLUME_AT_ONCE];
    size_t all = 0;
    for (int n; (n = volume_news(s, some)) > 0; all += (size_t)n)
        for (int i = 0; i < n; i++)
            if (!volume_record_good(&some[i]) || some[i].n == 0 || some[i].n > INT32_MAX || some[i].at > INT64_MAX / 2)
                abort();
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct volume s;
    volume_none(&s);
    s.index = memfd_create("index", MFD_CLOEXEC);
    if (s.index < 0 || file_write_at(s.index, data, size, 0) != 0)
        return 0;
    if (read_all(&s) > size / sizeof(struct volume_record) || s.seen > (int64_t)size)
        abort();
    if (read_all(&s) != 0) /* nothing is seen twice */
        abort();
    volume_close(&s);
    return 0;
}
