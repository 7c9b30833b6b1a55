/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_example.c -- any bytes as a tf.train.Example. Every feature is visited, measured and converted. A search by name
 * finds the last feature of that name.
 */
#include <string.h>

#include "format/example.h"
#include "fuzz.h"

static void make(struct feature *f)
{
    struct buf json = {0};
    if (!feature_measure(f))
        return;
    const size_t room = feature_room(f);
    require(room <= f->n * 8); /* a byte makes a number of eight at the most */
    uint8_t *to = malloc(room ? room : 1);
    const bool made = feature_make(f, to);
    require(made || f->kind == FEATURE_INTS);
    if (made && f->whole)
        require(f->bytes == room && memcmp(to, f->whole, room) == 0);
    if (f->kind == FEATURE_BYTES)
        require(feature_json(f, &json));
    if (f->each >= 0)
        require((uint64_t)f->each * (uint64_t)f->n_steps == f->count);
    buf_done(&json);
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct example_walk w;
    struct example_entry x, last = {0};
    struct feature found[FIELD_MAX];
    int rc;
    example_begin(&w, data, size);
    while ((rc = example_next(&w, &x)) > 0) {
        make(&x.feature);
        last = x;
    }
    /* Names are asked for once each. */
    const bool other = last.name_bytes != 5 || memcmp(last.name, "label", 5) != 0;
    const struct example_names names = {.of = {{(const char *)last.name, last.name_bytes}, {"label", 5}},
                                        .n = other ? 2 : 1};
    const bool good = example_find(&names, data, size, found);
    require(good == (rc == 0));
    if (good && last.name)
        require(found[0].p == last.feature.p || last.feature.steps);
    return 0;
}
