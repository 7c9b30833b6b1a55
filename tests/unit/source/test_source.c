/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source.c -- what kind of source a name refers to, and the errors.
 * Covers source.c and recognise.c.
 */
#include "source/source.h"

#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

static struct source *open_source(const char *prefix, const char *below)
{
    char path[PATH_MAX];
    struct source *s = NULL;
    snprintf(path, sizeof path, "%s%.4000s", prefix, temp_path(below));
    const struct source_options o = {.path = path, .cache_dir = "off"};
    memset(&error, 0, sizeof error);
    source_open(&s, &o, &error);
    return s;
}

static void fails(const char *prefix, const char *below, int code, const char *words)
{
    struct source *s = open_source(prefix, below);
    CHECK(s == NULL);
    CHECK_EQ(error.code, code);
    CHECK_SAYS(error.text, words);
    source_close(s);
}

static void kind_is(const char *prefix, const char *below, const char *kind)
{
    struct source *s = open_source(prefix, below);
    if (!s)
        printf("%s\n", error.text);
    CHECK(s && strcmp(source_kind(s), kind) == 0);
    source_close(s);
}

static void recognised(void)
{
    temp_file("train/cat/1.jpg", "x");
    temp_file("flat/1.jpg", "x");
    temp_file("l.txt", "flat/1.jpg\n");
    temp_file("l.CSV", "flat/1.jpg,1\n");
    temp_file("l.ndjson", "{\"path\": \"flat/1.jpg\"}\n");
    temp_file("listing", "flat/1.jpg 3\n");
    temp_file("odd.name", "flat/1\n");
    temp_file("flat/1", "x");
    temp_file("one.jpg", "\xff\xd8\xff\xe0");
    temp_file("broken.png", "PNG");
    kind_is("", "train", "folder of classes");
    kind_is("", "train/", "folder of classes");
    kind_is("folder:", "train", "folder of classes");
    kind_is("files:", "train", "folder of files");
    kind_is("", "flat", "folder of files");
    kind_is("", "l.txt", "list");
    kind_is("", "one.jpg", "image file");
    kind_is("", "broken.png", "image file");
    kind_is("list:", "l.txt", "list");
    kind_is("", "l.CSV", "list");
    kind_is("", "l.ndjson", "list");
    kind_is("", "listing", "list");
    kind_is("list:", "odd.name", "list");
    fails("", "odd.name", STK_EUSAGE, "is not recognised; Stoker reads images, folders of images, lists");
}

static void what_is_not_read(void)
{
    temp_file("a.parquet", "PAR1");
    temp_file("a.json", "[]");
    temp_file("one.jpg", "\xff\xd8\xff\xe0");
    fails("", "shard-{0000..0127}.tar", STK_ENOTFOUND, "there is no shard-0000.tar");
    fails("", "x*.tar", STK_ENOTFOUND, "no file matches");
    fails("", "a.parquet", STK_EUSAGE, "Parquet files are read only from Python");
    fails("", "a.json?x=y", STK_ENOTFOUND, "add the prefix of the format");
    fails("", "a.json", STK_EUSAGE, "(.jsonl)");
    temp_file("x.array_record-00000-of-00001", "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f");
    temp_file("model.pt", "PK\3\4");
    fails("", "x.array_record-00000-of-00001", STK_EUSAGE, "ArrayRecord");
    fails("", "model.pt", STK_EUSAGE, "torch's saved objects are not supported");
    fails("s3://", "x", STK_EUSAGE, "object stores are not supported");
    fails("list:", "", STK_EUSAGE, "is a folder, not a list");
    fails("folder:", "one.jpg", STK_EUSAGE, "is a file, not a folder");
    mkfifo(temp_path("pipe"), 0666);
    fails("", "pipe", STK_EUSAGE, "neither a folder nor a regular file");
}

static void suggestions(void)
{
    temp_file("data/imagenet/train/c/1.jpg", "x");
    fails("", "data/imagnet", STK_ENOTFOUND, "did you mean imagenet?");
    fails("", "data/imagenet/trian/", STK_ENOTFOUND, "did you mean train?");
    fails("", "data/quite/other/place", STK_ENOTFOUND, "there is no quite in");
    fails("", "data/imagenet/train/c/1.jpg/x", STK_ENOTFOUND, "there is no x in");
    fails("", "dataa", STK_ENOTFOUND, "did you mean data?");
    struct source *s;
    struct source_options o = {.path = "no-such-name-here"};
    CHECK_EQ(source_open(&s, &o, &error), STK_ENOTFOUND);
    CHECK(strstr(error.text, "in ."));
    o.path = "/no-such-name-here";
    CHECK_EQ(source_open(&s, &o, &error), STK_ENOTFOUND);
    CHECK(strstr(error.text, "in /"));
    o.path = "";
    CHECK_EQ(source_open(&s, &o, &error), STK_EUSAGE);
    char *longer = malloc(3 * PATH_MAX);
    memset(longer, 'x', 3 * PATH_MAX - 1);
    longer[3 * PATH_MAX - 1] = 0;
    o.path = longer;
    CHECK_EQ(source_open(&s, &o, &error), STK_EUSAGE);
    free(longer);
}

static void classes_without_a_name(void)
{
    struct source *s = (struct source *)&error;
    const char *classes[] = {"a", NULL};
    const struct source_options o = {.path = temp_root, .classes = classes, .n_classes = 2};
    CHECK_EQ(source_open(&s, &o, &error), STK_EUSAGE);
    CHECK(s == NULL);
    source_close(NULL);
}

/* Relative names keep working after chdir. */
static void the_current_folder(void)
{
    char path[PATH_MAX];
    struct reading r = {0};
    struct source *s;
    const struct source_options o = {.path = "here", .cache_dir = "off"};
    const struct source_options list = {.path = "here.txt", .cache_dir = "off"};
    temp_file("cwd/here/1.jpg", "x");
    temp_file("cwd/here.txt", "here/1.jpg\n");
    CHECK_EQ(chdir(temp_path("cwd")), 0);
    CHECK_EQ(source_open(&s, &o, &error), STK_OK);
    source_path(s, 0, path, sizeof path);
    CHECK_STR(path, "here/1.jpg");
    CHECK_EQ(chdir("/"), 0);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    source_close(s);
    CHECK_EQ(chdir(temp_path("cwd")), 0);
    CHECK_EQ(source_open(&s, &list, &error), STK_OK);
    source_path(s, 0, path, sizeof path);
    CHECK_STR(path, "here/1.jpg");
    CHECK_EQ(chdir("/"), 0);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    source_close(s);
    buf_done(&r.file);
}

static void real_photos(void)
{
    const char *data = getenv("STOKER_TEST_DATA");
    if (!data)
        SKIP("STOKER_TEST_DATA is not set");
    char path[PATH_MAX];
    struct source *s;
    snprintf(path, sizeof path, "%.4000s/photos", data);
    const struct source_options o = {.path = path, .cache_dir = "off", .threads = 2};
    CHECK_EQ(source_open(&s, &o, &error), STK_OK);
    CHECK(source_count(s) > 0);
    CHECK(source_n_classes(s) > 0);
    CHECK_EQ(source_tally(s)->missing, 0);
    source_close(s);
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(recognised), T(what_is_not_read), T(suggestions), T(classes_without_a_name), T(the_current_folder),
          T(real_photos))
}
