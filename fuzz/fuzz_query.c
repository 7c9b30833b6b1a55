/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_query.c -- names of sources: patterns, and the text after the ? for every container that takes one, with a file
 * of a few bytes. The first byte chooses. Either the name is refused with a message, or its samples can be read.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "source/recognise.h"

/* An array of 64 x 4 bytes as NumPy writes it, which is as good as any for those that take all files. */
static int some_file(void)
{
    static int fd = -1;
    char head[128];
    if (fd >= 0)
        return fd;
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const char text[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (64, 4), }";
    memcpy(head + 10, text, sizeof text - 1);
    head[sizeof head - 1] = '\n';
    fd = memfd_create("rows", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, head, sizeof head) == (ssize_t)sizeof head && ftruncate(fd, sizeof head + 256) == 0);
    return fd;
}

static void read_some(const struct source *s)
{
    struct reading r = {0};
    const int64_t n = source_count(s), picks[] = {0, n / 2, n - 1};
    stk_error e = {0};
    require(n > 0);
    for (int i = 0; i < 3; i++) {
        const int rc = source_read(s, &r, picks[i], &e);
        require(rc == STK_OK || e.text[0]);
        for (int f = 0; rc == STK_OK && f < source_n_fields(s); f++) {
            const struct field *field = source_field(s, f);
            uint8_t *to = field->column < 0 && field->bytes > 0 && field->bytes < 4096 ? malloc(field->bytes) : NULL;
            if (to)
                source_copy(s, &r, picks[i], f, to, &e);
            free(to);
        }
    }
    reading_done(&r);
}

static void open_query(const char *prefix, const char *text)
{
    char path[64];
    struct buf name = {0};
    struct source *s = NULL;
    stk_error e = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", some_file());
    require(buf_printf(&name, "%s%s?%s", prefix, path, text) == 0);
    const struct source_options o = {
        .path = (const char *)name.data, .threads = 1, .cache_dir = "off", .max_bytes = 1 << 20};
    if (source_open(&s, &o, &e) == STK_OK)
        read_some(s);
    else
        require(e.text[0] != 0);
    source_close(s);
    buf_done(&name);
}

/* Patterns of few names, since a million are a second. */
static bool is_short(const char *text)
{
    int ways = 0, digits = 0;
    for (const char *p = text; *p; p++) {
        ways += *p == ',' || (*p == '.' && p[1] == '.');
        digits += *p >= '0' && *p <= '9';
    }
    return !strchr(text, '{') || (ways <= 6 && digits <= 4);
}

/* In this folder alone. */
static void open_pattern(char *text)
{
    struct names found = {0};
    stk_error e = {0};
    for (char *p = text; *p; p++)
        *p = *p == '/' ? '_' : *p;
    if (pattern_files(text, &found, &e) != STK_OK)
        require(e.text[0] != 0);
    names_done(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const prefixes[] = {"raw:", "tokens:", "npy:", "npz:", "hdf5:", "tar:"};
    enum { N = sizeof prefixes / sizeof prefixes[0] };
    if (size == 0)
        return 0;
    char *text = strndup((const char *)data + 1, size - 1);
    require(text != NULL);
    if (!is_short(text)) {
        free(text);
        return 0;
    }
    if (data[0] % (N + 1) < N)
        open_query(prefixes[data[0] % (N + 1)], text);
    else
        open_pattern(text);
    free(text);
    return 0;
}
