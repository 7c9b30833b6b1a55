/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_dir_sidecar.c -- fields of a packed folder, in files next to the images: missing, empty, not regular files; a
 * stoker.json that names other folders.
 */
#include "source/source.h"
#include "support/temp_tree.h"
#include "test.h"

static void write_manifest(const char *fields)
{
    char manifest[1024];
    snprintf(manifest, sizeof manifest,
             "{\"stoker_pack\": 1, \"format\": \"folder\", \"samples\": 2, \"classes\": [\"b\", \"a\"], "
             "\"fields\": \"%s\", \"shards\": []}",
             fields);
    temp_file("p/stoker.json", manifest);
}

static int open_pack(struct source **s, const char *fields, stk_error *e)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", temp_path("p"));
    const struct source_options o = {.path = path, .threads = 1, .cache_dir = "off", .fields = fields};
    return source_open(s, &o, e);
}

static const char own[] =
    "image=image:image, label=label:int, caption=\\\"caption.txt\\\":text, n=\\\"n.npy\\\":int64(1)";

static void fields_beside(void)
{
    temp_begin();
    temp_file("p/a/1.jpg", "one");
    temp_file("p/a/1.jpg.caption.txt", "words");
    temp_file("p/a/2.jpg", "two");
    temp_file("p/a/2.jpg.caption.txt", "");
    write_manifest(own);
    struct source *s = NULL;
    struct reading r = {0};
    stk_error e = {0};
    CHECK_EQ(open_pack(&s, NULL, &e), STK_OK);
    CHECK_STR(e.text, "");
    CHECK_EQ(source_count(s), 2);
    CHECK_EQ(source_n_fields(s), 4);
    CHECK_EQ(source_label(s, 0), 1); /* as in stoker.json */
    CHECK_EQ(source_read(s, &r, 0, &e), STK_OK);
    CHECK(r.n_bytes == 3 && memcmp(r.bytes, "one", 3) == 0);
    CHECK(r.cells[2].n == 5 && memcmp(r.cells[2].bytes, "words\0", 6) == 0);
    CHECK(r.cells[3].bytes == NULL);
    CHECK_EQ(source_read(s, &r, 1, &e), STK_OK);
    CHECK(r.cells[2].bytes != NULL && r.cells[2].n == 0);
    CHECK_EQ(mkfifo(temp_path("p/a/2.jpg.n.npy"), 0600), 0);
    CHECK_EQ(source_read(s, &r, 1, &e), STK_EDATA);
    CHECK(strstr(e.text, "2.jpg.n.npy") && strstr(e.text, "is a pipe"));
    reading_done(&r);
    source_close(s);
    CHECK_EQ(open_pack(&s, "caption", &e), STK_OK);
    CHECK_EQ(source_n_fields(s), 1);
    source_close(s);
    temp_end();
}

struct asked {
    size_t limit, most;
};

static int allow(void *user, size_t bytes, stk_error *e)
{
    struct asked *a = user;
    a->most = bytes > a->most ? bytes : a->most;
    snprintf(e->text, sizeof e->text, "too much");
    return bytes <= a->limit ? STK_OK : STK_EDATA;
}

/* Memory for a file is requested before it is read, including its copy and what is already held. */
static void memory_is_asked_for(void)
{
    temp_begin();
    enum { LONG = 5000 };
    char text[LONG + 1];
    memset(text, 'x', LONG);
    text[LONG] = 0;
    temp_file("p/a/1.jpg", "one");
    temp_file("p/a/1.jpg.caption.txt", text);
    write_manifest(own);
    struct source *s = NULL;
    struct asked a = {.limit = LONG};
    struct reading r = {.allow = allow, .user = &a};
    stk_error e = {0};
    CHECK_EQ(open_pack(&s, NULL, &e), STK_OK);
    CHECK_EQ(source_read(s, &r, 0, &e), STK_EDATA);
    CHECK_STR(e.text, "too much");
    CHECK(a.most >= 2 * LONG + 3 && a.most < 2 * LONG + 1000);
    CHECK_EQ(r.spare[0].cap, 0);
    a.limit = SIZE_MAX;
    CHECK_EQ(source_read(s, &r, 0, &e), STK_OK);
    CHECK_EQ(r.cells[2].n, LONG);
    reading_done(&r);
    source_close(s);
    temp_end();
}

static void other_folders(void)
{
    temp_begin();
    temp_file("p/a/1.jpg", "one");
    write_manifest("image=image:image, x=\\\"/../../x\\\":text");
    struct source *s = NULL;
    stk_error e = {0};
    CHECK_EQ(open_pack(&s, NULL, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "stoker.json is damaged") != NULL);
    write_manifest("image=image:image, x=");
    CHECK_EQ(open_pack(&s, NULL, &e), STK_EUSAGE);
    temp_end();
}

int main(int argc, char **argv)
{
    TESTS(T(fields_beside), T(memory_is_asked_for), T(other_folders))
}
