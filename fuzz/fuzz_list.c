/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_list.c -- lists of every format. The first byte chooses the suffix and whether classes are given; the rest is
 * the list. The result must be consistent. All columns are also read as values.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "source/list_fields.h"

static int text_file(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("list", MFD_CLOEXEC);
    if (fd >= 0 && size > 0 && write(fd, data, size) != (ssize_t)size)
        abort();
    return fd;
}

/* Every string is reachable, and a saved index would be taken back. */
static void check(const struct index *x)
{
    char path[8192];
    for (int64_t i = 0; i < (int64_t)x->head->n; i++) {
        if (index_path(x, i, path, sizeof path) == 0)
            abort();
        if (x->head->n_classes > 0 && x->label && (x->label[i] < 0 || x->label[i] >= (int64_t)x->head->n_classes))
            abort();
    }
    for (int64_t i = 0; i < (int64_t)x->head->n_classes; i++)
        if (strlen(index_class(x, i)) > x->head->pool_bytes)
            abort();
}

/* All columns as fields, and every row of them. */
static void read_values(struct list *l)
{
    struct list_fields *f = NULL;
    struct source s = {0};
    struct reading r = {0};
    stk_error e = {0};
    if (list_names_files(l, &e) < 0 || list_fields_open(&f, l, false, &e) != STK_OK)
        require(e.code != STK_OK && e.text[0]);
    else if (columns_bind(&s, &f->columns, NULL, &e) == STK_OK)
        for (int64_t i = 0; i < f->n; i++) {
            size_t sum = 0;
            const int rc = list_fields_read(f, &s, &r, i, &e);
            for (int k = 0; k < s.n_fields && rc == STK_OK; k++)
                for (size_t b = 0; r.cells[k].bytes && b < r.cells[k].n; b++)
                    sum += r.cells[k].bytes[b];
            require((rc == STK_OK || e.text[0]) && sum < SIZE_MAX);
        }
    list_fields_free(f);
    buf_done(&r.derived);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const suffixes[] = {"l.txt", "l.csv", "l.tsv", "l.jsonl", "l"};
    if (size == 0)
        return 0;
    struct list l = {.name = suffixes[(data[0] & 0x7f) % 5], .dir = -1, .lines.fd = text_file(data + 1, size - 1)};
    struct names given = {0};
    uint32_t number;
    if (data[0] & 0x80 && (names_add(&given, "cat", 3, &number) < 0 || names_add(&given, "dog", 3, &number) < 0))
        abort();
    struct index x = {0};
    stk_error e = {0};
    if (list_detect(&l, &e) == 0 && list_index(&l, &given, &x, &e) == 0)
        check(&x);
    else if (e.code == STK_OK || e.text[0] == 0)
        abort();
    list_rewind(&l);
    if (list_detect(&l, &e) == 0)
        read_values(&l);
    index_done(&x);
    names_done(&given);
    close(l.lines.fd);
    list_done(&l);
    return 0;
}
