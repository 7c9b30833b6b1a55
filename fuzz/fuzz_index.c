/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_index.c -- the file of a cached index. Its checksum is corrected first, so that its content is parsed. An index
 * that is accepted must be safe to use.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "source/index.h"

static void make_right(uint8_t *block, size_t size)
{
    struct index_head *h = (void *)block;
    if (size < sizeof *h)
        return;
    h->magic = INDEX_MAGIC;
    h->bytes = size;
    if (h->n > (size - sizeof *h) / sizeof(int64_t))
        return;
    const size_t sizes_end = sizeof *h + (size_t)h->n * sizeof(int64_t);
    h->checksum = index_checksum(h, (const void *)(h + 1), block + sizes_end, size - sizes_end);
}

static void use(const struct index *x)
{
    char path[64];
    struct index_sum sum;
    for (int64_t i = 0; i < (int64_t)x->head->n; i++) {
        index_path(x, i, path, sizeof path);
        index_label(x, i);
    }
    for (int64_t i = 0; i < (int64_t)x->head->n_classes; i++)
        if (strlen(index_class(x, i)) > x->head->pool_bytes)
            abort();
    index_measure(x, -1, 1, &sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct index x = {0};
    uint8_t *block = malloc(size ? size : 1);
    if (!block)
        return 0;
    memcpy(block, data, size);
    make_right(block, size);
    if (index_adopt(&x, block, size) == 0)
        use(&x);
    free(block);
    return 0;
}
