/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_loader_checkpoints.c -- later epochs and runs read only the ranges of a file that a crop takes: the same bits,
 * fewer bytes, and the same verdict on files that have changed since. Covers loader_checkpoints.c, and what desk.c and
 * loader.c do with ranges.
 */
#include <stdbool.h>

#include "base/buf.h"
#include "stoker.h"
#include "support/temp_tree.h"
#include "test.h"

enum { FILES = 12, W = 360, H = 280, EPOCHS = 12, LATER = 50 };

static char set[PATH_MAX]; /* temp_path's own memory does not last */

static const char *file_of(int i)
{
    static char name[64];
    snprintf(name, sizeof name, "set/%c/%02d.jpg", 'a' + i % 2, i);
    return name;
}

/* A rotated image: an EXIF segment after the first marker. */
static void write_turned(const char *below, const uint8_t *bytes, size_t n, uint8_t orientation)
{
    uint8_t exif[36] = {0xff, 0xe1, 0, 34, 'E', 'x',  'i', 'f', 0, 0, 'I', 'I', 42, 0,          8,
                        0,    0,    0, 1,  0,   0x12, 1,   3,   0, 1, 0,   0,   0,  orientation};
    struct buf all = {0};
    buf_add(&all, bytes, 2);
    buf_add(&all, exif, sizeof exif);
    buf_add(&all, bytes + 2, n - 2);
    temp_bytes(below, all.data, all.len);
    buf_done(&all);
}

/* Mostly baseline JPEGs; also grey and rotated ones, one of several scans, and a PNG. */
static void write_image(int i, uint32_t seed)
{
    static uint8_t px[W * H * 3];
    const int w = W - i * 3, h = H - i, channels = i == 5 ? 1 : 3;
    for (size_t k = 0; k < sizeof px; k++) {
        seed = seed * 1664525u + 1013904223u;
        px[k] = (uint8_t)(k / 90 + (seed >> 26));
    }
    const stk_encode_options o = {
        .format = i == 7 ? STK_PNG : STK_JPEG, .quality = 96, .subsample = i % 2, .progressive = i == 6};
    void *bytes = NULL;
    size_t n = 0;
    CHECK_EQ(stk_encode(px, w, h, channels, (size_t)w * (size_t)channels, &o, &bytes, &n, NULL), STK_OK);
    if (i == 3 || i == 4)
        write_turned(file_of(i), bytes, n, i == 3 ? 6 : 3);
    else
        temp_bytes(file_of(i), bytes, n);
    stk_free(bytes);
}

static void make_set(void)
{
    temp_begin();
    for (int i = 0; i < FILES; i++)
        write_image(i, (uint32_t)i + 1);
    temp_settle();
    snprintf(set, sizeof set, "%s", temp_path("set"));
}

static stk_options options(stk_reader reader)
{
    return (stk_options){.source = set,
                         .ops = "RandomResizedCrop(24) | RandomHorizontalFlip",
                         .batch_size = 4,
                         .threads = 1,
                         .shuffle = 1,
                         .memory = 128 << 20,
                         .on_error = STK_SKIP,
                         .max_bad = 1,
                         .reader = reader,
                         .cache_dir = "off"};
}

/* ------------------------------------------------------------------ one loader */

static stk_loader *loader;

static void begin(const stk_options *o)
{
    stk_error e;
    const int rc = stk_open(&loader, o, &e);
    if (rc != STK_OK)
        printf("%s\n", e.text);
    CHECK_EQ(rc, STK_OK);
}

static uint64_t read_epochs(int first, int end)
{
    uint64_t hash = 0;
    CHECK_EQ(stk_set_epoch(loader, first, NULL), STK_OK);
    for (int epoch = first; epoch < end; epoch++) {
        stk_batch *b;
        while (stk_next(loader, &b, NULL) == STK_OK) {
            const stk_array *image = stk_field(b, "image"), *index = stk_field(b, "index");
            hash = stk_hash(image->data, (size_t)image->shape[0] * 3 * 24 * 24 * sizeof(float), hash);
            hash = stk_hash(index->data, (size_t)index->shape[0] * sizeof(int64_t), hash);
            stk_release(b);
        }
    }
    return hash;
}

static stk_stats end(void)
{
    stk_stats s;
    stk_stats_get(loader, &s);
    stk_close(loader);
    return s;
}

static bool reads_ranges(void)
{
    char text[4000];
    stk_explain(loader, text, sizeof text);
    return strstr(text, "in part") && !strstr(text, " 0 % are read in part");
}

/* Whether the reader came to read ranges here, sooner or later; false: no io_uring, or no O_DIRECT. */
static bool works_here(void)
{
    const stk_options o = options(STK_READER_URING);
    bool works = false;
    begin(&o);
    for (int i = 0; i < 100 && !works; i++) {
        read_epochs(3 * i, 3 * i + 3);
        works = reads_ranges();
    }
    end();
    return works;
}

/* ------------------------------------------------------------------ cases */

