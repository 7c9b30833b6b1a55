/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_loader_cache.c -- a loader with a cache delivers the bits of one without: in every epoch and run, after damage,
 * with changed, missing and bad files, and however the process before it ended. Covers loader_cache*.c and
 * cache_choose.c.
 */
#include <glob.h>
#include <signal.h>
#include <sys/wait.h>

#include "stoker.h"
#include "support/temp_tree.h"
#include "test.h"

enum { FILES = 24, SIDE = 24 };

static const char *const pipelines[] = {
    "RandomResizedCrop(24) | RandomHorizontalFlip | Normalize",
    "Resize(30) | RandomCrop(24) | RandomHorizontalFlip",
    "Resize(30) | CenterCrop(24) | Normalize",
    "Grayscale(1) | Resize(28) | RandomCrop(24)",
};
enum { PIPELINES = 4 };

static const stk_cache kinds[] = {STK_CACHE_BYTES, STK_CACHE_PIXELS, STK_CACHE_DCT, STK_CACHE_AUTO, STK_CACHE_NONE};
enum { KINDS = 5 };

static void write_image(const char *below, int i)
{
    uint8_t px[61 * 50 * 3];
    const int w = 40 + i % 21, h = 50 - i % 11;
    for (size_t k = 0; k < sizeof px; k++)
        px[k] = (uint8_t)(k * 7 + (k >> 5) * (size_t)(i + 1));
    const stk_encode_options o = {.format = (stk_format)(STK_JPEG + i % 3)};
    void *bytes = NULL;
    size_t n = 0;
    CHECK_EQ(stk_encode(px, w, h, 3, (size_t)w * 3, &o, &bytes, &n, NULL), STK_OK);
    temp_bytes(below, bytes, n);
    stk_free(bytes);
}

static char set[PATH_MAX]; /* a copy of the path: the memory of temp_path is reused */

static const char *file_of(int i)
{
    static char name[64];
    snprintf(name, sizeof name, "set/%c/%02d.jpg", 'a' + i % 2, i);
    return name;
}

static void make_set(void)
{
    temp_begin();
    for (int i = 0; i < FILES; i++)
        write_image(file_of(i), i);
    temp_settle();
    snprintf(set, sizeof set, "%s", temp_path("set"));
}

static stk_options options(const char *ops)
{
    return (stk_options){.source = set,
                         .ops = ops,
                         .batch_size = 5,
                         .threads = 1, /* two may miss the same sample at the same time */
                         .shuffle = 1,
                         .memory = 128 << 20,
                         .on_error = STK_SKIP,
                         .max_bad = 1,
                         .cache_dir = "off"};
}

static uint64_t hash_field(const stk_batch *b, const char *name, uint64_t h)
{
    const stk_array *a = stk_field(b, name);
    size_t n = a->dtype == STK_FLOAT32 ? 4 : a->dtype == STK_INT64 ? 8 : 1;
    for (int i = 0; i < a->ndim; i++)
        n *= (size_t)a->shape[i];
    return stk_hash(a->data, n, h);
}

struct run {
    uint64_t hash;
    stk_stats stats;
    char explained[4000];
};

static void read_epoch(stk_loader *l, struct run *r)
{
    stk_batch *b;
    while (stk_next(l, &b, NULL) == STK_OK) {
        r->hash = hash_field(b, "image", r->hash);
        r->hash = hash_field(b, "label", r->hash);
        r->hash = hash_field(b, "index", r->hash);
        stk_release(b);
    }
}

/* Epochs from first to end, as one number. */
static void add_epochs(const stk_options *o, int first, int end, struct run *r)
{
    stk_loader *l;
    stk_error e;
    stk_stats s;
    if (stk_open(&l, o, &e) != STK_OK) {
        printf("%s\n", e.text);
        CHECK_EQ(e.code, STK_OK);
        return;
    }
    CHECK_EQ(stk_set_epoch(l, first, NULL), STK_OK);
    for (int epoch = first; epoch < end; epoch++)
        read_epoch(l, r);
    stk_stats_get(l, &s);
    CHECK(s.memory_bytes <= s.memory_limit);
    s.bad += r->stats.bad;
    s.warnings += r->stats.warnings;
    r->stats = s;
    stk_explain(l, r->explained, sizeof r->explained);
    stk_close(l);
}

static struct run run_loader(const stk_options *o, int epochs)
{
    struct run r = {0};
    add_epochs(o, 0, epochs, &r);
    return r;
}

