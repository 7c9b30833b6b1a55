/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "base/cpu.h"
#include "support/temp_tree.h"
#include "test.h"

static void sees_a_machine(void)
{
    struct machine m;
    machine_look(&m);
    CHECK(m.cpus_online >= 1 && m.cpus_affinity >= 1);
    CHECK(m.memory_total > 0 && m.memory_available > 0);
    CHECK(machine_threads(&m) >= 1 && machine_threads(&m) <= m.cpus_affinity);
}

static void respects_affinity(void)
{
    cpu_set_t before, one;
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        SKIP("the affinity cannot be changed here");
    struct machine m;
    machine_look(&m);
    CHECK_EQ(machine_threads(&m), 1);
    sched_setaffinity(0, sizeof before, &before);
}

static void respects_quota(void)
{
    const struct machine m = {.cpus_online = 64, .cpus_affinity = 16, .cpus_quota = 2.5};
    CHECK_EQ(machine_threads(&m), 3);
    const struct machine none = {.cpus_online = 64, .cpus_affinity = 16};
    CHECK_EQ(machine_threads(&none), 16);
    const struct machine tiny = {.cpus_online = 4, .cpus_affinity = 4, .cpus_quota = 0.1};
    CHECK_EQ(machine_threads(&tiny), 1);
}

static void shares_with_local_ranks(void)
{
    const struct machine all = {.cpus_online = 64, .cpus_affinity = 64, .local_ranks = 8};
    CHECK_EQ(machine_threads(&all), 8);
    const struct machine pinned = {.cpus_online = 64, .cpus_affinity = 16, .local_ranks = 4};
    CHECK_EQ(machine_threads(&pinned), 16);
    const struct machine crowded = {.cpus_online = 4, .cpus_affinity = 4, .local_ranks = 8};
    CHECK_EQ(machine_threads(&crowded), 1);
    struct machine m;
    setenv("LOCAL_WORLD_SIZE", "3", 1);
    machine_look(&m);
    CHECK_EQ(m.local_ranks, 3);
    setenv("LOCAL_WORLD_SIZE", "many", 1);
    machine_look(&m);
    CHECK_EQ(m.local_ranks, 0);
    unsetenv("LOCAL_WORLD_SIZE");
}

static void ranks_share_memory(void)
{
    const int64_t gib = (int64_t)1 << 30;
    struct machine m = {.memory_total = 24 * gib, .memory_available = 24 * gib};
    CHECK_EQ(machine_memory(&m), 6 * gib);
    m.local_ranks = 8;
    CHECK_EQ(machine_memory(&m), 6 * gib / 8);
    m.local_ranks = 1;
    CHECK_EQ(machine_memory(&m), 6 * gib);
}

/* A machine of 64 GiB, of which 40 are free. The cgroups are below. */
static void see(struct machine *m, const char *cgroups)
{
    temp_file("proc/meminfo", "MemTotal:       67108864 kB\nMemFree:  1 kB\nMemAvailable:   41943040 kB\n");
    temp_file("proc/self/cgroup", cgroups);
    machine_look_under(m, temp_root);
    CHECK_EQ(m->memory_total >> 30, 64);
}

/* Memory that a cgroup uses is not free, but its page cache is. The same holds for the cgroups above it. */
static void cgroups_hold_memory(void)
{
    struct machine m;
    temp_begin();
    see(&m, "0::/job/task\n");
    CHECK_EQ(m.memory_limit, 0);
    CHECK_EQ(m.memory_available >> 30, 40);

    temp_file("sys/fs/cgroup/job/task/memory.max", "8589934592\n"); /* 8 GiB */
    temp_file("sys/fs/cgroup/job/task/memory.current", "6442450944\n");
    temp_file("sys/fs/cgroup/job/task/memory.stat",
              "anon 1\nfile 3221225472\nshmem 1\ninactive_file 1073741824\nactive_file 2147483648\n");
    see(&m, "0::/job/task\n");
    CHECK_EQ(m.memory_limit >> 30, 8);
    CHECK_EQ(m.memory_available >> 30, 5);

    temp_file("sys/fs/cgroup/job/memory.max", "max\n");
    temp_file("sys/fs/cgroup/job/memory.high", "17179869184\n"); /* 16 GiB for all tasks, of which they hold 14 */
    temp_file("sys/fs/cgroup/job/memory.current", "15032385536\n");
    see(&m, "0::/job/task\n");
    CHECK_EQ(m.memory_limit >> 30, 8);
    CHECK_EQ(m.memory_available >> 30, 2);

    temp_file("sys/fs/cgroup/job/memory.current", "99999999999\n");
    see(&m, "0::/job/task\n");
    CHECK_EQ(m.memory_available, 0);

    temp_file("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4294967296\n");
    temp_file("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "3221225472\n");
    temp_file("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 7\ntotal_inactive_file 1073741824\n");
    see(&m, "4:memory:/box\n");
    CHECK_EQ(m.memory_limit >> 30, 4);
    CHECK_EQ(m.memory_available >> 30, 2);
    temp_end();
}

static void chooses_kernels(void)
{
    stk_cpu c;
    stk_error e;
    CHECK_EQ(cpu_choose(STK_CPU_DEFAULT, &c, &e), STK_OK);
    CHECK(c != STK_CPU_DEFAULT);
    CHECK_EQ(cpu_choose(STK_CPU_C, &c, &e), STK_OK);
    CHECK_EQ(c, STK_CPU_C);
    CHECK_EQ(cpu_choose((stk_cpu)99, &c, &e), STK_EUSAGE);
}

static void time_goes_forward(void)
{
    const uint64_t a = now_ns();
    CHECK(now_ns() >= a);
}

int main(int argc, char **argv)
{
    TESTS(T(sees_a_machine), T(respects_affinity), T(respects_quota), T(shares_with_local_ranks), T(ranks_share_memory),
          T(cgroups_hold_memory), T(chooses_kernels), T(time_goes_forward))
}
