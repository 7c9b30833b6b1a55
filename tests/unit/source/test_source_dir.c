/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_dir.c -- folders: order, classes, what is ignored, loops.
 * Covers source_dir.c and tree.c.
 */
#include "support/open_source.h"
#include "support/temp_tree.h"
#include "test.h"

static struct source *open_folder(const char *below)
{
    return open_with((struct source_options){.path = temp_path(below)});
}

static void has(const struct source *s, int64_t i, const char *key, int64_t label)
{
    char buf[PATH_MAX];
    CHECK_EQ(source_key(s, i, buf, sizeof buf), strlen(key));
    CHECK_STR(buf, key);
    CHECK_EQ(source_label(s, i), label);
}

static void classes_in_byte_order(void)
{
    static const char *const files[] = {"t/b/2.jpg",    "t/b/10.jpg",  "t/a/x/1.png",   "t/a/z.JPG",
                                        "t/a/x-/0.jpg", "t/a-/q.webp", "t/B/only.jpeg", "t/a/x/y/9.bmp"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        temp_file(files[i], "xy");
    struct source *s = open_folder("t");
    CHECK(s != NULL);
    CHECK_STR(source_kind(s), "folder of classes");
    CHECK_EQ(source_count(s), 8);
    CHECK_EQ(source_n_classes(s), 4);
    CHECK_STR(source_class(s, 0), "B");
    CHECK_STR(source_class(s, 1), "a");
    CHECK_STR(source_class(s, 2), "a-");
    CHECK_STR(source_class(s, 3), "b");
    CHECK(source_class(s, 4) == NULL && source_class(s, -1) == NULL);
    has(s, 0, "B/only.jpeg", 0);
    has(s, 1, "a/z.JPG", 1);
    has(s, 2, "a/x/1.png", 1); /* "a/x" < "a/x-" < "a/x/y" as strings */
    has(s, 3, "a/x-/0.jpg", 1);
    has(s, 4, "a/x/y/9.bmp", 1);
    has(s, 5, "a-/q.webp", 2);
    has(s, 6, "b/10.jpg", 3);
    has(s, 7, "b/2.jpg", 3);
    CHECK_EQ(source_n_fields(s), 2);
    CHECK_STR(source_field(s, 0)->name, "image");
    CHECK_STR(source_field(s, 1)->name, "label");
    CHECK_EQ(source_bytes(s, 3), 2);
    CHECK_EQ(source_tally(s)->bytes, 16);
    source_close(s);
}

static void reads(void)
{
    temp_file("r/c/a.jpg", "content");
    temp_file("r/c/e.jpg", "");
    temp_link("r/c/gone.jpg", "nowhere");
    struct source *s = open_folder("r");
    struct reading r = {0};
    char path[PATH_MAX];
    CHECK_EQ(source_count(s), 3);
    CHECK_EQ(source_read(s, &r, 0, &error), STK_OK);
    CHECK_EQ(r.n_bytes, 7);
    CHECK(memcmp(r.bytes, "content", 8) == 0);
    CHECK_EQ(r.label, 0);
    CHECK(source_read_bytes(s, 0) >= 7);
    CHECK_EQ(source_read(s, &r, 1, &error), STK_EDATA);
    CHECK_EQ(source_read(s, &r, 2, &error), STK_ENOTFOUND);
    CHECK_EQ(source_read_bytes(s, 2), 0);
    CHECK_EQ(source_tally(s)->missing, 1);
    source_path(s, 0, path, sizeof path);
    CHECK_STR(path, temp_path("r/c/a.jpg"));
    CHECK_EQ(source_path(s, 0, path, 5), strlen(temp_path("r/c/a.jpg")));
    CHECK_EQ(strlen(path), 4);
    int64_t label = -7;
    CHECK_EQ(source_copy(s, NULL, 0, 1, &label, NULL), STK_OK);
    CHECK_EQ(label, 0);
    buf_done(&r.file);
    source_close(s);
}

static void junk_is_counted(void)
{
    temp_file("j/cat/1.jpg", "x");
    temp_file("j/cat/.hidden.jpg", "x");
    temp_file("j/cat/Thumbs.db", "x");
    temp_file("j/cat/notes.txt", "x");
    temp_file("j/.ipynb_checkpoints/2.jpg", "x");
    temp_file("j/__MACOSX/3.jpg", "x");
    temp_file("j/stray.jpg", "x");
    temp_dir("j/empty");
    struct source *s = open_folder("j");
    CHECK_EQ(source_count(s), 1);
    CHECK_EQ(source_n_classes(s), 2);
    CHECK_STR(source_class(s, 1), "empty");
    CHECK_EQ(source_tally(s)->ignored_hidden, 4);
    CHECK_EQ(source_tally(s)->ignored_other, 2);
    CHECK_EQ(source_tally(s)->empty_classes, 1);
    source_close(s);
}

static void files_without_classes(void)
{
    temp_file("f/2.jpg", "x");
    temp_file("f/1.jpg", "x");
    temp_dir("f/sub");
    struct source *s = open_folder("f");
    CHECK_STR(source_kind(s), "folder of files");
    CHECK_EQ(source_n_fields(s), 1);
    CHECK_EQ(source_n_classes(s), 0);
    has(s, 0, "1.jpg", -1);
    has(s, 1, "2.jpg", -1);
    source_close(s);
}

static void files_on_request(void)
{
    char source[PATH_MAX];
    temp_file("g/b.jpg", "x");
    temp_file("g/sub/a.jpg", "x");
    temp_file("g/sub-/a.jpg", "x");
    snprintf(source, sizeof source, "files:%s", temp_path("g"));
    struct source *s = open_with((struct source_options){.path = source});
    CHECK_STR(source_kind(s), "folder of files");
    CHECK_EQ(source_count(s), 3);
    has(s, 0, "b.jpg", -1);
    has(s, 1, "sub/a.jpg", -1);
    has(s, 2, "sub-/a.jpg", -1);
    source_close(s);
    snprintf(source, sizeof source, "folder:%s", temp_path("g"));
    s = open_with((struct source_options){.path = source});
    CHECK_STR(source_kind(s), "folder of classes");
    CHECK_EQ(source_count(s), 2);
    CHECK_EQ(source_tally(s)->ignored_other, 1);
    CHECK_EQ(source_tally(s)->beside, 1);
    source_close(s);
}

/* A flat folder with a few thumbnails in a subfolder is not a folder of classes. */
static void more_beside_than_inside(void)
{
    char source[PATH_MAX];
    for (int i = 0; i < 3; i++)
        temp_file((const char *[]){"b/1.jpg", "b/2.jpg", "b/thumbs/1.jpg"}[i], "x");
    struct source *s = open_folder("b");
    CHECK_STR(source_kind(s), "folder of files");
    CHECK_EQ(source_count(s), 3);
    has(s, 2, "thumbs/1.jpg", -1);
    CHECK_EQ(source_tally(s)->beside, 0);
    CHECK_EQ(source_tally(s)->ignored_other, 0);
    source_close(s);

    snprintf(source, sizeof source, "folder:%s", temp_path("b"));
    s = open_with((struct source_options){.path = source});
    CHECK_STR(source_kind(s), "folder of classes");
    CHECK_EQ(source_count(s), 1);
    CHECK_EQ(source_tally(s)->beside, 2);
    CHECK_EQ(source_tally(s)->ignored_other, 2);
    source_close(s);

    static const char *const classes[] = {"thumbs"};
    s = open_with((struct source_options){.path = temp_path("b"), .classes = classes, .n_classes = 1});
    CHECK_STR(source_kind(s), "folder of classes");
    source_close(s);

    temp_file("b/thumbs/2.jpg", "x"); /* as many: classes */
    s = open_folder("b");
    CHECK_EQ(source_count(s), 2);
    CHECK_EQ(source_n_classes(s), 1);
    CHECK_EQ(source_tally(s)->beside, 2);
    source_close(s);
}

static void images_without_suffix(void)
{
    temp_file("n/c/one", "\xff\xd8\xff\xe0 and more");
    temp_file("n/c/two", "<html>");
    temp_file("n/c/three", "RIFF1234WEBPVP8 ");
    mkfifo(temp_path("n/c/pipe"), 0666);
    struct source *s = open_folder("n");
    CHECK_EQ(source_count(s), 2);
    has(s, 0, "c/one", 0);
    has(s, 1, "c/three", 0);
    CHECK_EQ(source_tally(s)->ignored_other, 2);
    source_close(s);
}

static void nothing_to_read(void)
{
    temp_dir("none");
    CHECK(open_folder("none") == NULL);
    CHECK_EQ(error.code, STK_EUSAGE);
    CHECK(strstr(error.text, "the folder is empty"));
    CHECK(strstr(error.text, "none"));
    temp_file("none/a.txt", "x");
    temp_file("none/sub/b.csv", "x");
    CHECK(open_folder("none") == NULL);
    CHECK(strstr(error.text, "2 other files (.txt, .csv)"));
}

static void links_and_loops(void)
{
    temp_file("l/a/1.jpg", "x");
    temp_file("outside/2.jpg", "x");
    temp_link("l/a/up", "..");
    temp_link("l/a/self", ".");
    temp_link("l/b", "../outside");
    temp_link("l/c", "a"); /* the same folder as another class: not a loop */
    temp_link("outside/one.jpg", "2.jpg");
    struct source *s = open_folder("l");
    CHECK_EQ(source_n_classes(s), 3);
    CHECK_EQ(source_count(s), 4);
    has(s, 0, "a/1.jpg", 0);
    has(s, 1, "b/2.jpg", 1);
    has(s, 2, "b/one.jpg", 1);
    has(s, 3, "c/1.jpg", 2);
    CHECK_EQ(source_tally(s)->ignored_loops, 4);
    source_close(s);
}

/* Every folder links to every other, which creates exponentially many paths. */
static void crossing_links(void)
{
    char name[64], target[64];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "x/d%d/p.jpg", i);
        temp_file(name, "x");
        for (int k = 0; k < 12; k++) {
            snprintf(name, sizeof name, "x/d%d/l%d", i, k);
            snprintf(target, sizeof target, "../d%d", k);
            if (i != k)
                temp_link(name, target);
        }
    }
    struct source *s = open_folder("x");
    CHECK(s != NULL);
    CHECK(source_count(s) > 12 && source_count(s) < 10000);
    CHECK(source_tally(s)->ignored_loops > 0);
    source_close(s);
}

