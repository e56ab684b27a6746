/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts and sessions that are bound to memory nodes. The machine is made up: two nodes, each
 * with one of the CPUs that this process really may use, so threads do move; or one with 64 cores
 * that are not here, so every placement is refused. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/affinity.h"
#include "machine_tree.h"
#include "sonde/experimental/findings.h"
#include "sonde/experimental/machine.h"
#include "zoo_session.h"

static char root[TEMP_PATH];
static int cpu[2]; /* of node 0 and of node 1 */

/* False: this process may use one CPU only. */
static bool two_nodes(void)
{
    sn_id_set own;
    char path[128];
    if (!sn_affinity_get(&own))
        return false;
    cpu[0] = sn_id_set_next(&own, 0);
    cpu[1] = sn_id_set_next(&own, cpu[0] + 1);
    if (cpu[1] < 0)
        return false;
    temp_make(root);
    tree_put(root, "/sys/devices/system/cpu/online", "%d,%d\n", cpu[0], cpu[1]);
    tree_put(root, "/sys/devices/system/node/online", "0-1\n");
    tree_put(root, "/proc/self/status", "Cpus_allowed_list:\t%d,%d\nMems_allowed_list:\t0-1\n",
             cpu[0], cpu[1]);
    for (int k = 0; k < 2; k++) {
        sprintf(path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu[k]);
        tree_put(root, path, "%d\n", k);
        sprintf(path, "/sys/devices/system/node/node%d/cpulist", k);
        tree_put(root, path, "%d\n", cpu[k]);
        sprintf(path, "/sys/devices/system/node/node%d/distance", k);
        tree_put(root, path, k ? "21 10\n" : "10 21\n");
    }
    setenv("SONDE_SYSTEM_ROOT", root, 1);
    return true;
}

static void far_machine(void)
{
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 1, .cores = 32, .threads = 2});
    /* numbers that this machine does not have */
    tree_put(root, "/sys/devices/system/cpu/online", "8000-8003\n");
    tree_put(root, "/sys/devices/system/node/node0/cpulist", "8000-8001\n");
    tree_put(root, "/sys/devices/system/node/node1/cpulist", "8002-8003\n");
    tree_put(root, "/proc/self/status", "Cpus_allowed_list:\t8000-8003\n");
    setenv("SONDE_SYSTEM_ROOT", root, 1);
}

static bool gone(void)
{
    unsetenv("SONDE_SYSTEM_ROOT");
    unsetenv("SONDE_NUMA");
    return temp_remove(root);
}

typedef struct bound {
    sonde_context *context;
    sonde_model *model;
    sonde_session *session;
    sonde_value *in[MAX_PORTS], *out[MAX_PORTS];
    size_t n_in;
    int warnings;
    char warned[512];
} bound;

static void note_warning(void *user, int level, const char *line)
{
    bound *b = user;
    b->warnings += level <= 2;
    snprintf(b->warned, sizeof b->warned, "%s", line);
}

static sonde_status open_context(bound *b, const char *numa, int threads, sonde_error *err)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    *b = (bound){.n_in = 0};
    o.numa = numa;
    o.threads = threads;
    o.log = note_warning;
    o.log_user = b;
    return sonde_context_create(&o, &b->context, err);
}

static sonde_status open_session(bound *b, const char *model, const sonde_session_options *o,
                                 sonde_error *err)
{
    sonde_status st = zoo_model(b->context, model, &b->model, err);
    if (!st)
        st = sonde_session_create(b->model, o, &b->session, err);
    test_state = 7;
    return st ? st : random_inputs(b->context, b->session, 2, b->in, &b->n_in, err);
}

static sonde_status run(bound *b, sonde_error *err)
{
    release_all(b->out, MAX_PORTS);
    return sonde_session_run(b->session, NULL, NULL, b->in, b->n_in, NULL, b->out,
                             sonde_session_output_count(b->session), err);
}

