/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_fields.c -- the text of `fields`, bound to the columns of a source; and an index of records from a damaged file.
 *
 * The first byte chooses: text, or the block of an index. The block's checksum is corrected, so that its content is
 * parsed.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "source/columns.h"
#include "source/records_index.h"

static void bind(const uint8_t *p, size_t n)
{
    static const struct column some[] = {
        {.name = "jpg", .kind = STK_IMAGE},
        {.name = "cls", .kind = STK_INT, .dtype = STK_INT64, .label = true},
        {.name = "x", .kind = STK_TENSOR, .dtype = STK_FLOAT32, .ndim = 2, .shape = {2, -1}},
        {.name = "txt", .kind = STK_TEXT},
    };
    struct columns c = {0};
    struct source s = {0};
    stk_error e;
    char *text = malloc(n + 1), written[1024];
    if (!text)
        return;
    memcpy(text, p, n);
    text[n] = 0;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        columns_add(&c, &some[i]);
    if (columns_bind(&s, &c, text, &e) == STK_OK)
        source_fields_text(&s, written, sizeof written);
    columns_done(&c);
    free(text);
}

static void adopt(const uint8_t *p, size_t n)
{
    struct records_index x = {0};
    uint8_t *block = malloc(n + 1);
    if (!block)
        return;
    memcpy(block, p, n);
    if (n >= sizeof(struct records_head)) {
        struct records_head *h = (void *)block;
        h->magic = RECORDS_MAGIC;
        h->bytes = n;
        x.head = h;
        records_seal(&x);
    }
    if (records_adopt(&x, block, n) != 0) {
        free(block);
        return;
    }
    for (int64_t i = 0; i < (int64_t)x.head->n && i < 64; i++) {
        records_shard(&x, i);
        records_bad_reason(&x, &x.parts[(uint64_t)i * x.head->n_parts]);
        if (x.key_at)
            (void)strlen(x.pool + x.key_at[i]);
    }
    records_done(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n == 0)
        return 0;
    if (p[0] & 1)
        bind(p + 1, n - 1);
    else
        adopt(p + 1, n - 1);
    return 0;
}
