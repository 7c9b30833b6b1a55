/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cache.c -- a cache returns what was put, or nothing: in memory and on disk, after damage, kills and full disks,
 * with several processes and threads at once.
 */
#include "cache/cache.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/pool.h"
#include "cache/volume.h"
#include "support/temp_tree.h"
#include "test.h"

enum { SAMPLES = 200, LENGTH = 300 };

static struct cache_options memory_options(void)
{
    return (struct cache_options){
        .kind = CACHE_BYTES, .samples = SAMPLES, .memory = 1 << 20, .in_memory = true, .source = "/set"};
}

static struct cache_options disk_options(void)
{
    struct cache_options o = memory_options();
    o.in_memory = false;
    o.folder = temp_path("cache");
    o.disk = 1 << 20;
    return o;
}

/* The bytes of a sample: their content and length depend on the sample. */
static size_t make(int64_t sample, uint8_t *to)
{
    const size_t n = LENGTH + (size_t)sample % 7;
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)((size_t)sample * 37 + i * (i >> 3) + 1);
    return n;
}

static uint64_t id_of(int64_t sample)
{
    return 1000 + (uint64_t)sample;
}

static void put(struct cache *c, int64_t sample)
{
    uint8_t bytes[LENGTH + 8];
    cache_put(c, sample, id_of(sample), bytes, make(sample, bytes));
}

/* Whether a sample is found. If so, its bytes must be those that were put. */
static bool get(struct cache *c, int64_t sample, uint64_t id)
{
    uint8_t right[LENGTH + 8], got[LENGTH + 8];
    struct cache_entry e;
    const size_t n = make(sample, right);
    while (cache_find(c, sample, id, &e)) {
        CHECK(e.bytes || e.n == n);
        if (!e.bytes && !cache_load(c, &e, got))
            continue;
        CHECK(e.n == n && memcmp(e.bytes ? e.bytes : got, right, n) == 0);
        for (int i = 0; e.bytes && i < CACHE_SLACK; i++)
            CHECK_EQ(e.bytes[n + (size_t)i], 0);
        return true;
    }
    return false;
}

static int count(struct cache *c, int n)
{
    int found = 0;
    for (int64_t i = 0; i < n; i++)
        found += get(c, i, id_of(i));
    return found;
}

static void fill(struct cache *c, int n)
{
    for (int64_t i = 0; i < n; i++)
        put(c, i);
}

static struct cache_stats stats_of(struct cache *c)
{
    struct cache_stats s;
    cache_stats(c, &s);
    return s;
}

/* ------------------------------------------------------------------ memory */

static void memory_finds_what_was_put(void)
{
    struct cache_options o = memory_options();
    struct cache *c = cache_open(&o);
    CHECK_EQ(count(c, SAMPLES), 0);
    fill(c, SAMPLES);
    CHECK_EQ(count(c, SAMPLES), SAMPLES);
    put(c, 5); /* again: no change */
    CHECK_EQ(stats_of(c).entries, SAMPLES);
    CHECK_EQ(stats_of(c).hits, SAMPLES);
    CHECK(stats_of(c).memory_bytes <= 1 << 20);
    CHECK(!cache_asks_id(c, 0));
    cache_close(c);
}

static void memory_keeps_to_its_limit(void)
{
    struct cache_options o = memory_options();
    o.memory = 16 << 10;
    struct cache *c = cache_open(&o);
    fill(c, SAMPLES);
    const int found = count(c, SAMPLES);
    CHECK(found > 30 && found < 50);
    CHECK(stats_of(c).memory_bytes <= 16 << 10);
    CHECK(!cache_has_room(c, SAMPLES - 1, LENGTH));
    CHECK(!cache_has_room(c, SAMPLES - 1, SIZE_MAX));
    cache_close(c);
    for (size_t bytes = 0; bytes < 2000; bytes += 100) { /* too little for anything */
        o.memory = bytes;
        c = cache_open(&o);
        fill(c, 20);
        CHECK(count(c, 20) < 5);
        cache_close(c);
    }
}

