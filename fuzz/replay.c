/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c -- runs a fuzz target over files and folders of files, as an ordinary test.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int n_files;

static void replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    /* Exactly as large as the file, so that a sanitizer sees the first byte too far. */
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (data && fread(data, 1, (size_t)size, f) == (size_t)size) {
        LLVMFuzzerTestOneInput(data, (size_t)size);
        n_files++;
    }
    free(data);
    fclose(f);
}

static void replay_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            replay_file(file);
    }
    if (d)
        closedir(d);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat s;
        if (stat(argv[i], &s) != 0)
            continue;
        if (S_ISDIR(s.st_mode))
            replay_folder(argv[i]);
        else
            replay_file(argv[i]);
    }
    printf("%d files replayed\n", n_files);
    return n_files ? 0 : 77;
}
