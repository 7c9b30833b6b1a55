/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_dump.c -- decodes the files named on its input, one path a line, to its output.
 *
 * For each file one line, and after "ok" the RGB pixels:
 *
 *     ok WIDTH HEIGHT WARNINGS
 *     bad REASON
 *
 * decode_dump --version prints the version of libjpeg-turbo. For tests that compare with other decoders
 * (decode_parity.py).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "decode/decode.h"

static int read_file(const char *path, struct buf *b)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    b->len = 0;
    size_t n = 0;
    do {
        b->len += n;
        if (buf_reserve(b, b->len + 65536)) {
            fclose(f);
            return -1;
        }
    } while ((n = fread(b->data + b->len, 1, 65536, f)) > 0);
    const int rc = ferror(f) ? -1 : 0;
    fclose(f);
    return rc;
}

static int decode(struct decoder *d, const struct buf *b, struct arena *a, struct image *im, int *warnings,
                  stk_error *e)
{
    const struct decode_limits limits = {.max_pixels = 256000000};
    struct head h;
    int rc = decode_head(b->data, b->len, &limits, &h, e);
    if (rc != STK_OK)
        return rc;
    const struct want w = {.crop = {0, 0, head_width(&h), head_height(&h)}, .whole = true};
    if (arena_reserve(a, decode_scratch(&h, &w)))
        return snprintf(e->reason, sizeof e->reason, "no memory"), STK_ENOMEM;
    return decode_pixels(d, b->data, b->len, &h, &w, a, im, warnings, e);
}

static void dump(struct decoder *d, const char *path, struct buf *b, struct arena *a)
{
    struct image im;
    stk_error e;
    int warnings = 0;
    if (read_file(path, b) != 0) {
        printf("bad cannot be read\n");
        return;
    }
    if (decode(d, b, a, &im, &warnings, &e) != STK_OK) {
        printf("bad %s\n", e.reason);
        return;
    }
    printf("ok %d %d %d\n", im.w, im.h, warnings);
    for (int32_t y = 0; y < im.h; y++)
        fwrite(im.px + (size_t)y * im.stride, 3, (size_t)im.w, stdout);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        const char *version = decode_version(STK_JPEG);
        puts(version ? version : "none");
        return 0;
    }
    struct decoder *d;
    if (decoder_new(&d, STK_CPU_DEFAULT, NULL) != STK_OK)
        return 1;
    struct buf b = {0};
    struct arena a = {0};
    char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        dump(d, path, &b, &a);
        fflush(stdout);
    }
    buf_done(&b);
    arena_done(&a);
    decoder_free(d);
    return 0;
}