/* The same by a new loader for every epoch, which has nothing that an earlier one could have kept. */
static struct run run_plain(const stk_options *o, int epochs)
{
    struct run r = {0};
    for (int epoch = 0; epoch < epochs; epoch++)
        add_epochs(o, epoch, epoch + 1, &r);
    return r;
}

static struct run with_cache(const stk_options *plain, stk_cache what, const char *dir, int epochs)
{
    stk_options o = *plain;
    o.cache = what;
    o.cache_dir = dir ? temp_path(dir) : "off";
    return run_loader(&o, epochs);
}

/* ------------------------------------------------------------------ the same bits */

static void caches_change_nothing(void)
{
    make_set();
    for (int p = 0; p < PIPELINES; p++) {
        stk_options o = options(pipelines[p]);
        o.threads = 3;
        const uint64_t right = run_plain(&o, 3).hash;
        for (int k = 0; k < KINDS; k++) {
            CHECK_EQ(with_cache(&o, kinds[k], NULL, 3).hash, right);
            for (int run = 0; run < 2; run++)
                CHECK_EQ(with_cache(&o, kinds[k], "cache", 3).hash, right);
        }
    }
    temp_end();
}

static void later_epochs_and_runs_find_everything(void)
{
    make_set();
    const stk_options o = options(pipelines[1]);
    for (int k = 0; k < 2; k++) {
        struct run r = with_cache(&o, kinds[k], NULL, 3);
        CHECK_EQ(r.stats.cache_entries, FILES);
        CHECK_EQ(r.stats.cache_misses, FILES);
        CHECK(r.stats.cache_hits >= 2 * FILES); /* what is ahead of the last epoch counts, too */
        CHECK(r.stats.cache_bytes > 0 && r.stats.cache_disk_bytes == 0);
        CHECK(strstr(r.explained, k ? "cache      pixels in memory" : "cache      bytes in memory"));
        r = with_cache(&o, kinds[k], "cache", 3);
        CHECK_EQ(r.stats.cache_misses, FILES);
        CHECK(r.stats.cache_disk_bytes > 0);
        r = with_cache(&o, kinds[k], "cache", 1);
        CHECK_EQ(r.stats.cache_misses, 0);
        CHECK(strstr(r.explained, "in the cache folder"));
    }
    temp_end();
}

static void ops_and_options_have_their_own_pixels(void)
{
    make_set();
    stk_options o = options(pipelines[1]);
    with_cache(&o, STK_CACHE_PIXELS, "cache", 1);
    o.dtype = STK_UINT8; /* the type comes after what is kept */
    o.layout = STK_NHWC;
    CHECK_EQ(with_cache(&o, STK_CACHE_PIXELS, "cache", 1).stats.cache_misses, 0);
    o.no_exif = 1;
    CHECK_EQ(with_cache(&o, STK_CACHE_PIXELS, "cache", 1).stats.cache_misses, FILES);
    o = options("Resize(31) | RandomCrop(24)");
    CHECK_EQ(with_cache(&o, STK_CACHE_PIXELS, "cache", 1).stats.cache_misses, FILES);
    CHECK_EQ(with_cache(&o, STK_CACHE_PIXELS, "cache", 1).hash, run_loader(&o, 1).hash);
    temp_end();
}

static void what_fits_helps(void)
{
    make_set();
    const stk_options plain = options(pipelines[0]);
    stk_options o = plain;
    o.cache_size = 60000;
    const uint64_t right = run_plain(&plain, 3).hash;
    const struct run r = with_cache(&o, STK_CACHE_PIXELS, "cache", 3);
    CHECK_EQ(r.hash, right);
    CHECK(r.stats.cache_entries > 2 && r.stats.cache_entries < FILES);
    CHECK(r.stats.cache_disk_bytes <= 60000);
    o = plain;
    o.memory = 42 << 20; /* next to nothing is left for it */
    CHECK_EQ(with_cache(&o, STK_CACHE_PIXELS, NULL, 3).hash, right);
    temp_end();
}

static void checkpoints_need_no_asking(void)
{
    make_set();
    const stk_options o = options(pipelines[0]);
    struct run r = with_cache(&o, STK_CACHE_NONE, "cache", 3);
    CHECK(strstr(r.explained, "cache      none\ncheckpoints in 8 JPEG files"));
    CHECK(strstr(r.explained, "in the cache folder, for later runs"));
    r = with_cache(&o, STK_CACHE_NONE, "cache", 1);
    CHECK(strstr(r.explained, "checkpoints in 8 JPEG files"));
    r = run_loader(&o, 1);
    CHECK(strstr(r.explained, "checkpoints in 8 JPEG files") && !strstr(r.explained, "for later runs"));
    const stk_options whole = options("Resize((24, 24))"); /* no crop, no use */
    CHECK(!strstr(run_loader(&whole, 1).explained, "checkpoints"));
    temp_end();
}

