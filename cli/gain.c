/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gain.c -- measures how much faster a pack is than its source.
 *
 * Reads both in turns, so that other load slows both. The first batches are not counted, because files and threads are
 * still cold.
 */
#include "gain.h"

#include <stddef.h>

#include "out.h"
#include "stop.h"

static const char ops[] = "RandomResizedCrop(224) | RandomHorizontalFlip";

struct meter {
    stk_loader *loader;
    int64_t images;
    double seconds;
};

static int open_meter(struct meter *m, const stk_options *from, const char *pack)
{
    stk_options o = *from;
    stk_error e;
    o.ops = ops;
    o.fields = "image";
    o.dtype = STK_UINT8;
    o.batch_size = 32;
    o.shuffle = 1;
    o.take = 512;
    o.on_error = STK_SKIP;
    o.max_bad = 1;
    o.cache_dir = "off";
    o.log = NULL;
    if (pack) {
        o.source = pack;
        o.sources = NULL;
        o.n_sources = 0;
        o.source_fields = NULL;
    }
    return stk_open(&m->loader, &o, &e);
}

/* Reads for `seconds`, over as many epochs as it takes. Returns non-zero on an error or a stop. */
static int run(struct meter *m, double seconds, int counts)
{
    const double began = out_clock();
    int64_t images = 0;
    int rc = STK_OK;
    for (int empty = 0; out_clock() - began < seconds && empty < 2 && !stop_asked();) {
        stk_batch *b;
        stk_error e;
        rc = stop_next(m->loader, &b, &e);
        if (rc != STK_OK && rc != STK_END)
            return rc;
        empty = rc == STK_END ? empty + 1 : 0;
        images += rc == STK_OK ? stk_samples(b) : 0;
        if (rc == STK_OK)
            stk_release(b);
    }
    m->images += counts ? images : 0;
    m->seconds += counts ? out_clock() - began : 0;
    return stop_asked();
}

struct gain gain_measure(const stk_options *source, const char *pack)
{
    enum { TURNS = 4 };
    struct meter before = {0}, after = {0};
    struct gain g = {0};
    int rc = open_meter(&before, source, NULL) || open_meter(&after, source, pack);
    rc = rc || run(&before, 0.1, 0) || run(&after, 0.1, 0);
    for (int i = 0; i < TURNS && !rc; i++)
        rc = run(&before, 0.2, 1) || run(&after, 0.2, 1);
    if (!rc && before.images > 0 && after.images > 0)
        g = (struct gain){(double)before.images / before.seconds, (double)after.images / after.seconds};
    stk_close(before.loader);
    stk_close(after.loader);
    return g;
}
