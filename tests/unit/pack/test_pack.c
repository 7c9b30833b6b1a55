/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pack.c -- packing: stopped after every sample and resumed it ends with the same bytes; arrays, fields, names;
 * what is refused.
 */
#include "format/tar.h"
#include "pack/journal.h"
#include "pack/keys.h"
#include "stoker.h"
#include "support/temp_tree.h"
#include "test.h"

enum { SAMPLES = 9 };

static void put_png(const char *name, int seed)
{
    uint8_t px[20 * 16 * 3];
    for (size_t k = 0; k < sizeof px; k++)
        px[k] = (uint8_t)(k * 5 + (size_t)seed * 37);
    void *bytes = NULL;
    size_t n = 0;
    const stk_encode_options o = {.format = STK_PNG};
    CHECK_EQ(stk_encode(px, 20, 16, 3, 60, &o, &bytes, &n, NULL), STK_OK);
    temp_bytes(name, bytes, n);
    stk_free(bytes);
}

static void make_set(void)
{
    char name[64];
    for (int i = 0; i < SAMPLES; i++) {
        snprintf(name, sizeof name, "set/%c/p.%d.png", 'a' + i % 3, i);
        put_png(name, i);
    }
}

struct stopping {
    int64_t after, seen;
};

static int stop_after(void *user, const stk_pack_report *r)
{
    struct stopping *s = user;
    (void)r;
    return ++s->seen >= s->after;
}

static int pack_to(const char *out, const stk_pack_options *how, stk_pack_report *r, stk_error *e)
{
    char source[4096], target[4096];
    snprintf(source, sizeof source, "%s", temp_path("set"));
    snprintf(target, sizeof target, "%s", temp_path(out));
    const stk_options o = {.source = source, .threads = 2, .cache_dir = "off"};
    stk_pack_options p = *how;
    p.out = target;
    return stk_pack(&o, &p, r, e);
}

static int same_files(const char *a, const char *b)
{
    char command[9000];
    snprintf(command, sizeof command, "diff -r %s %s >/dev/null", temp_path(a), temp_path(b));
    return system(command) == 0;
}

static void resumes(void)
{
    temp_begin();
    make_set();
    stk_error e = {0};
    stk_pack_report r;
    const stk_pack_options whole = {.shard_size = 4096};
    CHECK_EQ(pack_to("whole", &whole, &r, &e), STK_OK);
    CHECK_EQ(r.samples, SAMPLES);
    CHECK(r.shards > 2);
    for (int64_t step = 1; step <= SAMPLES; step += 2) {
        struct stopping s = {.after = step};
        stk_pack_options o = {.shard_size = 4096, .progress = stop_after, .user = &s};
        int rc, runs = 0;
        do {
            s.seen = 0;
            rc = pack_to("parts", &o, &r, &e);
            s.after++; /* a shard has several samples: the same number would never end */
        } while (rc == STK_STOPPED && ++runs < 40);
        CHECK_EQ(rc, STK_OK);
        CHECK_EQ(r.samples, SAMPLES);
        CHECK(same_files("whole", "parts"));
        char command[5000];
        snprintf(command, sizeof command, "rm -r %s", temp_path("parts"));
        CHECK_EQ(system(command), 0);
    }
    temp_end();
}

/* A shard that is missing or truncated is written again, with those after it. */
static void shards_are_looked_at(void)
{
    temp_begin();
    make_set();
    stk_error e = {0};
    stk_pack_report r;
    struct stopping s = {.after = SAMPLES - 1};
    const stk_pack_options stopped = {.shard_size = 4096, .progress = stop_after, .user = &s};
    const stk_pack_options whole = {.shard_size = 4096};
    CHECK_EQ(pack_to("parts", &stopped, &r, &e), STK_STOPPED);
    CHECK_EQ(truncate(temp_path("parts/shard-000001.tar"), 100), 0);
    CHECK_EQ(pack_to("parts", &whole, &r, &e), STK_OK);
    CHECK(r.resumed > 0 && r.resumed < SAMPLES - 1);
    CHECK_EQ(pack_to("whole", &whole, &r, &e), STK_OK);
    CHECK(same_files("whole", "parts"));
    temp_end();
}

