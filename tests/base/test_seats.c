/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs the threads of a pool get on machines that are not here, and sitting down on this one.
 */
#include "base/seats.h"

#include <pthread.h>
#include <sched.h>

#include "base/affinity.h"
#include "failing_alloc.h"
#include "machine_tree.h"
#include "test.h"

static sn_allocator allocator;
static sonde_error err;

static bool read_machine(sn_topology *t, const machine *m)
{
    char root[TEMP_PATH];
    temp_make(root);
    machine_tree(root, m);
    sn_allocator_init_system(&allocator);
    const bool fine = sn_topology_read(t, root, &allocator, &err) == SONDE_OK;
    return temp_remove(root) && fine;
}

static sn_seats_ask ask_for(const char *numa)
{
    sn_seats_ask ask = {.here = -1};
    if (sn_numa_parse(numa, "numa", &ask.numa, NULL))
        abort();
    return ask;
}

/* The CPUs of a seat as text, in a static buffer. */
static const char *seat_text(const sn_seats *s, int seat)
{
    static char text[4][256];
    static int turn;
    sn_id_set cpus;
    sn_seats_cpus(s, seat, &cpus);
    return sn_id_set_text(&cpus, text[turn++ % 4], sizeof text[0]);
}

static const char *set_text(const sn_id_set *s)
{
    static char text[4][256];
    static int turn;
    return sn_id_set_text(s, text[turn++ % 4], sizeof text[0]);
}

static const machine two_sockets = {.sockets = 2, .nodes = 1, .cores = 32, .threads = 2};
static const machine quarters = {.sockets = 2, .nodes = 2, .cores = 8, .threads = 2};
static const machine eighths = {
    .sockets = 2, .nodes = 4, .cores = 16, .threads = 2, .cache_cores = 8};

