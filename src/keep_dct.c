/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep_dct.c -- JPEG pictures kept as packs: their coefficients without the codes.
 *
 * In the first epoch the pack is made of the whole picture, and the row from the pack: the codes are read once. What
 * has no pack (another format, damage) goes its usual way in every epoch.
 */
#include "base/size.h"
#include "loader.h"

/* The rest of the way, from a pack on. */
static bool row_of_pack(struct stk_loader *l, struct worker *w, const struct draw *d, const uint8_t *pack, size_t n,
                        uint8_t *row)
{
    const struct decode_limits limits = options_limits(&l->options);
    struct head h;
    struct job job;
    struct image image;
    uint64_t clock = now_ns();
    if (decode_pack_head(pack, n, &limits, &h, NULL) != STK_OK ||
        plan_draw(l->plan, d, head_width(&h), head_height(&h), &job, NULL) != STK_OK)
        return false;
    plan_draft(l->plan, &job, head_width(&h), head_height(&h), decode_shrink(&h));
    const size_t decode = decode_scratch(&h, &job.want), transform = plan_scratch(l->plan, &job);
    const size_t all = size_add(decode, transform);
    if (decode == 0 || transform == 0 || all == SIZE_MAX || desk_reserve(&w->desk, all, 0, NULL) != STK_OK)
        return false;
    if (decode_pack_pixels(w->desk.decoder, pack, n, &h, &job.want, &w->desk.arena, &image, NULL) != STK_OK)
        return false;
    keep_lap(&w->count.decode_ns, &clock);
    const bool done = loader_row(l, w, &job, &row, NULL) == STK_OK &&
                      plan_run(l->plan, &job, &image, &w->desk.arena, row, NULL) == STK_OK;
    keep_lap(&w->count.transform_ns, &clock);
    return done;
}

bool keep_row_pack(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row)
{
    const uint8_t *pack;
    size_t n;
    uint64_t clock = now_ns();
    const bool found = keep_fetch(l, w, (int64_t)d->sample, &pack, &n);
    keep_lap(&w->count.read_ns, &clock);
    return found && row_of_pack(l, w, d, pack, n, row);
}

/* A pack is about one and a half times as large as the file, and one of four times its size is not worth its room. */
static size_t usual(size_t file)
{
    return size_add(file, file / 2);
}

static size_t most(size_t file)
{
    return size_add(size_mul(file, 4), 64 << 10);
}

bool keep_fill_pack(struct stk_loader *l, struct worker *w, const struct draw *d, const struct head *h, uint8_t *row)
{
    const struct reading *r = &w->desk.reading;
    const struct want whole = {.crop = {0, 0, head_width(h), head_height(h)}, .whole = true};
    if (h->format != STK_JPEG || h->packed || !cache_has_room(l->keep.cache, (int64_t)d->sample, usual(r->n_bytes)))
        return false;
    uint64_t clock = now_ns();
    struct buf *pack = desk_spare(&w->desk, most(r->n_bytes), decode_foreign(h, &whole));
    if (!pack || !decode_pack(w->desk.decoder, r->bytes, r->n_bytes, h, pack))
        return false;
    keep_lap(&w->count.decode_ns, &clock);
    cache_put(l->keep.cache, (int64_t)d->sample, keep_read_identity(l, w, (int64_t)d->sample), pack->data, pack->len);
    return row_of_pack(l, w, d, pack->data, pack->len, row);
}
