/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_failures.c -- every allocation and every call to the system fails once, the n-th one after
 * the other, while a folder is opened, read for an epoch, saved, resumed and closed. Each run must end with
 * the right pixels or with an error in words; the sanitizers watch for leaks and worse.
 */
#include <dirent.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "stoker.h"
#include "support/failing.h"
#include "support/frames.h"
#include "support/gzips.h"
#include "support/protos.h"
#include "support/tars.h"
#include "support/zips.h"
#include "test.h"

WRAP("memory", void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at), (p, n, prot, flags, fd, at),
     MAP_FAILED, ENOMEM)
WRAP("memory", void *, mmap64, (void *p, size_t n, int prot, int flags, int fd, off_t at), (p, n, prot, flags, fd, at),
     MAP_FAILED, ENOMEM)
WRAP("read", ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int flags), (fd, v, n, at, flags), -1,
     EIO)
WRAP("read", ssize_t, preadv64v2, (int fd, const struct iovec *v, int n, off_t at, int flags), (fd, v, n, at, flags),
     -1, EIO)
WRAP("read", ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), -1, EIO)
WRAP("read", int, fstat, (int fd, struct stat *s), (fd, s), -1, EIO)
WRAP("read", int, fstat64, (int fd, struct stat *s), (fd, s), -1, EIO)
WRAP("read", int, fstatat, (int fd, const char *p, struct stat *s, int flags), (fd, p, s, flags), -1, EIO)
WRAP("read", int, fstatat64, (int fd, const char *p, struct stat *s, int flags), (fd, p, s, flags), -1, EIO)
WRAP("read", DIR *, fdopendir, (int fd), (fd), NULL, EMFILE)
WRAP("read", DIR *, opendir, (const char *p), (p), NULL, EMFILE)
WRAP("read", struct dirent *, readdir, (DIR * d), (d), NULL, EIO)
WRAP("read", struct dirent *, readdir64, (DIR * d), (d), NULL, EIO)
WRAP("write", int, mkdir, (const char *p, mode_t mode), (p, mode), -1, EROFS)

/* ------------------------------------------------------------------ the job */

static char folder[] = "/tmp/stoker-failures-XXXXXX";
enum { FILES = 6 };

static void path_of(int i, char *buf, size_t n)
{
    static const char *const suffix[] = {"jpg", "png", "webp"};
    snprintf(buf, n, "%s/set/%c/%d.%s", folder, i % 2 ? 'b' : 'a', i, suffix[i % 3]);
}

static void write_image(int i)
{
    uint8_t px[40 * 30 * 3];
    for (size_t k = 0; k < sizeof px; k++)
        px[k] = (uint8_t)(k * 7 + (size_t)i * 31);
    const stk_encode_options o = {.format = (stk_format)(STK_JPEG + i % 3)};
    void *bytes = NULL;
    size_t n = 0;
    if (stk_encode(px, 40, 30, 3, 120, &o, &bytes, &n, NULL) != STK_OK)
        return; /* a codec that is not built in */
    char path[200];
    path_of(i, path, sizeof path);
    FILE *f = fopen(path, "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
    stk_free(bytes);
}

static void make_folder(void)
{
    if (!mkdtemp(folder))
        exit(1);
    char path[200];
    static const char *const dirs[] = {"set", "set/a", "set/b", "cache"};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, dirs[i]);
        mkdir(path, 0700);
    }
    for (int i = 0; i < FILES; i++)
        write_image(i);
}

static void remove_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        printf("could not remove %s\n", folder);
}

/* Hashes the rest of an epoch, and returns the code that ended it. */
static int read_epoch(stk_loader *l, uint64_t *hash)
{
    stk_error e;
    stk_batch *b;
    int rc;
    while ((rc = stk_next(l, &b, &e)) == STK_OK) {
        *hash = stk_hash(stk_field(b, "image")->data, (size_t)stk_samples(b) * 3 * 16 * 16, *hash);
        stk_release(b);
    }
    if (rc != STK_END)
        CHECK(e.text[0] != 0);
    return rc;
}

enum { PLAIN, CACHED, KEPT, MODES }; /* without a cache; with one for the index; with one for pixels, too */