static void close_all(bound *b)
{
    release_all(b->in, MAX_PORTS);
    release_all(b->out, MAX_PORTS);
    sonde_session_release(b->session);
    sonde_model_release(b->model);
    sonde_context_release(b->context);
}

static sonde_placement placement_of(sonde_session *s)
{
    sonde_placement p = SONDE_INIT(sonde_placement);
    (void)sonde_session_placement(s, &p, NULL);
    return p;
}

TEST(a_bound_context_runs_on_its_node_with_a_thread_for_each_core)
{
    sonde_error err;
    bound b, free_one;
    char text[16];
    sn_id_set before, after;
    if (!two_nodes())
        SKIP_TEST("this process may use one CPU only");
    CHECK(sn_affinity_get(&before));
    CHECK_OK(open_context(&b, "1", 0, &err));
    CHECK_EQ(sonde_context_threads(b.context), 1);
    CHECK_OK(open_session(&b, "tiny_resnet", NULL, &err));
    for (int i = 0; i < 3; i++)
        CHECK_OK(run(&b, &err));
    const sonde_placement p = placement_of(b.session);
    sprintf(text, "%d", cpu[1]);
    CHECK_EQ(p.threads, 1);
    CHECK_STR(p.nodes, "1");
    CHECK_STR(p.cpus, text);
    CHECK_STR(p.memory, "1");
    CHECK_EQ(p.threads_refused, 0);
    CHECK(p.weight_bytes > 0);
    CHECK(p.pages_elsewhere <= p.pages);
    CHECK(sn_affinity_get(&after) && memcmp(&before, &after, sizeof after) == 0);
    CHECK_OK(open_context(&free_one, "off", 1, &err));
    CHECK_OK(open_session(&free_one, "tiny_resnet", NULL, &err));
    CHECK_OK(run(&free_one, &err));
    CHECK_STR(placement_of(free_one.session).nodes, "");
    CHECK(f32_difference(b.out[0], free_one.out[0]) == 0);
    close_all(&free_one);
    close_all(&b);
    CHECK(gone());
}

/* Where the thread runs that asks for memory: during a run that is its caller. */
static sn_id_set seat;
static int asked_on_seat;
static void *note_place(void *user, size_t bytes)
{
    sn_id_set now;
    (void)user;
    asked_on_seat += sn_affinity_get(&now) && memcmp(&now, &seat, sizeof now) == 0;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}
static void give_back(void *user, void *ptr, size_t bytes)
{
    (void)user, (void)bytes;
    free(ptr);
}

TEST(the_caller_is_bound_while_it_runs_and_not_afterwards)
{
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    bound b = {.n_in = 0};
    sn_id_set before, after;
    if (!two_nodes())
        SKIP_TEST("this process may use one CPU only");
    o.numa = "auto";
    o.alloc = note_place;
    o.free = give_back;
    CHECK(sn_affinity_get(&before));
    CHECK_OK(sonde_context_create(&o, &b.context, &err));
    CHECK_OK(open_session(&b, "tiny_mlp", NULL, &err));
    const sonde_placement p = placement_of(b.session);
    CHECK(sn_id_set_parse(p.cpus, &seat, NULL));
    asked_on_seat = 0;
    CHECK_OK(run(&b, &err)); /* its first run, which asks for its arena */
    CHECK(asked_on_seat > 0);
    CHECK(sn_affinity_get(&after) && memcmp(&before, &after, sizeof after) == 0);
    CHECK(sn_affinity_set(&seat)); /* one that is there already stays */
    CHECK_OK(run(&b, &err));
    CHECK(sn_affinity_get(&after) && memcmp(&seat, &after, sizeof after) == 0);
    CHECK(sn_affinity_set(&before));
    sonde_value *const wrong = NULL; /* and after an error, too */
    CHECK(sonde_session_run(b.session, NULL, NULL, &wrong, 0, NULL, b.out, 1, &err) != SONDE_OK);
    CHECK(sn_affinity_get(&after) && memcmp(&before, &after, sizeof after) == 0);
    close_all(&b);
    CHECK(gone());
}

