/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that are not here, read from copies of their files: usual ones, odd ones, and files that
 * no machine has. */
#include "base/topology.h"

#include <sys/stat.h>
#include <unistd.h>

#include "failing_alloc.h"
#include "machine_tree.h"
#include "test.h"

static char root[TEMP_PATH];
static sn_allocator allocator;
static sonde_error err;

static bool read_tree(sn_topology *t)
{
    sn_allocator_init_system(&allocator);
    return sn_topology_read(t, root, &allocator, &err) == SONDE_OK;
}

/* Every CPU has its place whatever was read, and the sums are right. */
static bool is_sound(const sn_topology *t)
{
    int usable = 0, cpus = 0, cores = 0;
    if (t->n_cpus < 1 || t->n_nodes < 1 || t->cores < 1 || t->cores > t->n_cpus ||
        t->packages < 1 || t->caches < 1 || t->threads_per_core < 1 || t->usable_cpus < 1)
        return false;
    for (int i = 0; i < t->n_cpus; i++) {
        const sn_topo_cpu *c = &t->cpus[i];
        if (c->id < 0 || c->id >= SN_ID_LIMIT || c->package < 0 || c->package >= t->packages ||
            c->core < 0 || c->core >= t->cores || c->cache < 0 || c->cache >= t->caches ||
            c->l2 < 0 || c->l2 >= t->n_cpus || c->node < 0 || c->node >= t->n_nodes ||
            c->thread < 0 || c->thread >= t->threads_per_core)
            return false;
        if (i && t->cpus[i - 1].id >= c->id)
            return false;
        if (sn_topology_cpu(t, c->id) != c)
            return false;
        usable += c->usable;
    }
    for (int k = 0; k < t->n_nodes; k++) {
        cpus += t->nodes[k].cpus;
        cores += t->nodes[k].usable_cores;
        if (sn_topology_node(t, t->nodes[k].id) != k || sn_topology_distance(t, k, k) < 10 ||
            t->nodes[k].usable_cpus > t->nodes[k].cpus)
            return false;
    }
    return usable == t->usable_cpus && cpus == t->n_cpus && cores == t->usable_cores;
}

TEST(two_sockets_of_32_cores_with_two_threads_each)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 1, .cores = 32, .threads = 2});
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.n_cpus, 128);
    CHECK_EQ(t.packages, 2);
    CHECK_EQ(t.cores, 64);
    CHECK_EQ(t.caches, 2);
    CHECK_EQ(t.threads_per_core, 2);
    CHECK_EQ(t.usable_cores, 64);
    CHECK_EQ(t.n_nodes, 2);
    CHECK(t.shows_nodes);
    const sn_topo_cpu *a = sn_topology_cpu(&t, 37), *b = sn_topology_cpu(&t, 101);
    CHECK(a && b && a->core == b->core && a->l2 == b->l2);
    CHECK_EQ(a->thread, 0);
    CHECK_EQ(b->thread, 1);
    CHECK_EQ(a->package, 1);
    CHECK_EQ(a->node, 1);
    CHECK(sn_topology_cpu(&t, 128) == NULL);
    CHECK_EQ(t.nodes[1].cores, 32);
    CHECK_EQ(t.nodes[1].cpus, 64);
    CHECK_EQ(t.nodes[1].package, 1);
    CHECK_EQ(t.nodes[1].memory_bytes, (uint64_t)64 << 30);
    CHECK_EQ(t.nodes[1].free_bytes, (uint64_t)32 << 30);
    CHECK_EQ(sn_topology_distance(&t, 0, 1), 21);
    sn_topology_free(&t);
    CHECK_EQ(allocator.live_bytes, 0);
}

TEST(four_nodes_of_two_sockets_know_which_are_near)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 2, .cores = 8, .threads = 2});
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.n_nodes, 4);
    CHECK_EQ(t.packages, 2);
    CHECK_EQ(t.nodes[2].package, 1);
    CHECK_EQ(sn_topology_distance(&t, 2, 3), 12);
    CHECK_EQ(sn_topology_distance(&t, 1, 2), 21);
    sn_topology_free(&t);
}

TEST(eight_nodes_with_several_caches_each)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root,
                 &(machine){.sockets = 2, .nodes = 4, .cores = 16, .threads = 2, .cache_cores = 8});
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.n_cpus, 256);
    CHECK_EQ(t.n_nodes, 8);
    CHECK_EQ(t.caches, 16);
    CHECK_EQ(sn_topology_cpu(&t, 7)->cache, sn_topology_cpu(&t, 128)->cache);
    CHECK(sn_topology_cpu(&t, 7)->cache != sn_topology_cpu(&t, 8)->cache);
    sn_topology_free(&t);
}

