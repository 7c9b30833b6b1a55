/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_cold.c -- the speed of a dataset that is not in the page cache.
 *
 * The pages of the files that contain the sample are dropped, and the sample is read once, in random order, by a new
 * loader. Caches below the page cache (of a disk, a server or the host of a virtual machine) cannot be dropped.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "out.h"
#include "stop.h"

static const double cold_s = 2.0; /* for one run, at most */

/* The path of a sample in a shard continues after the path of the shard. Cuts it there. Returns 0, or -1: no file. */
static int cut_to_file(char *path, struct stat *st)
{
    while (path[0]) {
        if (stat(path, st) == 0)
            return S_ISREG(st->st_mode) ? 0 : -1;
        char *slash = strrchr(path, '/'), *space = strrchr(path, ' ');
        char *cut = slash > space ? slash : space;
        if (!cut)
            return -1;
        *cut = 0;
    }
    return -1;
}

struct pages {
    int64_t all, resident;
    int files;
};

static void count_pages(int fd, const struct stat *st, struct pages *p)
{
    enum { MOST = 1 << 30 }; /* bytes of one file */
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = st->st_size < MOST ? (size_t)st->st_size : MOST;
    const size_t n = (bytes + page - 1) / page;
    unsigned char *in = n ? malloc(n) : NULL;
    void *map = in ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (map != MAP_FAILED && mincore(map, bytes, in) == 0)
        for (size_t i = 0; i < n; i++, p->all++)
            p->resident += in[i] & 1;
    if (map != MAP_FAILED)
        munmap(map, bytes);
    free(in);
}

/* Drops the pages of the files that contain the samples of a source, unless only counting is wanted. */
static struct pages visit_files(const stk_source *s, const int64_t *subset, int64_t n, int drop)
{
    struct pages p = {0};
    struct stat st, last = {0};
    for (int64_t i = 0; i < n && !stop_asked(); i++) {
        char path[4096];
        stk_source_path(s, subset ? subset[i] : i, path, sizeof path);
        if (cut_to_file(path, &st) || (st.st_ino == last.st_ino && st.st_dev == last.st_dev))
            continue;
        last = st;
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (drop) {
            fdatasync(fd); /* dirty pages cannot be dropped */
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        }
        count_pages(fd, &st, &p);
        p.files++;
        close(fd);
    }
    return p;
}

/* Drops what the run reads. Returns 0, or -1 with the reason in d->no_cold. */
static int drop(struct doctor *d, const struct doctor_run *r)
{
    const stk_source *s = r->source[0] ? stk_loader_source(r->loader) : d->source;
    const struct pages p = visit_files(s, r->o.subset, r->o.subset ? d->n : stk_source_count(s), 1);
    if (p.files == 0)
        snprintf(d->no_cold, sizeof d->no_cold, "the samples are not in local files");
    else if (p.resident * 10 > p.all)
        snprintf(d->no_cold, sizeof d->no_cold,
                 "the files stay in memory: their file system is in memory, or another program uses them");
    return d->no_cold[0] ? -1 : 0;
}

/* Drops the pages, and reads one epoch with a new loader. Returns samples/s; 0: it failed. */
static double read_cold(struct doctor *d, const struct doctor_run *r, double *bytes_s)
{
    stk_options o = r->o;
    stk_loader *l;
    stk_batch *b;
    stk_error e;
    if (drop(d, r))
        return 0;
    o.shuffle = 1;
    const double began = out_clock();
    double took = 0;
    int64_t got = 0;
    if (stk_open(&l, &o, &e) != STK_OK)
        return 0;
    while ((took = out_clock() - began) < cold_s && stop_next(l, &b, &e) == STK_OK) {
        got += stk_samples(b);
        stk_release(b);
    }
    stk_stats s = {0};
    stk_stats_get(l, &s);
    stk_close(l);
    *bytes_s = took > 0 ? (double)s.read_bytes / took : 0;
    return took > 0 && got > 0 && !stop_asked() ? (double)got / took : 0;
}

/* The source with its images as bytes, which are read and not decoded. */
static void add_storage(struct doctor *d)
{
    struct doctor_run *r = doctor_add(d, "storage alone", DOCTOR_CEILING);
    char fields[2048] = "", *image;
    stk_error e;
    stk_source_fields(d->source, fields, sizeof fields);
    image = strstr(fields, ":image");
    if (!image || d->n_encoded == 0) {
        doctor_fail(r, DOCTOR_SKIPPED, "the samples are not encoded images");
        return;
    }
    if (d->open_s > 2) {
        doctor_fail(r, DOCTOR_SKIPPED, "opening the dataset once more would take too long");
        return;
    }
    memcpy(image, ":bytes", strlen(":bytes"));
    struct args a = *d->a;
    a.o.fields = fields;
    if (args_open_source(&a, &r->opened, &e) != STK_OK) {
        doctor_fail(r, DOCTOR_FAILED, e.reason);
        return;
    }
    r->o.opened = r->opened;
    r->o.ops = NULL;
}

void doctor_cold(struct doctor *d)
{
    enum { TIMES = 2 };
    struct doctor_run *now = &d->runs[0];
    const struct pages p = visit_files(d->source, d->subset, d->n, 0);
    d->resident = p.all ? (double)p.resident / (double)p.all : -1;
    doctor_say("cold storage");
    add_storage(d);
    struct doctor_run *storage = &d->runs[d->n_runs - 1];
    for (int i = 0; i < TIMES && !d->no_cold[0] && !stop_asked(); i++) {
        double bytes_s = 0, rate = read_cold(d, now, &bytes_s);
        now->cold = rate > now->cold ? rate : now->cold;
        rate = storage->status == DOCTOR_OK && !d->no_cold[0] ? read_cold(d, storage, &bytes_s) : 0;
        if (rate > storage->cold) {
            storage->cold = rate;
            d->cold_bytes_s = bytes_s;
        }
    }
}

/* Packs in the temporary folder compare with the dataset only on the same storage. The gain of one that is not in
 * memory matters only if the dataset never is. */
void doctor_cold_packs(struct doctor *d)
{
    struct stat here, there;
    char path[4096];
    double bytes_s;
    char no_cold[sizeof d->no_cold];
    stk_source_path(d->source, d->subset[0], path, sizeof path);
    if (!doctor_is_cold(d) || cut_to_file(path, &here) || stat(d->scratch.path, &there) || here.st_dev != there.st_dev)
        return;
    doctor_say("packs on cold storage");
    memcpy(no_cold, d->no_cold, sizeof no_cold);
    for (int i = 0; i < d->n_runs; i++)
        if (d->runs[i].source[0] && d->runs[i].status == DOCTOR_OK && doctor_left(d) > 0) {
            d->runs[i].cold = read_cold(d, &d->runs[i], &bytes_s);
            memcpy(d->no_cold, no_cold, sizeof no_cold); /* the reason is about the pack, not about the dataset */
        }
}
