/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_record.c -- TFRecord files: of tf.train.Examples, or of anything else, which is then one column of bytes.
 *
 * 12 bytes say how long a record is, and prove it. Where they do not, the record is bad, and the next place that proves
 * itself is searched for. What features there are is seen in all records while the file is scanned (example_scan.c). A
 * record's data is proved when it is read; it is the sample's one part, together with the checksum behind it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "source/example_cells.h"
#include "source/example_scan.h"
#include "source/frame.h"
#include "source/records.h"

/* ------------------------------------------------------------------ scanning */

enum { STEP = 64 << 10, LENGTH_UNKNOWN_MOST = 1 << 30 };

static int bad(struct record_scan *sc, int64_t at, const char *reason)
{
    return record_begin(sc, NULL, 0) || record_bad(sc, at, reason) ? -1 : 0;
}

/* The next head behind `at`; -1: there is none. */
static int64_t next_head(struct record_scan *sc, const struct crc32c *crc, int64_t at)
{
    for (;;) {
        size_t got;
        const uint8_t *p = record_peek(sc, ++at, STEP, &got);
        const int64_t left = sc->bytes == INT64_MAX ? LENGTH_UNKNOWN_MOST : sc->bytes - at;
        const size_t found = frame_search(crc, p, got, left > 0 ? (uint64_t)left : 0);
        if (found < got)
            return at + (int64_t)found;
        if (got < STEP)
            return -1;
        at += (int64_t)(got - FRAME_HEAD);
    }
}

/* Whether the record's bytes are all there. In a stream that is seen by going there. */
static bool is_whole(struct record_scan *sc, int64_t at, uint64_t length)
{
    if (length > INT64_MAX - FRAME_HEAD - FRAME_FOOT - (uint64_t)at)
        return false;
    const int64_t end = at + FRAME_HEAD + (int64_t)length + FRAME_FOOT;
    if (sc->bytes != INT64_MAX)
        return end <= sc->bytes;
    size_t got;
    record_peek(sc, end - FRAME_FOOT, FRAME_FOOT, &got);
    return got == FRAME_FOOT;
}

static int whole_record(struct record_scan *sc, int64_t at, int64_t length)
{
    const struct part p = {at + FRAME_HEAD, length + FRAME_FOOT};
    return record_begin(sc, NULL, 0) || record_part(sc, "", 0, p, NULL) ? -1 : 0;
}

/* One record at *at, which moves on; -1 when nothing follows that could be read. 0, or -1: no memory. */
static int one_record(struct record_scan *sc, const struct crc32c *crc, struct example_look *l, int64_t *at)
{
    size_t got;
    uint64_t length;
    const int64_t from = *at;
    const uint8_t *p = record_peek(sc, from, FRAME_HEAD, &got);
    *at = -1;
    if (got == 0)
        return 0;
    if (got < FRAME_HEAD)
        return bad(sc, from, "the file ends within the head of a record");
    if (!frame_head(crc, p, &length)) {
        *at = next_head(sc, crc, from);
        return bad(sc, from, "the checksum of the record's length is wrong");
    }
    if (!is_whole(sc, from, length))
        return bad(sc, from, "the file ends within the record");
    *at = from + FRAME_HEAD + (int64_t)length + FRAME_FOOT;
    if (example_scan(l, sc, crc, from + FRAME_HEAD, (int64_t)length))
        return -1;
    return whole_record(sc, from, (int64_t)length);
}

static int scan(struct record_scan *sc, stk_error *e)
{
    const struct crc32c *crc = crc32c_choose(STK_CPU_DEFAULT);
    size_t got;
    uint64_t length;
    const uint8_t *p = record_peek(sc, 0, FRAME_HEAD, &got);
    if (got == FRAME_HEAD && !frame_head(crc, p, &length) && next_head(sc, crc, 0) < 0 && !record_failed(sc, NULL))
        return error_set(e, STK_EUSAGE, "open", "is no TFRecord file: nowhere in it a record begins");
    struct example_look l = {0};
    struct buf notes = {0};
    int rc = 0;
    for (int64_t at = 0; at >= 0 && rc == 0;)
        rc = one_record(sc, crc, &l, &at);
    if (rc == 0)
        rc = example_look_write(&l, &notes) || record_note(sc, notes.data, notes.len);
    example_look_done(&l);
    buf_done(&notes);
    return rc ? error_nomem(e, "open", 0) : STK_OK;
}

