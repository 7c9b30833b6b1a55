/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cache_image.c -- short cuts on the path of an image (make_image in loader.c).
 *
 *     read -> head -> draw -> decode -> transform        the usual path
 *     kept file -> head -> draw -> decode -> ...         cache=bytes
 *     kept coefficients -> head -> draw -> decode ...    cache=dct
 *     kept pixels -> draw (rest) -> transform (rest)     cache=pixels
 *     kept pixels of the source -> draw -> transform     any of them (loader_rows.c)
 *
 * In the first epoch the cache is filled on the way. With cache=dct the file becomes coefficients right after its head
 * is known, so that its Huffman codes are read once. With cache=pixels the ops are divided in two: the head up to the
 * first op that draws, whose result is kept, and the rest.
 *
 * A row has the same bits with and without a cache, because every short cut is a step of the usual path. If a short cut
 * fails, the sample takes the usual path, which also reports the error. Bad samples are not kept. Samples with a
 * decoder warning are not kept either, so that the warning is counted in every epoch.
 */
#include "base/size.h"
#include "loader.h"

bool loader_cache_find(struct stk_loader *l, struct worker *w, struct making *m)
{
    const stk_cache what = l->cache.what;
    struct desk_image *im = &m->image;
    w->identified = w->from_cache = false;
    w->identity = 0;
    if (im->form == DESK_PIXELS) {
        im->bytes = loader_rows_find_pixels(l, m->sample);
        return w->from_cache = im->bytes != NULL;
    }
    if (what == STK_CACHE_NONE || (m->plain && what != STK_CACHE_BYTES) ||
        !loader_cache_fetch(l, w, m->sample, &im->bytes, &im->n))
        return false;
    if (what == STK_CACHE_BYTES) {
        w->desk.reading.bytes = im->bytes;
        w->desk.reading.n_bytes = im->n;
        w->from_cache = true;
        return true;
    }
    int32_t whole[2] = {0};
    if (what == STK_CACHE_PIXELS &&
        !cache_pixels_image(im->bytes, im->n, plan_head_channels(l->plan), &im->pixels, whole))
        return false;
    im->head = (struct head){.w = whole[0], .h = whole[1], .orientation = 1};
    im->form = what == STK_CACHE_PIXELS ? DESK_READY : DESK_DCT;
    return m->shortened = true;
}

/* Coefficients take about one and a half times as much as the file. At four times they are not worth their room. */
void loader_cache_to_dct(struct stk_loader *l, struct worker *w, struct making *m)
{
    const struct desk_image *file = &m->image;
    const struct head *h = &file->head;
    if (l->cache.what != STK_CACHE_DCT || m->plain || file->form != DESK_FILE || h->format != STK_JPEG || h->dct)
        return;
    const size_t usual = size_add(file->n, file->n / 2), most = size_add(size_mul(file->n, 4), 64 << 10);
    if (!cache_has_room(l->cache.entries, m->sample, usual))
        return;
    const struct want whole = desk_whole(h);
    struct buf *dct = desk_spare(&w->desk, most, decode_foreign(h, &whole));
    if (!dct || !decode_to_dct(w->desk.decoder, file->bytes, file->n, h, dct))
        return;
    cache_put(l->cache.entries, m->sample, loader_cache_read_identity(l, w, m->sample), dct->data, dct->len);
    const struct decode_limits limits = options_limits(&l->options);
    struct desk_image im = {.bytes = dct->data, .n = dct->len, .form = DESK_DCT};
    if (desk_head(&im, &limits, NULL) != STK_OK)
        return;
    m->image = im;
    m->shortened = true;
}

bool loader_cache_draw(struct stk_loader *l, struct worker *w, struct making *m)
{
    const struct head *h = &m->image.head;
    struct job *head = &m->head;
    if (l->cache.what != STK_CACHE_PIXELS || m->plain ||
        plan_draw_head(l->plan, head_width(h), head_height(h), head, NULL) != STK_OK ||
        loader_views_draw(l, m->draw, head->w, head->h, true, NULL, w->jobs, &m->want, NULL) != STK_OK)
        return false;
    plan_draft(l->plan, head, head_width(h), head_height(h), decode_shrink(h));
    const size_t bytes = cache_pixels_bytes(head->w, head->h, head->channels);
    if (!cache_has_room(l->cache.entries, m->sample, bytes))
        return false;
    m->kept_bytes = bytes;
    return m->shortened = true;
}

/* Runs the head of the ops, keeps its result, and continues with the rest. */
static int keep_pixels(struct stk_loader *l, struct worker *w, struct making *m, stk_error *e)
{
    struct arena *a = &w->desk.arena;
    const struct job *head = &m->head;
    struct image kept;
    uint8_t *entry = m->image.warnings ? NULL : arena_alloc(a, m->kept_bytes);
    if (!entry)
        return STK_EDATA;
    int32_t whole[2] = {head_width(&m->image.head), head_height(&m->image.head)};
    uint8_t *px = cache_pixels_begin(entry, head->w, head->h, head->channels, whole);
    const int rc = plan_run(l->plan, head, &m->image.pixels, a, px, e);
    if (rc != STK_OK || !cache_pixels_image(entry, m->kept_bytes, plan_head_channels(l->plan), &kept, whole))
        return STK_EDATA;
    cache_put(l->cache.entries, m->sample, loader_cache_read_identity(l, w, m->sample), entry, m->kept_bytes);
    m->image.pixels = image_crop(&kept, m->want.crop);
    return STK_OK;
}

int loader_cache_keep(struct stk_loader *l, struct worker *w, struct making *m, stk_error *e)
{
    const struct desk_image *im = &m->image;
    if (m->kept_bytes > 0)
        return keep_pixels(l, w, m, e);
    if (im->form == DESK_PIXELS && !w->from_cache)
        loader_rows_keep_pixels(l, m->sample, im->bytes);
    if (im->form != DESK_FILE || im->warnings > 0)
        return STK_OK;
    if (l->cache.what == STK_CACHE_BYTES && !w->from_cache)
        cache_put(l->cache.entries, m->sample, loader_cache_read_identity(l, w, m->sample), im->bytes, im->n);
    loader_checkpoints_keep(l, w, m->sample);
    return STK_OK;
}