/* Whether the pack's index is found beside its shards, without any cache. */
static int index_is_found(const char *pack)
{
    char path[4096];
    stk_error e = {0};
    stk_source *source = NULL;
    stk_overview v;
    snprintf(path, sizeof path, "%s", temp_path(pack));
    const stk_source_options o = {.source = path, .threads = 1, .cache_dir = "off"};
    CHECK_EQ(stk_source_open(&source, &o, &e), STK_OK);
    stk_source_overview(source, &v);
    stk_source_close(source);
    return v.index_cached;
}

static void the_index_comes_with_it(void)
{
    temp_begin();
    make_set();
    stk_error e = {0};
    stk_pack_report r;
    const stk_pack_options how = {.shard_size = 4096};
    const struct timespec later[2] = {{.tv_sec = INT32_MAX}, {.tv_sec = INT32_MAX}};
    CHECK_EQ(pack_to("a", &how, &r, &e), STK_OK);
    CHECK(index_is_found("a"));
    CHECK_EQ(utimensat(AT_FDCWD, temp_path("a/shard-000001.tar"), later, 0), 0);
    CHECK(!index_is_found("a")); /* a shard is younger */
    CHECK_EQ(pack_to("whole", &how, &r, &e), STK_OK);
    char command[9000];
    snprintf(command, sizeof command, "cd %s && mv .stoker-*.index .stoker-0.index.1.2.tmp", temp_path("whole"));
    CHECK_EQ(system(command), 0); /* as if killed while writing it */
    CHECK(!index_is_found("whole"));
    CHECK_EQ(pack_to("whole", &how, &r, &e), STK_OK);
    CHECK(index_is_found("whole"));
    CHECK(same_files("a", "whole"));
    temp_end();
}

/* A file of the user that has the name of a trial is not removed. */
static void links_are_not_followed(void)
{
    temp_begin();
    make_set();
    stk_error e = {0};
    stk_pack_report r;
    const stk_pack_options how = {.shard_size = 4096};
    char victim[4096];
    temp_file("victim/mine", "x");
    temp_dir("out");
    snprintf(victim, sizeof victim, "%s", temp_path("victim"));
    CHECK_EQ(symlink(victim, temp_path("out/.stoker-trial")), 0);
    CHECK_EQ(pack_to("out", &how, &r, &e), STK_OK);
    CHECK(access(temp_path("victim/mine"), F_OK) == 0);
    CHECK_EQ(unlink(temp_path("out/.stoker-trial")), 0);
    CHECK_EQ(pack_to("other", &how, &r, &e), STK_OK);
    CHECK(same_files("out", "other"));
    char command[5000];
    snprintf(command, sizeof command, "! ls -A %s | grep -q trial", temp_path("out"));
    CHECK_EQ(system(command), 0); /* its own folder is gone */
    temp_end();
}

/* Files of a killed run are not part of the pack, however new they are: the lock of the journal shows that
 * it has ended. */
static void leftovers_are_removed(void)
{
    temp_begin();
    make_set();
    stk_error e = {0};
    stk_pack_report r;
    const stk_pack_options tar = {.shard_size = 4096}, folder = {.to = STK_TO_FOLDER};
    char victim[4096];
    CHECK_EQ(pack_to("t1", &tar, &r, &e), STK_OK);
    CHECK_EQ(pack_to("f1", &folder, &r, &e), STK_OK);
    temp_file("victim/mine", "x");
    temp_file("t2/.stoker-trial-abcdef/shard-000000.tar", "x");
    snprintf(victim, sizeof victim, "%s", temp_path("victim"));
    CHECK_EQ(symlink(victim, temp_path("t2/.stoker-trial-ghijkl")), 0);
    temp_file("f2/.stoker-0123456789abcdef.part", "x");
    CHECK_EQ(pack_to("t2", &tar, &r, &e), STK_OK);
    CHECK_EQ(pack_to("f2", &folder, &r, &e), STK_OK);
    CHECK(access(temp_path("victim/mine"), F_OK) == 0);
    CHECK_EQ(unlink(temp_path("t2/.stoker-trial-ghijkl")), 0);
    CHECK(same_files("t1", "t2"));
    CHECK(same_files("f1", "f2"));
    temp_end();
}

