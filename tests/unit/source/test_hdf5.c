/* SPDX-License-Identifier: Apache-2.0 */
/* test_hdf5.c -- HDF5 files written by h5py (the fuzzer's seeds): values, samples, and damage of any kind. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "format/hdf5_dataset.h"
#include "format/hdf5_group.h"
#include "source/source.h"
#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

static const char *seed(const char *name)
{
    static char path[4096];
    const char *folder = getenv("STOKER_SEEDS");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "fuzz/seeds/hdf5", name);
    return path;
}

static uint8_t *seed_bytes(const char *name, size_t *n)
{
    FILE *f = fopen(seed(name), "rb");
    uint8_t *p = malloc(1 << 20);
    *n = f && p ? fread(p, 1, 1 << 20, f) : 0;
    if (f)
        fclose(f);
    CHECK(*n > 0);
    return p;
}

/* "hdf5:", the seed, and a query. */
static struct source *open_seed(const char *name, const char *query, const char *fields)
{
    char path[5000];
    struct source *s = NULL;
    snprintf(path, sizeof path, "hdf5:%s%s", seed(name), query);
    const struct source_options o = {.path = path, .fields = fields, .cache_dir = "off"};
    memset(&error, 0, sizeof error);
    source_open(&s, &o, &error);
    return s;
}

static const struct field *field_of_name(const struct source *s, const char *name, int *f)
{
    for (*f = 0; *f < source_n_fields(s); ++*f)
        if (strcmp(source_field(s, *f)->name, name) == 0)
            return source_field(s, *f);
    return NULL;
}

static void rows_of_old_files(void)
{
    struct source *s = open_seed("old", "", NULL);
    CHECK(s != NULL);
    if (!s)
        return;
    int f;
    CHECK_STR(source_kind(s), "HDF5 files");
    CHECK_EQ(source_count(s), 6);
    CHECK_EQ(source_label(s, 5), 5);
    const struct field *image = field_of_name(s, "image", &f);
    CHECK(image && image->kind == FIELD_PIXELS && image->shape[0] == 4 && image->shape[2] == 1);
    uint8_t plain[12], packed[12];
    CHECK(field_of_name(s, "z", &f) == NULL || source_field(s, f)->bytes == 12);
    for (int64_t i = 0; i < 6; i++) {
        int z;
        CHECK(field_of_name(s, "z", &z) != NULL);
        CHECK_EQ(source_copy(s, NULL, i, 0, plain, &error), STK_OK);
        CHECK_EQ(source_copy(s, NULL, i, z, packed, &error), STK_OK);
        CHECK(memcmp(plain, packed, 12) == 0); /* the same numbers, in chunks that split rows */
    }
    char text[5000];
    CHECK(source_path(s, 3, text, sizeof text) > 0 && strstr(text, "old row 3"));
    source_key(s, 3, text, sizeof text);
    CHECK_STR(text, "old:3");
    CHECK(source_identity(s, 1) != source_identity(s, 2) || source_identity(s, 1) == 0);
    source_close(s);
}

static void rows_of_new_files(void)
{
    static const char *const names[] = {"fixed", "ext", "tree", "one"};
    uint8_t rows[4][6][12];
    for (int k = 0; k < 4; k++) {
        char query[64];
        snprintf(query, sizeof query, "?x=%s", names[k]);
        struct source *s = open_seed("new", query, "x:uint8(4,3)");
        CHECK(s != NULL);
        struct reading r = {0};
        for (int64_t i = 0; s && i < 6; i++)
            CHECK_EQ(source_copy(s, &r, i, 0, rows[k][i], &error), STK_OK);
        source_close(s);
        CHECK(memcmp(rows[0], rows[k], sizeof rows[0]) == 0);
    }
}

static void samples_that_are_groups(void)
{
    struct source *s = open_seed("samples", "", NULL);
    CHECK(s != NULL);
    if (!s)
        return;
    struct reading r = {0};
    char text[64];
    int f;
    CHECK_EQ(source_count(s), 3);
    CHECK_EQ(source_label(s, 2), 2);
    source_key(s, 1, text, sizeof text);
    CHECK_STR(text, "s1");
    CHECK(field_of_name(s, "image", &f) && source_field(s, f)->kind == FIELD_RAGGED);
    CHECK_EQ(source_read(s, &r, 2, &error), STK_OK);
    CHECK_EQ(r.cells[f].n, 6);
    CHECK(r.cells[f].bytes[5] == 5);
    buf_done(&r.file);
    buf_done(&r.derived);
    source_close(s);
}