TEST(a_node_without_memory_takes_that_of_the_nearest)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 2, .cores = 4, .threads = 1});
    tree_put(root, "/sys/devices/system/node/node3/meminfo", "Node 3 MemTotal:       0 kB\n");
    CHECK(read_tree(&t));
    CHECK(is_sound(&t));
    CHECK(!t.nodes[3].has_memory);
    CHECK_EQ(sn_topology_memory_of(&t, 3), 2);
    CHECK_EQ(sn_topology_memory_of(&t, 1), 1);
    sn_topology_free(&t);
    /* and a node of memory alone, as CXL devices are */
    tree_put(root, "/sys/devices/system/node/online", "0-4\n");
    tree_put(root, "/sys/devices/system/node/node4/cpulist", "\n");
    tree_put(root, "/sys/devices/system/node/node4/meminfo", "Node 4 MemTotal:   1024 kB\n");
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.n_nodes, 5);
    CHECK_EQ(t.nodes[4].cpus, 0);
    CHECK_EQ(t.nodes[4].package, -1);
    CHECK_EQ(sn_topology_distance(&t, 0, 4), 20); /* the other lines have only four numbers */
    sn_topology_free(&t);
}

TEST(memory_that_a_cpuset_forbids_is_none)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 1, .cores = 4, .threads = 1});
    tree_put(root, "/proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t1\n");
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(!t.nodes[0].has_memory && t.nodes[1].has_memory);
    CHECK_EQ(sn_topology_memory_of(&t, 0), 1);
    sn_topology_free(&t);
}

TEST(offline_cpus_and_holes_in_the_numbers)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 1, .cores = 8, .threads = 2});
    tree_put(root, "/sys/devices/system/cpu/online", "0-2,4-7,9,16-31\n");
    tree_put(root, "/proc/self/status", "Cpus_allowed_list:\t0-3,16-18,25\n");
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.n_cpus, 24);
    CHECK(sn_topology_cpu(&t, 3) == NULL);
    CHECK_EQ(sn_topology_cpu(&t, 19)->thread, 0); /* its first thread is offline */
    CHECK_EQ(sn_topology_cpu(&t, 17)->thread, 1);
    CHECK_EQ(t.usable_cpus, 7); /* 0-2, 16-18, 25 */
    CHECK_EQ(t.usable_cores, 4);
    CHECK_EQ(t.nodes[1].usable_cores, 1);
    sn_topology_free(&t);
}

TEST(nodes_with_holes_in_their_numbers)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 1, .cores = 4, .threads = 1});
    tree_put(root, "/sys/devices/system/node/online", "0,8\n");
    tree_put(root, "/sys/devices/system/node/node8/cpulist", "4-7\n");
    tree_put(root, "/sys/devices/system/node/node8/distance", "40 10\n");
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.n_nodes, 2);
    CHECK_EQ(t.nodes[1].id, 8);
    CHECK_EQ(sn_topology_node(&t, 8), 1);
    CHECK_EQ(sn_topology_node(&t, 1), -1);
    CHECK_EQ(sn_topology_cpu(&t, 6)->node, 1);
    CHECK_EQ(sn_topology_distance(&t, 1, 0), 40);
    sn_topology_free(&t);
}

TEST(arm_machines_show_less)
{
    sn_topology t;
    temp_make(root);
    tree_put(root, "/sys/devices/system/cpu/online", "0-7\n");
    for (int cpu = 0; cpu < 8; cpu++) {
        char path[128];
        sprintf(path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
        tree_put(root, path, "-1\n");
        sprintf(path, "/sys/devices/system/cpu/cpu%d/topology/core_cpus_list", cpu);
        tree_put(root, path, "%d\n", cpu);
    }
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.cores, 8);
    CHECK_EQ(t.packages, 1);
    CHECK_EQ(t.caches, 1); /* none is told: those of a node are taken for near */
    CHECK_EQ(t.n_nodes, 1);
    CHECK(!t.shows_nodes);
    CHECK(t.nodes[0].has_memory);
    sn_topology_free(&t);
}