static void refuses(void)
{
    temp_begin();
    make_set();
    stk_error e = {0};
    CHECK_EQ(pack_to("x", &(stk_pack_options){.quality = 101}, NULL, &e), STK_EUSAGE);
    CHECK_EQ(pack_to("x", &(stk_pack_options){.resize_short = 8, .resize_long = 8}, NULL, &e), STK_EUSAGE);
    CHECK_EQ(pack_to("x", &(stk_pack_options){.to = (stk_to)77}, NULL, &e), STK_EUSAGE);
    CHECK_EQ(pack_to("x", &(stk_pack_options){.shard_size = -1}, NULL, &e), STK_EUSAGE);
    CHECK_EQ(pack_to("", &(stk_pack_options){.as = STK_AS_RAW, .to = STK_TO_NPY}, NULL, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "other files") != NULL);
    CHECK_EQ(stk_pack(&(stk_options){.source = "x"}, NULL, NULL, &e), STK_EUSAGE);
    CHECK(access(temp_path("x"), F_OK) != 0);
    temp_end();
}

static void arrays(void)
{
    temp_begin();
    uint8_t px[3][8][6][3] = {{{{0}}}};
    int64_t y[3] = {4, -1, 6};
    float extra[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    const int64_t image[] = {3, 8, 6, 3}, one[] = {3}, two[] = {3, 2};
    const stk_array a[] = {{.name = "image", .data = px, .dtype = STK_UINT8, .ndim = 4, .shape = image},
                           {.name = "label", .data = y, .dtype = STK_INT64, .ndim = 1, .shape = one},
                           {.name = "extra", .data = extra, .dtype = STK_FLOAT32, .ndim = 2, .shape = two}};
    const stk_options o = {.arrays = a, .n_arrays = 3, .threads = 2};
    char target[4096];
    snprintf(target, sizeof target, "%s", temp_path("out"));
    stk_error e = {0};
    stk_pack_report r;
    CHECK_EQ(stk_pack(&o, &(stk_pack_options){.out = target}, &r, &e), STK_OK);
    CHECK_STR(e.text, "");
    char command[9000];
    snprintf(command, sizeof command, "test \"$(tar tf %s/shard-000000.tar | tr '\\n' ' ')\" = \"%s\"", target,
             "000000000.npy 000000000.cls 000000000.extra.npy 000000001.npy 000000001.cls 000000001.extra.npy "
             "000000002.npy 000000002.cls 000000002.extra.npy ");
    CHECK_EQ(system(command), 0);

    /* By way of arrays it becomes the same. */
    static const stk_to by_way_of[] = {STK_TO_HDF5, STK_TO_NPY};
    for (int i = 0; i < 2; i++) {
        char way[4096], back[4096];
        snprintf(way, sizeof way, "%s", temp_path(i ? "npy" : "hdf5"));
        snprintf(back, sizeof back, "%s", temp_path(i ? "of_npy" : "of_hdf5"));
        CHECK_EQ(stk_pack(&o, &(stk_pack_options){.out = way, .to = by_way_of[i], .as = STK_AS_RAW}, &r, &e), STK_OK);
        const stk_options arrays = {.source = way, .threads = 2, .cache_dir = "off"};
        CHECK_EQ(stk_pack(&arrays, &(stk_pack_options){.out = back}, &r, &e), STK_OK);
        CHECK_STR(e.text, "");
        snprintf(command, sizeof command, "cmp %s/shard-000000.tar %s/shard-000000.tar", target, back);
        CHECK_EQ(system(command), 0);
    }

    /* A pack is a source: its other fields are packed with the pixels. With other fields, it is another pack. */
    char again[4096];
    snprintf(again, sizeof again, "%s", temp_path("again"));
    stk_options from = {.source = target, .threads = 2, .cache_dir = "off"};
    CHECK_EQ(stk_pack(&from, &(stk_pack_options){.out = again}, &r, &e), STK_OK);
    snprintf(command, sizeof command, "cmp %s/shard-000000.tar %s/shard-000000.tar", target, again);
    CHECK_EQ(system(command), 0);
    from.fields = "image, label";
    CHECK_EQ(stk_pack(&from, &(stk_pack_options){.out = again}, &r, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "fields=") != NULL);
    temp_end();
}

/* A value that an Example cannot hold is refused, not converted. */
static void large_integers(void)
{
    temp_begin();
    uint64_t v[2] = {7, UINT64_C(1) << 63};
    const int64_t shape[] = {2};
    const stk_array a = {.name = "v", .data = v, .dtype = STK_UINT64, .ndim = 1, .shape = shape};
    const stk_options o = {.arrays = &a, .n_arrays = 1, .threads = 1};
    char out[4096];
    stk_error e = {0};
    snprintf(out, sizeof out, "%s", temp_path("out"));
    CHECK_EQ(stk_pack(&o, &(stk_pack_options){.out = out, .to = STK_TO_TFRECORD}, NULL, &e), STK_EDATA);
    CHECK_EQ(e.sample, 1);
    CHECK(strstr(e.text, "v has the value 9223372036854775808") != NULL);
    v[1] = INT64_MAX;
    CHECK_EQ(stk_pack(&o, &(stk_pack_options){.out = out, .to = STK_TO_TFRECORD}, NULL, &e), STK_OK);
    temp_end();
}

/* Keys are read back, cut off if the room is too small. */
static void keys_of_arrays(void)
{
    temp_begin();
    make_set();
    static const stk_to to[] = {STK_TO_HDF5, STK_TO_NPY};
    for (int i = 0; i < 2; i++) {
        char key[16] = "", out[4096];
        stk_error e = {0};
        stk_source *s = NULL;
        CHECK_EQ(pack_to("out", &(stk_pack_options){.to = to[i], .as = STK_AS_RAW, .force = 1}, NULL, &e), STK_OK);
        snprintf(out, sizeof out, "%s", temp_path("out"));
        CHECK_EQ(stk_source_open(&s, &(stk_source_options){.source = out, .cache_dir = "off"}, &e), STK_OK);
        CHECK_EQ(stk_source_key(s, 1, NULL, 0), 9);
        CHECK_EQ(stk_source_key(s, 1, key, 4), 9);
        CHECK_STR(key, "a/p");
        CHECK_EQ(stk_source_key(s, 1, key, sizeof key), 9);
        CHECK_STR(key, "a/p.3.png");
        stk_source_close(s);
    }
    temp_end();
}

static int take_label(void *user, const char *name, stk_kind kind, const stk_cell *c)
{
    (void)kind;
    if (strcmp(name, "label") == 0 && c->dtype == STK_FLOAT32 && c->n == sizeof(float))
        memcpy(user, c->bytes, c->n);
    return 0;
}

/* Labels that `fields` gives another type are written with it, and read back. */
static void labels_of_a_type(void)
{
    temp_begin();
    uint8_t px[3][8][6][3] = {{{{0}}}};
    int64_t y[3] = {4, -1, 6};
    const int64_t image[] = {3, 8, 6, 3}, one[] = {3};
    const stk_array a[] = {{.name = "image", .data = px, .dtype = STK_UINT8, .ndim = 4, .shape = image},
                           {.name = "label", .data = y, .dtype = STK_INT64, .ndim = 1, .shape = one}};
    const stk_options o = {.arrays = a, .n_arrays = 2, .threads = 2, .fields = "image, label:float"};
    static const stk_to to[] = {STK_TO_HDF5, STK_TO_NPY};
    for (int i = 0; i < 2; i++) {
        char out[4096];
        snprintf(out, sizeof out, "%s", temp_path(i ? "npy" : "hdf5"));
        stk_error e = {0};
        stk_pack_report r;
        stk_source *s = NULL;
        CHECK_EQ(stk_pack(&o, &(stk_pack_options){.out = out, .to = to[i], .as = STK_AS_RAW}, &r, &e), STK_OK);
        CHECK_STR(e.text, "");
        const stk_source_options back = {.source = out, .cache_dir = "off"};
        CHECK_EQ(stk_source_open(&s, &back, &e), STK_OK);
        for (int64_t k = 0; s && k < 3; k++) {
            float label = 0;
            CHECK_EQ(stk_source_cells(s, k, take_label, &label, &e), STK_OK);
            CHECK(label == (float)y[k]);
        }
        stk_source_close(s);
    }
    temp_end();
}

static int64_t none(void *user)
{
    (void)user;
    return 0;
}

static int nothing(void *user, int thread, int64_t sample, const void **bytes, size_t *n, int64_t *label, stk_error *e)
{
    (void)user, (void)thread, (void)sample, (void)bytes, (void)n, (void)label, (void)e;
    return STK_EDATA;
}

static void closed(void *user)
{
    ++*(int *)user;
}

/* Hooks are closed once, even if packing was refused before they were used. */
static void hooks_are_closed(void)
{
    int times = 0;
    const stk_read_hooks hooks = {.count = none, .read = nothing, .close = closed, .user = &times};
    const stk_options o = {.read_hooks = &hooks};
    struct {
        stk_pack_options known;
        int later;
    } more = {.known = {.out = "x"}, .later = 1};
    stk_error e = {0};
    CHECK_EQ(stk_pack(&o, &(stk_pack_options){.out = "x", .quality = 101}, NULL, &e), STK_EUSAGE);
    CHECK_EQ(times, 1);
    CHECK_EQ(stk_pack_sized(&o, sizeof o, &more.known, sizeof more, NULL, 0, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "does not know") != NULL);
    CHECK_EQ(times, 2);
    CHECK_EQ(stk_pack(&o, NULL, NULL, &e), STK_EUSAGE);
    CHECK_EQ(times, 3);
}

/* back: the name that the key gives; NULL: the same. */
static void key_of(struct keys *k, const char *name, size_t suffix, const char *want, const char *back)
{
    struct buf b = {0}, found = {0};
    CHECK_EQ(keys_make(k, name, suffix, 17, &b), 0);
    CHECK_STR((const char *)b.data, want);
    CHECK_EQ(keys_name((const char *)b.data, suffix ? name + suffix : "bin", true, &found), 0);
    CHECK_STR((const char *)found.data, back ? back : name);
    buf_done(&b);
    buf_done(&found);
}

static void tidy(const char *name, const char *want)
{
    char got[64];
    snprintf(got, sizeof got, "%s", name);
    keys_tidy(got);
    CHECK_STR(got, want);
}

static void tidy_names(void)
{
    tidy("a/b.jpg", "a/b.jpg");
    tidy("/abs//x.png", "abs/x.png");
    tidy("../../up.png", "up.png");
    tidy("a/../b/./..c/d.png", "b/..c/d.png");
    tidy("./.hidden/x", ".hidden/x");
    tidy("..", "");
    tidy("//", "");
}

static void keys(void)
{
    struct keys k = {0};
    key_of(&k, "cat/1.jpg", 6, "cat/1", NULL);
    key_of(&k, "cat/1.png", 6, "cat/1%2Epng%", NULL);
    key_of(&k, "a.b/c.d.png", 8, "a.b/c%2Ed", NULL);
    key_of(&k, "50%.png", 4, "50%25", NULL);
    key_of(&k, "odd", 0, "odd%", NULL);
    key_of(&k, "d/.png", 3, "d/%2Epng%", NULL);
    key_of(&k, "cat/1.jpg", 6, "cat/1-17", "cat/1-17.jpg");
    key_of(&k, "cat/1.jpg", 6, "cat/1-18", "cat/1-18.jpg");
    key_of(&k, "cat/1.png", 6, "cat/1-17%2Epng%", "cat/1-17.png");
    key_of(&k, "cat/1-18.jpg", 9, "cat/1-18-17", "cat/1-18-17.jpg");
    key_of(&k, "__key__.png", 8, "%5F_key__", NULL);
    key_of(&k, "__a__/__b__.png", 12, "%5F_a__/__b__", NULL);
    key_of(&k, "odd", 0, "odd-17%", "odd-17");
    for (int i = 0; i < 5000; i++) {
        char name[32], want[32];
        snprintf(want, sizeof want, "n%d", i);
        const int n = snprintf(name, sizeof name, "n%d.png", i);
        key_of(&k, name, (size_t)n - 3, want, NULL);
    }
    keys_done(&k);
    CHECK(keys_is_safe("a/b.c/..d"));
    CHECK(!keys_is_safe("../a") && !keys_is_safe("a/../b") && !keys_is_safe("/a") && !keys_is_safe("a//b") &&
          !keys_is_safe("") && !keys_is_safe("a/.") && !keys_is_safe("a/"));
}

/* How many samples a source has; -1: it cannot be opened. */
static int64_t count_of(const char *name, stk_error *e)
{
    char path[4096];
    stk_source *s = NULL;
    snprintf(path, sizeof path, "%s", temp_path(name));
    const int rc = stk_source_open(&s, &(stk_source_options){.source = path, .cache_dir = "off"}, e);
    const int64_t n = rc == STK_OK ? stk_source_count(s) : -1;
    stk_source_close(s);
    return n;
}

/* Names that a format reserves: WebDataset skips __x__/ and __x__, tools skip hidden files. */
static void reserved_names(void)
{
    static const char *const names[] = {"set/__background__/1.png",
                                        "set/__background__/__key__.png",
                                        "set/__MACOSX_/1.png",
                                        "set/a/__x__.png",
                                        "set/a/%5F.png",
                                        "set/a/@7.png",
                                        "set/\xff\xfe/\n.png",
                                        "set/a.b/..c.d.png"};
    enum { N = sizeof names / sizeof names[0] };
    temp_begin();
    for (size_t i = 0; i < N; i++)
        put_png(names[i], (int)i);
    char command[9000];
    stk_error e = {0};
    CHECK_EQ(count_of("set", &e), N - 1); /* ..c.d.png is hidden */
    static const stk_to to[] = {STK_TO_TAR, STK_TO_TFRECORD, STK_TO_HDF5, STK_TO_NPY, STK_TO_FOLDER};
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        CHECK_EQ(pack_to("out", &(stk_pack_options){.to = to[i], .force = 1}, NULL, &e), STK_OK);
        CHECK_EQ(count_of("out", &e), N - 1);
        CHECK_STR(e.text, "");
        snprintf(command, sizeof command, "rm -r %s", temp_path("out"));
        CHECK_EQ(system(command), 0);
    }
    temp_end();
}

