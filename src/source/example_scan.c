/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_scan.c -- looks at the examples of a TFRecord file while it is scanned.
 *
 * Indexing must not read all photos of a set. A small record is in memory anyway, with its neighbours. In a large one
 * the features are walked over by their heads: small ones are read, and of a large one, which is nearly always one
 * encoded image, only the beginning.
 *
 * A damaged record must not decide what a feature is. Most records say nothing new; one that does is proved first, by
 * the checksum of all its data.
 */
#include "source/example_columns.h"

#include <string.h>

#include "base/picture.h"
#include "format/tfrecord.h"

enum {
    SMALL = 32 << 10,      /* bytes that are read at once, of a record or a feature */
    BEGINNING = 1 << 10,   /* of a large feature */
    WHOLE_MOST = 64 << 20, /* more are never read at once: of such features only the beginning counts */
    ENTRIES_MOST = 16384   /* of a record; more are left out: hostile ones would take for ever */
};

struct scanning {
    struct example_survey *look;
    struct record_scan *sc;
    const struct crc32c *crc;
    int64_t at, end; /* of the data */
    int entries, features;
    enum { UNKNOWN, PROVED, DAMAGED } state; /* DAMAGED: it has no say; also where it is no example */
    bool failed;                             /* no memory */
};

static const uint8_t *peek(const struct scanning *s, int64_t from, int64_t to)
{
    size_t got;
    const uint8_t *p = record_peek(s->sc, from, (size_t)(to - from), &got);
    return got == (size_t)(to - from) ? p : NULL;
}

static bool goes_on(struct scanning *s)
{
    return s->entries++ < ENTRIES_MOST && s->state != DAMAGED && !s->failed;
}

/* Whether the whole of it is an example, down to the values. */
static bool is_example(const uint8_t *p, size_t n)
{
    struct example_walk w;
    struct example_entry x;
    int rc;
    example_begin(&w, p, n);
    while ((rc = example_next(&w, &x)) > 0 && feature_measure(&x.feature))
        ;
    return rc == 0;
}

static bool is_proved(struct scanning *s)
{
    const size_t n = (size_t)(s->end - s->at);
    if (s->state != UNKNOWN || n > WHOLE_MOST)
        return s->state != DAMAGED;
    const uint8_t *p = peek(s, s->at, s->end + TFRECORD_FOOT);
    s->state = p && tfrecord_data(s->crc, p, n) && is_example(p, n) ? PROVED : DAMAGED;
    return s->state == PROVED;
}

/* The name is lent by a window, which moves when the record is proved. */
static void see(struct scanning *s, const uint8_t *name, size_t n, const struct example_glance *g)
{
    uint8_t own[COLUMN_NAME];
    if (n >= sizeof own)
        return;
    if (example_survey_is_new(s->look, name, n, g)) {
        memcpy(own, name, n);
        name = own;
        if (!is_proved(s))
            return;
    }
    s->failed |= example_survey_add(s->look, name, n, g) != 0;
}

static bool see_entry(struct scanning *s, struct example_entry *x)
{
    struct example_glance g;
    if (!feature_measure(&x->feature))
        return false;
    example_glance(&x->feature, &g);
    see(s, x->name, x->name_bytes, &g);
    s->features++;
    return true;
}

/* ------------------------------------------------------------------ all of it in memory */

static bool see_whole(struct scanning *s, const uint8_t *p)
{
    struct example_walk w;
    struct example_entry x;
    int rc = 1;
    example_begin(&w, p, (size_t)(s->end - s->at));
    while (goes_on(s) && (rc = example_next(&w, &x)) > 0)
        if (!see_entry(s, &x))
            return false;
    return rc >= 0;
}

/* ------------------------------------------------------------------ a large record, by its heads */

struct range {
    int64_t from, to; /* in the shard */
};

/* The field at *at, which moves behind it. */
static bool next_field(const struct scanning *s, int64_t *at, int64_t end, struct wire_head *h, struct range *payload)
{
    const int64_t room = end - *at < WIRE_HEAD_MOST ? end - *at : WIRE_HEAD_MOST;
    const uint8_t *p = peek(s, *at, *at + room);
    if (!p || !wire_head(p, (size_t)room, h) || h->n > (uint64_t)(end - *at) - h->bytes)
        return false;
    payload->from = *at + (int64_t)h->bytes;
    payload->to = *at = payload->from + (int64_t)h->n;
    return true;
}