TEST(caches_without_a_third_level_group_by_the_second)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 1, .nodes = 1, .cores = 8, .threads = 1});
    for (int cpu = 0; cpu < 8; cpu++) {
        char path[128], text[16];
        sprintf(path, "/sys/devices/system/cpu/cpu%d/cache/index3", cpu);
        tree_remove(root, path);
        sprintf(text, "%d-%d", cpu / 4 * 4, cpu / 4 * 4 + 3);
        tree_cache(root, cpu, 2, 2, "Unified", text);
    }
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.caches, 2);
    CHECK_EQ(sn_topology_cpu(&t, 4)->l2, sn_topology_cpu(&t, 7)->l2);
    sn_topology_free(&t);
}

TEST(folders_are_counted_where_no_list_says_what_is_online)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 1, .cores = 4, .threads = 1});
    tree_remove(root, "/sys/devices/system/cpu/online");
    tree_remove(root, "/sys/devices/system/node/online");
    tree_put(root, "/sys/devices/system/cpu/cpufreq/x", "1\n");
    tree_put(root, "/sys/devices/system/cpu/cpu99999999999/x", "1\n");
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.n_cpus, 8);
    CHECK_EQ(t.n_nodes, 2);
    sn_topology_free(&t);
}

TEST(no_files_at_all_are_one_cpu)
{
    sn_topology t;
    temp_make(root);
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.n_cpus, 1);
    sn_topology_free(&t);
    CHECK(read_tree(&t)); /* and the folder is gone */
    CHECK(is_sound(&t));
    sn_topology_free(&t);
}

TEST(this_machine_has_at_least_the_cpus_of_this_thread)
{
    sn_topology t;
    sn_allocator_init_system(&allocator);
    CHECK_OK(sn_topology_read(&t, "", &allocator, &err));
    CHECK(is_sound(&t));
    sn_topology_free(&t);
    CHECK_EQ(allocator.live_bytes, 0);
}

/* ------------------------------------------------------------------ hostile files */
TEST(lists_that_contradict_each_other_still_give_one_place_to_each_cpu)
{
    sn_topology t;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 1, .cores = 4, .threads = 1});
    tree_put(root, "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-7\n");
    tree_put(root, "/sys/devices/system/cpu/cpu5/topology/thread_siblings_list", "0-8191\n");
    tree_put(root, "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "2\n");
    tree_put(root, "/sys/devices/system/node/node0/cpulist", "0-7\n");
    tree_put(root, "/sys/devices/system/node/node0/distance", "10 21 31 41 51\n");
    tree_put(root, "/sys/devices/system/node/node1/distance", "256 -10\n");
    tree_put(root, "/sys/devices/system/node/node1/meminfo",
             "Node 1 MemTotal: 99999999999999999999999999 kB\n");
    tree_put(root, "/proc/self/status", "Cpus_allowed_list:\t500-600\nMems_allowed_list:\t77\n");
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.cores, 1);
    CHECK_EQ(t.threads_per_core, 8);
    CHECK_EQ(t.nodes[1].cpus, 0);
    CHECK_EQ(t.usable_cpus, 8); /* what is said to be allowed is not there */
    CHECK_EQ(sn_topology_distance(&t, 0, 1), 20);
    CHECK_EQ(sn_topology_memory_of(&t, 0), -1);
    sn_topology_free(&t);
}

TEST(loops_folders_pipes_and_rubbish_in_the_place_of_files)
{
    sn_topology t;
    char path[512];
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 1, .nodes = 1, .cores = 4, .threads = 1});
    tree_remove(root, "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list");
    tree_path(path, sizeof path, root,
              "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list");
    CHECK(symlink(path, path) == 0);
    tree_remove(root, "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list");
    tree_put(root, "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list/x", "2\n");
    tree_remove(root, "/sys/devices/system/cpu/cpu3/topology/thread_siblings_list");
    tree_path(path, sizeof path, root,
              "/sys/devices/system/cpu/cpu3/topology/thread_siblings_list");
    CHECK(mkfifo(path, 0600) == 0);
    tree_remove(root, "/sys/devices/system/cpu/cpu0/cache");
    tree_path(path, sizeof path, root, "/sys/devices/system/cpu/cpu0/cache");
    CHECK(symlink(".", path) == 0);
    tree_put_bytes(root, "/sys/devices/system/node/node0/distance", "\0\xff\n10", 5);
    tree_put_bytes(root, "/proc/self/status", "Cpus_allowed_list:\n\0\xff", 21);
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.cores, 4);
    sn_topology_free(&t);
}