static int count_bad(void *user, const char *name, const char *reason, int64_t bytes)
{
    (void)name, (void)bytes;
    if (reason)
        snprintf(user, 200, "%s", reason);
    return 0;
}

/* A pack that holds fewer samples than it states is damaged. */
static void counts_are_compared(void)
{
    temp_begin();
    make_set();
    stk_error e = {0};
    char out[4096], command[9000], reason[200] = "";
    int64_t files = 0;
    snprintf(out, sizeof out, "%s", temp_path("out"));
    CHECK_EQ(pack_to("out", &(stk_pack_options){0}, NULL, &e), STK_OK);
    CHECK_EQ(stk_pack_check(out, count_bad, reason, &files, &e), STK_OK);
    CHECK_STR(reason, "");
    snprintf(command, sizeof command, "sed -i 's/\"samples\": *%d/\"samples\": %d/' %s/stoker.json", SAMPLES,
             SAMPLES + 2, out);
    CHECK_EQ(system(command), 0);
    CHECK_EQ(stk_pack_check(out, count_bad, reason, &files, &e), STK_OK);
    CHECK_STR(reason, "says that the pack has 11 samples, but a reader finds 9");
    temp_end();
}

/* The headers of names of every length are valid. */
static void tar_heads(void)
{
    char name[600];
    memset(name, 'n', sizeof name);
    for (size_t i = 30; i < sizeof name; i += 31)
        name[i] = '/';
    for (size_t n = 1; n < sizeof name; n++) {
        struct buf b = {0};
        CHECK_EQ(tar_out_head(&b, name, n, n), 0);
        CHECK_EQ(b.len % TAR_BLOCK, 0);
        CHECK(n <= 100 ? b.len == TAR_BLOCK : n < 257 || b.len == 3 * TAR_BLOCK || b.len == 4 * TAR_BLOCK);
        for (size_t at = 0; at < b.len; at += TAR_BLOCK) {
            if (memcmp(b.data + at + 257, "ustar", 6) != 0)
                continue;
            unsigned sum = 0, said = 0;
            for (size_t i = 0; i < TAR_BLOCK; i++)
                sum += i >= 148 && i < 156 ? ' ' : b.data[at + i];
            CHECK_EQ(sscanf((const char *)b.data + at + 148, "%o", &said), 1);
            CHECK_EQ(said, sum);
        }
        buf_done(&b);
    }
}