/* Returns 0 on success; *hash is that of two epochs. */
static int job(uint64_t *hash, int mode, stk_reader reader)
{
    char path[200], cache[200], state[300];
    snprintf(path, sizeof path, "%s/set", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    const stk_options o = {
        .source = path,
        .ops = "RandomResizedCrop(16) | RandomHorizontalFlip",
        .dtype = STK_UINT8,
        .batch_size = 2,
        .threads = 1,
        .shuffle = 1,
        .cache_dir = mode == PLAIN ? "off" : cache,
        .cache = mode == KEPT ? STK_CACHE_PIXELS : STK_CACHE_NONE,
        .cache_size = 1 << 20,
        .memory = 64 << 20,
        .reader = reader,
    };
    stk_error e;
    stk_loader *l;
    *hash = 0;
    int rc = stk_open(&l, &o, &e);
    if (rc != STK_OK) {
        CHECK(e.code == rc && e.text[0] != 0);
        return rc;
    }
    rc = read_epoch(l, hash);
    if (rc == STK_END) {
        stk_state_get(l, state, sizeof state);
        rc = stk_state_set(l, state, &e);
    }
    if (rc == STK_OK)
        rc = read_epoch(l, hash);
    stk_close(l);
    return rc == STK_END ? 0 : rc;
}

static uint64_t right; /* the hash when nothing fails */

static void remove_cache(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s/cache", folder);
    CHECK_EQ(system(command), 0);
}

static void fail_one_by_one(const char *kind, int mode, stk_reader reader)
{
    static const char *const words[MODES] = {"", ", with a cache", ", with pixels kept"};
    int n = 0;
    for (int more = 1; more; n++) {
        uint64_t hash;
        if (mode == KEPT && n % 2 == 0) /* one run fills it, and another one uses it */
            remove_cache();
        failing = kind;
        fail_in = n / (mode == KEPT ? 2 : 1);
        const int rc = job(&hash, mode, reader);
        more = fail_in < 0 || (mode == KEPT && n % 2); /* it was reached, or may be when the cache is filled */
        fail_in = -1;
        failing = "";
        CHECK(rc != 0 || hash == right || strcmp(kind, "read") == 0);
        CHECK(rc == 0 || strcmp(kind, "write") != 0); /* a failed write must not fail the loader */
    }
    printf("%s%s%s: %d runs, each with a failure\n", kind, words[mode],
           reader == STK_READER_URING ? ", read ahead" : "", n - 1);
    CHECK(n > (strcmp(kind, "thread") == 0 ? 1 : 10));
}

static void memory(void)
{
    for (int mode = 0; mode < MODES; mode++)
        fail_one_by_one("memory", mode, STK_READER_DEFAULT);
    fail_one_by_one("memory", PLAIN, STK_READER_URING);
    fail_one_by_one("memory", CACHED, STK_READER_URING); /* files in parts, from the first epoch on */
}

/* A folder that cannot be read to its end has fewer samples: the pixels may differ, never be wrong. */
static void reads(void)
{
    for (int mode = 0; mode < MODES; mode++)
        fail_one_by_one("read", mode, STK_READER_DEFAULT);
    fail_one_by_one("read", PLAIN, STK_READER_URING);
    fail_one_by_one("read", CACHED, STK_READER_URING);
}

static void writes(void)
{
    fail_one_by_one("write", KEPT, STK_READER_DEFAULT);
}

static void threads(void)
{
    fail_one_by_one("thread", PLAIN, STK_READER_DEFAULT);
    fail_one_by_one("thread", PLAIN, STK_READER_URING);
}

static int check_finding(void *user, const stk_finding *f)
{
    (void)user;
    CHECK(f->code == STK_OK || f->reason[0] != 0);
    return 0;
}

static void scan_each(const char *kind)
{
    char path[200];
    snprintf(path, sizeof path, "%s/set", folder);
    const stk_source_options o = {.source = path, .threads = 1, .cache_dir = "off", .memory = 64 << 20};
    const stk_scan_options how = {.decode = 1, .each = check_finding, .threads = 1, .memory = 64 << 20};
    for (int n = 0, more = 1; more; n++) {
        stk_error e;
        failing = kind;
        fail_in = n;
        stk_source *s;
        int rc = stk_source_open(&s, &o, &e);
        if (rc == STK_OK)
            rc = stk_scan(s, &how, &e);
        stk_source_close(s);
        more = fail_in < 0;
        fail_in = -1;
        CHECK(rc == STK_OK || e.text[0] != 0);
    }
}

static void scans(void)
{
    scan_each("memory");
    scan_each("read");
    scan_each("thread");
}

/* ------------------------------------------------------------------ containers */

static void write_file(const char *path, const struct buf *b)
{
    FILE *f = fopen(path, "wb");
    fwrite(b->data, 1, b->len, f);
    fclose(f);
}

/* {numbers: ..., text: ...}, no images. */
static void make_records(const char *path)
{
    struct buf file = {0}, map = {0}, feature = {0}, all = {0};
    for (int i = 0; i < FILES; i++) {
        const int64_t numbers[] = {i, 300, -1};
        const char *const text[] = {"some text"};
        proto_ints(&feature, numbers, 1 + i % 3, 1);
        proto_entry(&map, "numbers", &feature);
        proto_strings(&feature, text, 1);
        proto_entry(&map, "text", &feature);
        proto_message(&all, 1, &map);
        frame_add(&file, all.data, all.len);
        all.len = 0;
    }
    write_file(path, &file);
    buf_done(&file);
    buf_done(&map);
    buf_done(&feature);
    buf_done(&all);
}

static void make_list(const char *path)
{
    FILE *f = fopen(path, "wb");
    for (int i = 0; i < FILES; i++)
        fprintf(f, "{\"n\": %d, \"meta\": {\"text\": \"some\"}, \"box\": [%d, 2, 3.5]}\n", i, i);
    fclose(f);
}

/* Two arrays, one of them the label. */
static void make_npz(const char *path)
{
    struct zips z = {0};
    for (int member = 0; member < 2; member++) {
        uint8_t npy[256] = "\x93NUMPY\1";
        const int length =
            snprintf((char *)npy + 10, sizeof npy - 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,%s), }",
                     FILES, member ? "" : " 4");
        npy[8] = (uint8_t)length;
        const size_t n = 10 + (size_t)length + (size_t)(FILES * (member ? 1 : 4));
        zips_add(&z, &(struct zips_file){.name = member ? "y.npy" : "x.npy", .p = npy, .n = n, .raw = (uint32_t)n});
    }
    zips_end(&z);
    write_file(path, &z.bytes);
    zips_done(&z);
}