/* ------------------------------------------------------------------ files that change */

static void a_changed_file_is_read_again(void)
{
    for (int k = 0; k < 2; k++) {
        make_set();
        const stk_options o = options(pipelines[2]);
        with_cache(&o, kinds[k], "cache", 2);
        write_image(file_of(3), 99);
        temp_settle();
        const struct run r = with_cache(&o, kinds[k], "cache", 1);
        CHECK_EQ(r.hash, run_loader(&o, 1).hash);
        CHECK_EQ(r.stats.cache_misses, 1);
        CHECK_EQ(with_cache(&o, kinds[k], "cache", 1).stats.cache_misses, 0);
        temp_end();
    }
}

static void a_missing_file_is_missed(void)
{
    for (int k = 0; k < 2; k++) {
        make_set();
        const stk_options o = options(pipelines[2]);
        stk_loader *l;
        with_cache(&o, kinds[k], "cache", 2);
        stk_options cached = o;
        cached.cache = kinds[k];
        cached.cache_dir = temp_path("cache");
        CHECK_EQ(stk_open(&l, &cached, NULL), STK_OK);
        stk_close(l);
        unlink(temp_path(file_of(3)));
        stk_options list = cached; /* a list names it still */
        char text[FILES * 32] = "";
        for (int i = 0; i < FILES; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s,%d\n", file_of(i), i % 2);
        temp_file("list.csv", text);
        list.source = temp_path("list.csv");
        const struct run r = run_loader(&list, 1);
        CHECK_EQ(r.stats.bad, 1);
        temp_end();
    }
}

/* Bad in other ways: not an image, cut short, empty. */
static void bad_samples_stay_bad(void)
{
    make_set();
    temp_file(file_of(2), "not an image at all");
    temp_file(file_of(5), "");
    CHECK_EQ(truncate(temp_path(file_of(9)), 300), 0);
    CHECK_EQ(truncate(temp_path(file_of(10)), 200), 0);
    temp_settle();
    for (int p = 0; p < PIPELINES; p++) {
        stk_options o = options(pipelines[p]);
        o.threads = 3;
        const struct run right = run_plain(&o, 3);
        CHECK(right.stats.bad >= 6);
        for (int k = 0; k < KINDS; k++) {
            struct run r = with_cache(&o, kinds[k], NULL, 3);
            CHECK(r.hash == right.hash && r.stats.bad == right.stats.bad && r.stats.warnings == right.stats.warnings);
            for (int run = 0; run < 2; run++) {
                r = with_cache(&o, kinds[k], "cache", 3);
                CHECK(r.hash == right.hash && r.stats.bad == right.stats.bad);
            }
        }
    }
    temp_end();
}

/* ------------------------------------------------------------------ damage */

static void flip(int fd, off_t size, uint64_t where)
{
    uint8_t byte = 0;
    const off_t at = (off_t)(where % (uint64_t)size);
    CHECK_EQ(pread(fd, &byte, 1, at), 1);
    byte ^= (uint8_t)(1 << where % 7);
    CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
}

/* Flips this many bits in every file with such a name; with 0, cuts off its end. */
static void damage(const char *suffix, uint64_t seed, int flips)
{
    char pattern[PATH_MAX];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/data/*/*%s", temp_path("cache"), suffix);
    if (glob(pattern, 0, NULL, &g) != 0)
        return;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct stat st;
        const int fd = open(g.gl_pathv[i], O_RDWR);
        CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0);
        for (int k = 0; k < flips; k++)
            flip(fd, st.st_size, stk_hash(&k, sizeof k, seed));
        if (flips == 0)
            CHECK_EQ(ftruncate(fd, (off_t)(seed % (uint64_t)st.st_size)), 0);
        close(fd);
    }
    globfree(&g);
}

static void damage_changes_nothing(void)
{
    make_set();
    const stk_options o = options(pipelines[0]);
    const uint64_t right = run_plain(&o, 1).hash;
    for (uint64_t i = 0; i < 60; i++) {
        with_cache(&o, kinds[i % KINDS], "cache", 1);
        damage(i % 3 ? ".data" : ".index", i * 7919 * 7919, i % 5 != 4);
        CHECK_EQ(with_cache(&o, kinds[i % KINDS], "cache", 1).hash, right);
    }
    temp_end();
}

/* Many flips at once in all that is kept of real photos, again and again: ten thousand in all. */
static void photos_with_ten_thousand_flips(void)
{
    enum { ROUNDS = 40, FLIPS = 250 };
    const char *data = getenv("STOKER_TEST_DATA");
    char photos[PATH_MAX];
    if (!data)
        SKIP("STOKER_TEST_DATA is not set");
    snprintf(photos, sizeof photos, "%s/photos", data);
    temp_begin();
    stk_options o = options("RandomResizedCrop(32) | RandomHorizontalFlip");
    o.source = photos;
    o.take = 24;
    const uint64_t right = run_plain(&o, 1).hash;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        const stk_cache what = (stk_cache)(STK_CACHE_NONE + i % 4);
        with_cache(&o, what, "cache", 1);
        damage(".data", i, FLIPS / 2);
        damage(".index", i, FLIPS / 2);
        CHECK_EQ(with_cache(&o, what, "cache", 1).hash, right);
    }
    temp_end();
}

/* ------------------------------------------------------------------ processes */

static void two_processes_at_once(void)
{
    make_set();
    stk_options o = options(pipelines[1]);
    o.threads = 2;
    const uint64_t right = run_plain(&o, 3).hash;
    fflush(stdout);
    for (int k = 0; k < 3; k++)
        if (fork() == 0)
            _exit(with_cache(&o, STK_CACHE_PIXELS, "cache", 3).hash == right ? 0 : 1);
    int status;
    while (wait(&status) > 0)
        CHECK_EQ(status, 0);
    const struct run r = with_cache(&o, STK_CACHE_PIXELS, "cache", 1);
    CHECK_EQ(r.stats.cache_misses, 0);
    CHECK_EQ(run_loader(&o, 1).hash, r.hash);
    temp_end();
}

/* Two ranks on one machine, epoch by epoch: each soon finds the entries of the other. */
static void ranks_share_what_each_makes(void)
{
    make_set();
    stk_loader *l[2];
    struct run r[2] = {0}, plain[2] = {0};
    stk_options o = options(pipelines[1]);
    o.world_size = 2;
    for (o.rank = 0; o.rank < 2; o.rank++) {
        plain[o.rank] = run_plain(&o, 4);
        stk_options c = o;
        c.cache = STK_CACHE_BYTES;
        c.cache_dir = temp_path("cache");
        CHECK_EQ(stk_open(&l[o.rank], &c, NULL), STK_OK);
    }
    for (int epoch = 0; epoch < 4; epoch++)
        for (int rank = 0; rank < 2; rank++)
            read_epoch(l[rank], &r[rank]);
    int64_t misses = 0;
    for (int rank = 0; rank < 2; rank++) {
        stk_stats_get(l[rank], &r[rank].stats);
        misses += r[rank].stats.cache_misses;
        CHECK_EQ(r[rank].hash, plain[rank].hash);
        stk_close(l[rank]);
    }
    CHECK(misses < 2 * FILES);
    o = options(pipelines[1]);
    CHECK_EQ(with_cache(&o, STK_CACHE_BYTES, "cache", 1).stats.cache_misses, 0); /* both have written their share */
    temp_end();
}

/* The child reports its progress and is killed at that point, in the first epoch or later. */
static void killed_while_it_fills(void)
{
    make_set();
    const stk_options o = options(pipelines[1]);
    const uint64_t right = run_plain(&o, 2).hash;
    fflush(stdout);
    for (int batches = 0; batches < 8; batches++) {
        int ends[2];
        char x;
        CHECK_EQ(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            stk_options c = o;
            c.cache = STK_CACHE_PIXELS;
            c.cache_dir = temp_path("cache");
            stk_loader *l;
            stk_batch *b;
            if (stk_open(&l, &c, NULL) != STK_OK)
                _exit(1);
            for (int i = 0;; i++) {
                if (i == batches && write(ends[1], "x", 1) != 1)
                    _exit(1);
                if (stk_next(l, &b, NULL) == STK_OK)
                    stk_release(b);
            }
        }
        CHECK_EQ(read(ends[0], &x, 1), 1);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(ends[0]);
        close(ends[1]);
        CHECK_EQ(with_cache(&o, STK_CACHE_PIXELS, batches % 2 ? "cache" : "other", 2).hash, right);
    }
    temp_end();
}

/* ------------------------------------------------------------------ choosing, refusing */

static int count_lines;
static char last_line[400];

static void log_line(void *user, const char *text)
{
    (void)user;
    count_lines++;
    snprintf(last_line, sizeof last_line, "%s", text);
}

static void a_folder_that_cannot_be_used_is_told(void)
{
    make_set();
    temp_file("taken", "a file");
    stk_options o = options(pipelines[1]);
    const stk_log_hook log = {.line = log_line};
    o.log = &log;
    const uint64_t right = run_plain(&o, 2).hash;
    count_lines = 0;
    const struct run r = with_cache(&o, STK_CACHE_PIXELS, "taken", 2);
    CHECK_EQ(r.hash, right);
    CHECK_EQ(count_lines, 1);
    CHECK(strstr(last_line, "cache") && strstr(last_line, "Not a directory"));
    CHECK(strstr(r.explained, "Not a directory"));
    temp_end();
}

static void options_are_checked(void)
{
    make_set();
    stk_options o = options(pipelines[1]);
    stk_loader *l;
    stk_error e;
    o.cache = (stk_cache)99;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "none, bytes"));
    o.cache = STK_CACHE_BYTES;
    o.cache_size = -1;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    temp_end();
}