/* The beginning of an entry that has `bytes` bytes in all. */
struct beginning {
    const uint8_t *p;
    size_t n, at;
    uint64_t bytes;
};

/* Into the next message, which must go on to the end of the entry; its number, 0: there is none. */
static uint32_t enter(struct beginning *b)
{
    struct wire_head h;
    if (!wire_head(b->p + b->at, b->n - b->at, &h) || h.type != WIRE_BYTES)
        return 0;
    b->at += h.bytes;
    return b->at <= b->n && b->bytes - b->at == h.n ? h.number : 0;
}

static bool take_name(struct beginning *b, const uint8_t **name, size_t *n)
{
    struct wire_head h;
    if (!wire_head(b->p, b->n, &h) || h.number != 1 || h.type != WIRE_BYTES || h.n > b->n - h.bytes)
        return false;
    *name = b->p + h.bytes;
    *n = (size_t)h.n;
    b->at = h.bytes + *n;
    return true;
}

/* One byte string, or one run of floats, behind the name. false: it is something else. */
static bool see_beginning(struct scanning *s, const struct range *entry)
{
    struct beginning b = {.n = BEGINNING, .bytes = (uint64_t)(entry->to - entry->from)};
    const uint8_t *name;
    size_t n;
    b.p = peek(s, entry->from, entry->from + BEGINNING);
    if (!b.p || !take_name(&b, &name, &n) || enter(&b) != 2)
        return false;
    const uint32_t kind = enter(&b);
    if ((kind != FEATURE_BYTES && kind != FEATURE_FLOATS) || enter(&b) != 1)
        return false;
    struct example_glance g = {.kind = (enum feature_kind)kind, .count = 1, .texts = true};
    if (kind == FEATURE_BYTES) {
        g.strings = 1;
        g.images = picture_magic(b.p + b.at, b.n - b.at);
        g.texts = example_is_text(b.p + b.at, b.n - b.at, false);
    } else {
        g.count = (int64_t)((b.bytes - b.at) / sizeof(float));
    }
    see(s, name, n, &g);
    s->features++;
    return true;
}

static bool see_range(struct scanning *s, const struct range *entry, bool steps)
{
    struct example_entry x;
    const int64_t bytes = entry->to - entry->from;
    if (bytes > SMALL && !steps && see_beginning(s, entry))
        return true;
    if (bytes > WHOLE_MOST)
        return true;
    const uint8_t *p = peek(s, entry->from, entry->to);
    return p && example_entry(p, (size_t)bytes, steps, &x) && see_entry(s, &x);
}

static bool see_map(struct scanning *s, const struct range *map, bool steps)
{
    struct wire_head h;
    struct range entry;
    for (int64_t at = map->from; at < map->to && goes_on(s);) {
        if (!next_field(s, &at, map->to, &h, &entry))
            return false;
        if (h.number == 1 && (h.type != WIRE_BYTES || !see_range(s, &entry, steps)))
            return false;
    }
    return true;
}

static bool see_parts(struct scanning *s)
{
    struct wire_head h;
    struct range map;
    for (int64_t at = s->at; at < s->end && goes_on(s);) {
        if (!next_field(s, &at, s->end, &h, &map))
            return false;
        if (h.number <= 2 && (h.type != WIRE_BYTES || !see_map(s, &map, h.number == 2)))
            return false;
    }
    return true;
}

/* A compressed file is read from beginning to end anyway, and going back in it is slow. */
int example_scan(struct example_survey *l, struct record_scan *sc, const struct crc32c *crc, int64_t at, int64_t bytes)
{
    struct scanning s = {.look = l, .sc = sc, .crc = crc, .at = at, .end = at + bytes};
    const uint8_t *p =
        bytes <= (sc->bytes == INT64_MAX ? WHOLE_MOST : SMALL) ? peek(&s, at, s.end + TFRECORD_FOOT) : NULL;
    l->next = 0;
    const bool good = p ? see_whole(&s, p) : see_parts(&s);
    if (s.state != DAMAGED) {
        l->examples += good && s.features > 0;
        l->others += !good || (s.features == 0 && bytes > 0);
    }
    return s.failed ? -1 : 0;
}
