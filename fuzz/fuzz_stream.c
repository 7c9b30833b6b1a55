/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_stream.c -- any bytes as a compressed file. The first byte chooses the compression, the second the size of the
 * reads. Reading forward and backward gives the same bytes. The file ends where it is said to end. No more memory is
 * used than allowed.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/stream.h"
#include "fuzz.h"

enum { MOST = 3 << 20 }; /* a few bytes may decompress to gigabytes */

static size_t read_on(struct stream *s, int fd, uint8_t *to, size_t step)
{
    size_t n = 0, got = 1;
    stk_error e = {0};
    while (n < MOST && got > 0) {
        const size_t want = step < MOST - n ? step : MOST - n;
        const int rc = stream_read(s, fd, to + n, want, (int64_t)n, &got, &e);
        require(rc == STK_OK || ((rc == STK_EDATA || rc == STK_EUSAGE) && e.text[0] && got < want));
        n += got;
        if (got < want) {
            require(stream_end(s) == (int64_t)n);
            return n;
        }
    }
    return n;
}

static void read_back(struct stream *s, int fd, const uint8_t *all, size_t n, uint64_t seed)
{
    static uint8_t part[5000];
    for (uint64_t i = 0; i < 4 && n > 0; i++) {
        const uint64_t r = hash_mix(seed, i);
        const size_t at = (size_t)(r % n), left = n - at, want = left < sizeof part ? left : sizeof part;
        size_t got;
        require(stream_read(s, fd, part, want, (int64_t)at, &got, NULL) == STK_OK && got == want);
        require(memcmp(part, all + at, want) == 0);
        if (i == 1)
            stream_rest(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum stream_form forms[] = {STREAM_GZIP, STREAM_ZLIB, STREAM_ZSTD};
    static uint8_t all[MOST];
    if (size < 2)
        return 0;
    const enum stream_form form = forms[data[0] % 3];
    if (stream_missing(form))
        return 0;
    const int fd = memfd_create("stream", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data + 2, size - 2) == (ssize_t)(size - 2));
    struct stream_cache *c = stream_cache_new(0, 4 << 20);
    struct stream *s = c ? stream_new(c, form, data[1] & 1) : NULL;
    require(s != NULL);
    const size_t n = read_on(s, fd, all, (size_t)(1 + data[1]) << (data[0] / 3 % 13));
    read_back(s, fd, all, n, hash_bytes(data, size, 0));
    stream_free(s);
    stream_cache_free(c);
    close(fd);
    return 0;
}
