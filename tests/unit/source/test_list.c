/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_list.c -- records of text files, cells, JSON, and the detection of lists.
 * Covers lines.c, list.c, list_detect.c, list_table.c, list_json.c; list_index.c is in test_source_list.c.
 */
#include "source/list.h"

#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

static int open_text(const char *name, const char *text)
{
    temp_file(name, text);
    return open(temp_path(name), O_RDONLY);
}

static void next_is(struct lines *l, char delimiter, const char *text, int64_t line)
{
    struct slice s;
    CHECK_EQ(lines_next(l, delimiter, &s), 1);
    CHECK_EQ(s.n, strlen(text));
    CHECK(memcmp(s.p, text, s.n) == 0);
    CHECK_EQ(l->line, line);
}

static void line_ends(void)
{
    struct slice s;
    struct lines l = {.fd = open_text("a", "\xef\xbb\xbfone\r\n\ntwo \"2\nlast")};
    lines_rewind(&l);
    for (int round = 0; round < 2; round++) {
        next_is(&l, 0, "one", 1);
        next_is(&l, 0, "", 2);
        next_is(&l, 0, "two \"2", 3);
        next_is(&l, 0, "last", 4);
        CHECK_EQ(lines_next(&l, 0, &s), 0);
        CHECK_EQ(lines_next(&l, 0, &s), 0);
        lines_rewind(&l);
    }
    close(l.fd);
    lines_done(&l);
}

static void line_ends_in_quotes(void)
{
    struct slice s;
    struct lines l = {.fd = open_text("b", "a,\"b\n\"\"c\"\"\n\",d\ne \"f,g\n  \"x\ny\",\n\"open\n")};
    lines_rewind(&l);
    next_is(&l, ',', "a,\"b\n\"\"c\"\"\n\",d", 1);
    next_is(&l, ',', "e \"f,g", 4);
    next_is(&l, ',', "  \"x\ny\",", 5);
    CHECK_EQ(lines_next(&l, ',', &s), -1);
    CHECK(strstr(l.problem, "never closed"));
    close(l.fd);
    lines_done(&l);
}

static void long_files(void)
{
    struct lines l = {.fd = -1};
    char *text = malloc(3 << 20), *p = text;
    for (int i = 0; i < 200000; i++)
        p += snprintf(p, 16, "line %d\n", i);
    temp_bytes("long", text, (size_t)(p - text));
    l.fd = open(temp_path("long"), O_RDONLY);
    lines_rewind(&l);
    for (int i = 0; i < 200000; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "line %d", i);
        next_is(&l, ',', expected, i + 1);
    }
    CHECK(l.window.cap < 1 << 18);
    close(l.fd);
    memset(text, 'x', 3 << 20);
    temp_bytes("long", text, 3 << 20);
    l.fd = open(temp_path("long"), O_RDONLY);
    lines_rewind(&l);
    struct slice s;
    CHECK_EQ(lines_next(&l, ',', &s), -1);
    CHECK(strstr(l.problem, "longer than 1 MiB"));
    close(l.fd);
    free(text);
    lines_done(&l);
}

static void other_encodings(void)
{
    struct slice s;
    temp_bytes("utf16",
               "\xff\xfe"
               "a\0b\0",
               6);
    struct lines l = {.fd = open(temp_path("utf16"), O_RDONLY)};
    lines_rewind(&l);
    CHECK_EQ(lines_next(&l, 0, &s), -1);
    CHECK(strstr(l.problem, "UTF-16"));
    close(l.fd);
    lines_done(&l);
}

static void cells_are(const char *record, const char *const *expected, int n)
{
    char text[256];
    struct slice cells[LIST_COLUMNS];
    snprintf(text, sizeof text, "%s", record);
    CHECK_EQ(list_cells((struct slice){text, strlen(text)}, ',', cells), n);
    for (int i = 0; i < n; i++) {
        CHECK_EQ(cells[i].n, strlen(expected[i]));
        CHECK(memcmp(cells[i].p, expected[i], cells[i].n) == 0);
    }
}

static void cells(void)
{
    cells_are("a,b,c", (const char *const[]){"a", "b", "c"}, 3);
    cells_are("", (const char *const[]){""}, 1);
    cells_are(",", (const char *const[]){"", ""}, 2);
    cells_are(" a , \"b,\"\"x\"\"\" ,\"\",d\"e", (const char *const[]){"a", "b,\"x\"", "", "d\"e"}, 4);
    cells_are("\"open", (const char *const[]){"open"}, 1);
    cells_are("\"a\nb\"c,d", (const char *const[]){"a\nb", "d"}, 2);
}

static const char *json(const char *text, char *path, char *label)
{
    static char record[4096];
    struct list_row row;
    const size_t n = strlen(text);
    memcpy(record, text, n);
    const char *problem = list_json((struct slice){record, n}, &row);
    snprintf(path, 64, "%.*s", problem ? 0 : (int)row.path.n, row.path.p);
    snprintf(label, 64, "%.*s", problem || !row.has_label ? 0 : (int)row.label.n, row.label.p);
    return problem;
}