TEST(what_numa_may_be)
{
    sn_numa n;
    CHECK_OK(sn_numa_parse("auto", "numa", &n, &err));
    CHECK_EQ(n.mode, SN_NUMA_AUTO);
    CHECK_OK(sn_numa_parse("off", "numa", &n, &err));
    CHECK_EQ(n.mode, SN_NUMA_OFF);
    CHECK_OK(sn_numa_parse("0,2-3", "numa", &n, &err));
    CHECK_EQ(n.mode, SN_NUMA_NODES);
    CHECK_STR(set_text(&n.nodes), "0,2-3");
    static const char *const wrong[] = {"",     "on",    "AUTO", "-1",  "0,",
                                        "9999", "node0", "0;1",  "\xff"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_MSG(sn_numa_parse(wrong[i], "SONDE_NUMA", &n, &err) == SONDE_INVALID_ARGUMENT, "%s",
                  wrong[i]);
    CHECK_HAS(err.message, "SONDE_NUMA is");
    CHECK_HAS(err.message, "expected auto, off, or memory nodes");
}

TEST(a_thread_for_each_core_of_the_node_and_none_for_its_second_threads)
{
    sn_topology t;
    sn_seats *s;
    sn_seats_ask ask = ask_for("1");
    CHECK(read_machine(&t, &two_sockets));
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_EQ(s->n, 32);
    CHECK_EQ(s->cores, 32);
    for (int i = 0; i < 32; i++) { /* a core with both its threads: the kernel may use either */
        char want[32];
        sprintf(want, "%d,%d", 32 + i, 96 + i);
        CHECK_STR(seat_text(s, i), want);
    }
    CHECK_STR(set_text(&s->memory), "1");
    CHECK_STR(set_text(&s->nodes), "1");
    CHECK_STR(set_text(&s->all), "32-63,96-127");
    sn_seats_free(s);
    sn_topology_free(&t);
    CHECK_EQ(allocator.live_bytes, 0);
}

TEST(fewer_threads_have_several_cores_each_side_by_side)
{
    sn_topology t;
    sn_seats *s;
    sn_seats_ask ask = ask_for("0");
    CHECK(read_machine(&t, &eighths));
    ask.threads = 4;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(seat_text(s, 0), "0-3,128-131");
    CHECK_STR(seat_text(s, 1), "4-7,132-135"); /* of the same cache */
    CHECK_STR(seat_text(s, 2), "8-11,136-139");
    CHECK_STR(seat_text(s, 3), "12-15,140-143");
    sn_seats_free(s);
    ask.threads = 3;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(seat_text(s, 0), "0-4,128-132");
    CHECK_STR(seat_text(s, 1), "5-9,133-137");
    CHECK_STR(seat_text(s, 2), "10-15,138-143");
    sn_seats_free(s);
    sn_topology_free(&t);
}

TEST(more_threads_take_first_all_cores_then_their_second_threads)
{
    sn_topology t;
    sn_seats *s;
    sn_seats_ask ask = ask_for("0");
    CHECK(read_machine(&t, &two_sockets));
    ask.threads = 48;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(seat_text(s, 0), "0"); /* threads of a core are neighbours */
    CHECK_STR(seat_text(s, 1), "64");
    CHECK_STR(seat_text(s, 31), "79");
    CHECK_STR(seat_text(s, 32), "16"); /* from here on a core each */
    CHECK_STR(seat_text(s, 47), "31");
    CHECK_EQ(sn_id_set_count(&s->all), 48);
    sn_seats_free(s);
    ask.threads = 64;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(seat_text(s, 63), "95");
    CHECK_EQ(sn_id_set_count(&s->all), 64);
    sn_seats_free(s);
    ask.threads = 65; /* more than there are: nobody is bound to one */
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(seat_text(s, 0), "0-31,64-95");
    CHECK_STR(seat_text(s, 64), "0-31,64-95");
    sn_seats_free(s);
    sn_topology_free(&t);
    CHECK_EQ(allocator.live_bytes, 0);
}

TEST(neighbours_of_the_pool_are_neighbours_of_the_machine)
{
    sn_topology t;
    sn_seats *s;
    sn_seats_ask ask = ask_for("0-7");
    CHECK(read_machine(&t, &eighths));
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_EQ(s->n, 128);
    int changes = 0;
    for (int i = 1; i < s->n; i++)
        changes += sn_topology_cpu(&t, s->cpus[s->seat[i].first])->cache !=
                   sn_topology_cpu(&t, s->cpus[s->seat[i - 1].first])->cache;
    CHECK_EQ(changes, 15);
    CHECK_STR(set_text(&s->memory), "0-7"); /* in turn */
    sn_seats_free(s);
    sn_topology_free(&t);
}

TEST(automatic_is_one_node_and_off_or_one_node_alone_is_nothing)
{
    sn_topology t;
    sn_seats *s = NULL;
    sn_seats_ask ask = ask_for("auto");
    CHECK(read_machine(&t, &quarters));
    ask.here = 18; /* on node 2; all are equal */
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(set_text(&s->nodes), "2");
    CHECK_EQ(s->n, 8);
    sn_seats_free(s);
    ask.here = -1;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(set_text(&s->nodes), "0");
    sn_seats_free(s);
    ask = ask_for("off");
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK(s == NULL);
    sn_topology_free(&t);
    ask = ask_for("auto");
    CHECK(read_machine(&t, &(machine){.sockets = 1, .nodes = 1, .cores = 8, .threads = 2}));
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK(s == NULL);
    ask = ask_for("0"); /* asked for by name it is bound, to cores */
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_EQ(s->n, 8);
    CHECK(sn_id_set_is_empty(&s->memory));
    sn_seats_free(s);
    sn_topology_free(&t);
}

TEST(automatic_takes_the_node_with_most_cores_that_may_be_used)
{
    sn_topology t;
    sn_seats *s;
    sn_seats_ask ask = ask_for("auto");
    machine m = quarters;
    m.allowed = "0-1,8-12,40-44";
    CHECK(read_machine(&t, &m));
    ask.here = 0;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(set_text(&s->nodes), "1");
    CHECK_EQ(s->n, 5);
    CHECK_STR(set_text(&s->all), "8-12,40-44");
    sn_seats_free(s);
    sn_topology_free(&t);
}

TEST(instances_take_the_nodes_in_turn_and_share_the_cores_of_each)
{
    sn_topology t;
    sn_seats *s;
    sn_id_set taken = {{0}};
    sn_seats_ask ask = ask_for("auto");
    CHECK(read_machine(&t, &two_sockets));
    ask.instances = 5; /* three on node 0, two on node 1 */
    static const char *const all[] = {"0-9,64-73", "32-47,96-111", "10-20,74-84", "48-63,112-127",
                                      "21-31,85-95"};
    for (ask.instance = 0; ask.instance < 5; ask.instance++) {
        CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
        CHECK_STR(set_text(&s->all), all[ask.instance]);
        CHECK_STR(set_text(&s->memory), ask.instance % 2 ? "1" : "0");
        CHECK_EQ(s->n, s->cores);
        sn_id_set_join(&taken, &s->all);
        sn_seats_free(s);
    }
    CHECK_EQ(sn_id_set_count(&taken), 128);
    ask.instances = 200; /* more than cores: some share one */
    for (ask.instance = 0; ask.instance < 200; ask.instance++) {
        CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
        CHECK_EQ(s->n, 1);
        CHECK_EQ(s->n_cpus, 2);
        sn_seats_free(s);
    }
    ask = ask_for("1"); /* all on one */
    ask.instances = 2;
    ask.instance = 1;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(set_text(&s->all), "48-63,112-127");
    sn_seats_free(s);
    sn_topology_free(&t);
    CHECK_EQ(allocator.live_bytes, 0);
}

TEST(a_quota_limits_the_usual_number_of_threads)
{
    sn_topology t;
    sn_seats *s;
    sn_seats_ask ask = ask_for("0");
    CHECK(read_machine(&t, &two_sockets));
    ask.quota_cores = 6.5;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_EQ(s->n, 6);
    sn_seats_free(s);
    ask.instances = 10;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_EQ(s->n, 1);
    sn_seats_free(s);
    ask.threads = 3; /* asked for */
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_EQ(s->n, 3);
    sn_seats_free(s);
    sn_topology_free(&t);
}

TEST(nodes_that_are_not_there_or_cannot_be_used_are_refused_with_the_reason)
{
    sn_topology t;
    sn_seats *s;
    machine m = quarters;
    m.allowed = "0-7";
    CHECK(read_machine(&t, &m));
    sn_seats_ask ask = ask_for("4");
    CHECK_EQ(sn_seats_make(&t, &ask, &allocator, &s, &err), SONDE_INVALID_ARGUMENT);
    CHECK_STR(err.message, "there is no memory node 4 on this machine; the nodes are 0-3");
    ask = ask_for("0,1");
    CHECK_EQ(sn_seats_make(&t, &ask, &allocator, &s, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "may use no CPU of memory node 1");
    CHECK_HAS(err.message, "only CPUs 0-7");
    t.nodes[2].cpus = 0; /* memory alone */
    ask = ask_for("2");
    CHECK_EQ(sn_seats_make(&t, &ask, &allocator, &s, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "has no CPUs");
    sn_topology_free(&t);
    CHECK_EQ(allocator.live_bytes, 0);
}

TEST(a_node_without_memory_is_bound_to_that_of_its_neighbour)
{
    sn_topology t;
    sn_seats *s;
    sn_seats_ask ask = ask_for("3");
    CHECK(read_machine(&t, &quarters));
    t.nodes[3].has_memory = false;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK_STR(set_text(&s->nodes), "3");
    CHECK_STR(set_text(&s->memory), "2");
    sn_seats_free(s);
    for (int k = 0; k < 4; k++)
        t.nodes[k].has_memory = false;
    CHECK_OK(sn_seats_make(&t, &ask, &allocator, &s, &err));
    CHECK(sn_id_set_is_empty(&s->memory));
    sn_seats_free(s);
    sn_topology_free(&t);
}

/* Whatever machine and question: seats are usable CPUs, and while there are enough no two threads
 * share one. */
static void check_seats(const sn_topology *t, const sn_seats *s)
{
    sn_id_set seen = {{0}}, cpus;
    int sum = 0;
    for (int i = 0; i < s->n; i++) {
        sn_seats_cpus(s, i, &cpus);
        CHECK(!sn_id_set_is_empty(&cpus));
        CHECK(sn_id_set_within(&cpus, &s->all));
        for (int id = sn_id_set_next(&cpus, 0); id >= 0; id = sn_id_set_next(&cpus, id + 1)) {
            const sn_topo_cpu *c = sn_topology_cpu(t, id);
            CHECK(c && c->usable && sn_id_set_has(&s->nodes, t->nodes[c->node].id));
        }
        sum += sn_id_set_count(&cpus);
        sn_id_set_join(&seen, &cpus);
    }
    CHECK(memcmp(&seen, &s->all, sizeof seen) == 0);
    CHECK_EQ(sn_id_set_count(&seen), s->n_cpus);
    if (s->n <= s->n_cpus)
        CHECK_EQ(sum, s->n_cpus);
}

TEST(seats_are_sound_on_random_machines)
{
    for (int round = 0; round < 40; round++) {
        char root[TEMP_PATH], some[128] = "";
        const machine m = {.sockets = 1 + (int)(test_rand() % 2),
                           .nodes = 1 + (int)(test_rand() % 3),
                           .cores = 1 + (int)(test_rand() % 5),
                           .threads = 1 + (int)(test_rand() % 3),
                           .cache_cores = (int)(test_rand() % 3)};
        const int cpus = m.sockets * m.nodes * m.cores * m.threads;
        sn_topology t;
        temp_make(root);
        machine_tree(root, &m);
        for (int i = 0; i < cpus && i < 30; i++)
            if (test_rand() % 3)
                sprintf(some + strlen(some), "%s%d", *some ? "," : "", i);
        if (*some)
            tree_put(root, "/proc/self/status", "Cpus_allowed_list:\t%s\n", some);
        if (test_rand() % 2)
            tree_put(root, "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-3\n");
        sn_allocator_init_system(&allocator);
        CHECK_OK(sn_topology_read(&t, root, &allocator, &err));
        CHECK(temp_remove(root));
        for (int i = 0; i < 20; i++) {
            static const char *const numa[] = {"auto", "0", "1", "0-1", "0,2", "0-5"};
            sn_seats_ask ask = ask_for(numa[test_rand() % 6]);
            sn_seats *s = NULL;
            ask.threads = (int)(test_rand() % (unsigned)(cpus + 3));
            ask.instances = (int)(test_rand() % 4);
            ask.instance = ask.instances ? (int)(test_rand() % (unsigned)ask.instances) : 0;
            ask.here = (int)(test_rand() % 40) - 1;
            const sonde_status st = sn_seats_make(&t, &ask, &allocator, &s, &err);
            CHECK(st == SONDE_OK || st == SONDE_INVALID_ARGUMENT);
            if (s)
                check_seats(&t, s);
            if (test_errors)
                return;
            sn_seats_free(s);
        }
        sn_topology_free(&t);
        CHECK_EQ(allocator.live_bytes, 0);
    }
}

TEST(memory_that_runs_out_is_said)
{
    sn_topology t;
    sn_seats_ask ask = ask_for("0");
    CHECK(read_machine(&t, &quarters));
    for (long at = 0;; at++) {
        failing_alloc m;
        sn_seats *s;
        sn_allocator *alloc = failing_init(&m);
        m.fail_at = at;
        ask.threads = at % 2 ? 4 : 12;
        const sonde_status st = sn_seats_make(&t, &ask, alloc, &s, &err);
        sn_seats_free(s);
        CHECK_EQ(m.live, 0);
        if (st == SONDE_OK)
            break;
        CHECK_EQ(st, SONDE_OUT_OF_MEMORY);
    }
    sn_topology_free(&t);
}

/* ------------------------------------------------------------------ sitting down */
/* Seats made by hand: one for each of these CPUs. */
static sn_seats by_hand(int *cpus, sn_seat *seat, int n)
{
    sn_seats s = {.n = n, .seat = seat, .cpus = cpus, .n_cpus = n};
    for (int i = 0; i < n; i++) {
        seat[i] = (sn_seat){i, i + 1};
        sn_id_set_add(&s.all, cpus[i]);
    }
    return s;
}

/* On a thread of its own, which ends with the place it has. */
static int on_a_thread(void *(*fn)(void *))
{
    pthread_t thread;
    void *line = (void *)-1;
    if (pthread_create(&thread, NULL, fn, NULL) == 0)
        pthread_join(thread, &line);
    return (int)(intptr_t)line;
}
#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return (void *)(intptr_t)__LINE__;                                                     \
    } while (0)

static void *sit_and_stand_up(void *none)
{
    sn_id_set own, now;
    sn_sitting a, b;
    sn_seat seat[1];
    (void)none;
    EXPECT(sn_affinity_get(&own));
    int cpu = sn_id_set_next(&own, 0);
    sn_seats s = by_hand(&cpu, seat, 1);
    EXPECT(sn_sitting_before() == NULL);
    EXPECT(sn_sit(&a, &s, 0));
    EXPECT(sn_affinity_get(&now) && sn_id_set_count(&now) == 1 && sn_id_set_has(&now, cpu));
    EXPECT(!a.moved == (sn_id_set_count(&own) == 1));
    EXPECT(!a.moved || memcmp(sn_sitting_before(), &own, sizeof own) == 0);
    EXPECT(sn_sit(&b, &s, 0) && !b.moved); /* it sits there already */
    sn_stand_up(&b);
    EXPECT(sn_affinity_get(&now) && sn_id_set_count(&now) == 1);
    sn_stand_up(&a);
    sn_stand_up(&a); /* does no harm */
    EXPECT(sn_affinity_get(&now) && memcmp(&now, &own, sizeof own) == 0);
    EXPECT(sn_sitting_before() == NULL);
    EXPECT(sn_sit(&a, NULL, 0) && !a.moved);
    sn_stand_up(&a);
    return NULL;
}

static void *keep_a_place_that_is_inside(void *none)
{
    sn_id_set own, one = {{0}}, now;
    sn_sitting a;
    sn_seat seat[2];
    (void)none;
    EXPECT(sn_affinity_get(&own));
    int cpus[2] = {sn_id_set_next(&own, 0), 0};
    cpus[1] = sn_id_set_next(&own, cpus[0] + 1);
    if (cpus[1] < 0)
        return NULL; /* there is only one */
    sn_id_set_add(&one, cpus[1]);
    EXPECT(sn_affinity_set(&one));
    sn_seats s = by_hand(cpus, seat, 2);
    EXPECT(sn_sit(&a, &s, 0) && !a.moved);
    EXPECT(sn_affinity_get(&now) && memcmp(&now, &one, sizeof one) == 0);
    sn_stand_up(&a);
    return NULL;
}

static void *seats_that_are_not_here(void *none)
{
    sn_id_set own, now;
    sn_sitting a;
    sn_seat seat[1];
    int cpu = SN_ID_LIMIT - 1;
    (void)none;
    EXPECT(sn_affinity_get(&own));
    sn_seats s = by_hand(&cpu, seat, 1);
    EXPECT(!sn_sit(&a, &s, 0) && !a.moved);
    sn_stand_up(&a);
    EXPECT(sn_affinity_get(&now) && memcmp(&now, &own, sizeof own) == 0);
    return NULL;
}

TEST(a_thread_sits_down_and_has_its_own_place_again_afterwards)
{
    CHECK_EQ(on_a_thread(sit_and_stand_up), 0);
}

TEST(a_thread_that_somebody_placed_on_these_cpus_stays_there)
{
    CHECK_EQ(on_a_thread(keep_a_place_that_is_inside), 0);
}

TEST(a_seat_that_is_refused_changes_nothing)
{
    CHECK_EQ(on_a_thread(seats_that_are_not_here), 0);
}

TEST(memory_is_bound_where_the_system_lets_us_and_stays_as_it_is)
{
    enum { BYTES = 1 << 20 };
    sn_id_set node = {{1}}, none_such = {{0}};
    size_t counts[8];
    sn_allocator_init_system(&allocator);
    uint8_t *p = sn_alloc(&allocator, BYTES);
    CHECK(p != NULL);
    memset(p, 7, BYTES);
    sn_id_set_add(&none_such, 777);
    const bool bound = sn_memory_bind(p + 64, BYTES - 64, &node);
    CHECK(!sn_memory_bind(p, BYTES, &none_such));
    const size_t seen = sn_memory_where(p, BYTES, counts, 8);
    if (bound && seen) {
        CHECK(counts[0] > 0);
        CHECK(seen <= BYTES / 4096 + 1);
    } else {
        test_skip("policies of memory are refused here");
    }
    sn_memory_unbind(p + 64, BYTES - 64);
    for (size_t i = 0; i < BYTES; i += 4096)
        CHECK_EQ(p[i], 7);
    sn_free(&allocator, p, BYTES);
}

TEST_MAIN()