static void make_text(const char *path)
{
    FILE *f = fopen(path, "wb");
    for (int i = 0; i < FILES; i++)
        fprintf(f, "line %d\r\n", i);
    fclose(f);
}

/* Groups of two parts in a tar archive that is compressed as a whole. */
static void make_tar(const char *path)
{
    struct tars t = {0};
    struct buf packed = {0};
    char name[32];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%d.txt", i);
        tars_text(&t, name, "some text");
        snprintf(name, sizeof name, "%d.cls", i);
        tars_text(&t, name, i % 2 ? "cat" : "dog");
    }
    tars_end(&t);
    gzips_member(&packed, t.bytes.data, t.bytes.len);
    write_file(path, &packed);
    buf_done(&t.bytes);
    buf_done(&packed);
}

static void make_zip(const char *path)
{
    static const uint8_t hello[] = {0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0xb9, 0x00};
    static const char text[] = "hello hello hello hello\n";
    struct zips z = {0};
    char name[32];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%d.txt", i);
        zips_add(&z, &(struct zips_file){.name = name,
                                         .p = hello,
                                         .n = sizeof hello,
                                         .raw = sizeof text - 1,
                                         .crc = gzips_crc((const uint8_t *)text, sizeof text - 1),
                                         .method = 8});
    }
    zips_end(&z);
    write_file(path, &z.bytes);
    zips_done(&z);
}

static const char *joined_to; /* another source; NULL: none */
static const char *own_fields, *own_ops;