static void memory_renews(void)
{
    struct cache_options o = memory_options();
    struct cache *c = cache_open(&o);
    struct cache_entry old, new;
    put(c, 3);
    CHECK(cache_find(c, 3, 0, &old));
    cache_renew(c, 3, 0, "another", 7);
    CHECK(cache_find(c, 3, 0, &new));
    CHECK(new.n == 7 && memcmp(new.bytes, "another", 7) == 0);
    uint8_t right[LENGTH + 8];
    CHECK(make(3, right) == old.n && memcmp(right, old.bytes, old.n) == 0); /* the old bytes stay valid */
    CHECK_EQ(stats_of(c).entries, 1);
    cache_close(c);
}

static void nothing_takes_anything(void)
{
    struct cache_entry e;
    char why[100];
    CHECK(!cache_find(NULL, 0, 1, &e));
    CHECK(!cache_has_room(NULL, 0, 1));
    CHECK(!cache_asks_id(NULL, 0));
    cache_put(NULL, 0, 1, "x", 1);
    cache_why_not(NULL, why, sizeof why);
    CHECK(why[0] != 0);
    cache_close(NULL);
}

/* ------------------------------------------------------------------ disk */

static void another_run_finds_it(void)
{
    temp_begin();
    struct cache_options o = disk_options();
    struct cache *c = cache_open(&o);
    fill(c, SAMPLES);
    CHECK_EQ(count(c, SAMPLES), SAMPLES);
    cache_close(c);
    c = cache_open(&o);
    CHECK(cache_asks_id(c, 7));
    CHECK_EQ(stats_of(c).entries, SAMPLES);
    CHECK_EQ(count(c, SAMPLES), SAMPLES);
    CHECK(!cache_asks_id(c, 7));
    CHECK(get(c, 7, 0)); /* once found, it needs no id */
    cache_close(c);
    temp_end();
}

static void only_what_it_was_made_from_finds_it(void)
{
    temp_begin();
    struct cache_options o = disk_options();
    struct cache *c = cache_open(&o);
    fill(c, SAMPLES);
    cache_put(c, 8, 0, "no id", 5);
    cache_close(c);
    c = cache_open(&o);
    for (int64_t i = 0; i < SAMPLES; i++)
        CHECK(!get(c, i, id_of(i) + SAMPLES));
    CHECK(!get(c, 1, 0));
    cache_close(c);
    o.source = "/other";
    c = cache_open(&o);
    CHECK_EQ(count(c, SAMPLES), 0);
    cache_close(c);
    o = disk_options();
    o.variant = 1;
    c = cache_open(&o);
    CHECK_EQ(count(c, SAMPLES), 0);
    cache_close(c);
    o = disk_options();
    o.kind = CACHE_PIXELS;
    c = cache_open(&o);
    CHECK_EQ(count(c, SAMPLES), 0);
    cache_close(c);
    temp_end();
}

static void runs_append_to_one_volume(void)
{
    temp_begin();
    struct cache_options o = disk_options();
    for (int run = 0; run < 4; run++) {
        struct cache *c = cache_open(&o);
        CHECK_EQ(count(c, SAMPLES), run * 10);
        for (int64_t i = 0; i < 10; i++)
            put(c, run * 10 + i);
        cache_close(c);
    }
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "test $(ls %s/data/*/*.index | wc -l) = 1", temp_path("cache"));
    CHECK_EQ(system(command), 0);
    temp_end();
}

static void disk_keeps_to_its_limit(void)
{
    temp_begin();
    struct cache_options o = disk_options();
    o.disk = 10000;
    struct cache *c = cache_open(&o);
    fill(c, SAMPLES);
    const int found = count(c, SAMPLES);
    CHECK(found > 20 && found <= 28);
    CHECK(!cache_has_room(c, SAMPLES - 1, LENGTH));
    cache_close(c);
    o.source = "/other"; /* the folder has one limit for all datasets */
    c = cache_open(&o);
    fill(c, SAMPLES);
    CHECK(count(c, SAMPLES) <= 1);
    cache_close(c);
    temp_end();
}