static int join(struct buf *all, const uint8_t *one, size_t n)
{
    struct example_look l = {0};
    int rc = all->len > 0 ? example_look_add(&l, all->data, all->len) : 0;
    if (rc == 0)
        rc = example_look_add(&l, one, n);
    all->len = 0;
    if (rc == 0)
        rc = example_look_write(&l, all);
    example_look_done(&l);
    return rc ? -1 : 0;
}

/* ------------------------------------------------------------------ columns */

static const char DATA[] = "data"; /* what records are that are no examples */

static bool is_data(const struct columns *c)
{
    return c->n == 1 && c->of[0].whole;
}

/* The data of a record that proves itself; NULL: it does not. */
static const uint8_t *proved(const struct crc32c *crc, const struct record *rec, size_t *n)
{
    const uint8_t *p = rec->parts[0].bytes;
    if (!p || rec->parts[0].n < FRAME_FOOT || !frame_data(crc, p, rec->parts[0].n - FRAME_FOOT))
        return NULL;
    *n = rec->parts[0].n - FRAME_FOOT;
    return p;
}

/* Records are examples when more of them are than are not. */
static int look(const struct source *s, struct columns *c, stk_error *e)
{
    struct example_look l = {0};
    struct column data = {.kind = STK_BYTES, .whole = true};
    memcpy(data.name, DATA, sizeof DATA);
    size_t n;
    const uint8_t *notes = records_notes(s, &n);
    const int added = example_look_add(&l, notes, n);
    int rc = added < 0   ? error_nomem(e, "open", n)
             : added > 0 ? error_set(e, STK_EDATA, "open", "its index is damaged; `stoker index` makes it again")
                         : STK_OK;
    const bool examples = l.n > 0 && l.examples > l.others;
    if (rc == STK_OK && (examples ? example_columns(&l, c) : columns_add(c, &data)))
        rc = error_nomem(e, "open", 0);
    c->open = examples;
    example_look_done(&l);
    return rc;
}

/* ------------------------------------------------------------------ reading */

struct reader {
    const struct crc32c *crc;
    bool examples;
    struct example_wanted wanted;
};

static int ready(const struct source *s, const struct columns *c, void **state, stk_error *e)
{
    struct reader *r = calloc(1, sizeof *r);
    if (!r)
        return error_nomem(e, "open", sizeof *r);
    *state = r;
    r->crc = crc32c_choose(STK_CPU_DEFAULT);
    r->examples = !is_data(c);
    example_want(&r->wanted, s, c);
    return STK_OK;
}

static int parse(const struct source *s, struct reading *r, const struct record *rec, stk_error *e)
{
    const struct reader *reader = records_state(s);
    size_t n;
    const uint8_t *p = proved(reader->crc, rec, &n);
    if (!p)
        return error_set(e, STK_EDATA, "read", "the checksum of the record's data is wrong (at byte %lld)",
                         (long long)rec->parts[0].at);
    if (reader->examples)
        return example_cells(&reader->wanted, s, p, n, r, e);
    for (int f = 0; f < s->n_fields; f++)
        if (s->fields[f].column >= 0)
            r->cells[f] = (struct cell){.bytes = p, .n = n};
    return STK_OK;
}

/* ------------------------------------------------------------------ opening */

bool shard_record_is(const uint8_t *p, size_t n)
{
    uint64_t length;
    return n >= FRAME_HEAD && frame_head(crc32c_choose(STK_CPU_DEFAULT), p, &length);
}

/* TensorFlow's ZLIB has no mark but a sum of its first two bytes, which a record's head may have, too. */
static enum stream_form packed(const uint8_t *first, size_t n)
{
    if (shard_record_is(first, n))
        return STREAM_PLAIN;
    const bool zlib = n >= 2 && (first[0] & 15) == 8 && (first[0] << 8 | first[1]) % 31 == 0;
    return zlib ? STREAM_ZLIB : stream_form_of(first, n);
}

int shard_record_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                      stk_error *e)
{
    static const struct record_format format = {.kind = "TFRecord files",
                                                .number = 0x54460002,
                                                .packed = packed,
                                                .scan = scan,
                                                .join = join,
                                                .look = look,
                                                .ready = ready,
                                                .parse = parse};
    if (query)
        return error_set(e, STK_EUSAGE, "open", "nothing can be said behind a ? for TFRecord files");
    return shard_records_open(s, o, &format, paths, e);
}
