/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_index.c -- the block of an index, its checks, and its cache on disk.
 * Covers index.c and index_cache.c.
 */
#include "source/index.h"

#include <dirent.h>

#include "support/temp_tree.h"
#include "test.h"

enum { N = 50, DIRS = 3, CLASSES = 2 };

static size_t put(struct index *x, size_t *at, const char *text)
{
    const size_t here = *at;
    memcpy(x->pool + here, text, strlen(text) + 1);
    *at += strlen(text) + 1;
    return here;
}

/* a/ and b/ with names of two digits. */
static void make(struct index *x, bool labels)
{
    static const char *const dirs[DIRS] = {"", "a/", "b/"}, *const classes[CLASSES] = {"a", "b"};
    const struct index_head head = {.kind = INDEX_CLASSES,
                                    .n = N,
                                    .n_dirs = DIRS,
                                    .n_classes = CLASSES,
                                    .has_labels = labels,
                                    .pool_bytes = N * 7 + 7 + 4};
    size_t at = 0;
    char name[16];
    CHECK_EQ(index_init(x, &head), 0);
    for (int i = 0; i < DIRS; i++) {
        x->dir_at[i] = put(x, &at, dirs[i]);
        x->dir_label[i] = i - 1;
    }
    for (int i = 0; i < CLASSES; i++)
        x->class_at[i] = put(x, &at, classes[i]);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%02d.jpg", i);
        x->name_at[i] = put(x, &at, name);
        x->dir_of[i] = 1 + (uint32_t)(i >= N / 2);
        if (labels)
            x->label[i] = 1000 + i;
    }
    CHECK_EQ(at, head.pool_bytes);
}

static void samples(void)
{
    struct index x = {0};
    char path[32];
    make(&x, false);
    CHECK_EQ(index_path(&x, 0, path, sizeof path), 8);
    CHECK_STR(path, "a/00.jpg");
    index_path(&x, 49, path, sizeof path);
    CHECK_STR(path, "b/49.jpg");
    CHECK_EQ(index_path(&x, 0, path, 5), 8);
    CHECK_STR(path, "a/00");
    CHECK_EQ(index_path(&x, 0, path, 2), 8);
    CHECK_STR(path, "a");
    CHECK_EQ(index_path(&x, 0, NULL, 0), 8);
    CHECK_EQ(index_label(&x, 0), 0);
    CHECK_EQ(index_label(&x, 49), 1);
    CHECK_STR(index_class(&x, 1), "b");
    index_done(&x);
    index_done(&x);
    make(&x, true);
    CHECK_EQ(index_label(&x, 7), 1007);
    index_done(&x);
}

static void absurd_numbers(void)
{
    struct index x = {0};
    struct index_head head = {.kind = INDEX_FILES, .n = UINT64_MAX / 8, .n_dirs = 1, .pool_bytes = 1};
    CHECK(index_init(&x, &head) != 0);
    head.n = 1;
    head.n_dirs = UINT64_MAX;
    CHECK(index_init(&x, &head) != 0);
    head.n_dirs = 1;
    head.pool_bytes = UINT64_MAX;
    CHECK(index_init(&x, &head) != 0);
    head.pool_bytes = 0;
    CHECK(index_init(&x, &head) != 0);
}

/* Reads the one file of a cache folder. */
static void *read_cache(const char *file, size_t *n)
{
    FILE *f = fopen(file, "rb");
    void *p = malloc(1 << 20);
    *n = f ? fread(p, 1, 1 << 20, f) : 0;
    if (f)
        fclose(f);
    return p;
}

static void back_from_a_file(void)
{
    struct index x = {0}, y = {0};
    size_t n;
    make(&x, true);
    index_save(&x, temp_path("saved/index/1"));
    void *block = read_cache(temp_path("saved/index/1"), &n);
    CHECK_EQ(n, x.head->bytes);
    CHECK_EQ(index_adopt(&y, block, n), 0);
    CHECK_EQ(index_label(&y, 7), 1007);
    CHECK_STR(index_class(&y, 1), "b");
    index_done(&x);
    index_done(&y);
}

/* Any changed, missing or additional byte of the file is detected. */
static void every_byte_counts(void)
{
    struct index x = {0}, y = {0};
    size_t n;
    make(&x, false);
    index_save(&x, temp_path("saved/index/2"));
    index_done(&x);
    uint8_t *good = read_cache(temp_path("saved/index/2"), &n), *bad = malloc(n + 8);
    for (size_t i = 0; i < n; i++) {
        memcpy(bad, good, n);
        bad[i] ^= 0x40;
        CHECK(index_adopt(&y, bad, n) != 0);
    }
    for (size_t k = 0; k < n; k += 7)
        CHECK(index_adopt(&y, bad, k) != 0);
    memcpy(bad, good, n);
    memset(bad + n, 0, 8);
    CHECK(index_adopt(&y, bad, n + 8) != 0);
    free(good);
    free(bad);
}

