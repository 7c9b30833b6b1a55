/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fetch.c -- many files at once: small, large and unusual ones, and with a kernel whose answers are made up.
 * Covers fetch.c and io_uring.c; the linker puts the functions below in place of those of io_uring.c.
 */
#include "read/fetch.h"

#include <dirent.h>

#include "base/arena.h"
#include "base/io.h"
#include "read/io_uring.h"
#include "support/temp_tree.h"
#include "test.h"

/* ------------------------------------------------------------------ another kernel */

static int none_here;                /* uring_open fails with this errno */
static int (*twist)(int n, int res); /* what the n-th event becomes */
static int n_events, wait_fails;

int __real_uring_open(struct uring **out, unsigned entries, void *memory, size_t bytes, stk_error *e);
int __wrap_uring_open(struct uring **out, unsigned entries, void *memory, size_t bytes, stk_error *e);
int __wrap_uring_open(struct uring **out, unsigned entries, void *memory, size_t bytes, stk_error *e)
{
    if (!none_here)
        return __real_uring_open(out, entries, memory, bytes, e);
    *out = NULL;
    *e = (stk_error){.code = STK_EIO, .os_error = none_here, .reason = "no io_uring here"};
    return STK_EIO;
}

int __real_uring_wait(struct uring *u, struct uring_event *events, int max);
int __wrap_uring_wait(struct uring *u, struct uring_event *events, int max);
int __wrap_uring_wait(struct uring *u, struct uring_event *events, int max)
{
    const int n = __real_uring_wait(u, events, max);
    for (int i = 0; i < n && twist; i++) {
        const int now = twist(n_events++, events[i].result);
        if (now < 0 && events[i].result > 2 && events[i].result < 1024) /* it was a descriptor */
            close(events[i].result);
        events[i].result = now;
    }
    return wait_fails ? -EIO : n;
}

/* ------------------------------------------------------------------ the user of it */

enum { FILES = 300, MOST = 32, ROOM = 64 << 20 };

static struct fetch *fetch;
static uint8_t *memory;
static size_t used;
static bool no_room;
static struct got {
    int times;
    const uint8_t *bytes;
    size_t n;
    bool warm;
} got[FILES];

static uint8_t *room(size_t n)
{
    if (no_room || n > ROOM - used)
        return NULL;
    used += n;
    return memory + used - n;
}

/* The beginning, and some pieces of what follows, in a way that differs from file to file. */
static void ranges_of(int64_t token, size_t n, struct ranges *out)
{
    size_t at = n / 7 + (size_t)token;
    out->n = 0;
    for (int i = 0; i < RANGES_MAX && at < n; i++, at += n / 8 + 1) {
        const size_t to = at + 1 + n / 16 < n ? at + 1 + n / 16 : n;
        out->at[out->n++] = (struct byte_range){i == 0 ? 0 : at, to};
    }
}

static bool in_ranges;

static bool wait(void)
{
    const bool good = fetch_wait(fetch);
    struct fetch_event v;
    while (fetch_next(fetch, &v)) {
        struct got *g = &got[v.token];
        struct ranges ranges = {0};
        if (v.kind == FETCH_OPENED) {
            if (in_ranges && v.by_range)
                ranges_of(v.token, v.size, &ranges);
            fetch_read(fetch, &v, room(v.n), &ranges);
            continue;
        }
        *g = (struct got){.times = g->times + 1, .bytes = v.bytes, .n = v.size, .warm = v.warm};
    }
    return good;
}

static int begin(void)
{
    memory = pages_new(ROOM);
    stk_error e;
    const int rc = fetch_open(&fetch, MOST, memory, ROOM, &e);
    if (rc != STK_OK)
        printf("skipped: %s\n", e.reason);
    return rc;
}

static void end(void)
{
    fetch_close(fetch);
    fetch = NULL;
    pages_free(memory, ROOM);
    used = 0;
    memset(got, 0, sizeof got);
}

static void want(int64_t token, const char *path, bool direct)
{
    while (fetch_under_way(fetch) == MOST)
        wait();
    fetch_file(fetch, &(struct fetch_want){
                          .token = token, .dir = AT_FDCWD, .path = path, .max_bytes = 1 << 30, .direct = direct});
}

static void finish(void)
{
    while (fetch_under_way(fetch) > 0)
        wait();
}

/* ------------------------------------------------------------------ files */

static size_t size_of(int i)
{
    static const size_t sizes[] = {1, 511, 512, 513, 4095, 4096, 4097, 100000, 12288};
    return i % 100 == 99 ? 3000000 + (size_t)i : sizes[i % 9];
}

static void make_files(const char *below)
{
    uint8_t *bytes = malloc(4 << 20);
    for (int i = 0; i < FILES; i++) {
        for (size_t k = 0; k < size_of(i); k++)
            bytes[k] = (uint8_t)(k * 7 + (size_t)i + k / 251);
        char name[100];
        snprintf(name, sizeof name, "%s/%d", below, i);
        temp_bytes(name, bytes, size_of(i));
    }
    free(bytes);
}

