/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_scan.c -- surveys the examples of a TFRecord file while it is scanned.
 *
 * Indexing must not read all images of a dataset. A small record is in memory anyway, together with its neighbours. In
 * a large record only the headers of the features are followed. Small features are read; of a large feature, nearly
 * always an encoded image, only the start.
 *
 * A damaged record must not change the survey. Most records add nothing new. A record that does is verified first, by
 * the checksum of all its data.
 */
#include "source/example_columns.h"

#include <string.h>

#include "base/image_file.h"
#include "format/tfrecord.h"

enum {
    SMALL = 32 << 10,      /* bytes of a record or feature that are read at once */
    BEGINNING = 1 << 10,   /* of a large feature */
    WHOLE_MOST = 64 << 20, /* larger features are never read whole: only their start counts */
    ENTRIES_MOST = 16384   /* of a record; more are ignored: a hostile file would take forever */
};

struct scanning {
    struct example_survey *survey;
    struct record_scan *sc;
    const struct crc32c *crc;
    int64_t at, end; /* of the data */
    int entries, features;
    enum { UNKNOWN, VERIFIED, DAMAGED } state; /* DAMAGED: ignore it; also if it is not an example */
    bool failed;                               /* out of memory */
};

static const uint8_t *peek(const struct scanning *s, int64_t from, int64_t to)
{
    size_t got;
    const uint8_t *p = record_peek(s->sc, from, (size_t)(to - from), &got);
    return got == (size_t)(to - from) ? p : NULL;
}

static bool continues(struct scanning *s)
{
    return s->entries++ < ENTRIES_MOST && s->state != DAMAGED && !s->failed;
}

/* Whether all n bytes are a valid example, including the values. */
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

static bool is_verified(struct scanning *s)
{
    const size_t n = (size_t)(s->end - s->at);
    if (s->state != UNKNOWN || n > WHOLE_MOST)
        return s->state != DAMAGED;
    const uint8_t *p = peek(s, s->at, s->end + TFRECORD_FOOT);
    s->state = p && tfrecord_data(s->crc, p, n) && is_example(p, n) ? VERIFIED : DAMAGED;
    return s->state == VERIFIED;
}

/* Copies the name, since verifying the record moves the window that contains it. */
static void see(struct scanning *s, const uint8_t *name, size_t n, const struct example_glance *g)
{
    uint8_t own[COLUMN_NAME];
    if (n >= sizeof own)
        return;
    if (example_survey_is_new(s->survey, name, n, g)) {
        memcpy(own, name, n);
        name = own;
        if (!is_verified(s))
            return;
    }
    s->failed |= example_survey_add(s->survey, name, n, g) != 0;
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

/* ------------------------------------------------------------------ a record in memory */

static bool see_whole(struct scanning *s, const uint8_t *p)
{
    struct example_walk w;
    struct example_entry x;
    int rc = 1;
    example_begin(&w, p, (size_t)(s->end - s->at));
    while (continues(s) && (rc = example_next(&w, &x)) > 0)
        if (!see_entry(s, &x))
            return false;
    return rc >= 0;
}

/* ------------------------------------------------------------------ a large record, by its headers */

struct range {
    int64_t from, to; /* positions in the shard */
};

/* Reads the field at *at and moves *at past it. */
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

/* The first n bytes of an entry of `bytes` bytes. */
struct beginning {
    const uint8_t *p;
    size_t n, at;
    uint64_t bytes;
};

/* Enters the next message, which must extend to the end of the entry. Returns its field number; 0: there is none. */
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

/* Handles an entry with one byte string or one list of floats after the name. false: it is something else. */
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
        g.images = image_file_magic(b.p + b.at, b.n - b.at);
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
    for (int64_t at = map->from; at < map->to && continues(s);) {
        if (!next_field(s, &at, map->to, &h, &entry))
            return false;
        if (h.number == 1 && (h.type != WIRE_BYTES || !see_range(s, &entry, steps)))
            return false;
    }
    return true;
}

static bool see_messages(struct scanning *s)
{
    struct wire_head h;
    struct range map;
    for (int64_t at = s->at; at < s->end && continues(s);) {
        if (!next_field(s, &at, s->end, &h, &map))
            return false;
        if (h.number <= 2 && (h.type != WIRE_BYTES || !see_map(s, &map, h.number == 2)))
            return false;
    }
    return true;
}

/* A compressed file is read from start to end anyway, and going back in it is slow. */
int example_scan(struct example_survey *l, struct record_scan *sc, const struct crc32c *crc, int64_t at, int64_t bytes)
{
    struct scanning s = {.survey = l, .sc = sc, .crc = crc, .at = at, .end = at + bytes};
    const uint8_t *p =
        bytes <= (sc->bytes == INT64_MAX ? WHOLE_MOST : SMALL) ? peek(&s, at, s.end + TFRECORD_FOOT) : NULL;
    l->next = 0;
    const bool good = p ? see_whole(&s, p) : see_messages(&s);
    if (s.state != DAMAGED) {
        l->examples += good && s.features > 0;
        l->others += !good || (s.features == 0 && bytes > 0);
    }
    return s.failed ? -1 : 0;
}