/* All files have changed, and their old entries fill the folder. */
static void unused_entries_are_deleted(void)
{
    temp_begin();
    struct cache_options o = disk_options();
    o.disk = 10000;
    struct cache *c = cache_open(&o);
    fill(c, SAMPLES);
    cache_close(c);
    for (int run = 0; run < 2; run++) {
        c = cache_open(&o);
        for (int64_t i = 0; i < SAMPLES; i++) {
            uint8_t bytes[LENGTH + 8];
            const size_t n = make(i, bytes);
            CHECK_EQ(get(c, i, id_of(i) + SAMPLES), 0);
            cache_put(c, i, id_of(i) + SAMPLES, bytes, n);
        }
        char why[200];
        cache_why_not(c, why, sizeof why);
        CHECK(strstr(why, "it is full"));
        CHECK_EQ(stats_of(c).entries > 0, 1);
        cache_close(c);
    }
    c = cache_open(&o);
    CHECK_EQ(count(c, SAMPLES), 0);
    int found = 0;
    for (int64_t i = 0; i < SAMPLES; i++)
        found += get(c, i, id_of(i) + SAMPLES);
    CHECK(found > 20);
    cache_close(c);
    temp_end();
}

/* An entry that cannot be found again in this run is not written repeatedly. */
static void tables_keep_to_their_limit(void)
{
    temp_begin();
    const struct cache_options o = disk_options();
    struct cache *c = cache_open(&o);
    uint8_t bytes[LENGTH + 8];
    const size_t n = make(0, bytes);
    for (uint64_t i = 0; i < 2 * SAMPLES + 1024; i++)
        cache_renew(c, 0, id_of(0) + i, bytes, n);
    CHECK(!cache_has_room(c, 1, 1));
    char why[200];
    cache_why_not(c, why, sizeof why);
    CHECK(strstr(why, "it is full"));
    CHECK(stats_of(c).disk_bytes < (int64_t)((SAMPLES * 3 / 2 + 1024) * (n + sizeof(struct volume_record))));
    cache_close(c);
    temp_end();
}

static void both_shelf_and_folder(void)
{
    temp_begin();
    struct cache_options o = disk_options();
    o.in_memory = true;
    struct cache *c = cache_open(&o);
    fill(c, 50);
    CHECK_EQ(count(c, SAMPLES), 50);
    cache_close(c);
    c = cache_open(&o);
    CHECK_EQ(count(c, SAMPLES), 50);
    struct cache_entry e;
    CHECK(cache_find(c, 4, 0, &e) && e.bytes); /* it came onto the shelf */
    const uint8_t longer[LENGTH + 10] = {4};
    cache_renew(c, 4, id_of(4), longer, sizeof longer); /* the longer one counts, whatever came last */
    cache_close(c);
    c = cache_open(&o);
    CHECK(cache_find(c, 4, id_of(4), &e) && e.n == LENGTH + 10);
    CHECK_EQ(stats_of(c).entries, 50);
    cache_close(c);
    temp_end();
}

/* ------------------------------------------------------------------ damage */

static void path_of_part(const char *suffix, char *buf, size_t n)
{
    char pattern[PATH_MAX];
    snprintf(pattern, sizeof pattern, "ls %s/data/*/*%s", temp_path("cache"), suffix);
    FILE *f = popen(pattern, "r");
    if (!f || !fgets(buf, (int)n, f))
        buf[0] = 0;
    buf[strcspn(buf, "\n")] = 0;
    if (f)
        pclose(f);
}

static size_t slurp(const char *path, uint8_t *to, size_t n)
{
    FILE *f = fopen(path, "rb");
    const size_t got = f ? fread(to, 1, n, f) : 0;
    if (f)
        fclose(f);
    return got;
}

/* In place: some file systems wait for the disk when a file is emptied and written again. */
static void spit(const char *path, const uint8_t *from, size_t n)
{
    const int fd = open(path, O_WRONLY);
    CHECK(fd >= 0 && pwrite(fd, from, n, 0) == (ssize_t)n && ftruncate(fd, (off_t)n) == 0);
    close(fd);
}

enum { FEW = 5 };

/* Five entries on disk, and their two files. */
struct damaged {
    char path[2][PATH_MAX];
    uint8_t bytes[2][4096];
    size_t n[2];
};

static void make_few(struct damaged *d)
{
    struct cache_options o = disk_options();
    struct cache *c = cache_open(&o);
    fill(c, FEW);
    cache_close(c);
    path_of_part(".index", d->path[0], sizeof d->path[0]);
    path_of_part(".data", d->path[1], sizeof d->path[1]);
    for (int i = 0; i < 2; i++)
        d->n[i] = slurp(d->path[i], d->bytes[i], sizeof d->bytes[i]);
    CHECK_EQ(d->n[0], FEW * sizeof(struct volume_record));
    CHECK(d->n[1] > FEW * LENGTH);
}