static bool is_right(int i)
{
    const struct got *g = &got[i];
    struct ranges p = {0};
    if (g->times != 1 || !g->bytes || g->n != size_of(i))
        return false;
    bool right = true;
    if (in_ranges)
        ranges_of(i, g->n, &p);
    if (p.n == 0)
        p = (struct ranges){.n = 1, .at = {{0, g->n}}};
    for (int j = 0; j < p.n; j++)
        for (size_t k = (size_t)p.at[j].from; k < p.at[j].to; k++)
            right = right && g->bytes[k] == (uint8_t)(k * 7 + (size_t)i + k / 251);
    for (size_t k = 0; k < IO_SLACK; k++)
        right = right && g->bytes[g->n + k] == 0;
    return right;
}

static int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void read_all(const char *below, bool direct)
{
    char name[100];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%s/%d", below, i);
        want(i, temp_path(name), direct);
    }
    finish();
    for (int i = 0; i < FILES; i++)
        CHECK(is_right(i));
}

/* ------------------------------------------------------------------ cases */

static void past_the_page_cache(void)
{
    const int before = descriptors();
    if (begin() != STK_OK)
        SKIP("no io_uring");
    read_all("files", true);
    end();
    CHECK_EQ(descriptors(), before);
}

static void in_ranges_only(void)
{
    const int before = descriptors();
    if (begin() != STK_OK)
        SKIP("no io_uring");
    in_ranges = true;
    read_all("files", true);
    const struct got *large = &got[99]; /* most of it was not read: the memory is unchanged */
    int64_t untouched = 0;
    for (size_t k = 0; k < large->n; k++)
        untouched += large->bytes[k] == 0;
    CHECK(fetch_refused(fetch) || untouched > (int64_t)large->n / 3);
    in_ranges = false;
    end();
    CHECK_EQ(descriptors(), before);
}