TEST(instances_are_on_the_nodes_in_turn_with_weights_of_their_own)
{
    enum { N = 4 };
    sonde_error err;
    bound b;
    sonde_session *s[N] = {NULL};
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    if (!two_nodes())
        SKIP_TEST("this process may use one CPU only");
    CHECK_OK(open_context(&b, "auto", 0, &err));
    CHECK_OK(open_session(&b, "tiny_resnet", NULL, &err));
    o.instances = N;
    for (o.instance = 0; o.instance < N; o.instance++)
        CHECK_OK(sonde_session_create(b.model, &o, &s[o.instance], &err));
    for (int i = 0; i < N; i++) {
        const sonde_placement p = placement_of(s[i]);
        CHECK_STR(p.nodes, i % 2 ? "1" : "0");
        CHECK_EQ(p.threads, 1);
        sonde_value *out[MAX_PORTS] = {NULL};
        CHECK_OK(run(&b, &err));
        CHECK_OK(sonde_session_run(s[i], NULL, NULL, b.in, b.n_in, NULL, out, 1, &err));
        CHECK(f32_difference(out[0], b.out[0]) == 0);
        release_all(out, MAX_PORTS);
    }
    const sn_program *p[N];
    for (int i = 0; i < N; i++)
        p[i] = sn_session_program(s[i]->core);
    CHECK(p[0] == p[2] && p[1] == p[3]); /* those on one node share them */
    CHECK(p[0] != p[1] && p[0]->packed->data != p[1]->packed->data);
    for (int i = 0; i < N; i++)
        sonde_session_release(s[i]);
    close_all(&b);
    CHECK(gone());
}

TEST(instances_without_nodes_share_threads_and_weights)
{
    sonde_error err;
    bound b;
    sonde_session *s[2] = {NULL};
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    CHECK_OK(open_context(&b, "off", 5, &err));
    CHECK_OK(open_session(&b, "tiny_mlp", NULL, &err));
    o.instances = 2;
    for (o.instance = 0; o.instance < 2; o.instance++) {
        CHECK_OK(sonde_session_create(b.model, &o, &s[o.instance], &err));
        CHECK_EQ(placement_of(s[o.instance]).threads, 2);
    }
    CHECK(sn_session_program(s[0]->core) == sn_session_program(s[1]->core));
    sonde_session_release(s[0]);
    sonde_session_release(s[1]);
    close_all(&b);
}

TEST(a_session_may_be_bound_where_its_context_is_not_and_the_other_way_round)
{
    sonde_error err;
    bound b;
    sonde_session *s = NULL;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    if (!two_nodes())
        SKIP_TEST("this process may use one CPU only");
    CHECK_OK(open_context(&b, "off", 0, &err));
    o.numa = "1";
    CHECK_OK(open_session(&b, "tiny_mlp", &o, &err));
    CHECK_OK(run(&b, &err));
    CHECK_STR(placement_of(b.session).nodes, "1");
    close_all(&b);
    CHECK_OK(open_context(&b, "0", 0, &err));
    CHECK_OK(open_session(&b, "tiny_mlp", NULL, &err));
    o.numa = "off";
    CHECK_OK(sonde_session_create(b.model, &o, &s, &err));
    CHECK_STR(placement_of(s).nodes, "");
    CHECK_STR(placement_of(b.session).nodes, "0");
    o.numa = "0,1"; /* both: memory from each in turn */
    o.threads = 2;
    sonde_session_release(s);
    CHECK_OK(sonde_session_create(b.model, &o, &s, &err));
    CHECK_STR(placement_of(s).memory, "0-1");
    CHECK_EQ(placement_of(s).threads, 2);
    sonde_session_release(s);
    close_all(&b);
    CHECK(gone());
}