/* Offsets outside the block, with a correct checksum. */
static void wrong_offsets(void)
{
    for (int kind = 0; kind < 6; kind++) {
        struct index x = {0}, y = {0};
        make(&x, false);
        uint64_t *const offsets[] = {&x.name_at[3], &x.dir_at[1], &x.class_at[0]};
        if (kind < 3)
            *offsets[kind] = x.head->pool_bytes;
        else if (kind == 3)
            x.dir_of[9] = DIRS;
        else if (kind == 4)
            x.dir_label[1] = CLASSES;
        else
            x.pool[x.head->pool_bytes - 1] = 'x';
        const uint8_t *rest = (const void *)x.name_at;
        x.head->checksum = index_checksum(x.head, (const void *)x.size, rest,
                                          (size_t)x.head->bytes - sizeof *x.head - N * sizeof(int64_t));
        CHECK(index_adopt(&y, x.head, (size_t)x.head->bytes) != 0);
        index_done(&x);
    }
}

static void measures(void)
{
    struct index x = {0};
    struct index_sum one, two;
    char name[32];
    make(&x, false);
    for (int i = 0; i < N - 2; i++) {
        snprintf(name, sizeof name, "%s/%02d.jpg", i < N / 2 ? "a" : "b", i);
        temp_bytes(name, "0123456789", 10);
    }
    const int dir = open(temp_root, O_RDONLY | O_DIRECTORY);
    CHECK_EQ(index_size(&x, dir, 0), 10);
    CHECK_EQ(index_size(&x, dir, N - 1), -1);
    index_measure(&x, dir, 1, &one);
    CHECK_EQ(one.bytes, 10 * (N - 2));
    CHECK_EQ(one.missing, 2);
    CHECK_EQ(one.learned, N - 3);
    index_measure(&x, dir, 3, &two);
    CHECK_EQ(two.learned, 0);
    CHECK(one.fingerprint == two.fingerprint);
    close(dir);
    index_done(&x);
}

static int count_files(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    for (const struct dirent *entry; d && (entry = readdir(d)) != NULL;)
        n += entry->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static void no_place_no_cache(void)
{
    struct index x = {0};
    make(&x, false);
    temp_file("file", "x");
    index_save(&x, temp_path("file/index/1")); /* below a file */
    index_save(&x, "/proc/stoker/index/1");
    temp_dir("busy/index/1/occupied");
    index_save(&x, temp_path("busy/index/1")); /* a folder has the name of the file */
    CHECK_EQ(count_files(temp_path("busy/index")), 1);
    index_done(&x);
}

/* A pipe in the place of the location file is replaced; opening it for writing would wait for a reader. */
static void pipe_as_name(void)
{
    struct stat st;
    temp_dir("pipe");
    const char *name = temp_path("pipe/1.source");
    CHECK_EQ(mkfifo(name, 0600), 0);
    alarm(60); /* aborts the test if it hangs */
    index_save_location(temp_path("pipe/1"), "/data/photos");
    alarm(0);
    CHECK(stat(name, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 12);
}

static void where_caches_are(void)
{
    char dir[256];
    unsetenv("STOKER_CACHE_DIR");
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    setenv("HOME", "/home/me", 1);
    CHECK_EQ(index_cache_dir("/asked", dir, sizeof dir), 6);
    CHECK_STR(dir, "/asked");
    index_cache_dir(NULL, dir, sizeof dir);
    CHECK_STR(dir, "/xdg/stoker");
    setenv("STOKER_CACHE_DIR", "/env", 1);
    index_cache_dir("", dir, sizeof dir);
    CHECK_STR(dir, "/env");
    setenv("STOKER_CACHE_DIR", "off", 1);
    CHECK_EQ(index_cache_dir(NULL, dir, sizeof dir), 0);
    unsetenv("STOKER_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    index_cache_dir(NULL, dir, sizeof dir);
    CHECK_STR(dir, "/home/me/.cache/stoker");
    unsetenv("HOME");
    CHECK_EQ(index_cache_dir(NULL, dir, sizeof dir), 0);
    CHECK_EQ(index_cache_dir("off", dir, sizeof dir), 0);
    CHECK(index_cache_file("off", 1) == NULL);
    char *file = index_cache_file("/asked", 0x1234);
    CHECK_STR(file, "/asked/index/0000000000001234");
    free(file);
}

/* Whether the stamp of a file that was changed so many seconds ago is reliable. Repeated until it took at most 5 ms,
 * because a process that waits for the CPU sees an older file. */
static bool trusted(time_t seconds_ago, bool whole_seconds)
{
    struct stamp w;
    struct stat st = {0};
    struct timespec now, after;
    bool is;
    do {
        clock_gettime(CLOCK_REALTIME, &now);
        st.st_mtim.tv_sec = now.tv_sec - seconds_ago;
        st.st_mtim.tv_nsec = whole_seconds ? 0 : now.tv_nsec | 1;
        is = index_stamp(&w, &st);
        clock_gettime(CLOCK_REALTIME, &after);
    } while (after.tv_sec != now.tv_sec || after.tv_nsec - now.tv_nsec > 5000000);
    return is;
}

static void just_changed_is_not_trusted(void)
{
    CHECK(!trusted(0, false));
    CHECK(trusted(3, false));
    CHECK(!trusted(1, true)); /* a clock of whole seconds */
    CHECK(trusted(3, true));
    CHECK(!trusted(-3600, false)); /* the future */
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(samples), T(absurd_numbers), T(back_from_a_file), T(every_byte_counts), T(wrong_offsets), T(measures),
          T(no_place_no_cache), T(pipe_as_name), T(where_caches_are), T(just_changed_is_not_trusted))
}