static void through_the_page_cache(void)
{
    if (begin() != STK_OK)
        SKIP("no io_uring");
    read_all("files", false);
    end();
    if (begin() != STK_OK)
        return;
    for (int i = 0; i < FILES; i++) { /* what is dropped has to be waited for */
        char name[100];
        snprintf(name, sizeof name, "files/%d", i);
        const int fd = open(temp_path(name), O_RDONLY);
        fsync(fd);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    read_all("files", false);
    end();
}

/* tmpfs refuses O_DIRECT, or accepts it and ignores it. */
static void in_memory(void)
{
    char root[sizeof temp_root];
    memcpy(root, temp_root, sizeof root);
    snprintf(temp_root, sizeof temp_root, "/dev/shm/stoker-test-XXXXXX");
    if (!mkdtemp(temp_root) || begin() != STK_OK) {
        memcpy(temp_root, root, sizeof root);
        SKIP("no tmpfs, or no io_uring");
    }
    make_files("files");
    read_all("files", true);
    end();
    temp_end();
    memcpy(temp_root, root, sizeof root);
}

static void what_is_odd_has_no_bytes(void)
{
    if (begin() != STK_OK)
        SKIP("no io_uring");
    const int before = descriptors();
    temp_file("empty", "");
    temp_file("full", "0123456789");
    temp_dir("folder");
    mkfifo(temp_path("pipe"), 0666);
    char longer[PATH_MAX + 10];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    const char *const paths[] = {
        temp_path("empty"), temp_path("missing"), temp_path("folder"), longer, "/sys/devices/system/cpu/online",
    };
    for (int i = 0; i < 10; i++)
        want(i, paths[i / 2], i % 2);
    want(10, temp_path("pipe"), true);
    finish();
    fetch_file(fetch, &(struct fetch_want){.token = 11, .dir = AT_FDCWD, .path = temp_path("full"), .max_bytes = 9});
    finish();
    no_room = true;
    want(12, temp_path("full"), true);
    finish();
    no_room = false;
    for (int i = 0; i < 13; i++)
        CHECK(got[i].times == 1 && !got[i].bytes);
    CHECK_EQ(descriptors(), before);
    end();
}

static int short_read(int n, int res)
{
    return n % 3 == 2 && res > 100 ? res / 2 : res;
}

static int disk_error(int n, int res)
{
    return n % 2 ? -EIO : res;
}

static int no_descriptors(int n, int res)
{
    (void)n, (void)res;
    return -EMFILE;
}

/* Whatever the kernel answers, each file gets its right bytes or none, exactly once, and nothing leaks. */
static void answers_of_all_kinds(void)
{
    int (*const twists[])(int, int) = {short_read, disk_error, no_descriptors};
    const int before = descriptors();
    for (int t = 0; t < 6; t++) {
        if (begin() != STK_OK)
            SKIP("no io_uring");
        twist = twists[t / 2];
        in_ranges = t % 2;
        int lost = 0;
        for (int i = 0; i < FILES; i++) {
            char name[100];
            snprintf(name, sizeof name, "files/%d", i);
            want(i, temp_path(name), i % 2);
        }
        finish();
        twist = NULL;
        for (int i = 0; i < FILES; i++) {
            CHECK(got[i].times == 1 && (!got[i].bytes || is_right(i)));
            lost += !got[i].bytes;
        }
        CHECK(lost > 0);
        in_ranges = false;
        end();
        CHECK_EQ(descriptors(), before);
    }
}

static int refuse_first(int n, int res)
{
    return n == 0 ? -EINVAL : res;
}

static void a_file_system_refuses(void)
{
    if (begin() != STK_OK)
        SKIP("no io_uring");
    n_events = 0;
    twist = refuse_first;
    want(0, temp_path("files/0"), true);
    finish();
    twist = NULL;
    CHECK(fetch_refused(fetch));
    CHECK(is_right(0)); /* opened again, through the page cache */
    want(1, temp_path("files/1"), true);
    finish();
    CHECK(is_right(1) && got[1].warm);
    end();
}

static void the_ring_fails(void)
{
    if (begin() != STK_OK)
        SKIP("no io_uring");
    for (int i = 0; i < 5; i++)
        want(i, temp_path("files/0"), true);
    wait_fails = 1;
    CHECK(!wait());
    CHECK_EQ(fetch_under_way(fetch), 0);
    wait_fails = 0;
    want(5, temp_path("files/0"), true);
    CHECK(!wait());
    for (int i = 0; i < 6; i++)
        CHECK(got[i].times == 1 && !got[i].bytes);
    end();
}

static void no_ring_here(void)
{
    none_here = EPERM;
    CHECK_EQ(begin(), STK_EIO);
    CHECK(!fetch);
    none_here = 0;
    pages_free(memory, ROOM);
    fetch_close(NULL);
}

static void ranges_of_a_large_file(void)
{
    if (begin() != STK_OK)
        SKIP("no io_uring");
    uint8_t *bytes = malloc(3 << 20);
    for (size_t k = 0; k < 3 << 20; k++)
        bytes[k] = (uint8_t)(k * 13 + k / 4099);
    temp_bytes("large", bytes, 3 << 20);
    for (int direct = 0; direct < 2; direct++) {
        const int fd = open(temp_path("large"), O_RDONLY | (direct ? O_DIRECT : 0));
        if (fd < 0)
            continue;
        for (int i = 0; i < 30; i++)
            fetch_extent(fetch, i + 30 * direct, &(struct extent){fd, NULL, i * 99991, 1 + (size_t)i * 3333, direct});
        finish();
        fetch_extent(fetch, 60 + direct, &(struct extent){fd, NULL, (3 << 20) - 10, 20, direct}); /* beyond the end */
        finish();
        close(fd);
        CHECK(!got[60 + direct].bytes);
        for (int i = 0; i < 30; i++) {
            const struct got *g = &got[i + 30 * direct];
            CHECK(g->bytes && g->n == 1 + (size_t)i * 3333 && memcmp(g->bytes, bytes + (size_t)i * 99991, g->n) == 0);
        }
    }
    free(bytes);
    end();
}

/* Files that it opens itself, also on file systems that refuse O_DIRECT. */
static void extents_by_their_path(void)
{
    const int before = descriptors();
    if (begin() != STK_OK)
        SKIP("no io_uring");
    char path[PATH_MAX], missing[PATH_MAX];
    snprintf(path, sizeof path, "%s", temp_path("files/7"));
    snprintf(missing, sizeof missing, "%s", temp_path("files/none"));
    for (int i = 0; i < 4; i++) {
        n_events = 0;
        twist = i == 3 ? refuse_first : NULL;
        fetch_extent(fetch, i, &(struct extent){-1, path, 5000, 70001, i % 2});
        finish();
        fetch_extent(fetch, 10 + i, &(struct extent){-1, missing, 5000, 70001, i % 2});
        finish();
        twist = NULL;
        CHECK(got[10 + i].times == 1 && !got[10 + i].bytes);
        CHECK(got[i].times == 1 && got[i].n == 70001);
        for (size_t k = 5000; got[i].bytes && k < 75001; k++)
            CHECK(got[i].bytes[k - 5000] == (uint8_t)(k * 7 + 7 + k / 251));
    }
    CHECK(fetch_refused(fetch) && got[2].warm);
    end();
    CHECK_EQ(descriptors(), before);
}

static void closed_in_the_middle(void)
{
    const int before = descriptors();
    if (begin() != STK_OK)
        SKIP("no io_uring");
    for (int i = 0; i < MOST; i++)
        want(i, temp_path("files/99"), true);
    end();
    CHECK_EQ(descriptors(), before);
}

int main(int argc, char **argv)
{
    temp_begin();
    make_files("files");
    const struct test_case cases[] = {
        T(past_the_page_cache),
        T(in_ranges_only),
        T(through_the_page_cache),
        T(in_memory),
        T(what_is_odd_has_no_bytes),
        T(answers_of_all_kinds),
        T(a_file_system_refuses),
        T(the_ring_fails),
        T(no_ring_here),
        T(ranges_of_a_large_file),
        T(extents_by_their_path),
        T(closed_in_the_middle),
    };
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    temp_end();
    return rc;
}
