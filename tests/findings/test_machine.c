/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of machines that are not here. */
#include "findings/machine.h"

#include <errno.h>

#include "base/numa_maps.h"
#include "failing_alloc.h"
#include "machine_tree.h"
#include "test.h"

typedef struct looked {
    char root[TEMP_PATH];
    sn_allocator alloc;
    sn_topology t;
    sn_seats *seats;
    sn_machine_state s;
    sn_findings f;
} looked;

static void begin(looked *x, const machine *m)
{
    sonde_error err;
    *x = (looked){.s = {.huge_pages = ""}};
    sn_allocator_init_system(&x->alloc);
    temp_make(x->root);
    machine_tree(x->root, m);
    if (sn_topology_read(&x->t, x->root, &x->alloc, &err))
        abort();
    x->s.topology = &x->t;
    x->s.threads = x->t.usable_cpus;
}

static void bind_to(looked *x, const char *numa)
{
    sn_seats_ask ask = {.here = -1};
    if (sn_numa_parse(numa, "numa", &ask.numa, NULL) ||
        sn_seats_make(&x->t, &ask, &x->alloc, &x->seats, NULL))
        abort();
    x->s.seats = x->seats;
    x->s.threads = x->seats->n;
}

static bool look(looked *x, bool placement)
{
    sonde_error err;
    sn_findings_free(&x->f);
    return (placement ? sn_findings_of_placement : sn_findings_of_machine)(&x->s, &x->alloc, &x->f,
                                                                           &err) == SONDE_OK;
}

static const sonde_finding *get(const looked *x, const char *topic)
{
    for (size_t i = 0; i < x->f.list.n; i++)
        if (strcmp(x->f.list.data[i].topic, topic) == 0)
            return &x->f.list.data[i];
    return NULL;
}

static bool end(looked *x)
{
    sn_findings_free(&x->f);
    sn_seats_free(x->seats);
    sn_topology_free(&x->t);
    return temp_remove(x->root) && x->alloc.live_bytes == 0;
}

static const machine two_sockets = {.sockets = 2, .nodes = 1, .cores = 32, .threads = 2};
static const machine one_socket = {.sockets = 1, .nodes = 1, .cores = 8, .threads = 1};

TEST(sockets_cores_and_nodes_are_told)
{
    looked x;
    begin(&x, &two_sockets);
    CHECK(look(&x, false));
    const sonde_finding *f = get(&x, "sockets");
    CHECK(f != NULL);
    CHECK_EQ(f->severity, SONDE_GOOD);
    CHECK_STR(f->finding, "2 sockets, 64 cores with 2 hardware threads each, 2 memory nodes");
    CHECK_STR(f->evidence, "node 0: 32 of 32 cores usable, 64.0 GiB; "
                           "node 1: 32 of 32 cores usable, 64.0 GiB");
    CHECK(get(&x, "pages") == NULL); /* not known */
    CHECK(end(&x));
}

TEST(huge_pages_that_are_off_are_noted)
{
    looked x;
    begin(&x, &one_socket);
    x.s.huge_pages = "always madvise [never]";
    CHECK(look(&x, false));
    CHECK_EQ(get(&x, "pages")->severity, SONDE_NOTE);
    CHECK_HAS(get(&x, "pages")->remedy, "transparent_hugepage/enabled");
    x.s.huge_pages = "always [madvise] never";
    CHECK(look(&x, false));
    CHECK_EQ(get(&x, "pages")->severity, SONDE_GOOD);
    CHECK(end(&x));
}

TEST(threads_that_may_run_on_both_sockets_are_slow_and_bound_ones_are_not)
{
    looked x;
    begin(&x, &two_sockets);
    CHECK(look(&x, false));
    const sonde_finding *f = get(&x, "placement");
    CHECK(f != NULL);
    CHECK_EQ(f->severity, SONDE_SLOW);
    CHECK_STR(f->finding, "128 threads may run on nodes 0-1, wherever their memory lies");
    CHECK_HAS(f->remedy, "--numa auto");
    x.s.threads = 1;
    CHECK(look(&x, false));
    CHECK(get(&x, "placement") == NULL);
    CHECK(get(&x, "binding") == NULL);
    bind_to(&x, "1");
    CHECK(look(&x, false));
    CHECK(get(&x, "placement") == NULL);
    CHECK_EQ(get(&x, "binding")->severity, SONDE_GOOD);
    CHECK_STR(get(&x, "binding")->finding, "32 threads are bound to CPUs 32-63,96-127 of node 1");
    CHECK_STR(get(&x, "binding")->evidence, "memory is asked from node 1");
    CHECK(end(&x));
    begin(&x, &two_sockets);
    bind_to(&x, "0-1");
    CHECK(look(&x, false));
    CHECK_EQ(get(&x, "placement")->severity, SONDE_NOTE);
    CHECK(end(&x));
    begin(&x, &one_socket);
    CHECK(look(&x, false));
    CHECK(get(&x, "placement") == NULL);
    CHECK(end(&x));
    machine half = two_sockets; /* an affinity mask is as good */
    half.allowed = "0-31,64-95";
    begin(&x, &half);
    CHECK(look(&x, false));
    CHECK(get(&x, "placement") == NULL);
    CHECK(end(&x));
}