TEST(every_number_at_once)
{
    sn_topology t;
    temp_make(root);
    tree_put(root, "/sys/devices/system/cpu/online", "0-99999999\n");
    tree_put(root, "/sys/devices/system/node/online", "0-99999999\n");
    tree_put(root, "/sys/devices/system/node/node0/distance", "10\n");
    CHECK(read_tree(&t));
    CHECK(temp_remove(root));
    CHECK(is_sound(&t));
    CHECK_EQ(t.n_cpus, SN_ID_LIMIT);
    CHECK_EQ(t.n_nodes, 1024);
    sn_topology_free(&t);
}

/* One file of the tree gets something else in it. */
static void spoil(int cpus, int nodes)
{
    static const char *const cpu_files[] = {
        "topology/physical_package_id", "topology/thread_siblings_list", "topology/core_cpus_list",
        "cache/index2/level",           "cache/index3/shared_cpu_list",  "cache/index3/level"};
    static const char *const node_files[] = {"cpulist", "meminfo", "distance"};
    static const char *const others[] = {"/sys/devices/system/cpu/online",
                                         "/sys/devices/system/node/online", "/proc/self/status"};
    static const char *const texts[] = {"",      "0\n",   "-1\n",        "0-99999999999\n", "4-1\n",
                                        "7,\n",  "\n",    "nonsense",    "0-63\n",          "255\n",
                                        "10 10", "1-3,5", "2147483648\n"};
    char path[256], text[128];
    const uint64_t kind = test_rand() % 10;
    if (kind < 6)
        sprintf(path, "/sys/devices/system/cpu/cpu%d/%s", (int)(test_rand() % (unsigned)cpus),
                cpu_files[test_rand() % 6]);
    else if (kind < 8)
        sprintf(path, "/sys/devices/system/node/node%d/%s", (int)(test_rand() % (unsigned)nodes),
                node_files[test_rand() % 3]);
    else
        sprintf(path, "%s", others[test_rand() % 3]);
    snprintf(text, sizeof text, "%s", texts[test_rand() % (sizeof texts / sizeof *texts)]);
    for (size_t i = 0; text[i] && test_rand() % 4 == 0; i++)
        text[i] = (char)(test_rand() % 255 + 1);
    tree_put_bytes(root, path, text, strlen(text));
}

TEST(random_damage_never_gives_an_unsound_machine)
{
    for (int round = 0; round < 60; round++) {
        const machine m = {.sockets = 1 + (int)(test_rand() % 2),
                           .nodes = 1 + (int)(test_rand() % 3),
                           .cores = 1 + (int)(test_rand() % 4),
                           .threads = 1 + (int)(test_rand() % 2)};
        const int nodes = m.sockets * m.nodes, cpus = nodes * m.cores * m.threads;
        temp_make(root);
        machine_tree(root, &m);
        for (int i = 0; i < 12; i++) {
            sn_topology t;
            spoil(cpus, nodes);
            CHECK(read_tree(&t));
            const bool sound = is_sound(&t);
            sn_topology_free(&t);
            CHECK_EQ(allocator.live_bytes, 0);
            CHECK_MSG(sound, "round %d, change %d; the files are in %s", round, i, root);
        }
        CHECK(temp_remove(root));
    }
}

TEST(memory_that_runs_out_is_said)
{
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 1, .cores = 2, .threads = 2});
    for (long at = 0;; at++) {
        failing_alloc m;
        sn_topology t;
        _Atomic(sn_topology *) kept = NULL;
        const sn_topology *got = NULL;
        sn_allocator *alloc = failing_init(&m);
        m.fail_at = at;
        const sonde_status st = sn_topology_read(&t, root, alloc, &err);
        CHECK(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY);
        sn_topology_free(&t);
        CHECK_EQ(m.live, 0);
        CHECK_EQ(sn_topology_get(&kept, root, alloc, &got, &err), st ? st : SONDE_OUT_OF_MEMORY);
        sn_topology_drop(&kept);
        CHECK_EQ(m.live, 0);
        if (st == SONDE_OK)
            break;
    }
    _Atomic(sn_topology *) kept = NULL;
    const sn_topology *a = NULL, *b = NULL;
    sn_allocator_init_system(&allocator);
    CHECK_OK(sn_topology_get(&kept, root, &allocator, &a, &err));
    CHECK(temp_remove(root));
    CHECK_OK(sn_topology_get(&kept, root, &allocator, &b, &err));
    CHECK(a == b && a->cores == 4);
    sn_topology_drop(&kept);
    sn_topology_drop(&kept);
    CHECK_EQ(allocator.live_bytes, 0);
}

TEST_MAIN()
