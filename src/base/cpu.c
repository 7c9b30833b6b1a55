/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.c -- CPUs, memory and instruction sets that this process may use.
 *
 * sysconf() reports all CPUs of the host even to a container that may use two. So the limits are the affinity mask, and
 * the quota of the cgroup and of all cgroups above it (v2 cpu.max, v1 cpu.cfs_quota_us). Memory is limited in the same
 * way, minus what the cgroup already uses.
 */
#include "base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int read_line(const char *path, char *buf, size_t n)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    const char *got = fgets(buf, (int)n, f);
    fclose(f);
    return got ? 0 : -1;
}

/* The number at the start of a file; -1: "max", no number, or unreadable. */
static int64_t read_number(const char *path)
{
    char line[64];
    if (read_line(path, line, sizeof line) || line[0] < '0' || line[0] > '9')
        return -1;
    return strtoll(line, NULL, 10);
}

/* The number after a name at the start of a line; 0: none. */
static int64_t read_named(const char *path, const char *name)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    const size_t n = strlen(name);
    char line[128];
    int64_t found = 0;
    while (found == 0 && fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0)
            found = strtoll(line + n, NULL, 10);
    fclose(f);
    return found;
}

/* The files of a version of cgroups that describe memory. */
struct memory_files {
    const char *limits[2], *usage, *inactive, *active;
};

/* The page cache counts as free, as in MemAvailable: the kernel drops it first when memory is short. */
static int64_t held(const char *dir, const struct memory_files *f)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, f->usage);
    const int64_t used = read_number(path);
    snprintf(path, sizeof path, "%s/memory.stat", dir);
    const int64_t kept = used - read_named(path, f->inactive) - read_named(path, f->active);
    return kept > 0 ? kept : 0;
}

static void look_memory(struct machine *m, const char *dir, const struct memory_files *f)
{
    for (int i = 0; i < 2 && f->limits[i]; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", dir, f->limits[i]);
        const int64_t limit = read_number(path);
        if (limit <= 0 || limit >= m->memory_total)
            continue;
        if (m->memory_limit == 0 || limit < m->memory_limit)
            m->memory_limit = limit;
        const int64_t used = held(dir, f), room = limit > used ? limit - used : 0;
        if (room < m->memory_available)
            m->memory_available = room;
    }
}

static void lower_quota(double *quota, double found)
{
    if (found > 0 && (*quota == 0 || found < *quota))
        *quota = found;
}

static void look_v2(struct machine *m, const char *dir)
{
    char path[PATH_MAX], line[64];
    snprintf(path, sizeof path, "%s/cpu.max", dir);
    if (read_line(path, line, sizeof line) == 0 && line[0] != 'm') {
        char *end = NULL;
        const double quota = (double)strtoll(line, &end, 10), period = (double)strtoll(end, NULL, 10);
        if (period > 0)
            lower_quota(&m->cpus_quota, quota / period);
    }
    look_memory(m, dir,
                &(struct memory_files){.limits = {"memory.max", "memory.high"},
                                       .usage = "memory.current",
                                       .inactive = "inactive_file ",
                                       .active = "active_file "});
}

static void look_v1(struct machine *m, const char *controllers, const char *dir)
{
    char path[PATH_MAX];
    if (strstr(controllers, "memory")) {
        look_memory(m, dir,
                    &(struct memory_files){.limits = {"memory.limit_in_bytes"},
                                           .usage = "memory.usage_in_bytes",
                                           .inactive = "total_inactive_file ",
                                           .active = "total_active_file "});
    } else if (strstr(controllers, "cpu")) {
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
        const int64_t period = read_number(path);
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
        const int64_t quota = read_number(path);
        if (quota > 0 && period > 0)
            lower_quota(&m->cpus_quota, (double)quota / (double)period);
    }
}

/* Reads a cgroup and all above it, up to the mount point. */
static void look_up(struct machine *m, const char *mount, const char *controllers, const char *group)
{
    char dir[PATH_MAX / 2];
    const int n = snprintf(dir, sizeof dir, "%s%s", mount, strcmp(group, "/") == 0 ? "" : group);
    if (n < 0 || (size_t)n >= sizeof dir)
        return;
    for (;;) {
        if (controllers[0])
            look_v1(m, controllers, dir);
        else
            look_v2(m, dir);
        char *slash = strrchr(dir, '/');
        if (strlen(dir) <= strlen(mount) || !slash)
            return;
        *slash = 0;
    }
}

