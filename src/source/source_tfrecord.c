/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tfrecord.c -- TFRecord files of tf.train.Examples, or of other records, which become one column of bytes.
 *
 * The 12-byte header of a record contains its length and a checksum. If the checksum is wrong, the record is bad, and
 * the scan searches for the next valid header. The scan surveys the features of all records (example_scan.c). The data
 * of a record and its checksum are the only part of the sample; the checksum is verified when the sample is read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/tfrecord.h"
#include "format/wire.h"
#include "source/example_cells.h"
#include "source/example_columns.h"
#include "source/records.h"

/* ------------------------------------------------------------------ scanning */

enum { STEP = 64 << 10, LENGTH_UNKNOWN_MOST = 1 << 30 };

/* Starts a record without a name. In a pack, where records have names, it is named by its offset. */
static int begin_unnamed(struct record_scan *sc, bool named, int64_t at)
{
    if (!named)
        return record_begin(sc, NULL, 0);
    char place[32];
    const int n = snprintf(place, sizeof place, "@%lld", (long long)at);
    return record_begin(sc, place, (size_t)n);
}

static int bad(struct record_scan *sc, bool named, int64_t at, const char *reason)
{
    return begin_unnamed(sc, named, at) || record_bad(sc, at, reason) ? -1 : 0;
}

/* Enters the field of this number, which may extend past the available bytes. Returns its size; -1: there is none. */
static int64_t enter_field(struct wire *w, int number)
{
    enum { LENGTH_BITS = 35 };
    int64_t n = 0;
    if (w->p == w->end || *w->p++ != (number << 3 | WIRE_BYTES))
        return -1;
    for (int shift = 0; shift < LENGTH_BITS && w->p < w->end; shift += 7) {
        n |= (int64_t)(*w->p & 127) << shift;
        if (*w->p++ < 128)
            return n;
    }
    return -1;
}

/* The file name, which packing stores as the first feature of an example; *n is 0 if there is none. */
static const char *first_name(const uint8_t *p, size_t bytes, size_t *n)
{
    static const char feature[] = "image/filename";
    enum { LENGTH = sizeof feature - 1 };
    struct wire w = {p, p + bytes};
    *n = 0;
    if (enter_field(&w, 1) < 0 || enter_field(&w, 1) < 0 || enter_field(&w, 1) != LENGTH || w.end - w.p < LENGTH ||
        memcmp(w.p, feature, LENGTH) != 0)
        return NULL;
    w.p += LENGTH;
    const int64_t length = enter_field(&w, 2) < 0 || enter_field(&w, 1) < 0 ? -1 : enter_field(&w, 1);
    if (length > 0 && length <= w.end - w.p && !memchr(w.p, 0, (size_t)length))
        *n = (size_t)length;
    return (const char *)w.p;
}

/* The next valid header after `at`; -1: none. */
static int64_t next_header(struct record_scan *sc, const struct crc32c *crc, int64_t at)
{
    for (;;) {
        size_t got;
        const uint8_t *p = record_peek(sc, ++at, STEP, &got);
        const int64_t left = sc->bytes == INT64_MAX ? LENGTH_UNKNOWN_MOST : sc->bytes - at;
        const size_t found = tfrecord_search(crc, p, got, left > 0 ? (uint64_t)left : 0);
        if (found < got)
            return at + (int64_t)found;
        if (got < STEP)
            return -1;
        at += (int64_t)(got - TFRECORD_HEAD);
    }
}

/* Whether the record is complete. In a compressed stream, this reads up to its end. */
static bool is_complete(struct record_scan *sc, int64_t at, uint64_t length)
{
    if (length > INT64_MAX - TFRECORD_HEAD - TFRECORD_FOOT - (uint64_t)at)
        return false;
    const int64_t end = at + TFRECORD_HEAD + (int64_t)length + TFRECORD_FOOT;
    if (sc->bytes != INT64_MAX)
        return end <= sc->bytes;
    size_t got;
    record_peek(sc, end - TFRECORD_FOOT, TFRECORD_FOOT, &got);
    return got == TFRECORD_FOOT;
}

static int add_record(struct record_scan *sc, bool named, int64_t at, int64_t length)
{
    enum { NAME_MOST = 4200 }; /* including what precedes it */
    const struct part p = {at + TFRECORD_HEAD, length + TFRECORD_FOOT};
    size_t n = 0, got = 0;
    const char *name = NULL;
    if (named) {
        const uint8_t *first = record_peek(sc, p.at, length < NAME_MOST ? (size_t)length : NAME_MOST, &got);
        name = first_name(first, got, &n);
    }
    return (n > 0 ? record_begin(sc, name, n) : begin_unnamed(sc, named, at)) || record_part(sc, "", 0, p, NULL) ? -1
                                                                                                                 : 0;
}

/* Scans the record at *at. *at becomes the next record, or -1 at the end. Returns 0, or -1: out of memory. */
static int scan_record(struct record_scan *sc, bool named, const struct crc32c *crc, struct example_survey *l,
                       int64_t *at)
{
    size_t got;
    uint64_t length;
    const int64_t from = *at;
    const uint8_t *p = record_peek(sc, from, TFRECORD_HEAD, &got);
    *at = -1;
    if (got == 0)
        return 0;
    if (got < TFRECORD_HEAD)
        return bad(sc, named, from, "the file ends inside the header of a record");
    if (!tfrecord_head(crc, p, &length)) {
        *at = next_header(sc, crc, from);
        return bad(sc, named, from, "the checksum of the record's length is wrong");
    }
    if (!is_complete(sc, from, length))
        return bad(sc, named, from, "the file ends inside the record");
    *at = from + TFRECORD_HEAD + (int64_t)length + TFRECORD_FOOT;
    if (add_record(sc, named, from, (int64_t)length))
        return -1;
    return example_scan(l, sc, crc, from + TFRECORD_HEAD, (int64_t)length);
}