TEST(two_threads_on_a_core_are_noted)
{
    looked x;
    begin(&x, &two_sockets);
    CHECK(look(&x, false));
    CHECK_STR(get(&x, "siblings")->finding,
              "128 threads run on 64 cores, so some share the arithmetic of one core");
    CHECK_STR(get(&x, "siblings")->remedy, "compare with one thread for each core (-t 64)");
    x.s.threads = 64;
    CHECK(look(&x, false));
    CHECK(get(&x, "siblings") == NULL);
    bind_to(&x, "0");
    CHECK(look(&x, false));
    CHECK(get(&x, "siblings") == NULL);
    CHECK(end(&x));
}

TEST(a_node_without_memory_is_slow)
{
    looked x;
    begin(&x, &two_sockets);
    x.t.nodes[1].has_memory = false;
    bind_to(&x, "1");
    CHECK(look(&x, false));
    CHECK_STR(get(&x, "placement")->finding, "node 1 has no memory that this process may use");
    CHECK_STR(get(&x, "placement")->evidence, "its threads use that of node 0, at distance 21");
    CHECK(end(&x));
}

TEST(memory_on_the_other_node_is_slow_above_a_tenth)
{
    looked x;
    uint64_t bytes[2] = {(uint64_t)89 << 20, (uint64_t)11 << 20};
    begin(&x, &two_sockets);
    bind_to(&x, "0");
    x.s.node_bytes = bytes;
    CHECK(look(&x, true));
    CHECK_EQ(get(&x, "placement")->severity, SONDE_SLOW);
    CHECK_STR(get(&x, "placement")->finding,
              "11 % of this process's memory lies on other nodes than its threads, 0");
    CHECK_STR(get(&x, "placement")->evidence, "11.0 MiB on node 1, at distance 21 (10 is near)");
    bytes[0] = (uint64_t)91 << 20;
    bytes[1] = (uint64_t)9 << 20;
    CHECK(look(&x, true));
    CHECK_EQ(get(&x, "placement")->severity, SONDE_GOOD);
    bytes[0] = (uint64_t)10 << 20; /* little in all */
    bytes[1] = (uint64_t)20 << 20;
    CHECK(look(&x, true));
    CHECK(get(&x, "placement") == NULL);
    bytes[0] = (uint64_t)100 << 20;
    bytes[1] = (uint64_t)900 << 20;
    x.t.nodes[0].has_memory = false; /* it has to lie there */
    CHECK(look(&x, true));
    CHECK_EQ(get(&x, "placement")->severity, SONDE_GOOD);
    CHECK(end(&x));
}

TEST(refusals_are_told_with_the_reason)
{
    looked x;
    begin(&x, &two_sockets);
    bind_to(&x, "0");
    x.s.memory_refused = EPERM;
    CHECK(look(&x, true));
    CHECK_EQ(get(&x, "placement")->severity, SONDE_NOTE);
    CHECK_HAS(get(&x, "placement")->evidence, "mbind: ");
    CHECK_HAS(get(&x, "placement")->remedy, "SYS_NICE");
    x.s.memory_refused = 0;
    x.s.threads_refused = EPERM;
    CHECK(look(&x, true));
    CHECK_EQ(get(&x, "placement")->severity, SONDE_SLOW);
    CHECK(end(&x));
}

TEST(memory_is_counted_by_node_from_its_map)
{
    looked x;
    uint64_t bytes[2];
    begin(&x, &two_sockets);
    CHECK(!sn_memory_by_node(x.root, &x.t, bytes)); /* there is no such file */
    tree_put(x.root, "/proc/self/numa_maps",
             "55e7 default file=/usr/lib/libc.so mapped=900 N0=900 kernelpagesize_kB=4\n"
             "7f00 prefer:1 anon=512 dirty=512 N0=12 N1=500 kernelpagesize_kB=4\n"
             "7f10 default anon=2 dirty=2 N0=2 kernelpagesize_kB=2048\n"
             "7f20 default heap anon=3 N0=3 N7=5 kernelpagesize_kB=4\n"
             "7f30 default stack N1= anon=1 N1=x N=5 N0=99999999999999999999999\n"
             "7f40 default anon=1 N1=1 kernelpagesize_kB=99999999999999999999\n\xff\n");
    CHECK(sn_memory_by_node(x.root, &x.t, bytes));
    CHECK_EQ(bytes[0], (12 + 3) * 4096 + (4 << 20));
    CHECK_EQ(bytes[1], 500 * 4096);
    CHECK(end(&x));
    sn_allocator_init_system(&x.alloc);
    sonde_error err;
    CHECK_OK(sn_topology_read(&x.t, "", &x.alloc, &err));
    uint64_t *own = calloc((size_t)x.t.n_nodes, sizeof *own);
    (void)sn_memory_by_node("", &x.t, own); /* whatever this system shows */
    free(own);
    sn_topology_free(&x.t);
}

TEST(memory_that_runs_out_is_said)
{
    looked x;
    begin(&x, &two_sockets);
    x.s.huge_pages = "always madvise [never]";
    for (long at = 0;; at++) {
        failing_alloc m;
        sonde_error err;
        sn_findings f;
        sn_allocator *alloc = failing_init(&m);
        m.fail_at = at;
        const sonde_status st = sn_findings_of_machine(&x.s, alloc, &f, &err);
        sn_findings_free(&f);
        CHECK_EQ(m.live, 0);
        if (st == SONDE_OK)
            break;
        CHECK_EQ(st, SONDE_OUT_OF_MEMORY);
    }
    CHECK(end(&x));
}

TEST_MAIN()