static void deep_folders(void)
{
    char path[1024] = "deep";
    for (int i = 0; i < 150; i++)
        strncat(path, "/d", sizeof path - strlen(path) - 1);
    strncat(path, "/1.jpg", sizeof path - strlen(path) - 1);
    temp_file("deep/c/1.jpg", "x");
    temp_file(path, "x");
    struct source *s = open_folder("deep");
    CHECK_EQ(source_count(s), 1);
    CHECK_EQ(source_tally(s)->ignored_loops, 1);
    source_close(s);
}

static void given_classes(void)
{
    static const char *const all[] = {"dog", "cat", "bird"};
    static const char *const twice[] = {"dog", "dog"};
    char path[PATH_MAX];
    struct source_options o = {.path = path, .classes = all, .n_classes = 3};
    snprintf(path, sizeof path, "%.2000s", temp_path("k"));
    temp_file("k/cat/1.jpg", "x");
    temp_file("k/dog/2.jpg", "x");
    temp_dir("k/unrelated");
    struct source *s = open_with(o);
    CHECK_EQ(source_n_classes(s), 3);
    CHECK_STR(source_class(s, 0), "dog");
    CHECK_STR(source_class(s, 2), "bird");
    has(s, 0, "cat/1.jpg", 1);
    has(s, 1, "dog/2.jpg", 0);
    source_close(s);

    temp_file("k/birdd/3.jpg", "x");
    CHECK(open_with(o) == NULL);
    CHECK_EQ(error.code, STK_EUSAGE);
    CHECK(strstr(error.text, "birdd") && strstr(error.text, "did you mean bird?"));

    o.classes = twice;
    o.n_classes = 2;
    CHECK(open_with(o) == NULL);
    CHECK(strstr(error.text, "twice"));
}

