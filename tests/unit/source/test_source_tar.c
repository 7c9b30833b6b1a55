/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_tar.c -- files of tar archives become samples. Covers group.c and records_groups.c.
 */
#include "source/group.h"
#include "support/archives.h"
#include "support/gzips.h"
#include "support/tars.h"

static void save(const char *below, struct tars *t)
{
    tars_end(t);
    temp_bytes(below, t->bytes.data, t->bytes.len);
    buf_done(&t->bytes);
}

static void names_are_split(void)
{
    static const struct {
        const char *name, *key, *part; /* part is NULL: not part of a sample */
    } cases[] = {
        {"a.jpg", "a", "jpg"},
        {"a.SEG.Png", "a", "seg.png"},
        {"x.y/a.b.c", "x.y/a", "b.c"},
        {"../../etc/passwd.txt", "../../etc/passwd", "txt"},
        {"./n01/1.jpg", "./n01/1", "jpg"},
        {"a", "", NULL},
        {"a.", "", NULL},
        {"x.y/a", "", NULL},
        {"", "", NULL},
        {"a/", "", NULL},
        {".hidden.jpg", "", NULL},
        {"a/._1.jpg", "", NULL},
        {"a/Thumbs.db", "", NULL},
        {"__key__.txt", "__key__", "txt"},
        {"__index__", "", NULL},
        {"__meta__/a.txt", "", NULL},
        {"__MACOSX/a.txt", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n_key = 0;
        char part[COLUMN_NAME] = "";
        const bool is = group_split(cases[i].name, strlen(cases[i].name), &n_key, part);
        CHECK_EQ(is, cases[i].part != NULL);
        if (!is || !cases[i].part)
            continue;
        CHECK_EQ(n_key, strlen(cases[i].key));
        CHECK(strncmp(cases[i].name, cases[i].key, n_key) == 0);
        CHECK_STR(part, cases[i].part);
    }
    char name[COLUMN_NAME + 2], part[COLUMN_NAME];
    size_t n_key;
    memset(name, 'X', sizeof name);
    name[1] = '.';
    CHECK(group_split(name, sizeof name - 1, &n_key, part));
    CHECK_EQ(strlen(part), COLUMN_NAME - 1);
    CHECK(!group_split(name, sizeof name, &n_key, part));
}

static void groups(void)
{
    struct tars t = {0};
    tars_text(&t, "__meta__", "skipped");
    tars_text(&t, "a/1.jpg", "one");
    tars_text(&t, "a/1.CLS", " 7\n");
    tars_text(&t, "a/1.caption.txt", "a cat");
    tars_text(&t, "a/2.cls", "3");
    tars_text(&t, "a/2.jpg", "two");
    tars_text(&t, "a/1.jpg", "again");
    save("g.tar", &t);
    CHECK_STR(shown("g.tar", NULL),
              "a/1 [7] image=one caption.txt=a cat | a/2 [3] image=two | a/1 !the label is missing, "
              "although other samples have one | ");
    CHECK(strstr(shown("g.tar", "image, label ? 9"), "| a/1 [9] image=again | "));
    CHECK_STR(shown("g.tar", "jpg:bytes, text=caption.txt"),
              "a/1 [7] jpg=one text=a cat | a/2 [3] jpg=two | a/1 jpg=again | ");
    CHECK(strstr(shown("g.tar", "png"), "no column png"));
    CHECK(strstr(shown("g.tar?x=1", NULL), "!"));
}

/* All bytes of a part's name count. */
static void long_names(void)
{
#define STEM "a_name_that_is_longer_than_a_field_can_be_called_by_quite_a_few_bytes_"
    struct tars t = {0};
    tars_text(&t, "1." STEM "x", "one");
    tars_text(&t, "1." STEM "y", "two");
    save("l.tar", &t);
    CHECK_STR(shown("l.tar", "x=" STEM "x, y=" STEM "y"), "1 x=one y=two | ");
}

static void text_labels(void)
{
    struct tars t = {0};
    tars_text(&t, "1.jpg", "one");
    tars_text(&t, "1.cls", "dog");
    tars_text(&t, "2.jpg", "two");
    tars_text(&t, "2.cls", "cat");
    save("t-0.tar", &t);
    tars_text(&t, "3.jpg", "three");
    tars_text(&t, "3.cls", "ant");
    save("t-1.tar", &t);
    CHECK_STR(shown("t-{0..1}.tar", NULL), "1 [2] image=one | 2 [1] image=two | 3 [0] image=three | ");
}

/* If samples are only images, their folders are the classes. */
static void class_folders(void)
{
    struct tars t = {0};
    tars_member(&t, "./set/", '5', NULL, 0);
    tars_text(&t, "./set/dog/1.jpg", "one");
    tars_text(&t, "./set/cat/1.png", "two");
    tars_text(&t, "./set/cat/below/1.jpeg", "three");
    save("f-0.tar", &t);
    tars_text(&t, "./set/ape/1.jpg", "four");
    save("f-1.tar", &t);
    CHECK_STR(shown("f-0.tar", NULL),
              "./set/dog/1 [1] image=one | ./set/cat/1 [0] image=two | ./set/cat/below/1 [0] image=three | ");
    CHECK(strstr(shown("f-?.tar", NULL), "./set/dog/1 [2]"));
    tars_text(&t, "only/1.jpg", "one");
    save("f-2.tar", &t);
    CHECK_STR(shown("f-2.tar", NULL), "only/1 [0] image=one | ");
    tars_text(&t, "only/1.jpg", "one");
    tars_text(&t, "2.jpg", "two");
    save("f-3.tar", &t);
    CHECK_STR(shown("f-3.tar", NULL), "only/1 image=one | 2 image=two | ");
    tars_text(&t, "a/1.jpg", "one");
    tars_text(&t, "a/1.png", "two");
    save("f-4.tar", &t);
    CHECK_STR(shown("f-4.tar", NULL), "a/1 image=one png=two | ");
}

static void damage(void)
{
    struct tars t = {0};
    tars_text(&t, "a/1.jpg", "one");
    tars_text(&t, "a/2.jpg", "two");
    tars_text(&t, "b/3.jpg", "three");
    tars_pax(&t, 'x', "GNU.sparse.major", "1");
    tars_text(&t, "b/4.jpg", "four");
    tars_text(&t, "b/5.jpg", "five");
    t.bytes.data[1024] ^= 1;
    t.bytes.len -= 510; /* and the last one is truncated after two bytes */
    temp_bytes("d.tar", t.bytes.data, t.bytes.len);
    CHECK_STR(shown("d.tar", NULL),
              "a/1 [0] image=one | @1024 !the checksum of its header is wrong (at byte 1024 of the shard) | "
              "b/3 [1] image=three | b/4 [1] !is a sparse file, which Stoker does not read; make the archive without "
              "--sparse "
              "(at byte 3072 of the shard) | b/5 [1] !the archive ends inside it (at byte 5120 of the shard) | ");
    buf_done(&t.bytes);
    char junk[3000];
    memset(junk, 'j', sizeof junk);
    temp_bytes("junk.tar", junk, sizeof junk);
    CHECK(strstr(shown("junk.tar", NULL), "!is not a tar archive"));
    temp_bytes("empty.tar", "", 0);
    CHECK(strstr(shown("empty.tar", NULL), "!contains no samples"));
    struct tars plain = {0};
    tars_text(&plain, "a/1", "one");
    tars_end(&plain);
    temp_bytes("plain.tar", plain.bytes.data, plain.bytes.len);
    CHECK(strstr(shown("plain.tar", NULL), "!contains no samples: file names need a dot"));
    buf_done(&plain.bytes);
}

/* A compressed archive has the same samples, up to the damage. */
static void packed(void)
{
    if (stream_missing(STREAM_GZIP))
        SKIP("no zlib in this build");
    struct tars t = {0};
    char large[3000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    tars_text(&t, "a/1.jpg", "one");
    tars_text(&t, "a/2.jpg", large);
    tars_text(&t, "b/3.jpg", "three");
    tars_end(&t);
    temp_bytes("p.tar", t.bytes.data, t.bytes.len);
    struct buf z = {0};
    gzips_member(&z, t.bytes.data, 1000);
    gzips_member(&z, t.bytes.data + 1000, t.bytes.len - 1000);
    temp_bytes("p.tar.gz", z.data, z.len);
    temp_bytes("p.tgz", z.data, z.len);
    temp_bytes("named otherwise", z.data, z.len);
    char *plain = strdup(shown("p.tar", NULL));
    CHECK_STR(shown("p.tar.gz", NULL), plain);
    CHECK_STR(shown("p.tgz", NULL), plain);
    struct source *s;
    const struct source_options o = {.path = temp_path("p.tgz"), .cache_dir = "off"};
    CHECK_EQ(source_open(&s, &o, NULL), STK_OK);
    CHECK_EQ(source_probe_access(s), SOURCE_ACCESS_NONE); /* decompressed data is not in a file */
    source_close(s);
    CHECK_STR(shown("named otherwise", NULL), plain);
    char both[16384];
    snprintf(both, sizeof both, "%s%s", plain, plain);
    CHECK_STR(shown("p.t{ar,gz}", NULL), both);
    z.data[z.len - 5] ^= 1; /* the checksum of the stream */
    temp_bytes("p.tar.gz", z.data, z.len);
    snprintf(both, sizeof both, "%s@%d !the gzip stream is damaged after %d bytes (at byte %d of the shard) | ", plain,
             (int)t.bytes.len, (int)t.bytes.len, (int)t.bytes.len);
    CHECK_STR(shown("p.tar.gz", NULL), both);
    temp_bytes("p.tar.gz", z.data, 10 + 5 + 1000 + 8 + 10 + 5 + 1200);
    CHECK_STR(shown("p.tar.gz", NULL),
              "a/1 [0] image=one | a/2 [0] !the archive ends inside it (at byte 1024 of the shard) | "
              "@2200 !the gzip stream was cut short after 2200 bytes (at byte 2200 of the shard) | ");
    free(plain);
    buf_done(&z);
    buf_done(&t.bytes);
}

static void other_packed_files(void)
{
    if (stream_missing(STREAM_GZIP))
        SKIP("no zlib in this build");
    struct buf z = {0};
    gzips_member(&z, (const uint8_t *)"one\ntwo\n", 8);
    temp_bytes("lines.txt.gz", z.data, z.len);
    temp_bytes("lines.gz", z.data, z.len);
    temp_bytes("array.npy.gz", z.data, z.len);
    CHECK_STR(shown("lines.txt.gz", NULL), "lines.txt.gz:0 text=one | lines.txt.gz:1 text=two | ");
    CHECK(strstr(shown("lines.gz", NULL), "!compressed files of this kind are not supported"));
    CHECK(strstr(shown("array.npy.gz", NULL), "!compressed files of this kind are not supported"));
    buf_done(&z);
}

static void beside_labels(void)
{
    struct tars t = {0};
    char large[2000];
    memset(large, '1', sizeof large);
    tars_file(&t, "1.cls", large, sizeof large); /* no label, but a column */
    tars_text(&t, "1.jpg", "one");
    save("l.tar", &t);
    CHECK(strstr(shown("l.tar", "jpg:bytes"), "1 jpg=one | "));
    tars_file(&t, "1.cls", "a\0b", 3);
    tars_text(&t, "1.jpg", "one");
    tars_text(&t, "2.cls", "  ");
    tars_text(&t, "2.jpg", "two");
    save("m.tar", &t);
    CHECK_STR(shown("m.tar", "jpg:bytes"), "1 jpg=one | 2 jpg=two | ");
}

/* A few bytes that need a zstd window of 256 MiB: refused if memory is small, which is not damage. */
static void large_windows(void)
{
    if (stream_missing(STREAM_ZSTD))
        SKIP("no libzstd in this build");
    struct tars t = {0};
    tars_text(&t, "1.txt", "one");
    tars_end(&t);
    struct buf z = {0};
    gzips_add(&z, "\x28\xb5\x2f\xfd\0\x90", 6);
    gzips_put(&z, (uint32_t)(t.bytes.len << 3 | 1), 3);
    gzips_add(&z, t.bytes.data, t.bytes.len);
    temp_bytes("w.tar.zst", z.data, z.len);
    struct source_options o = {.path = temp_path("w.tar.zst"), .cache_dir = "off", .memory = 64 << 20};
    struct source *s;
    stk_error e;
    CHECK_EQ(source_open(&s, &o, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "needs 257 MiB, but the memory limit leaves 8 MiB for it; raise memory by 1992 MiB") != NULL);
    o.memory = (int64_t)4 << 30;
    CHECK_EQ(source_open(&s, &o, &e), STK_OK);
    source_close(s);
    buf_done(&z);
    buf_done(&t.bytes);
}

/* Decompressed data counts as memory and is reported. */
static void unpacked_counts(void)
{
    if (stream_missing(STREAM_GZIP))
        SKIP("no zlib in this build");
    struct tars t = {0};
    struct buf z = {0};
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "%02d.txt", i);
        tars_text(&t, name, "some text");
    }
    tars_end(&t);
    gzips_member(&z, t.bytes.data, t.bytes.len);
    temp_bytes("u.tar.gz", z.data, z.len);
    for (int64_t memory = 64 << 20; memory <= (int64_t)4 << 30; memory *= 4) {
        const stk_options o = {
            .source = temp_path("u.tar.gz"), .batch_size = 8, .threads = 2, .memory = memory, .cache_dir = "off"};
        stk_loader *l;
        stk_batch *b;
        stk_stats s;
        char text[4000], words[100];
        CHECK_EQ(stk_open(&l, &o, NULL), STK_OK);
        CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
        stk_stats_get(l, &s);
        CHECK(s.memory_bytes > 1 << 20 && s.memory_bytes <= memory);
        const int64_t eighth = memory >> 23;
        snprintf(words, sizeof words, "and %lld MiB for data that the source decompresses; it uses ",
                 (long long)((eighth < 128 ? eighth : 128) + eighth));
        stk_explain(l, text, sizeof text);
        CHECK(strstr(text, words) != NULL);
        stk_release(b);
        stk_close(l);
    }
    buf_done(&z);
    buf_done(&t.bytes);
}

int main(int argc, char **argv)
{
    temp_begin();
    const struct test_case cases[] = {T(names_are_split), T(groups),        T(long_names),     T(text_labels),
                                      T(class_folders),   T(damage),        T(packed),         T(other_packed_files),
                                      T(beside_labels),   T(large_windows), T(unpacked_counts)};
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    temp_end();
    return rc;
}