/* Lines of /proc/self/cgroup are "0::/group" (v2) or "4:cpu,cpuacct:/group" (v1). */
static void look_cgroups(struct machine *m, const char *root)
{
    char mount[PATH_MAX / 4], line[1024];
    snprintf(mount, sizeof mount, "%s/proc/self/cgroup", root);
    FILE *f = fopen(mount, "re");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *controllers++ = 0;
        *group++ = 0;
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root, controllers[0] ? "/" : "",
                 strstr(controllers, "memory") ? "memory" : controllers);
        look_up(m, mount, controllers, group);
    }
    fclose(f);
}

static void look_total(struct machine *m, const char *root)
{
    char path[PATH_MAX / 4];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    m->memory_total = 1024 * read_named(path, "MemTotal:");
    if (m->memory_total == 0)
        m->memory_total = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    m->memory_available = 1024 * read_named(path, "MemAvailable:");
    if (m->memory_available == 0)
        m->memory_available = m->memory_total;
}

#if defined(__x86_64__)
/* Some compilers' __builtin_cpu_supports() does not know this name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

static void look_features(struct machine *m)
{
    __builtin_cpu_init();
    m->avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("pclmul") &&
              has_f16c();
    m->avx512 = m->avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512vnni");
}

bool cpu_has_vbmi(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("bmi2");
}

bool cpu_has_crc32c(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

bool cpu_has_avx512dq(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

#else
static void look_features(struct machine *m)
{
    (void)m; /* plain C */
}

bool cpu_has_vbmi(void)
{
    return false;
}

bool cpu_has_crc32c(void)
{
    return false;
}

bool cpu_has_avx512dq(void)
{
    return false;
}
#endif

/* Set by torchrun, Open MPI and MPICH. */
static int count_local_ranks(void)
{
    static const char *const names[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
    long n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && n < 1; i++) {
        const char *text = getenv(names[i]);
        n = text ? strtol(text, NULL, 10) : 0;
    }
    return n > 0 && n < 1 << 16 ? (int)n : 0;
}

void machine_look_under(struct machine *m, const char *root)
{
    *m = (struct machine){0};
    m->cpus_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set; /* too small for some machines */
    m->cpus_affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : m->cpus_online;
    m->local_ranks = count_local_ranks();
    look_total(m, root);
    look_cgroups(m, root);
    look_features(m);
}

void machine_look(struct machine *m)
{
    machine_look_under(m, "");
}

int machine_threads(const struct machine *m)
{
    int n = m->cpus_affinity;
    if (m->cpus_quota > 0 && m->cpus_quota < n)
        n = (int)ceil(m->cpus_quota);
    /* If the launcher gave every rank its own CPUs, they are divided already. */
    if (m->local_ranks > 1 && m->cpus_affinity == m->cpus_online)
        n /= m->local_ranks;
    return n < 1 ? 1 : n;
}

int64_t machine_memory(const struct machine *m)
{
    return m->memory_available / 4 / (m->local_ranks > 1 ? m->local_ranks : 1);
}

const char *cpu_name(stk_cpu c)
{
    switch (c) {
    case STK_CPU_C:
        return "c";
    case STK_CPU_AVX2:
        return "avx2";
    case STK_CPU_AVX512:
        return "avx512";
    case STK_CPU_DEFAULT:
        break;
    }
    return "best";
}

int cpu_choose(stk_cpu asked, stk_cpu *out, stk_error *e)
{
    struct machine m;
    machine_look(&m);
    const stk_cpu best = m.avx512 ? STK_CPU_AVX512 : m.avx2 ? STK_CPU_AVX2 : STK_CPU_C;
    *out = asked == STK_CPU_DEFAULT ? best : asked;
    if (asked == STK_CPU_DEFAULT || asked == STK_CPU_C || (asked == STK_CPU_AVX2 && m.avx2) ||
        (asked == STK_CPU_AVX512 && m.avx512))
        return STK_OK;
    return error_set(e, STK_EUSAGE, "open", "this CPU has no %s; the best here is %s", cpu_name(asked), cpu_name(best));
}
