/* SPDX-License-Identifier: Apache-2.0 */
/* test_files.c -- sources of files: the fingerprint, the cache of the index, many readers at once. */
#include <pthread.h>

#include "support/open_source.h"
#include "support/temp_tree.h"
#include "test.h"

static void make_many(const char *below, int n)
{
    char name[128];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s/class%d/photo_%d.jpg", below, i % 7, i * 37 % n);
        temp_bytes(name, "0123456789", (size_t)(i % 10) + 1);
    }
}

static uint64_t fingerprint_of(const char *below, int threads)
{
    struct source *s = open_with((struct source_options){.path = temp_path(below), .threads = threads});
    const uint64_t h = s ? source_fingerprint(s) : 0;
    source_close(s);
    return h;
}

static void fingerprint_is_of_the_content(void)
{
    make_many("fp1", 3000);
    make_many("elsewhere/fp2", 3000);
    const uint64_t h = fingerprint_of("fp1", 1);
    CHECK(h != 0);
    CHECK(fingerprint_of("fp1", 7) == h);
    CHECK(fingerprint_of("elsewhere/fp2", 2) == h);
    temp_file("fp1/class3/test_image_3.jpg", "another length");
    CHECK(fingerprint_of("fp1", 2) != h);
    rename(temp_path("elsewhere/fp2/class3"), temp_path("elsewhere/fp2/class3b"));
    CHECK(fingerprint_of("elsewhere/fp2", 2) != h);
}

struct seen {
    int64_t count;
    uint64_t fingerprint;
    bool cached;
};

static struct seen see(const char *below)
{
    struct source *s =
        open_with((struct source_options){.path = temp_path(below), .cache_dir = temp_path("cache/dir")});
    struct seen v = {0};
    if (s)
        v = (struct seen){source_count(s), source_fingerprint(s), source_tally(s)->index_cached};
    source_close(s);
    return v;
}

static void second_open_is_cached(void)
{
    make_many("big", 2000);
    temp_settle();
    const struct seen first = see("big"), second = see("big");
    CHECK(!first.cached && second.cached);
    CHECK_EQ(first.count, 2000);
    CHECK_EQ(second.count, 2000);
    CHECK(first.fingerprint == second.fingerprint);
    CHECK(first.fingerprint == fingerprint_of("big", 2));
    struct stat st;
    CHECK(stat(temp_path("cache/dir/index"), &st) == 0 && (st.st_mode & 0777) == 0700);
}

static void change_is_noticed(void)
{
    struct seen before = see("big");
    CHECK(before.cached);
    temp_file("big/class2/new.jpg", "x");
    temp_settle();
    struct seen after = see("big");
    CHECK(!after.cached);
    CHECK_EQ(after.count, 2001);
    CHECK(after.fingerprint != before.fingerprint);
    CHECK(see("big").cached);

    temp_file("big/new class/new.jpg", "x");
    temp_settle();
    CHECK_EQ(see("big").count, 2002);
    remove(temp_path("big/class2/new.jpg"));
    temp_settle();
    CHECK_EQ(see("big").count, 2001);
}

/* Rewriting a file in place does not change its folder; reading the file notices it. */
static void reading_drops_a_stale_cache(void)
{
    temp_settle();
    see("big");
    struct seen before = see("big");
    CHECK(before.cached);
    struct source *s =
        open_with((struct source_options){.path = temp_path("big"), .cache_dir = temp_path("cache/dir")});
    char key[1024], below[1100];
    source_key(s, 1, key, sizeof key);
    snprintf(below, sizeof below, "big/%s", key);
    temp_file(below, "a length that no other one has");
    struct reading r = {0};
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    CHECK_EQ(r.n_bytes, 30);
    buf_done(&r.file);
    source_close(s);
    struct seen after = see("big");
    CHECK(!after.cached);
    CHECK(after.fingerprint != before.fingerprint);
}

/* The fingerprint must not use sizes from the cache: opening does not compare the size of this file. */
static void fingerprint_looks_at_every_size(void)
{
    make_many("rewritten", 3000);
    temp_settle();
    see("rewritten");
    const struct seen before = see("rewritten");
    CHECK(before.cached);
    struct source *s = open_with((struct source_options){.path = temp_path("rewritten")});
    char key[1024], below[1100];
    source_key(s, 1, key, sizeof key);
    source_close(s);
    snprintf(below, sizeof below, "rewritten/%s", key);
    temp_file(below, "a length that no other one has");
    for (int again = 0; again < 2; again++) {
        const struct seen after = see("rewritten");
        CHECK(after.cached);
        CHECK(after.fingerprint != before.fingerprint);
        CHECK(after.fingerprint == fingerprint_of("rewritten", 2));
    }
}

struct reader {
    struct source *s;
    int failed;
    uint64_t fingerprint;
};

static void *read_all(void *user)
{
    struct reader *me = user;
    struct reading r = {0};
    stk_error e;
    for (int64_t i = 0; i < source_count(me->s); i++) {
        me->failed += source_read_bytes(me->s, i) == 0;
        me->failed += source_read(me->s, &r, i, &e) != STK_OK;
        if (i == 100)
            me->fingerprint = source_fingerprint(me->s);
    }
    me->failed += source_tally(me->s)->missing != 0;
    buf_done(&r.file);
    return NULL;
}

static void many_threads_at_once(void)
{
    make_many("threads", 1500);
    struct reader readers[4];
    pthread_t threads[4];
    struct source *s =
        open_with((struct source_options){.path = temp_path("threads"), .cache_dir = temp_path("cache/dir")});
    for (int i = 0; i < 4; i++) {
        readers[i] = (struct reader){.s = s};
        pthread_create(&threads[i], NULL, read_all, &readers[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(readers[i].failed, 0);
        CHECK(readers[i].fingerprint == readers[0].fingerprint);
    }
    source_close(s);
}

static void small_sets_are_not_cached(void)
{
    temp_file("tiny/c/1.jpg", "x");
    temp_settle();
    CHECK(!see("tiny").cached);
    CHECK(!see("tiny").cached);
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(fingerprint_is_of_the_content), T(second_open_is_cached), T(change_is_noticed),
          T(reading_drops_a_stale_cache), T(fingerprint_looks_at_every_size), T(many_threads_at_once),
          T(small_sets_are_not_cached))
}