/* Leaves the JPEG images alone. */
static void remove_others(void)
{
    for (int i = 0; i < FILES; i++)
        if (i % 3 != 0)
            unlink(temp_path(file_of(i)));
}

static void auto_says_what_it_chose(void)
{
    make_set();
    stk_options o = options(pipelines[2]);
    struct run r = with_cache(&o, STK_CACHE_AUTO, NULL, 2);
    CHECK(strstr(r.explained, "cache      pixels in memory (chosen: the pixels of all images take about"));
    o.cache_size = 1000;
    r = with_cache(&o, STK_CACHE_AUTO, "cache", 2);
    CHECK(strstr(r.explained, "cache      none (chosen: all pixels would take"));
    o = options(pipelines[0]);
    o.cache_size = 40000;
    remove_others();
    r = with_cache(&o, STK_CACHE_AUTO, "cache", 2);
    CHECK(strstr(r.explained, "cache      dct in the cache folder (chosen: all pixels would take"));
    CHECK(r.stats.cache_entries > 0 && r.stats.cache_entries < FILES);
    temp_end();
}

/* ------------------------------------------------------------------ the caller's own sources */

static int64_t count_files(void *user)
{
    (void)user;
    return FILES;
}

static int read_file(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label, stk_error *e)
{
    static uint8_t files[4][1 << 16];
    (void)user, (void)e;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", temp_path(file_of((int)i)));
    FILE *f = fopen(path, "rb");
    *n = f ? fread(files[thread], 1, sizeof files[thread], f) : 0;
    *bytes = files[thread];
    *label = 100 + i;
    if (f)
        fclose(f);
    return STK_OK;
}

