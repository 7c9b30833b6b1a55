/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_info.c -- stoker info: what this build can do, and what it would choose on this machine.
 */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/json.h"
#include "out.h"

static const char *const sources[] = {"folder of class folders",
                                      "folder of files",
                                      "list (.csv .tsv .jsonl .txt)",
                                      "tar (.tar, also .gz .zst) and zip archives",
                                      "TFRecord files (also .gz .zst)",
                                      "HDF5 files",
                                      "npy, npz, raw arrays, token files",
                                      "lines of text",
                                      "annotations: COCO, Pascal VOC, YOLO, Cityscapes, images with masks",
                                      "arrays in memory (C)",
                                      "callbacks (C)"};
enum { N_SOURCES = sizeof sources / sizeof sources[0] };

static void line(const char *name)
{
    printf("  %-10s", name);
}

static void print_codec(const char *name, const char *version)
{
    line(name);
    if (version)
        printf("%s\n", version);
    else
        puts("not in this build");
}

/* Versions before 3 smooth blocks differently if scans of a progressive JPEG are missing. */
static void print_jpeg(const char *version)
{
    print_codec("JPEG", version);
    if (!version || strncmp(version, "libjpeg-turbo 3", strlen("libjpeg-turbo 3")) == 0)
        return;
    line("");
    puts("progressive images with missing scans can differ from Pillow 13; with libjpeg-turbo 3 they do not");
}

static void print_cpu(const stk_info *i)
{
    line("CPU");
    printf("%s in use (this CPU has: %s)\n", i->cpu_in_use, i->cpu_has);
    line("threads");
    printf("%d, because ", i->threads);
    if (i->cpus_quota > 0 && i->cpus_quota < i->cpus_affinity)
        printf("the cgroup allows %.2f of %d CPUs\n", i->cpus_quota, i->cpus_online);
    else if (i->cpus_affinity < i->cpus_online)
        printf("this process may use %d of %d CPUs\n", i->cpus_affinity, i->cpus_online);
    else
        printf("there are %d CPUs and no limit\n", i->cpus_online);
}

static void print_memory(const stk_info *i)
{
    line("memory");
    printf("%s for a loader: a quarter of what is free", out_bytes(i->memory).s);
    if (i->local_ranks > 1)
        printf(" shared by %d ranks", i->local_ranks);
    printf("; the machine has %s", out_bytes(i->memory_total).s);
    if (i->memory_limit > 0)
        printf(", the cgroup allows %s", out_bytes(i->memory_limit).s);
    putchar('\n');
}

static void print_gpus(void)
{
    stk_gpu g;
    stk_error e;
    int i = 0, rc;
    for (; (rc = stk_gpu_get(i, &g, &e)) == STK_OK; i++) {
        line(i == 0 ? "GPU" : "");
        printf("cuda:%d, %s, %s, compute capability %d.%d; the driver supports CUDA %s\n", i, g.name,
               out_bytes(g.memory).s, g.capability / 10, g.capability % 10, g.cuda);
    }
    if (rc != STK_END) {
        line("GPU");
        puts(e.reason);
    }
}

static void json_gpus(struct json *j)
{
    stk_gpu g;
    json_open(j, "gpus", '[');
    for (int i = 0; stk_gpu_get(i, &g, NULL) == STK_OK; i++) {
        json_open(j, NULL, '{');
        json_text(j, "name", g.name);
        json_text(j, "cuda", g.cuda);
        json_int(j, "memory_bytes", g.memory);
        json_int(j, "capability", g.capability);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void print_text(const stk_info *i)
{
    out_paint(stdout, PAINT_BOLD);
    printf("stoker %s\n", stk_version());
    out_paint(stdout, PAINT_PLAIN);
    print_cpu(i);
    print_memory(i);
    print_jpeg(i->jpeg);
    print_codec("PNG", i->png);
    print_codec("WebP", i->webp);
    print_codec("zlib", i->zlib);
    print_codec("zstd", i->zstd);
    for (int k = 0; k < N_SOURCES; k++) {
        line(k == 0 ? "sources" : "");
        puts(sources[k]);
    }
    line("reader");
    printf("pread; io_uring if files are not in the page cache%s%s\n", i->no_uring[0] ? ", but: " : "", i->no_uring);
    print_gpus();
    line("cache");
    out_name(stdout, i->cache_dir[0] ? i->cache_dir : "off: no folder to write to");
    putchar('\n');
}

static void print_json(const stk_info *i)
{
    struct json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "version", stk_version());
    json_open(&j, "cpu", '{');
    json_text(&j, "in_use", i->cpu_in_use);
    json_text(&j, "has", i->cpu_has);
    json_int(&j, "online", i->cpus_online);
    json_int(&j, "affinity", i->cpus_affinity);
    json_real(&j, "quota", i->cpus_quota);
    json_close(&j, '}');
    json_int(&j, "threads", i->threads);
    json_int(&j, "memory_bytes", i->memory);
    json_int(&j, "memory_total", i->memory_total);
    json_int(&j, "memory_limit", i->memory_limit);
    json_int(&j, "local_ranks", i->local_ranks);
    json_open(&j, "codecs", '{');
    json_text(&j, "jpeg", i->jpeg);
    json_text(&j, "png", i->png);
    json_text(&j, "webp", i->webp);
    json_close(&j, '}');
    json_open(&j, "decompressors", '{');
    json_text(&j, "zlib", i->zlib);
    json_text(&j, "zstd", i->zstd);
    json_close(&j, '}');
    json_open(&j, "sources", '[');
    for (int k = 0; k < N_SOURCES; k++)
        json_text(&j, NULL, sources[k]);
    json_close(&j, ']');
    json_open(&j, "readers", '[');
    json_text(&j, NULL, "pread");
    if (!i->no_uring[0])
        json_text(&j, NULL, "uring");
    json_close(&j, ']');
    json_gpus(&j);
    json_text(&j, "cache_dir", i->cache_dir);
    json_close(&j, '}');
}

static int run(struct args *a)
{
    stk_info i;
    stk_info_get(&i);
    if (a->json)
        print_json(&i);
    else
        print_text(&i);
    return END_GOOD;
}

static const struct args_option options[] = {
    {"json", 0, ARGS_ON, 0, offsetof(struct args, json), 0, 0, NULL, NULL, "print one JSON document and nothing else",
     NULL},
    {0},
};

static const char *const examples[] = {
    "stoker info",
    "print the version, the CPU features in use, the codecs, and the limits it would choose",
    "taskset -c 0 stoker info",
    "the same with one CPU: the number of threads follows what the process may use",
    "STOKER_CACHE_DIR=/scratch stoker info",
    "show where indexes and caches would be stored",
    NULL,
};

const struct command cmd_info = {
    .name = "info",
    .summary = "print the version, CPU features, codecs, and what Stoker would choose here",
    .about = "Prints what this build can do, what a loader would choose on this machine, and why.",
    .options = options,
    .examples = examples,
    .run = run,
};
