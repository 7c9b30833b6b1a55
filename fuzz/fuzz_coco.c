/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_coco.c -- any bytes as annotations in COCO's format, read in pieces whose size is the first byte. Every
 * segmentation is drawn. Elements are inside the document, and the same for any size of pieces.
 */
#include <string.h>

#include "format/coco.h"
#include "format/json_stream.h"
#include "fuzz.h"

struct piece {
    const uint8_t *p;
    size_t n, step;
};

static int64_t read_piece(void *user, void *to, size_t n)
{
    struct piece *m = user;
    size_t k = m->n < n ? m->n : n;
    k = k > m->step ? m->step : k;
    if (k > 0)
        memcpy(to, m->p, k);
    m->p += k;
    m->n -= k;
    return (int64_t)k;
}

static void draw(struct slice text)
{
    enum { W = 37, H = 23, GUARD = 64 };
    uint8_t px[GUARD + W * H + GUARD];
    struct buf points = {0}, scratch = {0};
    struct rle_mask m = {.px = px + GUARD, .w = W, .h = H, .steps = (1 << 26) - (1 << 16)};
    memset(px, 7, sizeof px);
    memset(px + GUARD, 0, W * H);
    coco_mask(text, &m, &points, &scratch);
    for (int i = 0; i < GUARD; i++)
        require(px[i] == 7 && px[sizeof px - 1 - (size_t)i] == 7);
    for (int i = 0; i < W * H; i++)
        require(px[GUARD + i] <= 1);
    buf_done(&points);
    buf_done(&scratch);
}

static void look_at(const struct json_element *el)
{
    struct coco_image image;
    struct coco_category category;
    struct coco_annotation a;
    struct buf numbers = {0};
    double box[4];
    if (el->array == 0)
        require(coco_image(el->text, &image) || image.file_name.n > 0);
    if (el->array == 1)
        coco_category(el->text, &category);
    if (el->array != 2 || coco_annotation(el->text, &a))
        return;
    require(coco_box(a.bbox, box) || (box[2] >= 0 && box[3] >= 0));
    if (a.keypoints.n > 0)
        coco_numbers(a.keypoints, &numbers);
    buf_done(&numbers);
    draw(a.segmentation);
}

/* A hash of all elements, and whether the document is valid. */
static uint64_t read_all(const uint8_t *p, size_t n, size_t step, bool look)
{
    static const char *const wanted[] = {"images", "categories", "annotations", NULL};
    struct piece m = {p, n, step};
    struct json_stream s = {.read = read_piece, .user = &m, .wanted = wanted};
    struct json_element el;
    uint64_t hash = 0;
    int rc;
    while ((rc = json_stream_next(&s, &el)) > 0) {
        require(el.at >= 0 && (size_t)el.at + el.text.n <= n && memcmp(p + el.at, el.text.p, el.text.n) == 0);
        hash = hash_bytes(el.text.p, el.text.n, hash_mix(hash, (uint64_t)el.array));
        if (look)
            look_at(&el);
    }
    require(rc == 0 || s.problem != NULL);
    json_stream_done(&s);
    return hash_mix(hash, (uint64_t)rc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 1 << 16)
        return 0;
    const uint64_t whole = read_all(data + 1, size - 1, SIZE_MAX, true);
    require(read_all(data + 1, size - 1, (size_t)data[0] + 1, false) == whole);
    return 0;
}