static int read_container(const char *path, stk_reader reader, uint64_t *hash)
{
    const char *const both[] = {path, joined_to};
    const stk_options o = {.source = joined_to ? NULL : path,
                           .sources = joined_to ? both : NULL,
                           .n_sources = joined_to ? 2 : 0,
                           .fields = own_fields,
                           .ops = own_ops,
                           .sizes = own_ops ? STK_SIZES_PAD : STK_SIZES_SAME,
                           .batch_size = 2,
                           .threads = 1,
                           .cache_dir = "off",
                           .memory = 64 << 20,
                           .max_bytes = 1 << 20,
                           .reader = reader};
    stk_error e;
    stk_loader *l;
    stk_batch *b;
    *hash = 0;
    int rc = stk_open(&l, &o, &e);
    while (rc == STK_OK && (rc = stk_next(l, &b, &e)) == STK_OK) {
        for (int f = 0; f < stk_batch_n_fields(b); f++) {
            const stk_array *a = stk_field_at(b, f);
            *hash = stk_hash(a->shape, (size_t)a->ndim * sizeof *a->shape, *hash);
        }
        stk_release(b);
    }
    CHECK(rc == STK_END || (rc == e.code && e.text[0] != 0));
    if (l)
        stk_close(l);
    return rc == STK_END ? 0 : rc;
}

static void container_each(const char *kind, const char *path, stk_reader reader)
{
    uint64_t good, hash;
    int n = 0;
    CHECK_EQ(read_container(path, reader, &good), 0);
    for (int more = 1; more; n++) {
        failing = kind;
        fail_in = n;
        const int rc = read_container(path, reader, &hash);
        more = fail_in < 0;
        fail_in = -1;
        failing = "";
        CHECK(rc != 0 || hash == good ||
              strcmp(kind, "read") == 0); /* what is looked at to find the columns may fail */
    }
    printf("%s of %s: %d runs, each with a failure\n", kind, strrchr(path, '/') + 1, n - 1);
}

static void containers(void)
{
    static const struct {
        const char *name;
        void (*make)(const char *path);
    } kinds[] = {{"a.tfrecord", make_records}, {"l.jsonl", make_list}, {"a.npz", make_npz},
                 {"t.txt", make_text},         {"a.tar.gz", make_tar}, {"a.zip", make_zip}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s/%s", folder, kinds[i].name);
        kinds[i].make(path);
        container_each("memory", path, STK_READER_DEFAULT);
        container_each("read", path, STK_READER_DEFAULT);
        container_each("memory", path, STK_READER_URING);
        container_each("read", path, STK_READER_URING);
    }
}

/* Fields that both sources have, and different classes. */
static void joined_sources(void)
{
    char tar[200], other[200];
    struct tars t = {0};
    snprintf(tar, sizeof tar, "%s/one.tar", folder);
    snprintf(other, sizeof other, "%s/two.tar", folder);
    tars_text(&t, "1.cls", "cat");
    tars_text(&t, "1.txt", "a");
    tars_end(&t);
    write_file(tar, &t.bytes);
    buf_done(&t.bytes);
    t = (struct tars){0};
    tars_text(&t, "1.cls", "dog");
    tars_text(&t, "1.json", "{}");
    tars_end(&t);
    write_file(other, &t.bytes);
    buf_done(&t.bytes);
    joined_to = other;
    container_each("memory", tar, STK_READER_DEFAULT);
    container_each("read", tar, STK_READER_DEFAULT);
    joined_to = NULL;
}

/* Files as h5py has written them: chunks, filters, elements of variable length, groups. */
static void hdf5_files(void)
{
    static const char *const names[] = {"old", "new", "vlen", "samples", "nbit", "structs_new"};
    const char *seeds = getenv("STOKER_SEEDS");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4096];
        snprintf(path, sizeof path, "hdf5:%s/%s", seeds ? seeds : "fuzz/seeds/hdf5", names[i]);
        container_each("memory", path, STK_READER_DEFAULT);
        container_each("read", path, STK_READER_DEFAULT);
    }
}

static int64_t count_one(void *user)
{
    (void)user;
    return 1;
}

static int read_nothing(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label, stk_error *e)
{
    (void)user, (void)thread, (void)i, (void)bytes, (void)n, (void)label, (void)e;
    return STK_EDATA;
}

static void count_close(void *user)
{
    ++*(int *)user;
}

