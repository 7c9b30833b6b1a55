/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_text.c -- lines of text files as samples: text:corpus-*.txt
 *
 * A line ends with \n or \r\n, which is not part of it. The last line may end with the file. Empty lines are samples
 * too, so that line i of a file is sample i. A byte order mark at the start of a file is skipped.
 */
#include <string.h>

#include "base/error.h"
#include "source/records.h"

static const char NAME[] = "text";

struct line {
    int64_t begin;
    bool cr; /* the byte before the window was \r */
};

static int add(struct record_scan *sc, struct line *l, int64_t end, bool cr)
{
    const int64_t bytes = end - l->begin - (cr && end > l->begin);
    if (record_begin(sc, NULL, 0))
        return -1;
    return record_part(sc, NAME, sizeof NAME - 1, (struct part){l->begin, bytes}, NULL);
}

/* Adds the lines that end in the n bytes at `at`; n > 0. */
static int add_lines(struct record_scan *sc, struct line *l, int64_t at, const uint8_t *p, size_t n)
{
    const uint8_t *const end = p + n, *from = p;
    for (const uint8_t *q; (q = memchr(from, '\n', (size_t)(end - from))) != NULL; from = q + 1) {
        if (add(sc, l, at + (q - p), q > p ? q[-1] == '\r' : l->cr))
            return -1;
        l->begin = at + (q - p) + 1;
    }
    l->cr = end[-1] == '\r';
    return 0;
}

static int scan(struct record_scan *sc, stk_error *e)
{
    struct line l = {0};
    int64_t at = 0;
    int rc = 0;
    for (size_t got = 1; rc == 0 && got > 0; at += (int64_t)got) {
        const uint8_t *p = record_peek(sc, at, RECORD_PEEK, &got);
        if (at == 0 && got >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
            l.begin = 3;
        if (got > 0)
            rc = add_lines(sc, &l, at, p, got);
    }
    if (rc == 0 && record_failed(sc, e))
        return e->code;
    if (rc == 0 && l.begin < at)
        rc = add(sc, &l, at, false);
    return rc == 0 ? STK_OK : error_nomem(e, "open", RECORD_PEEK);
}

static const struct record_format format = {.kind = "lines of text", .id = 7, .scan = scan};

int source_text_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                     stk_error *e)
{
    if (query)
        return error_set(e, STK_EUSAGE, "open", "lines of text take no query; remove the ? and the text after it");
    return source_records_open(s, o, &format, paths, e);
}