/* A journal that is truncated anywhere lists the shards whose lines are complete. */
static void journals(void)
{
    temp_begin();
    temp_dir("j");
    const int dir = open(temp_path("j"), O_RDONLY | O_DIRECTORY);
    struct journal j;
    stk_error e = {0};
    struct shard_line s = {.name = "shard-000000.tar", .samples = 3, .bytes = 100, .sum = 7, .next = 3};
    CHECK_EQ(journal_open(&j, dir, "a=1\tb=2", &e), STK_OK);
    const int64_t head = j.end;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(journal_add(&j, &s, &e), STK_OK);
    const int64_t line = (j.end - head) / 3;
    CHECK_EQ(journal_open(&(struct journal){0}, dir, "a=1\tb=2", &e), STK_EUSAGE); /* locked */
    journal_done(&j);
    CHECK_EQ(journal_open(&j, dir, "a=1\tb=3", &e), STK_EUSAGE);
    CHECK(strstr(e.text, "b=2") && strstr(e.text, "b=3"));
    journal_done(&j);
    for (int64_t cut = head + 3 * line; cut >= 0; cut--) {
        CHECK_EQ(truncate(temp_path("j/.stoker-pack.journal"), cut), 0);
        CHECK_EQ(journal_open(&j, dir, "a=1\tb=2", &e), STK_OK);
        CHECK_EQ(j.n, cut < head ? 0 : (cut - head) / line);
        journal_done(&j);
    }
    close(dir);
    temp_end();
}