static void text_and_sequences(void)
{
    struct source *s = open_seed("vlen", "", NULL);
    CHECK(s != NULL);
    if (!s)
        return;
    struct reading r = {0};
    int text = 0, v = 0;
    CHECK(field_of_name(s, "text", &text) && field_of_name(s, "v", &v));
    CHECK_EQ(source_read(s, &r, 1, &error), STK_OK);
    CHECK(r.cells[text].n == 3 && memcmp(r.cells[text].bytes, "bcd", 3) == 0);
    CHECK_EQ(r.cells[v].n, 10);
    CHECK_EQ(r.cells[v].dtype, STK_INT16);
    CHECK_EQ(source_read(s, &r, 2, &error), STK_OK);
    CHECK_EQ(r.cells[text].n, 0);
    buf_done(&r.file);
    buf_done(&r.derived);
    source_close(s);
}

static void refused(const char *name, const char *query, const char *fields, const char *words)
{
    struct source *s = open_seed(name, query, fields);
    CHECK(s == NULL);
    if (!strstr(error.reason, words))
        printf("%s\n", error.reason);
    CHECK(strstr(error.reason, words) != NULL);
    source_close(s);
}

static void refusals(void)
{
    refused("old", "?x=nothing", NULL, "has no dataset nothing; the datasets are ");
    refused("old", "?group=none", NULL, "has no group none; the group is g");
    refused("old", "?samples=both", NULL, "samples must be groups or rows");
    refused("old", "?x=y&z=l", NULL, "l has 9 rows, but y has 6");
    refused("old", "", "nothing", "there is no column nothing");
    refused("dense", "", NULL, "has no dataset with rows");
    refused("dense", "?x=n003", NULL, "is a single value");
    refused("damaged", "", NULL,
            "is damaged: 1 object cannot be read, and no other dataset has rows; replace the file");
}

/* All rows of a dataset, or of a member of a compound dataset. */
static void use_rows(const struct hdf5_view *v, int64_t at, const char *member)
{
    struct hdf5_rows *k = hdf5_rows_new(1 << 16, 1 << 16); /* it identifies arrays by their address */
    struct hdf5_array a;
    struct hdf5_odd odd;
    uint8_t row[4096];
    hdf5_describe(v, at, member, false, &a, &odd);
    for (int64_t r = 0; !odd.why && a.ndim > 0 && r < a.shape[0] && r < 9 && a.row_bytes <= sizeof row; r++)
        if (a.chunks.chunk_bytes < 1 << 20 && a.stored_bytes < 1 << 20)
            hdf5_row(k, v, &a, r, SIZE_MAX, row);
    hdf5_array_done(&a);
    hdf5_rows_free(k);
}

/* Calls every function on a file in memory. */
static void use(const uint8_t *p, size_t n)
{
    struct hdf5_view v = {.fd = -1, .memory = p, .size = (int64_t)n};
    struct hdf5_names datasets = {0}, groups = {0};
    struct hdf5_others others = {0};
    if (hdf5_view_open(&v))
        return;
    hdf5_list(&v, v.root, &datasets, &groups, &others);
    for (uint32_t i = 0; i < datasets.names.n; i++) {
        const int64_t at = hdf5_names_at(&datasets, i);
        struct names members = {0};
        use_rows(&v, at, NULL);
        hdf5_dataset_members(&v, at, &members);
        for (uint32_t k = 0; k < members.n && k < 9; k++)
            use_rows(&v, at, names_at(&members, k));
        names_done(&members);
    }
    hdf5_names_done(&datasets);
    hdf5_names_done(&groups);
}

static const char *const all_seeds[] = {"old",  "new",   "dense", "vlen",    "longext",     "samples", "user",
                                        "szip", "scale", "nbit",  "structs", "structs_new", "odd"};

static void cut_anywhere(void)
{
    for (size_t i = 0; i < sizeof all_seeds / sizeof all_seeds[0]; i++) {
        size_t n;
        uint8_t *p = seed_bytes(all_seeds[i], &n);
        for (size_t cut = 0; cut < n; cut += 1 + n / 2000) {
            uint8_t *part = malloc(cut ? cut : 1); /* of exactly that size, for the sanitizer */
            memcpy(part, p, cut);
            use(part, cut);
            free(part);
        }
        free(p);
    }
}