/* The remaining entries are right, and missing ones can be put again. */
static int check_damaged(struct damaged *d)
{
    struct cache_options o = disk_options();
    struct cache *c = cache_open(&o);
    const int found = count(c, FEW);
    fill(c, FEW);
    CHECK_EQ(count(c, FEW), FEW);
    cache_close(c);
    c = cache_open(&o);
    CHECK_EQ(count(c, FEW), FEW); /* and then it stays */
    cache_close(c);
    for (int i = 0; i < 2; i++)
        spit(d->path[i], d->bytes[i], d->n[i]);
    return found;
}

static void every_byte_flipped(void)
{
    temp_begin();
    static struct damaged d;
    make_few(&d);
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; i < d.n[part]; i++) {
            d.bytes[part][i] ^= (uint8_t)(1 << i % 8);
            spit(d.path[part], d.bytes[part], d.n[part]);
            d.bytes[part][i] ^= (uint8_t)(1 << i % 8);
            CHECK_EQ(check_damaged(&d), FEW - 1);
        }
    temp_end();
}

static void every_length_truncated(void)
{
    temp_begin();
    static struct damaged d;
    make_few(&d);
    for (int part = 0; part < 2; part++)
        for (size_t n = 0; n < d.n[part]; n += part ? 7 : 1) {
            spit(d.path[part], d.bytes[part], n);
            CHECK(check_damaged(&d) < FEW);
        }
    temp_end();
}

static void foreign_files(void)
{
    temp_begin();
    static struct damaged d;
    make_few(&d);
    char other[PATH_MAX];
    struct cache_options o = disk_options();
    o.source = "/other";
    struct cache *c = cache_open(&o);
    put(c, 199); /* its folder, and a volume */
    cache_close(c);
    for (int part = 0; part < 2; part++) { /* of another dataset, under the names of this one */
        snprintf(other, sizeof other, "cp %s $(ls %s/data/*/*%s | grep -v %s | head -1)", d.path[part],
                 temp_path("cache"), part ? ".data" : ".index", strrchr(d.path[part], '/') + 1);
        CHECK_EQ(system(other), 0);
    }
    c = cache_open(&o);
    CHECK_EQ(count(c, SAMPLES), 0);
    cache_close(c);
    snprintf(other, sizeof other, "%.*s/bytes.0000000000000000.dir.index", (int)(strrchr(d.path[0], '/') - d.path[0]),
             d.path[0]);
    mkdir(other, 0700); /* a folder where a file should be */
    CHECK_EQ(check_damaged(&d), FEW);
    temp_end();
}

/* A pipe called `source` is replaced; opening it for writing would wait for a reader. */
static void pipe_as_source(void)
{
    temp_begin();
    static struct damaged d;
    make_few(&d);
    char source[PATH_MAX];
    path_of_part("source", source, sizeof source);
    CHECK(unlink(source) == 0 && mkfifo(source, 0600) == 0);
    alarm(60); /* ends the test where it hangs */
    CHECK_EQ(check_damaged(&d), FEW);
    alarm(0);
    uint8_t text[16];
    CHECK_EQ(slurp(source, text, sizeof text), strlen("/set"));
    temp_end();
}

static void deleted_meanwhile(void)
{
    temp_begin();
    struct cache_options o = disk_options();
    struct cache *a = cache_open(&o);
    fill(a, 20);
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "rm -r %s", temp_path("cache"));
    CHECK_EQ(system(command), 0);
    CHECK_EQ(count(a, 20), 20); /* who has it open keeps it */
    for (int64_t i = 20; i < 40; i++)
        put(a, i);
    CHECK_EQ(count(a, 40), 40);
    cache_close(a);
    a = cache_open(&o);
    CHECK_EQ(count(a, 40), 0);
    fill(a, 40);
    CHECK_EQ(count(a, 40), 40);
    cache_close(a);
    temp_end();
}

/* ------------------------------------------------------------------ no room, no right */