static void any_name(void)
{
    char name[300];
    temp_file("m/c/\xff\xfe.jpg", "1");
    temp_file("m/c/line\nbreak.jpg", "2");
    temp_file("m/c/caf\xc3\xa9.jpg", "3");
    temp_file("m/\xe9t\xe9/x.jpg", "4");
    memset(name, 'n', sizeof name);
    memcpy(name, "m/c/", 4);
    memcpy(name + 4 + 251, ".jpg", 5);
    temp_file(name, "5");
    struct source *s = open_folder("m");
    struct reading r = {0};
    CHECK_EQ(source_count(s), 5);
    for (int64_t i = 0; i < source_count(s); i++)
        CHECK_EQ(source_read(s, &r, i, &error), STK_OK);
    has(s, 4, "\xe9t\xe9/x.jpg", 1);
    buf_done(&r.file);
    source_close(s);
}

static void folders_without_rights(void)
{
    if (geteuid() == 0)
        SKIP("root may read everything");
    temp_file("p/a/1.jpg", "x");
    temp_file("p/b/2.jpg", "x");
    chmod(temp_path("p/b"), 0);
    struct source *s = open_folder("p");
    CHECK_EQ(source_count(s), 1);
    CHECK_EQ(source_tally(s)->unreadable, 1);
    source_close(s);
    chmod(temp_path("p"), 0);
    CHECK(open_folder("p") == NULL);
    CHECK_EQ(error.code, STK_EIO);
    chmod(temp_path("p"), 0700);
    chmod(temp_path("p/b"), 0700);
}

