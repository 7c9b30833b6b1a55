/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pack_failures.c -- every allocation and every call to the system fails once while a folder is packed: full
 * disks, read-only ones, no memory. Each run must end well or with an error in words; and the run after it goes on, and
 * ends with the same bytes as one that never failed.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "stoker.h"
#include "support/failing.h"
#include "test.h"

WRAP("name", int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), -1, EROFS)
WRAP("name", int, mkdirat, (int d, const char *p, mode_t mode), (d, p, mode), -1, EROFS)

/* Counts the trials: each opens a target in a folder of this name. */
static int n_trials;
int __real_mkdir(const char *p, mode_t mode);
int __wrap_mkdir(const char *p, mode_t mode);
int __wrap_mkdir(const char *p, mode_t mode)
{
    n_trials += strstr(p, "/.stoker-trial-") != NULL;
    errno = EROFS;
    return fails("name") ? -1 : __real_mkdir(p, mode);
}

/* Succeeds without a sync: no file here has to survive a crash of the machine, and a thousand syncs take a minute. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    errno = EIO;
    return fails("sync") ? -1 : 0;
}

/* ------------------------------------------------------------------ the job */

static char folder[] = "/tmp/stoker-pack-failures-XXXXXX";

static int shell(const char *format, const char *a, const char *b)
{
    char command[600];
    snprintf(command, sizeof command, format, folder, a, folder, b);
    return system(command);
}

static void make_folder(void)
{
    static const char *const dirs[] = {"set", "set/a", "set/b"};
    char path[200];
    if (!mkdtemp(folder))
        exit(1);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, dirs[i]);
        mkdir(path, 0700);
    }
    for (int i = 0; i < 6; i++) {
        uint8_t px[16 * 12 * 3];
        for (size_t k = 0; k < sizeof px; k++)
            px[k] = (uint8_t)(k * 7 + (size_t)i * 31);
        void *bytes = NULL;
        size_t n = 0;
        if (stk_encode(px, 16, 12, 3, 48, &(stk_encode_options){.format = STK_PNG}, &bytes, &n, NULL) != STK_OK)
            exit(77);
        snprintf(path, sizeof path, "%s/set/%c/%d.png", folder, 'a' + i % 2, i);
        FILE *f = fopen(path, "wb");
        fwrite(bytes, 1, n, f);
        fclose(f);
        stk_free(bytes);
    }
}

static int pack_to(const char *out, stk_to to, stk_error *e)
{
    char source[200], target[200];
    snprintf(source, sizeof source, "%s/set", folder);
    snprintf(target, sizeof target, "%s/%s", folder, out);
    const stk_options o = {.source = source, .threads = 2, .cache_dir = "off", .ops = "Resize(8)", .memory = 64 << 20};
    return stk_pack(&o, &(stk_pack_options){.out = target, .to = to, .shard_size = 3000}, NULL, e);
}

static void run_kind(const char *kind, stk_to to, int most)
{
    stk_error e;
    shell("rm -rf %s/%s %s/%s", "whole", "parts");
    CHECK_EQ(pack_to("whole", to, &e), STK_OK);
    for (int n = 0; n < most; n++) {
        memset(&e, 0, sizeof e);
        calls = 0;
        fail_in = n;
        failing = kind;
        int rc = pack_to("parts", to, &e);
        failing = "";
        const int reached = calls;
        CHECK(rc == STK_OK || e.text[0]);
        if (rc != STK_OK) {
            rc = pack_to("parts", to, &e);
            CHECK_EQ(rc, STK_OK);
        }
        const int same = shell("diff -r %s/%s %s/%s >/dev/null", "whole", "parts") == 0;
        CHECK(same);
        if (!same)
            printf("  after the failure of %s number %d\n", kind, n);
        if (to != STK_TO_TAR || n % 2)
            shell("rm -rf %s/%s %s/%s", "parts", "parts");
        if (n >= reached)
            break;
    }
}

static void memory(void)
{
    run_kind("memory", STK_TO_TAR, 400);
    run_kind("memory", STK_TO_NPY, 90);
    run_kind("memory", STK_TO_HDF5, 130);
}
static void reads(void)
{
    run_kind("read", STK_TO_TAR, 200);
}
static void writes(void)
{
    run_kind("write", STK_TO_TAR, 100);
    run_kind("write", STK_TO_TFRECORD, 100);
    run_kind("write", STK_TO_NPY, 20);
    run_kind("write", STK_TO_HDF5, 20);
    run_kind("write", STK_TO_FOLDER, 100);
}
static void syncs(void)
{
    run_kind("sync", STK_TO_TAR, 100);
    run_kind("sync", STK_TO_HDF5, 100);
}
static void names(void)
{
    run_kind("name", STK_TO_TAR, 100);
    run_kind("name", STK_TO_HDF5, 100);
    run_kind("name", STK_TO_FOLDER, 100);
}
static void threads(void)
{
    run_kind("thread", STK_TO_TAR, 10);
}

/* A sample without a caption does not show whether captions can be read back: the trial uses the next one with one. */
static void trials(void)
{
    static const char *const captions[][3] = {{"x", "y", "z"}, {"", "y", "z"}, {"", "", "z"}, {"", "", ""}};
    static const int want[] = {1, 1, 1, 0};
    char list[200], out[200];
    snprintf(list, sizeof list, "%s/list.csv", folder);
    snprintf(out, sizeof out, "%s/listed", folder);
    for (int k = 0; k < 4; k++) {
        stk_error e = {0};
        FILE *f = fopen(list, "w");
        fputs("path,label,caption\n", f);
        for (int i = 0; i < 3; i++)
            fprintf(f, "set/%c/%d.png,1,%s\n", 'a' + i % 2, i, captions[k][i]);
        fclose(f);
        const stk_options o = {.source = list, .fields = "image, caption", .threads = 1, .cache_dir = "off"};
        n_trials = 0;
        CHECK_EQ(stk_pack(&o, &(stk_pack_options){.out = out, .force = 1}, NULL, &e), STK_OK);
        CHECK_STR(e.text, "");
        CHECK_EQ(n_trials, want[k]);
    }
}

int main(int argc, char **argv)
{
    make_folder();
    const struct test_case cases[] = {T(memory), T(reads), T(writes), T(syncs), T(names), T(threads), T(trials)};
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    shell("rm -rf %s/%s %s/%s", "", "");
    return rc;
}