static void json_is(const char *text, const char *path, const char *label)
{
    char p[64], l[64];
    const char *problem = json(text, p, l);
    if (problem)
        printf("%s: %s\n", text, problem);
    CHECK(problem == NULL);
    CHECK_STR(p, path);
    CHECK_STR(l, label);
}

static void json_objects(void)
{
    json_is("{\"path\": \"a.jpg\", \"label\": 3}", "a.jpg", "3");
    json_is(" { \"label\" : \"cat\" , \"File_Name\":\"b\\/c.jpg\" } ", "b/c.jpg", "cat");
    json_is("{\"image\": {\"path\": \"no\"}, \"file\": \"x\", \"y\": -1.5e3}", "x", "-1.5e3");
    json_is("{\"path\": \"p\", \"label\": null}", "p", "");
    json_is("{\"path\": \"p\", \"label\": true}", "p", "true");
    json_is("{\"path\": \"\\u00e9\\u20ac\\ud83d\\ude00\\udcff\\n\"}", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff\n", "");
    json_is("{\"a\": [1, {\"b\": [\"]\", \"}\"]}, null], \"path\": \"q\"}", "q", "");
    json_is("{\"path\": \"raw \xe9\"}", "raw \xe9", "");
}

static void json_is_wrong(const char *text, const char *words)
{
    char p[64], l[64];
    const char *problem = json(text, p, l);
    CHECK(problem && strstr(problem, words));
}

static void json_problems(void)
{
    char deep[200] = "{\"path\": \"p\", \"a\": ";
    json_is_wrong("", "not a JSON object");
    json_is_wrong("[1]", "not a JSON object");
    json_is_wrong("{", "string was expected");
    json_is_wrong("{}", "no path");
    json_is_wrong("{\"path\": 3}", "no path");
    json_is_wrong("{\"path\": \"a\"} x", "text follows");
    json_is_wrong("{\"path\": \"a\"", "comma or }");
    json_is_wrong("{\"path\" \"a\"}", "colon");
    json_is_wrong("{\"path\": \"a", "not closed");
    json_is_wrong("{\"path\": \"\\x\"}", "unknown escape");
    json_is_wrong("{\"path\": \"\\u12\"}", "hexadecimal");
    json_is_wrong("{\"path\": \"\\ud800\"}", "surrogate");
    json_is_wrong("{\"path\": \"\\ude00\"}", "surrogate");
    json_is_wrong("{\"path\": \"a\", \"label\": 01x}", "value was expected");
    json_is_wrong("{\"path\": \"a\", \"label\": }", "value was expected");
    json_is_wrong("{\"path\": \"a\", \"label\": [1]}", "neither a string");
    json_is_wrong("{\"path\": \"a\", \"b\": [1}", "do not match");
    json_is_wrong("{\"path\": \"a\", \"b\": [1", "value was expected");
    memset(deep + strlen(deep), '[', 100);
    json_is_wrong(deep, "64 deep");
}

/* Opens a list and detects its format. */
static struct list look(const char *name, const char *text)
{
    struct list l = {.dir = open(temp_root, O_RDONLY | O_DIRECTORY)};
    l.lines.fd = open_text(name, text);
    l.name = name;
    CHECK_EQ(list_detect(&l, &error), 0);
    return l;
}

static void row_is(struct list *l, const char *path, const char *label, int64_t line)
{
    struct list_row row;
    CHECK_EQ(list_next(l, &row, &error), 1);
    CHECK_EQ(row.path.n, strlen(path));
    CHECK(memcmp(row.path.p, path, row.path.n) == 0);
    CHECK_EQ(row.has_label, label != NULL);
    if (label && row.has_label) {
        CHECK_EQ(row.label.n, strlen(label));
        CHECK(memcmp(row.label.p, label, row.label.n) == 0);
    }
    CHECK_EQ(row.line, line);
}

static void ends(struct list *l)
{
    struct list_row row;
    CHECK_EQ(list_next(l, &row, &error), 0);
    close(l->lines.fd);
    close(l->dir);
    list_done(l);
}

static void plain_lines(void)
{
    struct list l = look("l.txt", "# images\n\na b/c.jpg\n  d.png  \r\n#no.jpg\ne.jpg");
    row_is(&l, "a b/c.jpg", NULL, 3);
    row_is(&l, "d.png", NULL, 4);
    row_is(&l, "e.jpg", NULL, 6);
    ends(&l);
}

static void lines_with_labels(void)
{
    struct list l = look("l.txt", "a b.jpg 12\nc.jpg  7\nd 3\n");
    row_is(&l, "a b.jpg", "12", 1);
    row_is(&l, "c.jpg", "7", 2);
    row_is(&l, "d", "3", 3);
    ends(&l);
    l = look("l.txt", "img/1 cat\nimg/2 dog\n");
    row_is(&l, "img/1", "cat", 1);
    row_is(&l, "img/2", "dog", 2);
    ends(&l);
}

static void line_that_exists_is_a_path(void)
{
    temp_file("my photo", "x");
    struct list l = look("l.txt", "my photo\nother one\n");
    row_is(&l, "my photo", NULL, 1);
    row_is(&l, "other one", NULL, 2);
    ends(&l);
}

static void lines_that_are_tables(void)
{
    struct list l = look("l.txt", "#x\na.jpg\tgolden retriever\nb.jpg\tcat\n");
    row_is(&l, "a.jpg", "golden retriever", 2);
    row_is(&l, "b.jpg", "cat", 3);
    ends(&l);
    l = look("l.txt", "a.jpg,1\nb.jpg,2\n");
    row_is(&l, "a.jpg", "1", 1);
    row_is(&l, "b.jpg", "2", 2);
    ends(&l);
    l = look("l.lst", "{\"path\": \"x\"}\n");
    row_is(&l, "x", NULL, 1);
    ends(&l);
}

static void headers(void)
{
    struct list l = look("l.csv", "id,Label,Image Path\n1,cat,a.jpg\n\n2,dog,b.jpg\n");
    row_is(&l, "a.jpg", "cat", 2);
    row_is(&l, "b.jpg", "dog", 4);
    ends(&l);
    l = look("l.csv", "what;where\ncat;a.jpg\n");
    row_is(&l, "a.jpg", "cat", 2);
    ends(&l);
    l = look("l.csv", "id_code,diagnosis\n000c,3\n"); /* nothing looks like a path, so this is not a header */
    row_is(&l, "id_code", "diagnosis", 1);
    row_is(&l, "000c", "3", 2);
    ends(&l);
    l = look("l.csv", "id_code,label\n000c,3\n");
    row_is(&l, "000c", "3", 2);
    ends(&l);
    l = look("l.csv", "path,width,height\na.jpg,3,4\n");
    row_is(&l, "a.jpg", NULL, 2);
    ends(&l);
    l = look("l.csv", "path,score\na.jpg,3\n");
    row_is(&l, "a.jpg", NULL, 2);
    ends(&l);
    l = look("l.tsv", "filename\tclass\na,b.jpg\t1\n");
    row_is(&l, "a,b.jpg", "1", 2);
    ends(&l);
}

static void no_headers(void)
{
    struct list l = look("l.csv", "a.jpg,1,x\nb.jpg,2\nc.jpg\n");
    row_is(&l, "a.jpg", "1", 1);
    row_is(&l, "b.jpg", "2", 2);
    row_is(&l, "c.jpg", "", 3);
    ends(&l);
    l = look("l.csv", "3,\"a,\"\"b\"\".jpg\"\n4,c.jpg\n");
    row_is(&l, "a,\"b\".jpg", "3", 1);
    row_is(&l, "c.jpg", "4", 2);
    ends(&l);
    l = look("l.csv", "a.jpg\nb.jpg\n");
    row_is(&l, "a.jpg", NULL, 1);
    row_is(&l, "b.jpg", NULL, 2);
    ends(&l);
    l = look("l.csv", "a.jpg");
    row_is(&l, "a.jpg", NULL, 1);
    ends(&l);
    l = look("l.csv", "");
    ends(&l);
}

static void problem_is(const char *name, const char *text, const char *words)
{
    struct list l = {.name = name, .dir = -1, .lines.fd = open_text(name, text)};
    struct list_row row;
    int rc = list_detect(&l, &error);
    if (rc == 0)
        while ((rc = list_next(&l, &row, &error)) > 0)
            ;
    CHECK_EQ(rc, -1);
    CHECK(strstr(error.text, words));
    close(l.lines.fd);
    list_done(&l);
}

static void problems_name_the_line(void)
{
    problem_is("p.csv", "path,label\na.jpg,1\n,2\n", "p.csv:3: the path is empty");
    problem_is("p.csv", "label,path\n1,a.jpg\n2\n", "p.csv:3: the path is missing: the record has too few cells");
    problem_is("p.csv", "path\na.jpg\nfolder/\n", "p.csv:3: the path ends with / and names a folder");
    problem_is("p.csv", "path\n\"a.jpg\n", "p.csv:2: a quote is opened");
    problem_is("p.jsonl", "{\"path\": \"a\"}\n{\"path\": \"a\\u0000\"}\n", "p.jsonl:2: the path contains a zero byte");
    problem_is("p.jsonl", "{\"path\": \"a\"}\nnonsense\n", "p.jsonl:2: not a JSON object");
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(line_ends), T(line_ends_in_quotes), T(long_files), T(other_encodings), T(cells), T(json_objects),
          T(json_problems), T(plain_lines), T(lines_with_labels), T(line_that_exists_is_a_path),
          T(lines_that_are_tables), T(headers), T(no_headers), T(problems_name_the_line))
}