static void make_many(const char *below, int n)
{
    char name[128];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s/class%d/photo_%d.jpg", below, i % 7, i * 37 % n);
        temp_bytes(name, "0123456789", (size_t)(i % 10) + 1);
    }
}

/* More than 256 names that differ only after a long common prefix. */
static void long_equal_beginnings(void)
{
    char name[128];
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "eq/%s_the_same_for_all_of_them_%d.jpg", i % 2 ? "a" : "b", i * 7 % 600);
        temp_file(name, "x");
    }
    temp_file("eq/a.jpg", "x");
    struct source *s = open_folder("eq");
    char before[PATH_MAX] = "", key[PATH_MAX];
    CHECK_EQ(source_count(s), 601);
    for (int64_t i = 0; i < source_count(s); i++) {
        source_key(s, i, key, sizeof key);
        CHECK(strcmp(before, key) < 0);
        memcpy(before, key, sizeof key);
    }
    source_close(s);
}

/* ImageFolder's algorithm in Python gives the same list. */
static void same_as_imagefolder(void)
{
    static const char script[] =
        "import os, sys\n"
        "ext = tuple(b'.jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp'.split())\n"
        "d = os.fsencode(sys.argv[1]); out = sys.stdout.buffer\n"
        "classes = sorted(e.name for e in os.scandir(d) if e.is_dir())\n"
        "for i, c in enumerate(classes):\n"
        "    for root, _, names in sorted(os.walk(os.path.join(d, c), followlinks=True)):\n"
        "        for n in sorted(names):\n"
        "            if n.lower().endswith(ext):\n"
        "                out.write(os.path.relpath(os.path.join(root, n), d) + b'\\0' + str(i).encode() + b'\\0')\n";
    static const char *const odd[] = {"py/z/1.jpg",
                                      "py/z/0.jpg",
                                      "py/z/sub/5.PNG",
                                      "py/z/sub-2/4.png",
                                      "py/z/sub/a/b.jpg",
                                      "py/Z/\xff.jpg",
                                      "py/a b/c d.jpg",
                                      "py/a b/.x/1.jpg.txt",
                                      "py/a b/10.jpg",
                                      "py/a b/9.jpg",
                                      "py/a b/1.gif",
                                      "py/a!/n\n.jpg",
                                      "py/\xc3\xa4/\xe2\x82\xac.jpg",
                                      "py/\xc3\xa4/z.jpg"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        temp_file(odd[i], "x");
    make_many("py", 500);
    temp_file("list.py", script);
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, "python3 %s %s 2>/dev/null", temp_path("list.py"), temp_path("py"));
    FILE *f = popen(command, "r");
    static char expected[1 << 20];
    const size_t n = f ? fread(expected, 1, sizeof expected, f) : 0;
    if (!f || pclose(f) != 0 || n == 0)
        SKIP("no Python here");
    struct source *s = open_folder("py");
    const char *p = expected;
    for (int64_t i = 0; i < source_count(s) && p < expected + n; i++) {
        const char *label = p + strlen(p) + 1;
        has(s, i, p, strtol(label, NULL, 10));
        p = label + strlen(label) + 1;
    }
    CHECK_EQ(p - expected, n);
    CHECK_EQ(source_count(s), 512);
    source_close(s);
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(classes_in_byte_order), T(reads), T(junk_is_counted), T(files_without_classes), T(files_on_request),
          T(more_beside_than_inside), T(images_without_suffix), T(nothing_to_read), T(links_and_loops),
          T(crossing_links), T(deep_folders), T(given_classes), T(any_name), T(folders_without_rights),
          T(long_equal_beginnings), T(same_as_imagefolder))
}