static void the_same_bits(void)
{
    static const struct {
        int threads, no_exif;
        stk_fidelity fidelity;
    } forms[] = {{1, 0, 0}, {3, 1, 0}, {3, 0, STK_DRAFT}, {1, 1, STK_DRAFT}}; /* all pairs of values */
    make_set();
    for (int form = 0; form < 4; form++) {
        stk_options o = options(STK_READER_PREAD);
        o.threads = forms[form].threads;
        o.no_exif = forms[form].no_exif;
        o.fidelity = forms[form].fidelity;
        begin(&o);
        const uint64_t right = read_epochs(0, EPOCHS);
        end();
        o.reader = STK_READER_URING;
        begin(&o);
        CHECK_EQ(read_epochs(0, EPOCHS), right);
        end();
        o.cache_dir = temp_path("cache");
        for (int run = 0; run < 2; run++) { /* in the second, all checkpoints are known from the start */
            begin(&o);
            CHECK_EQ(read_epochs(0, EPOCHS), right);
            end();
        }
    }
    temp_end();
}

static void fewer_bytes(void)
{
    make_set();
    if (!works_here()) {
        temp_end();
        SKIP("no io_uring, or no way past the page cache");
    }
    int64_t all = 0;
    for (int i = 0; i < FILES; i++) {
        struct stat st;
        CHECK_EQ(stat(temp_path(file_of(i)), &st), 0);
        all += (int64_t)st.st_size;
    }
    stk_options o = options(STK_READER_URING);
    o.cache_dir = temp_path("cache");
    for (int run = 0; run < 2; run++) {
        int64_t epochs = 0;
        bool fewer = false;
        begin(&o);
        while (!fewer && epochs < 6000) { /* a reader that does not get the CPU is too late */
            read_epochs((int)epochs, (int)epochs + 6);
            epochs += 6;
            stk_stats s;
            stk_stats_get(loader, &s);
            fewer = s.read_bytes < all * epochs * 9 / 10;
        }
        CHECK(fewer);
        end();
    }
    o.cache = STK_CACHE_BYTES; /* files are wanted whole */
    o.cache_dir = "off";
    begin(&o);
    read_epochs(0, EPOCHS);
    CHECK(!reads_ranges());
    end();
    temp_end();
}

static int64_t summed;

static int sum_sizes(const char *path, const struct stat *st, int flag, struct FTW *f)
{
    (void)path, (void)f;
    summed += flag == FTW_F ? (int64_t)st->st_size : 0;
    return 0;
}

static int64_t folder_bytes(const char *path)
{
    summed = 0;
    nftw(path, sum_sizes, 16, FTW_PHYS);
    return summed;
}

/* Checkpoints grow while crops reach further down, and later runs start with the last ones. A loader prepares
 * batches that nobody reads: at most one epoch of them at the first count, and fewer epochs in the second run than the
 * first run has read. */
static void what_grows_is_written(void)
{
    char cache[PATH_MAX];
    make_set();
    for (int i = 0; i < FILES; i++) {
        const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
        CHECK_EQ(utimensat(AT_FDCWD, temp_path(file_of(i)), times, 0), 0);
    }
    snprintf(cache, sizeof cache, "%s", temp_path("cache"));
    stk_options o = options(STK_READER_PREAD);
    o.cache_dir = cache;
    o.ops = "RandomResizedCrop(24, scale=(0.01, 0.02))"; /* small ones, so that most files grow after two epochs */
    begin(&o);
    read_epochs(0, 1);
    const int64_t at_first = folder_bytes(cache);
    read_epochs(1, 2 * EPOCHS);
    end();
    const int64_t grown = folder_bytes(cache);
    CHECK(at_first > 0 && grown > at_first);
    begin(&o);
    read_epochs(0, 1);
    end();
    CHECK_EQ(folder_bytes(cache), grown);
    temp_end();
}

static void change_files(void)
{
    write_image(0, 77); /* another image of the same size */
    CHECK_EQ(truncate(temp_path(file_of(1)), 9000), 0);
    unlink(temp_path(file_of(2)));
    temp_file(file_of(8), "not an image at all");
    const int header = open(temp_path(file_of(9)), O_RDWR), scan = open(temp_path(file_of(10)), O_RDWR);
    CHECK_EQ(pwrite(header, "\x7f", 1, 60), 1); /* a table */
    CHECK_EQ(pwrite(scan, "\xff\xd9", 2, 20000), 2);
    close(header);
    close(scan);
}

/* Files that changed after their checkpoints were made: the result is that of a loader that reads whole files. */
static void changed_files(void)
{
    static const stk_reader readers[] = {STK_READER_PREAD, STK_READER_URING};
    for (int threads = 1; threads <= 3; threads += 2) {
        uint64_t hash[2];
        int64_t bad[2], warnings[2];
        for (int k = 0; k < 2; k++) {
            make_set();
            stk_options o = options(readers[k]);
            o.threads = threads;
            begin(&o);
            read_epochs(0, EPOCHS);
            change_files();
            hash[k] = read_epochs(LATER, LATER + EPOCHS);
            const stk_stats s = end();
            bad[k] = s.bad;
            warnings[k] = s.warnings;
            temp_end();
        }
        CHECK_EQ(hash[0], hash[1]);
        CHECK_EQ(bad[0], bad[1]);
        CHECK(bad[0] > EPOCHS && (warnings[0] > 0) == (warnings[1] > 0)); /* what is ahead of the last epoch counts */
    }
}

int main(int argc, char **argv)
{
    TESTS(T(the_same_bits), T(fewer_bytes), T(what_grows_is_written), T(changed_files))
}