static void labels_of_cached_images_are_read(void)
{
    const stk_read_hooks h = {.count = count_files, .read = read_file};
    make_set();
    for (int p = 0; p < PIPELINES; p++) {
        stk_options o = options(pipelines[p]);
        o.source = NULL;
        o.read_hooks = &h;
        const uint64_t right = run_plain(&o, 3).hash;
        for (int k = 0; k < KINDS; k++)
            CHECK_EQ(with_cache(&o, kinds[k], NULL, 3).hash, right);
    }
    temp_end();
}

static void arrays_need_none(void)
{
    static uint8_t pixels[6 * 8 * 8 * 3];
    const int64_t shape[] = {6, 8, 8, 3};
    const stk_array image = {.name = "image", .data = pixels, .dtype = STK_UINT8, .ndim = 4, .shape = shape};
    const stk_options o = {
        .arrays = &image, .n_arrays = 1, .batch_size = 2, .threads = 1, .cache = STK_CACHE_PIXELS, .memory = 64 << 20};
    stk_loader *l;
    char text[2000];
    CHECK_EQ(stk_open(&l, &o, NULL), STK_OK);
    stk_explain(l, text, sizeof text);
    CHECK(strstr(text, "cache      none (the samples are already in memory"));
    stk_close(l);
}

int main(int argc, char **argv)
{
    TESTS(T(caches_change_nothing), T(later_epochs_and_runs_find_everything), T(ops_and_options_have_their_own_pixels),
          T(what_fits_helps), T(checkpoints_need_no_asking), T(a_changed_file_is_read_again),
          T(a_missing_file_is_missed), T(bad_samples_stay_bad), T(damage_changes_nothing),
          T(photos_with_ten_thousand_flips), T(two_processes_at_once), T(ranks_share_what_each_makes),
          T(killed_while_it_fills), T(a_folder_that_cannot_be_used_is_told), T(options_are_checked),
          T(auto_says_what_it_chose), T(labels_of_cached_images_are_read), T(arrays_need_none))
}