/* With --force nothing remains of the files that an earlier run wrote into a folder; other files stay. */
static void force_replaces_a_folder(void)
{
    temp_begin();
    make_set();
    stk_error e = {0};
    struct stopping s = {.after = SAMPLES - 1};
    CHECK_EQ(pack_to("png", &(stk_pack_options){.to = STK_TO_FOLDER}, NULL, &e), STK_OK);
    CHECK_EQ(pack_to("jpeg", &(stk_pack_options){.to = STK_TO_FOLDER, .as = STK_AS_JPEG}, NULL, &e), STK_OK);
    const stk_pack_options stopped = {
        .to = STK_TO_FOLDER, .as = STK_AS_JPEG, .force = 1, .progress = stop_after, .user = &s};
    CHECK_EQ(pack_to("png", &stopped, NULL, &e), STK_STOPPED);
    CHECK_EQ(pack_to("png", &(stk_pack_options){.to = STK_TO_FOLDER, .as = STK_AS_JPEG}, NULL, &e), STK_OK);
    CHECK(same_files("png", "jpeg"));
    temp_bytes("png/mine/own.txt", "own", 3);
    CHECK_EQ(pack_to("png", &(stk_pack_options){.force = 1}, NULL, &e), STK_OK); /* to tar */
    CHECK_EQ(pack_to("tar", &(stk_pack_options){.force = 1}, NULL, &e), STK_OK);
    CHECK(!same_files("png", "tar"));
    char command[9000];
    snprintf(command, sizeof command, "rm -r %s", temp_path("png/mine"));
    CHECK_EQ(system(command), 0);
    CHECK(same_files("png", "tar"));
    temp_end();
}

int main(int argc, char **argv)
{
    TESTS(T(resumes), T(shards_are_looked_at), T(the_index_comes_with_it), T(links_are_not_followed),
          T(leftovers_are_removed), T(refuses), T(arrays), T(large_integers), T(keys_of_arrays), T(labels_of_a_type),
          T(hooks_are_closed), T(tidy_names), T(keys), T(reserved_names), T(counts_are_compared), T(tar_heads),
          T(journals), T(force_replaces_a_folder))
}