/* close() is called exactly once, whichever allocation or thread of opening fails. */
static void close_each(const char *kind, bool loader)
{
    for (int n = 0, more = 1; more; n++) {
        int times = 0;
        const stk_read_hooks h = {.user = &times, .count = count_one, .read = read_nothing, .close = count_close};
        const stk_options o = {.read_hooks = &h, .ops = "CenterCrop(8)", .threads = 2, .memory = 64 << 20};
        const stk_source_options so = {.read_hooks = &h, .threads = 2, .memory = 64 << 20};
        stk_loader *l = NULL;
        stk_source *s = NULL;
        failing = kind;
        fail_in = n;
        const int rc = loader ? stk_open(&l, &o, NULL) : stk_source_open(&s, &so, NULL);
        more = fail_in < 0;
        fail_in = -1;
        CHECK_EQ(times, rc != STK_OK);
        stk_close(l);
        stk_source_close(s);
        CHECK_EQ(times, 1);
    }
}

static void hooks_are_closed(void)
{
    close_each("memory", true);
    close_each("thread", true);
    close_each("memory", false);
}

/* Once the largest sample was seen and the ring is as deep as it gets, our code allocates nothing more. PNG is left
 * out: libpng's own memory comes through a hook of ours. */
static void no_allocation_per_sample(void)
{
    char path[200];
    snprintf(path, sizeof path, "%s/set", folder);
    const int64_t subset[] = {0, 1, 4, 5};
    const stk_options o = {
        .source = path,
        .subset = subset,
        .n_subset = 4,
        .ops = "Resize((16, 16))",
        .batch_size = 2,
        .threads = 1,
        .cache_dir = "off",
    };
    stk_loader *l;
    stk_batch *b;
    CHECK_EQ(stk_open(&l, &o, NULL), STK_OK);
    for (int epoch = 0; epoch < 3; epoch++)
        while (stk_next(l, &b, NULL) == STK_OK)
            stk_release(b);
    failing = "memory";
    calls = 1;
    for (int tries = 0; tries < 50 && calls > 0; tries++) {
        calls = 0;
        for (int epoch = 0; epoch < 20; epoch++)
            while (stk_next(l, &b, NULL) == STK_OK)
                stk_release(b);
    }
    CHECK_EQ(calls, 0);
    failing = "";
    stk_close(l);
}

/* Images with masks and boxes. */
static void followers(void)
{
    static const uint8_t grey[12 * 9];
    char path[200], name[32];
    struct tars t = {0};
    void *png = NULL;
    size_t n = 0;
    const stk_encode_options o = {.format = STK_PNG};
    CHECK_EQ(stk_encode(grey, 12, 9, 1, 12, &o, &png, &n, NULL), STK_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%d.png", i);
        tars_file(&t, name, png, n);
        snprintf(name, sizeof name, "%d.mask.png", i);
        tars_file(&t, name, png, n);
        snprintf(name, sizeof name, "%d.boxes.json", i);
        tars_text(&t, name, "[[1, 2, 3, 4], [5, 2, 9, 8]]");
        snprintf(name, sizeof name, "%d.points.json", i);
        tars_text(&t, name, "[[1, 2], [3, 4]]");
    }
    tars_end(&t);
    snprintf(path, sizeof path, "%s/followers.tar", folder);
    write_file(path, &t.bytes);
    buf_done(&t.bytes);
    free(png);
    own_fields = "png, mask=mask.png:mask(int32), boxes=boxes.json:boxes, points=points.json:keypoints(2)";
    own_ops = "RandomIoUCrop | RandomRotation(30) | SanitizeBoundingBoxes";
    container_each("memory", path, STK_READER_DEFAULT);
    container_each("read", path, STK_READER_DEFAULT);
    own_fields = own_ops = NULL;
}

int main(int argc, char **argv)
{
    make_folder();
    int rc = job(&right, 0, STK_READER_DEFAULT);
    if (rc != 0)
        printf("the job itself fails with %d\n", rc);
    const struct test_case cases[] = {T(memory),
                                      T(reads),
                                      T(writes),
                                      T(threads),
                                      T(scans),
                                      T(containers),
                                      T(joined_sources),
                                      T(followers),
                                      T(hdf5_files),
                                      T(hooks_are_closed),
                                      T(no_allocation_per_sample)};
    rc = rc ? 1 : test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
    remove_folder();
    return rc;
}