static void no_folder(void)
{
    temp_begin();
    char why[300];
    temp_file("cache", "a file where the folder should be");
    struct cache_options o = disk_options();
    struct cache *c = cache_open(&o);
    fill(c, SAMPLES);
    CHECK_EQ(count(c, SAMPLES), 0);
    CHECK(!cache_asks_id(c, 0));
    cache_why_not(c, why, sizeof why);
    CHECK(strstr(why, "folder cannot be created: Not a directory"));
    cache_close(c);
    temp_end();
}

static void files_of_limited_size(void)
{
    temp_begin();
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 5000;
    setrlimit(RLIMIT_FSIZE, &small);
    struct cache_options o = disk_options();
    struct cache *c = cache_open(&o);
    fill(c, SAMPLES); /* no signal ends us */
    CHECK(count(c, SAMPLES) > 10);
    cache_close(c);
    setrlimit(RLIMIT_FSIZE, &before);
    c = cache_open(&o);
    CHECK(count(c, SAMPLES) > 10);
    cache_close(c);
    temp_end();
}

/* ------------------------------------------------------------------ processes and threads */

static void child_fills(int first, int n)
{
    struct cache_options o = disk_options();
    struct cache *c = cache_open(&o);
    for (int i = 0; i < n; i++)
        put(c, first + i);
    cache_close(c);
    _exit(0);
}

static void two_processes_fill_one_folder(void)
{
    temp_begin();
    fflush(stdout);
    for (int k = 0; k < 4; k++)
        if (fork() == 0)
            child_fills(k * 40, 60); /* they overlap */
    struct cache_options o = disk_options();
    struct cache *c = cache_open(&o);
    for (int64_t i = 0; i < 20; i++)
        put(c, 180 + i);
    int status;
    while (wait(&status) > 0)
        CHECK_EQ(status, 0);
    for (int look = 0; look < 64; look++) /* what others wrote is seen after some misses */
        get(c, 0, 1);
    CHECK_EQ(count(c, SAMPLES), SAMPLES);
    cache_close(c);
    c = cache_open(&o);
    CHECK_EQ(count(c, SAMPLES), SAMPLES);
    cache_close(c);
    temp_end();
}

static void killed_at_any_moment(void)
{
    temp_begin();
    fflush(stdout);
    for (int round = 0; round < 30; round++) {
        int ends[2];
        CHECK_EQ(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            struct cache_options o = disk_options();
            struct cache *c = cache_open(&o);
            for (int64_t i = 0;; i = (i + 1) % SAMPLES) {
                uint8_t bytes[LENGTH + 8];
                cache_renew(c, i, id_of(i), bytes, make(i, bytes));
                if (i == round * 5 && write(ends[1], "x", 1) != 1)
                    _exit(1);
            }
        }
        char x;
        CHECK_EQ(read(ends[0], &x, 1), 1);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(ends[0]);
        close(ends[1]);
        struct cache_options o = disk_options();
        struct cache *c = cache_open(&o);
        CHECK(count(c, SAMPLES) >= round * 5);
        cache_close(c);
    }
    temp_end();
}

static void use_all(void *user, int64_t turn)
{
    struct cache *c = user;
    for (int64_t k = 0; k < SAMPLES; k++) {
        const int64_t i = (k * 7 + turn * 13) % SAMPLES;
        if (!get(c, i, id_of(i)))
            put(c, i);
    }
}

static void many_threads(void)
{
    temp_begin();
    for (int way = 0; way < 3; way++) {
        struct cache_options o = way == 0 ? memory_options() : disk_options();
        o.in_memory = way != 1;
        struct cache *c = cache_open(&o);
        pool_for(8, 32, use_all, c);
        CHECK_EQ(count(c, SAMPLES), SAMPLES);
        cache_close(c);
    }
    temp_end();
}

int main(int argc, char **argv)
{
    TESTS(T(memory_finds_what_was_put), T(memory_keeps_to_its_limit), T(memory_renews), T(nothing_takes_anything),
          T(another_run_finds_it), T(only_what_it_was_made_from_finds_it), T(runs_append_to_one_volume),
          T(disk_keeps_to_its_limit), T(unused_entries_are_deleted), T(tables_keep_to_their_limit),
          T(both_shelf_and_folder), T(every_byte_flipped), T(every_length_truncated), T(foreign_files),
          T(pipe_as_source), T(deleted_meanwhile), T(no_folder), T(files_of_limited_size),
          T(two_processes_fill_one_folder), T(killed_at_any_moment), T(many_threads))
}
