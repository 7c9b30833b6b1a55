/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archives.h -- a source of shards as text, for tests: every sample with its label and its fields.
 *
 *     CHECK_STR(shown("a.tar", NULL), "cat/1 [0] image=... | dog/2 [1] !reason | ");
 */
#ifndef ARCHIVES_H
#define ARCHIVES_H

#include "base/buf.h"
#include "source/source.h"
#include "support/temp_tree.h"
#include "test.h"

static stk_error archive_error;

static inline void show_sample(struct buf *b, const struct source *s, struct reading *r, int64_t i)
{
    char key[PATH_MAX];
    source_key(s, i, key, sizeof key);
    buf_printf(b, "%s", key);
    if (source_label(s, i) >= 0)
        buf_printf(b, " [%d]", (int)source_label(s, i));
    stk_error e;
    if (source_read(s, r, i, &e) != STK_OK) {
        buf_printf(b, " !%s | ", e.reason);
        return;
    }
    for (int f = 0; f < source_n_fields(s); f++) {
        const struct cell *c = &r->cells[f];
        if (source_field(s, f)->column >= 0 && c->bytes)
            buf_printf(b, " %s=%.*s", source_field(s, f)->name, (int)c->n, (const char *)c->bytes);
    }
    buf_printf(b, " | ");
}

/* The source below the temporary folder as text; if it cannot be opened, "!" and the reason. Valid until the next call.
 * */
static inline const char *shown(const char *below, const char *fields)
{
    static struct buf b;
    struct source *s;
    struct reading r = {0};
    b.len = 0;
    const struct source_options o = {.path = temp_path(below), .fields = fields, .threads = 2, .cache_dir = "off"};
    if (source_open(&s, &o, &archive_error) != STK_OK)
        buf_printf(&b, "!%s", archive_error.reason);
    for (int64_t i = 0; archive_error.code == STK_OK && i < source_count(s); i++)
        show_sample(&b, s, &r, i);
    source_close(s);
    archive_error = (stk_error){0};
    reading_done(&r);
    return b.len > 0 ? (const char *)b.data : "";
}

#endif
