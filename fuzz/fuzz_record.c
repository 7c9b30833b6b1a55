/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_record.c -- TFRecord files. The first byte chooses how the rest becomes a file: as it is, or cut into records of
 * lengths that the input contains, with correct checksums; and whether it is a pack. All samples are read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "source/source_ops.h"
#include "support/frames.h"

static void make_file(struct buf *b, const uint8_t *p, size_t n, bool framed)
{
    if (!framed)
        buf_add(b, p, n);
    while (framed && n >= 2) {
        const size_t length = (size_t)p[0] | (size_t)p[1] << 8, some = length < n - 2 ? length : n - 2;
        frame_add(b, p + 2, some);
        p += 2 + some;
        n -= 2 + some;
    }
}

static void read_all(const struct source *s)
{
    struct reading r = {0};
    for (int64_t i = 0; i < source_count(s); i++) {
        stk_error e = {0};
        const int rc = source_read(s, &r, i, &e);
        require(rc == STK_OK || (rc == e.code && e.text[0]));
        size_t sum = 0; /* every byte that is lent can be read */
        for (int f = 0; f < source_n_fields(s) && rc == STK_OK; f++)
            for (size_t k = 0; r.cells[f].bytes && k < r.cells[f].n; k++)
                sum += r.cells[f].bytes[k];
        require(sum < SIZE_MAX);
    }
    buf_done(&r.file);
    buf_done(&r.derived);
}

/* As in a pack, where the first feature of a record is its key. */
static int open_packed(struct source **out, const struct source_options *o, stk_error *e)
{
    struct names paths = {0};
    uint32_t number;
    struct source *s = *out = calloc(1, sizeof *s);
    const char *path = o->path + sizeof "tfrecord:" - 1;
    require(s && names_add(&paths, path, strlen(path), &number) == 1);
    atomic_init(&s->refs, 1);
    s->is_pack = true;
    s->max_bytes = o->max_bytes;
    const int rc = source_tfrecord_open(s, o, &paths, NULL, e);
    names_done(&paths);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf b = {0};
    struct source *s = NULL;
    stk_error e = {0};
    if (size == 0)
        return 0;
    make_file(&b, data + 1, size - 1, data[0] & 1);
    const int fd = memfd_create("records", MFD_CLOEXEC);
    require(fd >= 0 && (b.len == 0 || write(fd, b.data, b.len) == (ssize_t)b.len));
    char path[64];
    snprintf(path, sizeof path, "tfrecord:/proc/self/fd/%d", fd);
    const struct source_options o = {.path = path, .cache_dir = "off", .threads = 1, .max_bytes = 1 << 20};
    if ((data[0] & 2 ? open_packed(&s, &o, &e) : source_open(&s, &o, &e)) == STK_OK)
        read_all(s);
    else
        require(e.code != STK_OK && e.text[0]);
    source_close(s);
    close(fd);
    buf_done(&b);
    return 0;
}
