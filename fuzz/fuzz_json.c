/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_json.c -- the files that packing writes beside the shards. The first byte chooses: any JSON document, the
 * stoker.json of a pack, or a journal, whose lines get valid hashes.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "fuzz.h"
#include "pack/journal.h"
#include "source/recognise.h"

/* Reads a value as every type. Text that can be read can be written, and is read back unchanged. */
static void look_at(struct json_value v)
{
    struct buf text = {0}, again = {0};
    int64_t number;
    uint64_t hex;
    json_get_int(v, &number);
    json_get_uint(v, &hex);
    json_get_hex(v, &hex);
    if (json_get_text(v, &text)) {
        char *written = NULL;
        size_t n = 0;
        struct json j = {.f = open_memstream(&written, &n)};
        require(j.f != NULL);
        json_text(&j, NULL, (const char *)text.data);
        require(fclose(j.f) == 0 && json_get_text(json_document(written, n), &again));
        require(again.len == text.len && memcmp(again.data, text.data, text.len) == 0);
        free(written);
    }
    buf_done(&text);
    buf_done(&again);
}

static void read_manifest(const uint8_t *p, size_t n)
{
    static const char *const keys[] = {"", "a", "shards", "name", "classes"};
    enum { MOST = 64 };
    const struct json_value document = json_document(p, n);
    look_at(document);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct json_value v = json_find(document, keys[i]);
        int left = MOST;
        look_at(v);
        for (struct json_value one = json_first(v); one.p && left-- > 0; one = json_next(one)) {
            look_at(one);
            look_at(json_find(one, "name"));
        }
    }
}

static void read_pack(const uint8_t *p, size_t n)
{
    struct recognised r = {.path = "/nowhere"};
    stk_error e = {0};
    const int rc = pack_folder_parse(&r, p, n, &e);
    require(rc == STK_OK ? r.container && r.paths.n > 0 : e.text[0] != 0);
    recognised_done(&r);
}

/* ------------------------------------------------------------------ journals */

static char folder[] = "/tmp/stoker-fuzz-XXXXXX";

static void remove_folder(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, journal_name);
    unlink(path);
    rmdir(folder);
}

static int open_folder(void)
{
    static int dir = -1;
    if (dir < 0 && mkdtemp(folder)) {
        atexit(remove_folder);
        dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return dir;
}

static void add_line(struct buf *b, const char *text, size_t n)
{
    char *line = strndup(text, n);
    require(line && buf_printf(b, "%016" PRIx64 " %s\n", hash_bytes(line, strlen(line), 0), line) == 0);
    free(line);
}

/* The recipe is right, and so are the hashes of the lines but that of one which begins with a question mark. */
static void read_journal(const uint8_t *p, size_t n)
{
    struct buf b = {0};
    struct journal j;
    stk_error e = {0};
    add_line(&b, "recipe", 6);
    for (size_t at = 0; at < n;) {
        const uint8_t *end = memchr(p + at, '\n', n - at);
        const size_t line = (size_t)((end ? end : p + n) - (p + at));
        if (line > 0 && p[at] == '?')
            require(buf_add(&b, p + at, line) == 0);
        else
            add_line(&b, (const char *)p + at, line);
        at += line + 1;
    }
    const int dir = open_folder(), fd = openat(dir, journal_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, b.data, b.len) == (ssize_t)b.len);
    close(fd);
    if (journal_open(&j, dir, "recipe", &e) == STK_OK) {
        require(j.end <= (int64_t)b.len);
        for (int64_t i = 0; i < j.n; i++)
            require(memchr(j.shards[i].name, 0, sizeof j.shards[i].name) != NULL);
        require(journal_cut(&j, j.n / 2, &e) == STK_OK);
    } else {
        require(e.text[0] != 0);
    }
    journal_done(&j);
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const reads[])(const uint8_t *p, size_t n) = {read_manifest, read_pack, read_journal};
    if (size > 0)
        reads[data[0] % 3](data + 1, size - 1);
    return 0;
}