TEST(what_cannot_be_bound_is_an_error_and_in_the_environment_a_warning)
{
    sonde_error err;
    bound b;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    if (!two_nodes())
        SKIP_TEST("this process may use one CPU only");
    CHECK_EQ(open_context(&b, "2", 0, &err), SONDE_INVALID_ARGUMENT);
    CHECK_STR(err.message, "there is no memory node 2 on this machine; the nodes are 0-1");
    CHECK_EQ(open_context(&b, "both", 0, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "numa is 'both', expected auto, off, or memory nodes");
    static const char *const wrong[] = {"7", "x", "-1", "0-"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("SONDE_NUMA", wrong[i], 1);
        CHECK_OK(open_context(&b, NULL, 0, &err));
        CHECK_EQ(b.warnings, 1);
        CHECK_HAS(b.warned, wrong[i]);
        CHECK_OK(open_session(&b, "tiny_mlp", NULL, &err));
        CHECK_STR(placement_of(b.session).nodes, "");
        close_all(&b);
    }
    setenv("SONDE_NUMA", "1", 1);
    CHECK_OK(open_context(&b, NULL, 0, &err));
    CHECK_OK(open_session(&b, "tiny_mlp", NULL, &err));
    CHECK_STR(placement_of(b.session).nodes, "1");
    o.numa = "1,5";
    sonde_session *s = NULL;
    CHECK_EQ(sonde_session_create(b.model, &o, &s, &err), SONDE_INVALID_ARGUMENT);
    o.numa = "";
    CHECK_EQ(sonde_session_create(b.model, &o, &s, &err), SONDE_INVALID_ARGUMENT);
    o.numa = NULL;
    o.instances = 2;
    o.instance = 2;
    CHECK_EQ(sonde_session_create(b.model, &o, &s, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "instances is 2");
    o.instances = -1;
    CHECK_EQ(sonde_session_create(b.model, &o, &s, &err), SONDE_INVALID_ARGUMENT);
    close_all(&b);
    CHECK(gone());
}

TEST(a_system_that_refuses_placement_is_run_on_all_the_same)
{
    sonde_error err;
    bound b;
    far_machine();
    CHECK_OK(open_context(&b, "1", 2, &err));
    CHECK_OK(open_session(&b, "tiny_resnet", NULL, &err));
    for (int i = 0; i < 3; i++)
        CHECK_OK(run(&b, &err));
    const sonde_placement p = placement_of(b.session);
    CHECK(p.threads_refused != 0);
    CHECK_STR(p.cpus, "8002-8003");
    CHECK(b.warnings >= 1 && b.warnings <= 2); /* threads once, memory at most once */
    sonde_findings *found = NULL;
    sonde_finding f;
    bool told = false;
    CHECK_OK(sonde_machine_findings(NULL, b.session, &found, &err));
    for (size_t i = 0; sonde_findings_get(found, i, &f, NULL) == SONDE_OK; i++)
        told |= strstr(f.finding, "refuses to bind threads") != NULL;
    CHECK(told);
    sonde_findings_release(found);
    close_all(&b);
    CHECK(gone());
}

TEST(a_forked_child_is_bound_as_its_parent)
{
#if defined(__SANITIZE_THREAD__)
    SKIP_TEST("ThreadSanitizer ends a forked child that starts threads");
#endif
    if (getenv("SONDE_EMULATED"))
        SKIP_TEST("an emulator cannot fork a process with threads");
    sonde_error err;
    bound b;
    if (!two_nodes())
        SKIP_TEST("this process may use one CPU only");
    CHECK_OK(open_context(&b, "0-1", 2, &err));
    CHECK_OK(open_session(&b, "tiny_resnet", NULL, &err));
    CHECK_OK(run(&b, &err));
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(run(&b, &err) == SONDE_OK && strcmp(placement_of(b.session).nodes, "0-1") == 0 ? 0
                                                                                             : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    close_all(&b);
    CHECK(gone());
}

TEST(nodes_of_a_machine_can_be_asked_for)
{
    sonde_error err;
    bound b;
    sonde_machine_node n = SONDE_INIT(sonde_machine_node);
    sonde_machine_info info = SONDE_INIT(sonde_machine_info);
    sonde_findings *found = NULL;
    temp_make(root);
    machine_tree(root, &(machine){.sockets = 2, .nodes = 2, .cores = 8, .threads = 2});
    setenv("SONDE_SYSTEM_ROOT", root, 1);
    CHECK_OK(open_context(&b, NULL, 1, &err));
    CHECK_OK(sonde_machine_node_get(b.context, 3, &n, &err));
    CHECK_EQ(n.id, 3);
    CHECK_EQ(n.socket, 1);
    CHECK_EQ(n.cores, 8);
    CHECK_EQ(n.cpus, 16);
    CHECK(n.has_memory);
    CHECK_EQ(n.memory_bytes, (uint64_t)64 << 30);
    CHECK_EQ(sonde_machine_node_get(b.context, 4, &n, &err), SONDE_NOT_FOUND);
    CHECK_EQ(sonde_machine_node_get(b.context, 0, NULL, &err), SONDE_INVALID_ARGUMENT);
    n.struct_size = 0;
    CHECK_EQ(sonde_machine_node_get(b.context, 0, &n, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_machine_peaks(b.context, &info, &err));
    CHECK_EQ(info.sockets, 2);
    CHECK_EQ(info.memory_nodes, 4);
    CHECK_EQ(info.physical_cores, 32);
    CHECK_EQ(info.threads_per_core, 2);
    CHECK_OK(sonde_machine_findings(b.context, NULL, &found, &err));
    CHECK(sonde_findings_count(found) >= 2);
    sonde_findings_release(found);
    CHECK_EQ(sonde_machine_findings(b.context, NULL, NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_session_placement(NULL, NULL, &err), SONDE_INVALID_ARGUMENT);
    close_all(&b);
    CHECK(gone());
}

/* A quantity of memory that lies in several places, so that every allocation of a bound life fails
 * once. */
typedef struct counted {
    long fail_at, calls, live;
} counted;

static void *counted_take(void *user, size_t bytes)
{
    counted *m = user;
    if (m->calls++ >= m->fail_at)
        return NULL;
    m->live++;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void counted_give(void *user, void *ptr, size_t bytes)
{
    (void)bytes;
    ((counted *)user)->live -= ptr != NULL;
    free(ptr);
}

TEST(memory_that_runs_out_while_binding_is_said_and_nothing_is_left)
{
    sonde_error err;
    if (!two_nodes())
        SKIP_TEST("this process may use one CPU only");
    bool done = false;
    for (long at = 0; !done; at++) {
        counted m = {.fail_at = at};
        sonde_context_options o = SONDE_INIT(sonde_context_options);
        sonde_session_options so = SONDE_INIT(sonde_session_options);
        bound b = {.n_in = 0};
        sonde_findings *found = NULL;
        o.alloc = counted_take;
        o.free = counted_give;
        o.alloc_user = &m;
        o.numa = "0";
        so.instances = 2;
        so.instance = 1;
        sonde_status st = sonde_context_create(&o, &b.context, &err);
        if (!st)
            st = open_session(&b, "tiny_mlp", &so, &err);
        if (!st)
            st = run(&b, &err);
        if (!st)
            st = sonde_machine_findings(NULL, b.session, &found, &err);
        sonde_findings_release(found);
        done = st == SONDE_OK;
        close_all(&b);
        CHECK_EQ(m.live, 0);
        CHECK_MSG(done || st == SONDE_OUT_OF_MEMORY, "call %ld: %s", at, err.message);
    }
    CHECK(gone());
}

TEST_MAIN()