static int scan_as(struct record_scan *sc, bool named, stk_error *e)
{
    const struct crc32c *crc = crc32c_choose(STK_CPU_DEFAULT);
    size_t got;
    uint64_t length;
    const uint8_t *p = record_peek(sc, 0, TFRECORD_HEAD, &got);
    if (got == TFRECORD_HEAD && !tfrecord_head(crc, p, &length) && next_header(sc, crc, 0) < 0 &&
        !record_failed(sc, NULL))
        return error_set(e, STK_EUSAGE, "open", "is not a TFRecord file: it contains no valid record header");
    struct example_survey l = {0};
    struct buf survey = {0};
    int rc = 0;
    for (int64_t at = 0; at >= 0 && rc == 0;)
        rc = scan_record(sc, named, crc, &l, &at);
    if (rc == 0)
        rc = example_survey_write(&l, &survey) || record_survey(sc, survey.data, survey.len);
    example_survey_done(&l);
    buf_done(&survey);
    return rc ? error_nomem(e, "open", 0) : STK_OK;
}

static int scan(struct record_scan *sc, stk_error *e)
{
    return scan_as(sc, false, e);
}

static int scan_pack(struct record_scan *sc, stk_error *e)
{
    return scan_as(sc, true, e);
}

static int join(struct buf *all, const uint8_t *one, size_t n)
{
    struct example_survey l = {0};
    int rc = all->len > 0 ? example_survey_merge(&l, all->data, all->len) : 0;
    if (rc == 0)
        rc = example_survey_merge(&l, one, n);
    all->len = 0;
    if (rc == 0)
        rc = example_survey_write(&l, all);
    example_survey_done(&l);
    return rc ? -1 : 0;
}

/* ------------------------------------------------------------------ columns */

static const char DATA[] = "data"; /* the column of records that are not examples */

/* The data of a record; NULL: its checksum is wrong. */
static const uint8_t *verified_data(const struct crc32c *crc, const struct record *rec, size_t *n)
{
    const uint8_t *p = rec->parts[0].bytes;
    if (!p || rec->parts[0].n < TFRECORD_FOOT || !tfrecord_data(crc, p, rec->parts[0].n - TFRECORD_FOOT))
        return NULL;
    *n = rec->parts[0].n - TFRECORD_FOOT;
    return p;
}

/* Records are examples if the majority is. */
static int find_columns(const struct source *s, struct columns *c, stk_error *e)
{
    struct example_survey l = {0};
    struct column data = {.kind = STK_BYTES, .whole = true};
    memcpy(data.name, DATA, sizeof DATA);
    size_t n;
    const uint8_t *survey = records_survey(s, &n);
    const int added = example_survey_merge(&l, survey, n);
    int rc = added < 0   ? error_nomem(e, "open", n)
             : added > 0 ? error_set(e, STK_EDATA, "open", "its index is damaged; rebuild it with `stoker index`")
                         : STK_OK;
    const bool examples = l.n > 0 && l.examples > l.others;
    if (rc == STK_OK && (examples ? example_columns(&l, c) : columns_add(c, &data)))
        rc = error_nomem(e, "open", 0);
    c->incomplete = examples;
    example_survey_done(&l);
    return rc;
}

/* ------------------------------------------------------------------ reading */

struct reader {
    const struct crc32c *crc;
    bool examples;
    struct example_wanted wanted;
};

static int prepare(const struct source *s, const struct columns *c, void **state, stk_error *e)
{
    struct reader *r = calloc(1, sizeof *r);
    if (!r)
        return error_nomem(e, "open", sizeof *r);
    *state = r;
    r->crc = crc32c_choose(STK_CPU_DEFAULT);
    r->examples = c->n != 1 || !c->items[0].whole;
    example_want(&r->wanted, s, c);
    return STK_OK;
}

static int parse(const struct source *s, struct reading *r, const struct record *rec, stk_error *e)
{
    const struct reader *reader = records_state(s);
    size_t n;
    const uint8_t *p = verified_data(reader->crc, rec, &n);
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

bool source_tfrecord_is(const uint8_t *p, size_t n)
{
    uint64_t length;
    return n >= TFRECORD_HEAD && tfrecord_head(crc32c_choose(STK_CPU_DEFAULT), p, &length);
}

/* zlib has no signature, only a checksum of its first two bytes, which a record header may match by chance. */
static enum stream_form compression(const uint8_t *first, size_t n)
{
    if (source_tfrecord_is(first, n))
        return STREAM_PLAIN;
    const bool zlib = n >= 2 && (first[0] & 15) == 8 && (first[0] << 8 | first[1]) % 31 == 0;
    return zlib ? STREAM_ZLIB : stream_form_of(first, n);
}

int source_tfrecord_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                         stk_error *e)
{
    static const struct record_format formats[] = {{.kind = "TFRecord files",
                                                    .id = 0x54460002,
                                                    .compression = compression,
                                                    .scan = scan,
                                                    .join = join,
                                                    .find_columns = find_columns,
                                                    .prepare = prepare,
                                                    .parse = parse},
                                                   {.kind = "TFRecord files",
                                                    .id = 0x54460003,
                                                    .compression = compression,
                                                    .scan = scan_pack,
                                                    .join = join,
                                                    .find_columns = find_columns,
                                                    .prepare = prepare,
                                                    .parse = parse}};
    if (query)
        return error_set(e, STK_EUSAGE, "open", "TFRecord files take no query; remove the ? and the text after it");
    return source_records_open(s, o, &formats[s->is_pack], paths, e);
}
