/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "base/cpu.h"
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
    TESTS(T(sees_a_machine), T(respects_affinity), T(respects_quota), T(shares_with_local_ranks), T(chooses_kernels),
          T(time_goes_forward))
}