static void bits_flipped(void)
{
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof all_seeds / sizeof all_seeds[0]; i++) {
        size_t n;
        uint8_t *p = seed_bytes(all_seeds[i], &n);
        for (int k = 0; k < 1500; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const size_t at = (size_t)(random >> 33) % n;
            const uint8_t was = p[at];
            p[at] = (uint8_t)(k % 3 ? was ^ 1u << (random >> 30 & 7) : 0xff);
            use(p, n);
            p[at] = was;
        }
        free(p);
    }
}

/* If a file shrinks, only the lost samples are bad. */
static void shrinks(void)
{
    size_t n;
    uint8_t *p = seed_bytes("old", &n);
    char name[1200];
    temp_begin();
    temp_bytes("x.h5", p, n);
    snprintf(name, sizeof name, "hdf5:%s", temp_path("x.h5"));
    struct source *s = NULL;
    const struct source_options o = {.path = name, .cache_dir = "off"};
    CHECK_EQ(source_open(&s, &o, &error), STK_OK);
    uint8_t row[12];
    CHECK_EQ(source_copy(s, NULL, 5, 0, row, &error), STK_OK);
    CHECK(truncate(temp_path("x.h5"), 1500) == 0);
    CHECK_EQ(source_copy(s, NULL, 5, 0, row, &error), STK_EDATA);
    CHECK(strstr(error.reason, "the file ends") != NULL);
    source_close(s);
    temp_end();
    free(p);
}

struct tally {
    int64_t calls, samples;
    bool in_order, named;
};

static int count_run(void *user, const stk_finding *f)
{
    struct tally *t = user;
    char name[64];
    snprintf(name, sizeof name, " row %lld", (long long)f->sample);
    const size_t n = strlen(f->path), m = strlen(name);
    t->calls++;
    t->in_order &= f->sample == t->samples && f->code == STK_OK;
    t->named &= n > m && strcmp(f->path + n - m, name) == 0;
    t->samples += f->run;
    return 0;
}

/* 2^26 rows in chunks of 1,024. The second and the last were written. */
static void unwritten_rows_are_one_run(void)
{
    enum { CHUNK = 1024, ROWS = 1 << 26 };
    struct source *s = open_seed("sparse", "", NULL);
    CHECK(s != NULL);
    CHECK_EQ(source_count_identical(s, 0), CHUNK);
    CHECK_EQ(source_count_identical(s, 100), CHUNK - 100);
    CHECK_EQ(source_count_identical(s, CHUNK), 1);
    CHECK_EQ(source_count_identical(s, 2 * CHUNK - 1), 1);
    CHECK_EQ(source_count_identical(s, 2 * CHUNK), ROWS - 3 * CHUNK);
    CHECK_EQ(source_count_identical(s, ROWS - 1), 1);
    source_close(s);
    char path[5000];
    snprintf(path, sizeof path, "hdf5:%s", seed("sparse"));
    for (int runs = 0; runs < 2; runs++) {
        struct tally t = {.in_order = true, .named = true};
        const stk_scan_options how = {
            .decode = 1, .each = count_run, .user = &t, .runs = runs, .threads = 3, .take = 2 * CHUNK + 5000};
        stk_source *scanned;
        CHECK_EQ(stk_source_open(&scanned, &(stk_source_options){.source = path, .cache_dir = "off"}, &error), STK_OK);
        CHECK_EQ(stk_scan(scanned, &how, &error), STK_OK);
        stk_source_close(scanned);
        CHECK_EQ(t.samples, 2 * CHUNK + 5000);
        CHECK_EQ(t.calls, runs ? CHUNK + 2 : t.samples);
        CHECK(t.in_order && t.named);
    }
}

