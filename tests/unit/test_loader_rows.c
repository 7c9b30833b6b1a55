/* SPDX-License-Identifier: Apache-2.0 */
/* test_loader_rows.c -- rows that need no decoding are the same from a cache: pixels, fields and labels; and which are
 * not kept. */
#include "stoker.h"
#include "support/npy_files.h"
#include "support/tars.h"

enum { ROWS = 24 };

struct run {
    uint64_t hash;
    stk_stats stats;
    char explained[4000];
};

static uint64_t hash_batch(const stk_batch *b, uint64_t h)
{
    for (int f = 0; f < stk_batch_n_fields(b); f++) {
        const stk_array *a = stk_field_at(b, f);
        size_t n = a->dtype == STK_FLOAT32 || a->dtype == STK_INT32 ? 4 : a->dtype == STK_INT64 ? 8 : 1;
        for (int i = 0; i < a->ndim; i++)
            n *= (size_t)a->shape[i];
        h = stk_hash(a->data, n, h);
    }
    return h;
}

/* Three epochs; the op of some sees the labels, which must be known without reading. */
static struct run run_loader(stk_options o, stk_cache cache)
{
    struct run r = {0};
    stk_loader *l;
    stk_batch *b;
    o.batch_size = 5;
    o.threads = 1;
    o.shuffle = 1;
    o.memory = o.memory ? o.memory : 64 << 20;
    o.on_error = STK_SKIP;
    o.max_bad = 1;
    o.cache = cache;
    o.cache_dir = o.cache_dir ? o.cache_dir : "off";
    CHECK_EQ(stk_open(&l, &o, &error), STK_OK);
    for (int epoch = 0; l && epoch < 3; epoch++)
        while (stk_next(l, &b, NULL) == STK_OK) {
            r.hash = hash_batch(b, r.hash);
            stk_release(b);
        }
    if (l) {
        stk_stats_get(l, &r.stats);
        stk_explain(l, r.explained, sizeof r.explained);
        stk_close(l);
    }
    return r;
}

static void same_from_a_cache(const stk_options *o, int64_t rows)
{
    static const stk_cache kinds[] = {STK_CACHE_BYTES, STK_CACHE_DCT, STK_CACHE_PIXELS, STK_CACHE_AUTO};
    const struct run plain = run_loader(*o, STK_CACHE_NONE);
    CHECK_EQ(plain.stats.cache_entries, 0);
    for (int k = 0; k < 4; k++) {
        const struct run kept = run_loader(*o, kinds[k]);
        CHECK(kept.hash == plain.hash);
        CHECK_EQ(kept.stats.bad, plain.stats.bad);
        CHECK_EQ(kept.stats.cache_entries, rows);
        CHECK(kept.stats.cache_hits >= 2 * rows);
        CHECK(strstr(kept.explained, "cache      bytes in memory (rows as the source returns them"));
    }
}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 7 + (i >> 5));
}

static void arrays_in_files(void)
{
    temp_begin();
    uint8_t data[ROWS * 4 * 12];
    fill(data, sizeof data);
    npy_file("x.npy", "<i4", "False", "(24, 12)", data, sizeof data);
    npy_file("y.npy", "|u1", "False", "(24,)", data, ROWS);
    char name[PATH_MAX + 64];
    snprintf(name, sizeof name, "npy:%s?label=y.npy", temp_path("x.npy"));
    const stk_options o = {.source = name};
    same_from_a_cache(&o, ROWS);
    temp_end();
}

/* Of one channel and of three: ops, with draws of their own in every epoch. */
static void pixels_before_their_ops(void)
{
    temp_begin();
    uint8_t data[ROWS * 6 * 7 * 3];
    fill(data, sizeof data);
    npy_file("rgb.npy", "|u1", "False", "(24, 6, 7, 3)", data, sizeof data);
    npy_file("grey.npy", "|u1", "False", "(24, 6, 7, 1)", data, sizeof data / 3);
    static const char *const names[] = {"rgb.npy", "grey.npy"};
    for (int i = 0; i < 2; i++) {
        const stk_options o = {.source = temp_path(names[i]), .ops = "RandomCrop(4) | RandomHorizontalFlip"};
        same_from_a_cache(&o, ROWS);
    }
    temp_end();
}

/* Every fifth text is too short for a row of six: those samples are bad in every epoch. */
static void make_tar(void)
{
    struct tars t = {0};
    char name[32], text[32];
    for (int i = 0; i < ROWS; i++) {
        snprintf(name, sizeof name, "%02d.txt", i);
        snprintf(text, sizeof text, i % 5 == 4 ? "row" : "row %02d", i);
        tars_text(&t, name, text);
        snprintf(name, sizeof name, "%02d.cls", i);
        snprintf(text, sizeof text, "%d", i);
        tars_text(&t, name, text);
    }
    tars_end(&t);
    temp_bytes("a.tar", t.bytes.data, t.bytes.len);
    buf_done(&t.bytes);
}

static void fields_of_shards(void)
{
    temp_begin();
    make_tar();
    const stk_options o = {.source = temp_path("a.tar"), .fields = "x=txt:uint8(6), y=cls:int"};
    same_from_a_cache(&o, ROWS - ROWS / 5);
    temp_end();
}

static int op_of_label(void *user, const stk_row *row, stk_error *e)
{
    (void)user;
    (void)e;
    *(uint8_t *)row->image->data = (uint8_t)row->label;
    return STK_OK;
}

static void ops_are_told_the_label(void)
{
    temp_begin();
    uint8_t data[ROWS * 12];
    fill(data, sizeof data);
    npy_file("x.npy", "|u1", "False", "(24, 12)", data, sizeof data);
    npy_file("y.npy", "|u1", "False", "(24,)", data, ROWS);
    char name[PATH_MAX + 64];
    snprintf(name, sizeof name, "npy:%s?label=y.npy", temp_path("x.npy"));
    const stk_op_hook op = {.run = op_of_label};
    const stk_options o = {.source = name, .op = &op};
    same_from_a_cache(&o, ROWS);
    temp_end();
}

static void some_are_not_kept(void)
{
    temp_begin();
    make_tar();
    const stk_options ragged = {.source = temp_path("a.tar"), .fields = "x=txt:text"};
    struct run r = run_loader(ragged, STK_CACHE_BYTES);
    CHECK(strstr(r.explained, "cache      none (samples without an image are kept only if all have the same length"));
    CHECK(r.hash == run_loader(ragged, STK_CACHE_NONE).hash);

    char cache[PATH_MAX];
    snprintf(cache, sizeof cache, "%s", temp_path("cache"));
    const stk_options fixed = {.source = temp_path("a.tar"), .fields = "x=txt:uint8(6)", .cache_dir = cache};
    r = run_loader(fixed, STK_CACHE_BYTES);
    CHECK(strstr(r.explained, "cache      bytes in memory")); /* a folder would be no faster than the shard */
    CHECK_EQ(r.stats.cache_entries, ROWS - ROWS / 5);
    CHECK_EQ(r.stats.cache_disk_bytes, 0);
    temp_end();
}

int main(int argc, char **argv)
{
    TESTS(T(arrays_in_files), T(pixels_before_their_ops), T(fields_of_shards), T(ops_are_told_the_label),
          T(some_are_not_kept))
}
