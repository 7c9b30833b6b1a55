/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_jpeg.c -- any bytes as a JPEG. Our decoder runs without checkpoints, while it makes them and while it uses them,
 * and also with only those ranges of the file that a crop needs. Its verdict, messages, warnings and pixels must be
 * those of libjpeg. Then checkpoints are changed: this may cost time, but must not change the result.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "decode/decode.h"
#include "fuzz.h"

enum { MAX_PIXELS = 1 << 18, CROPS = 4 };

struct run {
    const uint8_t *data;
    size_t size;
    struct head head;
    struct decoder *decoder;
    struct arena ours, theirs;
    struct buf checkpoints;
};

static int decode(struct run *r, const struct want *w, struct arena *a, struct image *im, int *warnings, stk_error *e)
{
    const size_t scratch = decode_scratch(&r->head, w);
    require(scratch > 0 && arena_reserve(a, scratch) == 0);
    *e = (stk_error){0};
    return decode_pixels(r->decoder, r->data, r->size, &r->head, w, a, im, warnings, e);
}

static void keep_checkpoints(struct run *r)
{
    size_t n;
    const void *made = decoder_new_checkpoints(r->decoder, &n);
    if (made) {
        r->checkpoints.len = 0;
        require(buf_add(&r->checkpoints, made, n) == 0);
    }
}

static void compare(struct run *r, const struct want *want, bool noting)
{
    struct want w = *want;
    struct image a, b;
    stk_error e, f;
    int warnings, reference_warnings;
    if (noting)
        decoder_lend_checkpoints(r->decoder, r->checkpoints.data, r->checkpoints.len, want->crop.w % 2);
    const int rc = decode(r, &w, &r->ours, &a, &warnings, &e);
    keep_checkpoints(r);
    w.reference = true;
    require(decode(r, &w, &r->theirs, &b, &reference_warnings, &f) == rc);
    require(warnings == reference_warnings && strcmp(e.text, f.text) == 0);
    for (int32_t y = 0; rc == STK_OK && y < a.h; y++)
        require(memcmp(a.px + (size_t)y * a.stride, b.px + (size_t)y * b.stride, (size_t)a.w * 3) == 0);
}

/* The bytes between the ranges are garbage, which must have no effect. */
static void compare_ranges(struct run *r, uint64_t seed)
{
    struct ranges ranges;
    struct want w = {.crop = some_crop(head_width(&r->head), head_height(&r->head), seed)};
    if (!r->checkpoints.len ||
        !decode_checkpoint_ranges(r->checkpoints.data, r->checkpoints.len, &r->head, &w, seed % 64, &ranges))
        return;
    const uint8_t *all = r->data;
    uint8_t *some = malloc(r->size);
    require(some != NULL);
    memset(some, (int)(seed >> 8 & 255), r->size);
    for (int i = 0; i < ranges.n; i++)
        memcpy(some + ranges.at[i].from, all + ranges.at[i].from, (size_t)(ranges.at[i].to - ranges.at[i].from));
    struct image a, b;
    stk_error e;
    int warnings;
    w.ranges = &ranges;
    r->data = some;
    decoder_lend_checkpoints(r->decoder, r->checkpoints.data, r->checkpoints.len, false);
    require(decode(r, &w, &r->ours, &a, &warnings, &e) == STK_OK && warnings == 0);
    r->data = all;
    w.ranges = NULL;
    w.reference = true;
    require(decode(r, &w, &r->theirs, &b, &warnings, &e) == STK_OK);
    for (int32_t y = 0; y < a.h; y++)
        require(memcmp(a.px + (size_t)y * a.stride, b.px + (size_t)y * b.stride, (size_t)a.w * 3) == 0);
    free(some);
}

/* Copies the codes of a crop or of the whole scan, or coefficients, to the end of memory of exactly this size. */
static void copy_region(struct run *r, const struct want *w, uint64_t seed)
{
    enum { BEFORE = 128 };
    const size_t room = seed % 3 ? 3 * r->size + 8192 : seed % 7 ? seed % 8192 : 0;
    uint8_t *const memory = malloc(BEFORE + room);
    require(memory != NULL);
    struct dct_region region = {
        .to = memory + BEFORE, .room = room, .codes = seed % 5, .scan = seed % 5 < 2, .coefficients = seed % 2};
    decoder_lend_checkpoints(r->decoder, r->checkpoints.data, r->checkpoints.len, false);
    if (decode_region(r->decoder, r->data, r->size, &r->head, w, false, &region))
        require(region.used > 0 && region.used <= room);
    free(memory);
}

/* With a right checksum, so that it is not noticed at once. */
static void tamper(struct run *r, uint64_t seed)
{
    const size_t n = r->checkpoints.len - 8;
    for (uint64_t i = 0; i < 3; i++)
        r->checkpoints.data[hash_mix(seed, i) % n] ^= (uint8_t)(1 << (hash_mix(seed, i + 7) & 7));
    const uint64_t sum = hash_bytes(r->checkpoints.data, n, 0);
    for (int i = 0; i < 8; i++)
        r->checkpoints.data[n + (size_t)i] = (uint8_t)(sum >> 8 * i);
}

static void try_all(struct run *r, uint64_t seed)
{
    const struct want all = {.crop = {0, 0, head_width(&r->head), head_height(&r->head)}};
    const struct want to_the_end = {.crop = all.crop, .whole = true};
    for (uint64_t i = 0; i < CROPS; i++) {
        const struct want w = {.crop = some_crop(head_width(&r->head), head_height(&r->head), hash_mix(seed, i))};
        compare(r, &w, i > 0);
    }
    compare(r, &all, true);
    for (uint64_t i = 0; i < CROPS; i++)
        compare_ranges(r, hash_mix(seed, CROPS + i));
    compare(r, &to_the_end, false);
    copy_region(r, &all, seed);
    if (r->checkpoints.len < 16)
        return;
    tamper(r, seed);
    struct image im;
    stk_error e;
    int warnings;
    const struct want w = {.crop = some_crop(head_width(&r->head), head_height(&r->head), seed)};
    copy_region(r, &w, seed);
    decoder_lend_checkpoints(r->decoder, r->checkpoints.data, r->checkpoints.len, false);
    decode(r, &w, &r->ours, &im, &warnings, &e);
    struct ranges ranges;
    if (decode_checkpoint_ranges(r->checkpoints.data, r->checkpoints.len, &r->head, &w, 0, &ranges))
        require(ranges.n > 0 && ranges.n <= RANGES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct decode_limits limits = {.max_pixels = MAX_PIXELS};
    struct run r = {.data = data, .size = size};
    if (decode_head(data, size, &limits, &r.head, NULL) != STK_OK || r.head.format != STK_JPEG)
        return 0;
    require(decoder_new(&r.decoder, STK_CPU_DEFAULT, NULL) == STK_OK);
    try_all(&r, hash_bytes(data, size, 0));
    decoder_free(r.decoder);
    arena_done(&r.ours);
    arena_done(&r.theirs);
    buf_done(&r.checkpoints);
    return 0;
}