/* 2^31 rows with labels in chunks of 32,768. Of both, the third was written. */
static void unwritten_labels_are_one_run(void)
{
    enum { CHUNK = 32768 };
    struct source *s = open_seed("sparse_labels", "", NULL);
    CHECK(s != NULL);
    CHECK_EQ(source_count(s), INT64_C(1) << 31);
    CHECK_EQ(source_label(s, 0), 0);
    CHECK_EQ(source_label(s, 70000), 3);
    CHECK_EQ(source_label(s, (INT64_C(1) << 31) - 1), 0);
    CHECK_EQ(source_count_identical(s, 0), 2 * CHUNK);
    CHECK_EQ(source_count_identical(s, 70000), 1);
    CHECK_EQ(source_count_identical(s, 3 * CHUNK), (INT64_C(1) << 31) - 3 * CHUNK);
    source_close(s);
}

static struct source *shared;
static atomic_int wrong;

static void *read_all(void *user)
{
    const int64_t begin = *(const int64_t *)user;
    uint8_t plain[12], packed[12];
    int z;
    field_of_name(shared, "z", &z);
    for (int64_t i = 0; i < 600; i++) {
        const int64_t row = (begin + i * 5) % 6;
        if (source_copy(shared, NULL, row, 0, plain, NULL) != STK_OK ||
            source_copy(shared, NULL, row, z, packed, NULL) != STK_OK || memcmp(plain, packed, 12) != 0)
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void many_threads(void)
{
    pthread_t threads[4];
    int64_t begins[4] = {0, 1, 2, 3};
    shared = open_seed("old", "", NULL);
    CHECK(shared != NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, read_all, &begins[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(wrong, 0);
    source_close(shared);
}

struct asked {
    int times;
    size_t most, limit;
};

static int allow(void *user, size_t bytes, stk_error *e)
{
    struct asked *a = user;
    a->times++;
    a->most = bytes > a->most ? bytes : a->most;
    return bytes <= a->limit ? STK_OK : error_set(e, STK_EDATA, "decode", "needs more than there is");
}

/* Two rows of 4 MiB in a compressed chunk. */
static void chunks_count(void)
{
    enum { ROW = 4 << 20, CHUNK = 2 * ROW };
    char path[5000];
    snprintf(path, sizeof path, "hdf5:%s", seed("wide"));
    static uint8_t row[ROW];
    for (int kept = 0; kept < 2; kept++) {
        const struct source_options o = {
            .path = path, .cache_dir = "off", .threads = 2, .memory = kept ? 1 << 30 : 32 << 20};
        struct asked a = {.limit = SIZE_MAX};
        struct reading r = {.allow = allow, .user = &a};
        struct source *s;
        size_t held, most;
        CHECK_EQ(source_open(&s, &o, &error), STK_OK);
        for (int64_t i = 0; i < 4; i++) {
            CHECK_EQ(source_copy(s, &r, i, 0, row, &error), STK_OK);
            CHECK(row[0] == 1 + i && row[ROW - 1] == 5 + i && row[1000] == 0);
            source_memory(s, &held, &most);
            CHECK(held <= most);
        }
        /* Asked twice: before the chunk is decompressed, and when the row's length is known. Opening read the first
         * row. */
        CHECK_EQ(a.times, 2 * (kept ? 1 : 4));
        CHECK(a.most > 2 * CHUNK + ROW && a.most < 3 * CHUNK);
        CHECK(kept ? most > 2 * CHUNK && held >= 2 * CHUNK : most <= 8 << 20);
        a.limit = CHUNK;
        source_copy(s, &r, 0, 0, row, &error); /* it may be kept */
        if (!kept) {
            CHECK_EQ(source_copy(s, &r, 0, 0, row, &error), STK_EDATA);
            CHECK(strstr(error.text, "x: with its chunk of 8 MiB it needs more than there is") != NULL);
        }
        source_close(s);
    }
    const struct source_options o = {.path = path, .cache_dir = "off", .max_bytes = ROW};
    struct reading r = {0};
    struct source *s;
    CHECK_EQ(source_open(&s, &o, &error), STK_OK);
    CHECK_EQ(source_copy(s, &r, 3, 0, row, &error), STK_EDATA);
    CHECK(strstr(error.text, "a chunk or row has 8388608 bytes, more than the 4194304 that max_bytes allows") != NULL);
    source_close(s);
}

int main(int argc, char **argv)
{
    TESTS(T(rows_of_old_files), T(rows_of_new_files), T(samples_that_are_groups), T(text_and_sequences), T(refusals),
          T(cut_anywhere), T(bits_flipped), T(shrinks), T(unwritten_rows_are_one_run), T(unwritten_labels_are_one_run),
          T(many_threads), T(chunks_count))
}
