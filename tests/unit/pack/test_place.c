/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_place.c -- files below a folder: writers of one name do not disturb each other, and none leaves the folder.
 */
#include "pack/place.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "support/temp_tree.h"
#include "test.h"

enum { BYTES = 1 << 16, ROUNDS = 200 };

static int open_out(void)
{
    temp_dir("out/a");
    return open(temp_path("out"), O_RDONLY | O_DIRECTORY);
}

static int n_files(const char *folder)
{
    char command[5000];
    int n = -1;
    snprintf(command, sizeof command, "find %s -type f | wc -l", temp_path(folder));
    FILE *p = popen(command, "r");
    CHECK(p && fscanf(p, "%d", &n) == 1);
    pclose(p);
    return n;
}

struct writer {
    int root;
    uint8_t bytes[BYTES];
    int failed;
};

static void *write_often(void *user)
{
    struct writer *w = user;
    const struct content c = {.bytes = w->bytes, .n = BYTES};
    stk_error e;
    for (int i = 0; i < ROUNDS; i++)
        w->failed += place_file(w->root, "a/1.jpg", &c, true, &e) != STK_OK;
    return NULL;
}

/* Two threads unpack members of one name: both succeed, and the file is one of the two, complete. */
static void writers_of_one_name(void)
{
    temp_begin();
    static struct writer w[2];
    static uint8_t got[BYTES];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        w[i] = (struct writer){.root = open_out()};
        memset(w[i].bytes, 1 + i, BYTES);
        CHECK_EQ(pthread_create(&threads[i], NULL, write_often, &w[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(w[i].failed, 0);
        close(w[i].root);
    }
    FILE *f = fopen(temp_path("out/a/1.jpg"), "rb");
    CHECK(f && fread(got, 1, BYTES, f) == BYTES);
    fclose(f);
    CHECK(memcmp(got, w[0].bytes, BYTES) == 0 || memcmp(got, w[1].bytes, BYTES) == 0);
    CHECK_EQ(n_files("out"), 1);
    temp_end();
}

/* A writer in another container may have the id of this thread. Its unfinished file is not touched. */
static void half_written_files(void)
{
    temp_begin();
    char other[64];
    const struct content c = {.bytes = (const uint8_t *)"x", .n = 1};
    stk_error e = {0};
    const int root = open_out();
    snprintf(other, sizeof other, "out/.stoker-%ld.part", (long)syscall(SYS_gettid));
    temp_file(other, "half");
    CHECK_EQ(place_file(root, "a/1.jpg", &c, false, &e), STK_OK);
    CHECK(access(temp_path(other), F_OK) == 0);
    CHECK_EQ(n_files("out"), 2);
    close(root);
    temp_end();
}

static void put_aged(const char *name, int hours)
{
    const time_t then = time(NULL) - (time_t)hours * 3600;
    const struct timespec times[2] = {{.tv_sec = then}, {.tv_sec = then}};
    temp_file(name, "x");
    CHECK_EQ(utimensat(AT_FDCWD, temp_path(name), times, 0), 0);
}

/* Only files of writers that ended long ago are removed: an id does not show whether its process still runs. */
static void leftovers_are_swept(void)
{
    temp_begin();
    char young[64];
    const int root = open_out();
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    snprintf(young, sizeof young, "out/.stoker-%ld.part", (long)child);
    put_aged(young, 0);
    put_aged("out/.stoker-0123456789abcde0.part", 23);
    put_aged("out/.stoker-0123456789abcdef.part", 25);
    put_aged("out/.stoker-x.part", 25);
    put_aged("out/mine", 25);
    place_sweep(root, PLACE_OLD_S);
    CHECK(access(temp_path(young), F_OK) == 0);
    CHECK(access(temp_path("out/.stoker-0123456789abcde0.part"), F_OK) == 0);
    CHECK(access(temp_path("out/.stoker-0123456789abcdef.part"), F_OK) != 0);
    CHECK_EQ(n_files("out"), 4);
    place_sweep(root, 0);
    CHECK_EQ(n_files("out"), 2);
    close(root);
    temp_end();
}

static void what_is_there(void)
{
    temp_begin();
    stk_error e = {0};
    const int root = open_out();
    const struct content c = {.bytes = (const uint8_t *)"one", .n = 3}, d = {.bytes = (const uint8_t *)"two", .n = 3};
    CHECK_EQ(place_file(root, "a/1.jpg", &c, false, &e), STK_OK);
    CHECK_EQ(place_file(root, "a/1.jpg", &c, false, &e), STK_OK);
    CHECK(place_file(root, "a/1.jpg", &d, false, &e) != STK_OK);
    CHECK_EQ(e.os_error, EEXIST);
    CHECK_EQ(place_file(root, "a/1.jpg", &d, true, &e), STK_OK);
    CHECK_EQ(place_file(root, "../1.jpg", &d, true, &e), STK_EDATA);
    CHECK_EQ(n_files("out"), 1);
    close(root);
    temp_end();
}

/* Empty folders go with the last file in them. No name leads out of the folder, not even through a link. */
static void removes_files(void)
{
    temp_begin();
    const int root = open_out();
    temp_file("out/x/y/1.jpg", "1");
    temp_file("out/x/2.jpg", "2");
    temp_file("other/3.jpg", "3");
    CHECK_EQ(symlink(temp_path("other"), temp_path("out/link")), 0);
    place_remove(root, "x/y/1.jpg");
    CHECK(access(temp_path("out/x/y"), F_OK) != 0);
    CHECK(access(temp_path("out/x/2.jpg"), F_OK) == 0);
    place_remove(root, "../other/3.jpg");
    place_remove(root, "link/3.jpg");
    place_remove(root, "x/missing.jpg");
    CHECK_EQ(n_files("other"), 1);
    CHECK_EQ(n_files("out"), 1);
    close(root);
    temp_end();
}

int main(int argc, char **argv)
{
    TESTS(T(writers_of_one_name), T(half_written_files), T(leftovers_are_swept), T(what_is_there), T(removes_files))
}
